// Programs of several blocks: tiles are spread over a cluster, reductions, scans and the results of atomics go through
// its shared memory. The interpreter says what is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "backend/compile.h"
#include "backend/ir/builder.h"
#include "dsl/tools/fuzz/compare.h"
#include "runtime/base/error.h"
#include "tests/support/ptxas.h"

namespace kiln::fuzz {
namespace {

using ir::Op;
using ir::Shape;
using ir::Value;
using ::testing::HasSubstr;

constexpr SourceLoc kHere{"cluster.cpp", 7};

/// Builds a program on one memory: parameter 0 points to it, everything is i32.
class Kernel {
 public:
  Kernel() : f_("rows", kHere), b_(f_) {
    f_.params.push_back({ir::Type::pointer(DType::i32), "", rt::Access::ReadWrite, 16, false});
    base_ = b_.param(0, kHere);
    mine_ = ew(Op::Mul, b_.program_id(0, kHere), index(kProgramMemory / 4));
  }
  Value index(std::int64_t i) { return b_.constant(ir::Literal::of_int(DType::index, i), kHere); }
  Value ew(Op op, Value x, Value y) { return b_.elementwise(op, {x, y}, kHere); }
  /// Addresses of a tile, row-major, from element `first` of the program's memory on.
  Value at(const Shape& s, std::int64_t first) {
    const Value start = b_.ptr_add(base_, ew(Op::Add, mine_, index(first)), kHere);
    if (s.empty()) return start;
    Value offset;
    std::int64_t stride = 1;
    for (std::size_t axis = s.size(); axis-- > 0; stride *= s[axis]) {
      Value x = ew(Op::Mul, b_.arange(0, s[axis], kHere), b_.splat(index(stride), {s[axis]}, kHere));
      x = along(x, s, axis);
      offset = offset.valid() ? ew(Op::Add, offset, x) : x;
    }
    return b_.ptr_add(b_.splat(start, s, kHere), offset, kHere);
  }
  Value along(Value x, const Shape& s, std::size_t axis) {
    for (std::size_t a = 0; a < s.size(); ++a)
      if (a != axis) x = b_.expand_dims(x, int(a), kHere);
    return f_.type(x).shape == s ? x : b_.broadcast(x, s, kHere);
  }
  Value load(const Shape& s, std::int64_t first) { return b_.load(at(s, first), {}, {}, ir::CacheHint::Plain, kHere); }
  void store(Value x, std::int64_t first) {
    const ir::Type t = f_.type(x);
    b_.store(at(t.tile ? t.shape : Shape{}, first), x, {}, ir::CacheHint::Plain, kHere);
  }
  /// Over `axis`; `last`: the last element instead of an op's combination, which does not commute.
  Value reduce(Value x, std::int64_t axis, Op op, bool last = false) {
    const ir::InstId inst = b_.append(Op::Reduce, {x}, {}, {ir::Attr{ir::AttrKey::axis, axis}}, kHere);
    const ir::RegionId region = f_.add_region(inst), outer = b_.region();
    const Value a = f_.add_region_param(region, ir::Type::scalar(DType::i32));
    const Value b = f_.add_region_param(region, ir::Type::scalar(DType::i32));
    b_.set_region(region);
    b_.append(Op::Yield, {last ? b : ew(op, a, b)}, {}, {}, kHere);
    b_.set_region(outer);
    return f_.inst(inst).results[0];
  }
  /// Running sums along `axis`.
  Value sums(Value x, std::int64_t axis, bool reverse) {
    return scan({x}, axis, reverse, {},
                [&](const std::vector<Value>& p) { return std::vector{ew(Op::Add, p[0], p[1])}; })[0];
  }
  /// (a, b) ∘ (c, d) = (a c, b c + d) along `axis`, which does not commute; `start`: what goes before it, exclusive.
  std::vector<Value> recurrence(Value x, Value y, std::int64_t axis, bool reverse, std::optional<std::int64_t> start) {
    return scan({x, y}, axis, reverse, start, [&](const std::vector<Value>& p) {
      return std::vector{ew(Op::Mul, p[0], p[2]), ew(Op::Add, ew(Op::Mul, p[1], p[2]), p[3])};
    });
  }
  /// What `*p += x` found there.
  Value add_to(Value p, Value x) {
    return b_.make(Op::AtomicRmw, {p, x},
                   {{ir::AttrKey::rmw, std::int64_t(ir::Rmw::Add)},
                    {ir::AttrKey::semantics, std::int64_t(ir::MemoryOrder::AcqRel)},
                    {ir::AttrKey::scope, std::int64_t(ir::MemoryScope::Gpu)}},
                   kHere);
  }
  Value flip(Value x) { return b_.make(Op::Flip, {x}, {ir::Attr{ir::AttrKey::axis, std::int64_t{0}}}, kHere); }
  Value splat(Value x, const Shape& s) { return b_.splat(x, s, kHere); }

  Program program(int cluster, int warps) const {
    Program p;
    p.seed = 5;
    p.function = f_;
    p.programs = {3, 1, 1};
    p.args = {0};
    p.options.cluster = cluster;
    p.options.num_warps = warps;
    return p;
  }

 private:
  template <class Body>
  std::vector<Value> scan(std::vector<Value> tiles, std::int64_t axis, bool reverse, std::optional<std::int64_t> start,
                          const Body& body) {
    const std::size_t n = tiles.size();
    for (std::size_t i = 0; start && i < n; ++i)
      tiles.push_back(b_.constant(ir::Literal::of_int(DType::i32, *start + std::int64_t(i)), kHere));
    const ir::InstId inst = b_.append(Op::Scan, tiles, {},
                                      {{ir::AttrKey::axis, axis},
                                       {ir::AttrKey::reverse, std::int64_t(reverse)},
                                       {ir::AttrKey::exclusive, std::int64_t(start.has_value())}},
                                      kHere);
    const ir::RegionId region = f_.add_region(inst), outer = b_.region();
    std::vector<Value> params;
    for (std::size_t i = 0; i < 2 * n; ++i) params.push_back(f_.add_region_param(region, ir::Type::scalar(DType::i32)));
    b_.set_region(region);
    b_.append(Op::Yield, body(params), {}, {}, kHere);
    b_.set_region(outer);
    return f_.inst(inst).results;
  }

  ir::Function f_;
  ir::Builder b_;
  Value base_, mine_;
};

/// Sum, largest and last element of a row, and the row with them.
Kernel rows(std::int64_t n) {
  Kernel k;
  const Value x = k.load({n}, 0);
  const Value sum = k.reduce(x, 0, Op::Add), most = k.reduce(x, 0, Op::Max), last = k.reduce(x, 0, Op::Add, true);
  k.store(k.ew(Op::Sub, k.ew(Op::Add, x, k.splat(sum, {n})), k.splat(most, {n})), n);
  k.store(sum, 2 * n);
  k.store(most, 2 * n + 1);
  k.store(last, 2 * n + 2);
  return k;
}

/// Reductions over each axis of a tile of two.
Kernel planes(const Shape& s) {
  Kernel k;
  const std::int64_t n = s[0] * s[1];
  const Value x = k.load(s, 0);
  const Value down = k.reduce(x, 0, Op::Xor), across = k.reduce(x, 1, Op::Add);
  k.store(k.ew(Op::Add, x, k.along(down, s, 1)), n);
  k.store(k.ew(Op::Sub, x, k.along(across, s, 0)), 2 * n);
  return k;
}

/// Running sums of a row, and a recurrence over pairs, inclusive and exclusive.
Kernel scanned_rows(std::int64_t n, bool reverse) {
  Kernel k;
  const Value x = k.load({n}, 0), y = k.load({n}, n);
  k.store(k.sums(x, 0, reverse), 2 * n);
  std::int64_t at = 3 * n;
  for (const std::optional<std::int64_t> start : {std::optional<std::int64_t>(), std::optional<std::int64_t>(3)})
    for (const Value v : k.recurrence(x, y, 0, reverse, start)) {
      k.store(v, at);
      at += n;
    }
  return k;
}

/// Scans along each axis of a tile of two, of which one leaves threads of several blocks with equal elements.
Kernel scanned_planes(const Shape& s, bool reverse) {
  Kernel k;
  const std::int64_t n = s[0] * s[1];
  const Value x = k.load(s, 0);
  k.store(k.sums(x, 0, reverse), n);
  k.store(k.recurrence(x, x, 1, reverse, 5)[1], 2 * n);
  const Value down = k.reduce(x, 0, Op::Add);
  k.store(k.sums(down, 0, reverse), 3 * n);
  return k;
}

/// Every element of a row and one element are added to once, whatever threads hold them; all see what was there.
Kernel updates(std::int64_t n) {
  Kernel k;
  const Value x = k.load({n}, 0);
  const Value was = k.add_to(k.at({n}, n), x);
  const Value one = k.add_to(k.at({}, 2 * n), k.reduce(x, 0, Op::Add));
  k.store(k.ew(Op::Sub, was, k.splat(one, {n})), 3 * n);
  return k;
}

std::vector<Device> devices_with_clusters() {
  std::vector<Device> found = Device::all();
  std::erase_if(found, [](const Device& d) { return !target_named(d.target(), d.ptx_version()).has_cluster(); });
  return found;
}

TEST(Clusters, ReductionsOfRowsSpanAllBlocks) {
  for (const Device& device : devices_with_clusters())
    for (const int cluster : {2, 4, 8})
      for (const int warps : {1, 4})
        for (const std::int64_t n : {1, 3, 127, 1000, 2048})
          EXPECT_EQ(difference(device, rows(n).program(cluster, warps)), "")
              << device.name() << ", cluster " << cluster << ", " << warps << " warps, " << n << " elements";
}

TEST(Clusters, ReductionsOverEachAxisSpanAllBlocks) {
  for (const Device& device : devices_with_clusters())
    for (const int cluster : {2, 4})
      for (const Shape& s : {Shape{4, 256}, Shape{33, 17}, Shape{64, 8}})
        EXPECT_EQ(difference(device, planes(s).program(cluster, 2)), "")
            << device.name() << ", cluster " << cluster << ", " << s[0] << "x" << s[1];
}

TEST(Clusters, ScansOfRowsSpanAllBlocks) {
  for (const Device& device : devices_with_clusters())
    for (const int cluster : {2, 4, 8})
      for (const int warps : {1, 4})
        for (const bool reverse : {false, true})
          for (const std::int64_t n : {1, 3, 127, 500})
            EXPECT_EQ(difference(device, scanned_rows(n, reverse).program(cluster, warps)), "")
                << device.name() << ", cluster " << cluster << ", " << warps << " warps, " << n << " elements, reverse "
                << reverse;
}

TEST(Clusters, ScansAlongEachAxisSpanAllBlocks) {
  for (const Device& device : devices_with_clusters())
    for (const int cluster : {2, 4})
      for (const bool reverse : {false, true})
        for (const Shape& s : {Shape{4, 256}, Shape{33, 17}, Shape{64, 8}})
          EXPECT_EQ(difference(device, scanned_planes(s, reverse).program(cluster, 2)), "")
              << device.name() << ", cluster " << cluster << ", " << s[0] << "x" << s[1] << ", reverse " << reverse;
}

TEST(Clusters, AtomicsHappenOnceAndAllBlocksSeeTheirResults) {
  for (const Device& device : devices_with_clusters())
    for (const int cluster : {2, 8})
      for (const int warps : {1, 4})
        for (const std::int64_t n : {1, 8, 127, 1000})
          EXPECT_EQ(difference(device, updates(n).program(cluster, warps)), "")
              << device.name() << ", cluster " << cluster << ", " << warps << " warps, " << n << " elements";
}

TEST(Clusters, TheAssemblerTakesThem) {
  const auto tool = test::ptxas();
  if (!tool) GTEST_SKIP() << "ptxas is not installed";
  for (const Kernel& k : {rows(1000), scanned_rows(500, true), updates(100)})
    for (const std::string target : {"sm_90a", "sm_100a", "sm_120a"}) {
      const Program p = k.program(4, 4);
      const test::Assembly a = test::assemble(*tool, compile(p.function, target_named(target), p.options).ptx, target);
      EXPECT_TRUE(a.accepted) << target << ": " << a.log;
    }
}

std::string refusal(const Program& p, const std::string& target = "sm_90a") {
  try {
    compile(p.function, target_named(target), p.options);
  } catch (const UserError& e) {
    return e.what();
  }
  return "compiled";
}

TEST(Clusters, WhatCannotSpanBlocksIsRefused) {
  EXPECT_THAT(refusal(rows(64).program(2, 1), "sm_80"), HasSubstr("cluster is 2, but sm_80 has no clusters"));
  EXPECT_THAT(refusal(rows(64).program(3, 1)), HasSubstr("cluster is 3, must be 1, 2, 4 or 8"));
  EXPECT_THAT(refusal(rows(64).program(16, 1)), HasSubstr("cluster is 16, must be 1, 2, 4 or 8"));
  Kernel k;
  k.store(k.flip(k.load({64}, 0)), 64);
  EXPECT_THAT(refusal(k.program(2, 1)), HasSubstr("cluster is 2, but flip works inside one block: it must be 1"));
}

// What is left of one reduction stands in layouts that have no block bits where the next wants them.
TEST(Clusters, ElementsThatWouldChangeTheirBlockAreRefused) {
  const Program p = parse(R"(// seed 244
// programs 1 1 1
// warps 0
// cluster 8
// arguments 1648
kernel "random" stage=traced
param : ptr<i32> access=readwrite align=16
{
  %0 = param index=0 : ptr<i32>
  %1 = constant value=i32(1) : i32
  %2 = splat %1 : tile<3x128xi32>
  %3 = reduce axis=1 %2 : tile<3xi32> {(%4 : i32, %5 : i32)
    yield %4
  }
  %6 = cast %3 : tile<3xi16>
  %7 = constant value=i8(0) : i8
  %8 = splat %7 : tile<3xi8>
  %9, %10 = reduce axis=0 %8, %6 : i8, i16 {(%11 : i8, %12 : i16, %13 : i8, %14 : i16)
    yield %13, %14
  }
  %15 = cast %10 : i32
  store %0, %15
}
)",
                          "text");
  EXPECT_THAT(refusal(p), HasSubstr("random: cluster is 8, but tile<3xi16> is needed in two layouts, and its elements do "
                                    "not move between blocks: it must be 1"));
}

}  // namespace
}  // namespace kiln::fuzz
