// Every op that rearranges tiles, with operands and results in random layouts: elements arrive whatever the layouts
// are.
#include <numeric>
#include <random>

#include "backend/ir/builder.h"
#include "backend/ir/eval.h"
#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/movement.h"
#include "backend/ir/op/operand_layout.h"
#include "backend/pass/artefacts.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"
#include "runtime/device.h"
#include "runtime/device_impl.h"
#include "tests/emit/emit_fixture.h"
#include "tests/layout/random_layout.h"

namespace kiln::test {
namespace {

using ir::AttrKey;
using ir::Op;

constexpr Op kOps[] = {Op::Reshape, Op::Permute, Op::Join, Op::Split, Op::Slice, Op::Cat, Op::Flip, Op::Gather};

/// y = op(x, …) of tiles of random extents; y is as large as the result.
class Program {
 public:
  Program(Op op, DType dtype, std::mt19937& random) : f("shape"), random_(random), b_(f) {
    f.params = {{ir::Type::pointer(dtype, true), "x", rt::Access::Read, 8, false},
                {ir::Type::pointer(dtype), "y", rt::Access::Write, 8, false}};
    const ir::Shape shape = extents();
    std::int64_t n = 1;
    for (std::int64_t e : shape) n *= e;
    elements = n;
    const ir::Value x = reshaped(load(n), shape);
    std::vector<ir::Value> results;
    const std::int64_t axis = below(std::int64_t(shape.size())), extent = shape[std::size_t(axis)];
    const ir::Attr along{AttrKey::axis, axis};
    switch (op) {
      case Op::Reshape: results = {reshaped(x, dealt(n))}; break;
      case Op::Permute: {
        std::vector<std::int64_t> order(shape.size());
        std::iota(order.begin(), order.end(), std::int64_t(0));
        std::shuffle(order.begin(), order.end(), random_);
        results = {make(op, {x}, {{AttrKey::order, order}})};
        break;
      }
      case Op::Join: results = {make(op, {x, make(Op::Flip, {x}, {along})}, {})}; break;
      case Op::Split: {
        ir::Shape halves = shape;
        halves.push_back(2);
        const ir::Value pairs = reshaped(load(2 * n), halves);
        elements = 2 * n;
        results = f.inst(b_.append(op, {pairs}, {}, {}, {})).results;
        break;
      }
      case Op::Slice: {
        const std::int64_t start = below(extent), end = start + 1 + below(extent - start);
        results = {make(op, {x}, {along, {AttrKey::start, start}, {AttrKey::end, end}})};
        break;
      }
      case Op::Cat: {
        const std::int64_t end = 1 + below(extent);
        results = {make(op, {x, make(Op::Slice, {x}, {along, {AttrKey::start, std::int64_t(0)}, {AttrKey::end, end}})},
                        {along})};
        break;
      }
      case Op::Flip: results = {make(op, {x}, {along})}; break;
      default: {  // gather
        ir::Shape places = shape;
        places[std::size_t(axis)] = 1 + below(extent + 3);
        std::int64_t m = 1;
        for (std::int64_t e : places) m *= e;
        const ir::Value at =
            b_.elementwise(Op::Rem, {b_.arange(0, m, {}), b_.splat(constant(extent + 1), {m}, {})}, {});
        results = {make(op, {x, reshaped(at, places)}, {along})};
      }
    }
    for (ir::Value r : results) store(r);
  }

  ir::Function f;
  std::int64_t elements = 0;  ///< of x
  std::int64_t stored = 0;    ///< of y

 private:
  std::int64_t below(std::int64_t n) { return std::int64_t(random_() % std::uint64_t(n)); }
  ir::Shape extents() {
    ir::Shape s(std::size_t(1 + below(3)));
    for (std::int64_t& e : s) e = below(2) ? std::int64_t(1) << below(5) : 1 + below(s.size() == 1 ? 200 : 12);
    return s;
  }
  ir::Shape dealt(std::int64_t n) {
    ir::Shape s(std::size_t(1 + below(3)), 1);
    for (std::int64_t p = 2; n > 1;)
      if (n % p == 0) s[std::size_t(below(std::int64_t(s.size())))] *= p, n /= p;
      else ++p;
    return s;
  }
  ir::Value constant(std::int64_t v) { return b_.constant(ir::Literal::of_int(DType::index, v), {}); }
  ir::Value make(Op op, std::vector<ir::Value> v, std::vector<ir::Attr> attrs, std::optional<ir::Type> t = {}) {
    return b_.make(op, std::move(v), std::move(attrs), {}, std::move(t));
  }
  ir::Value reshaped(ir::Value x, const ir::Shape& s) { return make(Op::Reshape, {x}, {}, f.type(x).with_shape(s)); }
  ir::Value pointers(int param, std::int64_t from, std::int64_t n) {
    return b_.ptr_add(b_.splat(b_.param(param, {}), {n}, {}), b_.arange(from, from + n, {}), {});
  }
  ir::Value load(std::int64_t n) { return b_.load(pointers(0, 0, n), {}, {}, ir::CacheHint::Plain, {}); }
  void store(ir::Value r) {
    const std::int64_t n = f.type(r).elements();
    b_.store(pointers(1, stored, n), reshaped(r, {n}), {}, ir::CacheHint::Plain, {});
    stored += n;
  }

  std::mt19937& random_;
  ir::Builder b_;
};

ir::Function laid(ir::Function f, int warps) {
  const Target target;
  CompileOptions options;
  options.num_warps = warps;
  ir::Artefacts artefacts(f, target, options);
  ir::PassRunner runner(target, options, nullptr, artefacts, 1);
  for (ir::Pass p : {ir::Pass::infer_facts, ir::Pass::canonicalise, ir::Pass::choose_exec, ir::Pass::assign_layouts})
    runner.run(p, f);
  return f;
}

/// Operands and results of every op that rearranges get random layouts, with conversions around it.
class Scrambler {
 public:
  Scrambler(ir::Function& f, std::mt19937& random) : f_(f), random_(random) {
    std::vector<ir::InstId> found;
    ir::walk(f, [&](ir::InstId i) {
      if (std::find(std::begin(kOps), std::end(kOps), f.inst(i).op) != std::end(kOps)) found.push_back(i);
    });
    for (ir::InstId i : found) scramble(i);
  }

 private:
  ir::LayoutId any(const ir::Shape& shape) {
    const bool mixed = random_() % 3 == 0, replicated = random_() % 3 == 0;
    return f_.intern(random_layout(random_, {ir::padded(shape), f_.exec->warps, mixed, replicated}));
  }
  ir::Value converted(ir::InstId before, ir::Value v, ir::LayoutId l) {
    ir::Type type = f_.type(v);
    type.layout = l;
    const ir::InstId c = f_.create(Op::Convert, {v}, {type}, {}, {});
    f_.insert_before(before, c);
    return f_.inst(c).results[0];
  }
  void scramble(ir::InstId i) {
    const std::vector<ir::InstId>& order = f_.region(f_.inst(i).parent).insts;
    const ir::InstId next = *(std::find(order.begin(), order.end(), i) + 1);
    for (ir::Value r : std::vector<ir::Value>(f_.inst(i).results)) {
      ir::Type type = f_.type(r);
      const ir::LayoutId before = type.layout;
      type.layout = any(type.shape);
      f_.set_type(r, type);
      const std::vector<ir::InstId> users = f_.users(r);
      const ir::Value back = converted(next, r, before);
      for (ir::InstId u : users)
        for (std::size_t k = 0; k < f_.inst(u).operands.size(); ++k)
          if (f_.inst(u).operands[k] == r) f_.set_operand(u, k, back);
    }
    const ir::Inst inst = f_.inst(i);
    ir::LayoutId first = ir::kNoLayout;
    for (std::size_t k = 0; k < inst.operands.size(); ++k) {
      ir::LayoutId l = any(f_.type(inst.operands[k]).shape);
      if (inst.op == Op::Gather && k == 1) l = f_.type(inst.results[0]).layout;
      if (inst.op == Op::Join && k == 1) l = first;
      if (k == 0) first = l;
      f_.set_operand(i, k, converted(i, inst.operands[k], l));
    }
  }

  ir::Function& f_;
  std::mt19937& random_;
};

std::byte* bytes_of(std::vector<std::uint8_t>& v) { return reinterpret_cast<std::byte*>(v.data()); }

TEST(ShapeLayouts, ElementsArriveInAnyLayouts) {
  constexpr DType kDtypes[] = {DType::u8, DType::i16, DType::f32, DType::i64};
  std::mt19937 random(11);
  for (int trial = 0; trial < 160; ++trial) {
    const DType dtype = kDtypes[random() % 4];
    Program p(kOps[trial % 8], dtype, random);
    const auto size = std::size_t(bytes(dtype));
    std::vector<std::uint8_t> x(std::size_t(p.elements) * size), y(std::size_t(p.stored) * size, std::uint8_t(0xEE));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::uint8_t(i * 2654435761u >> 7);
    std::vector<std::uint8_t> expected = y;
    ir::eval(p.f, {}, {{DType::u64, 0x10000}, {DType::u64, 0x1000000}},
             {{bytes_of(x), x.size(), 0x10000}, {bytes_of(expected), expected.size(), 0x1000000}});
    ir::Function f = laid(p.f, 1 << random() % 3);
    Scrambler(f, random);
    for (const Device& device : Device::all()) {
      rt::KernelImage image = compile(f, target_named(device.target(), device.ptx_version()), {});
      const auto kernel = device.load(image);
      Stream stream(device);
      Buffer<std::uint8_t> in(device, x.size()), out(device, y.size());
      in.upload(x), out.upload(y);
      const std::uint64_t params[2] = {in.ptr(), out.ptr()};
      kernel->launch(stream.impl(), {}, params, sizeof params);
      stream.synchronize();
      std::vector<std::uint8_t> got(y.size());
      out.download(got);
      ASSERT_EQ(got == expected, true) << "trial " << trial << "\n" << ir::print(f);
    }
  }
}

// Where only bits are renamed, the operand's layout that the op asks for leaves every element in its thread.
TEST(ShapeLayouts, RenamedBitsStayInTheirThreads) {
  std::mt19937 random(12);
  int renamed = 0;
  for (int trial = 0; trial < 200; ++trial) {
    constexpr Op kRenaming[] = {Op::Reshape, Op::Permute, Op::Join, Op::Split};
    const Op op = kRenaming[trial % 4];
    ir::Function f = laid(Program(op, DType::f32, random).f, 4);
    ir::walk(f, [&](ir::InstId i) {
      if (f.inst(i).op != op) return;
      ir::Inst inst = f.inst(i);
      const ir::Shape shape = f.type(inst.results[0]).shape, from = f.type(inst.operands[0]).shape;
      const auto power_of_two = [](std::int64_t e) { return (e & (e - 1)) == 0; };
      if (op == Op::Reshape && !(std::all_of(shape.begin(), shape.end(), power_of_two) &&
                                 std::all_of(from.begin(), from.end(), power_of_two)))
        return;
      const ir::LinearLayout l = random_layout(random, {ir::padded(shape), 4, random() % 2 == 0, random() % 3 == 0});
      for (ir::Value r : inst.results) {
        ir::Type type = f.type(r);
        type.layout = f.intern(l);
        f.set_type(r, type);
      }
      for (std::size_t k = 0; k < inst.operands.size(); ++k) {
        ir::Type type = f.type(inst.operands[k]);
        type.layout = f.intern(ir::operand_layout(f, inst, k, l));
        f.set_type(inst.operands[k], type);
      }
      for (std::size_t r = 0; r < inst.results.size(); ++r) {
        const ir::Movement m = ir::movement(f, inst, r);
        EXPECT_FALSE(m.shared) << ir::print(f);
        for (const auto& places : m.regs)
          for (const ir::Movement::Place& place : places) EXPECT_EQ(place.lane_xor, 0);
        ++renamed;
      }
    });
  }
  EXPECT_GT(renamed, 150);
}

}  // namespace
}  // namespace kiln::test
