// Reductions and scans in given layouts: the code gives what the evaluation of the laid function gives, bit for bit.
#include <cstring>
#include <functional>

#include "backend/ir/builder.h"
#include "backend/ir/eval.h"
#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/operand_layout.h"
#include "backend/ir/verify.h"
#include "backend/pass/artefacts.h"
#include "backend/pass/pass.h"
#include "runtime/device.h"
#include "runtime/device_impl.h"
#include "tests/emit/emit_fixture.h"

namespace kiln::test {
namespace {

using namespace ir;
using Values = std::vector<Value>;
constexpr std::size_t kHalf = 1 << 20;  // bytes of input, and of output

/// A combination of groups of scalars.
struct Combination {
  const char* name;
  std::vector<DType> types;
  std::function<Values(Builder&, const Values&)> yields;
  bool rounds = false;  ///< so that the order shows in the result
};

Combination elementwise_combination(const char* name, Op op, DType d) {
  return {name,
          {d},
          [=](Builder& b, const Values& p) {
            return Values{b.elementwise(op, {p[0], p[1]}, {})};
          },
          is_float(d) && op == Op::Add};
}

/// (a, b) ∘ (c, d) = (a c, b c + d): associative in wrapping integers, and does not commute.
Combination affine(DType d) {
  return {"affine", {d, d}, [](Builder& b, const Values& p) {
            const Value product = b.elementwise(Op::Mul, {p[1], p[2]}, {});
            return Values{b.elementwise(Op::Mul, {p[0], p[2]}, {}), b.elementwise(Op::Add, {product, p[3]}, {})};
          }};
}

/// The right operand, if it is not zero.
Combination last_nonzero(DType d) {
  return {"last nonzero", {d}, [d](Builder& b, const Values& p) {
            const Value zero = b.constant(Literal::of_int(d, 0), {});
            return Values{b.select(b.elementwise(Op::Ne, {p[1], zero}, {}), p[1], p[0], {})};
          }};
}

/// The larger value and the lowest position that has it.
Combination arg_max() {
  return {"argmax", {DType::f32, DType::index}, [](Builder& b, const Values& p) {
            const Value best = b.elementwise(Op::Max, {p[0], p[2]}, {});
            const Value none = b.constant(Literal::of_int(DType::index, 1 << 20), {});
            const Value first = b.select(b.elementwise(Op::Eq, {p[0], best}, {}), p[1], none, {});
            const Value second = b.select(b.elementwise(Op::Eq, {p[2], best}, {}), p[3], none, {});
            return Values{best, b.elementwise(Op::Min, {first, second}, {})};
          }};
}

struct Case {
  Shape shape;
  LinearLayout layout;
  int warps, axis;
  Combination combination;
  bool scan = false, reverse = false, exclusive = false;

  std::string str() const {
    return std::string(combination.name) + (scan ? " scan" : "") + (reverse ? " reverse" : "") +
           (exclusive ? " exclusive" : "") + " of " + name(combination.types[0]) + " along axis " +
           std::to_string(axis) + " of " + Type::tile_of(DType::i1, shape).str() + " in " + layout.str();
  }
};

Value pointers(Builder& b, Value base, const Shape& shape) {
  std::int64_t stride = 1;
  Value offset;
  for (std::size_t a = shape.size(); a-- > 0; stride *= shape[a]) {
    Value i = b.arange(0, shape[a], {});
    for (std::size_t k = 0; k < a; ++k) i = b.expand_dims(i, 0, {});
    for (std::size_t k = a + 1; k < shape.size(); ++k) i = b.expand_dims(i, int(k), {});
    i = b.broadcast(i, shape, {});
    if (stride > 1)
      i = b.elementwise(Op::Mul, {i, b.splat(b.constant(Literal::of_int(DType::index, stride), {}), shape, {})}, {});
    offset = offset.valid() ? b.elementwise(Op::Add, {offset, i}, {}) : i;
  }
  return b.ptr_add(b.splat(base, shape, {}), offset, {});
}

/// Gives `v` and all it is computed from their layouts.
void lay(Function& f, Value v, const LinearLayout& l) {
  Type t = f.type(v);
  t.layout = f.intern(l);
  f.set_type(v, t);
  const Inst inst = f.inst(f.def(v));
  for (std::size_t k = 0; k < inst.operands.size(); ++k)
    if (f.type(inst.operands[k]).tile) lay(f, inst.operands[k], operand_layout(f, inst, k, l));
}

/// Loads, combines, stores; `laid`: in the layout of the case.
Function function_of(const Case& c, bool laid = true) {
  Function f("k", SourceLoc{"k.cpp", 1, 1});
  Builder b(f);
  Values x;
  const std::size_t n = c.combination.types.size();
  for (std::size_t k = 0; k < n; ++k) {
    const DType d = c.combination.types[k];
    f.params.push_back({Type::pointer(d, true), "x" + std::to_string(k), rt::Access::Read, 16, false});
    const Value p = pointers(b, b.param(int(f.params.size()) - 1, {}), c.shape);
    x.push_back(b.load(p, {}, {}, CacheHint::Plain, {}));
    if (laid) lay(f, x.back(), c.layout);
  }
  std::vector<Attr> attrs{{AttrKey::axis, std::int64_t(c.axis)}};
  if (c.reverse) attrs.push_back({AttrKey::reverse, std::int64_t(1)});
  if (c.exclusive) attrs.push_back({AttrKey::exclusive, std::int64_t(1)});
  Values operands = x;
  for (std::size_t k = 0; c.exclusive && k < n; ++k)
    operands.push_back(b.constant(Literal::of_int(c.combination.types[k], std::int64_t(k) + 3), {}));
  const InstId i = b.append(c.scan ? Op::Scan : Op::Reduce, operands, {}, attrs, {});
  const RegionId region = f.add_region(i);
  Values params;
  for (std::size_t k = 0; k < 2 * n; ++k)
    params.push_back(f.add_region_param(region, Type::scalar(c.combination.types[k % n])));
  b.set_region(region);
  b.append(Op::Yield, c.combination.yields(b, params), {}, {}, {});
  b.set_region(f.body());
  const LinearLayout out = c.scan ? c.layout : c.layout.slice(c.axis).without_free_registers();
  for (std::size_t k = 0; k < n; ++k) {
    const Value y = f.inst(i).results[k];
    const Type t = f.type(y);
    f.params.push_back({Type::pointer(t.dtype), "y" + std::to_string(k), rt::Access::Write, 16, false});
    Value p = b.param(int(f.params.size()) - 1, {});
    if (t.tile) p = pointers(b, p, t.shape);
    if (t.tile && laid) {
      lay(f, p, out);
      Type type = t;
      type.layout = f.intern(out);
      f.set_type(y, type);
    }
    b.store(p, y, {}, CacheHint::Plain, {});
  }
  if (!laid) return f;
  f.exec = Exec{};
  f.exec->warps = c.warps;
  f.stage = Stage::Laid;
  return f;
}

/// Small numbers of either sign.
void fill(std::byte* at, DType d, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto h = std::uint32_t(i * 2654435761u) >> 8;
    const double v = double(std::int64_t(h % 2001) - 1000) / 48;  // sums round
    const Literal l = is_float(d)      ? Literal::of_float(d, v)
                      : d == DType::i1 ? Literal{d, h % 3 == 0}
                                       : Literal::of_int(d, std::int64_t(h % 251) * (h % 7 - 3));
    std::memcpy(at + i * std::size_t(bytes(d)), &l.bits, std::size_t(bytes(d)));
  }
}

/// Fills the inputs; offsets of all arrays in the memory.
std::vector<std::size_t> arguments(const Case& c, std::vector<std::byte>& memory) {
  std::vector<std::size_t> offsets;
  std::size_t n = 1, at = 0;
  for (std::int64_t e : c.shape) n *= std::size_t(e);
  for (DType d : c.combination.types) {
    offsets.push_back(at);
    fill(memory.data() + at, d, n);
    at += (n * std::size_t(bytes(d)) + 255) / 256 * 256;
  }
  at = kHalf;
  for (DType d : c.combination.types) {
    offsets.push_back(at);
    at += (n * std::size_t(bytes(d)) + 255) / 256 * 256;
  }
  return offsets;
}

std::vector<std::byte> evaluated(const Function& f, const Case& c) {
  std::vector<std::byte> memory(2 * kHalf);
  const std::vector<std::size_t> offsets = arguments(c, memory);
  std::vector<EvalArg> args;
  for (std::size_t offset : offsets) args.push_back({DType::u64, 0x100000 + offset});
  eval(f, {}, args, {{memory.data(), memory.size(), 0x100000}});
  return memory;
}

std::vector<std::byte> executed(const Device& device, Function f, const Case& c) {
  const Target target = target_named(device.target(), device.ptx_version());
  const CompileOptions options;
  Artefacts artefacts(f, target, options);
  PassRunner(target, options, nullptr, artefacts, 1).run(Pass::allocate_shared, f);
  const rt::KernelImage image = compile(f, target, options);
  const auto kernel = device.load(image);
  std::vector<std::byte> bytes(2 * kHalf);
  const std::vector<std::size_t> offsets = arguments(c, bytes);
  Stream stream(device);
  Buffer<std::uint8_t> memory(device, bytes.size());
  memory.upload(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  std::vector<std::byte> params(image.signature.bytes);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::uint64_t p = memory.ptr() + offsets[i];
    std::memcpy(params.data() + image.signature.args[i].offset, &p, 8);
  }
  kernel->launch(stream.impl(), rt::LaunchDims{}, params.data(), params.size());
  stream.synchronize();
  EXPECT_EQ(device.counters().bank_conflicts, 0u);
  memory.download(std::span(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()));
  return bytes;
}

void expect_agreement(const Case& c) {
  SCOPED_TRACE(c.str());
  const Function f = function_of(c);
  const std::vector<Violation> violations = verify(f);
  ASSERT_TRUE(violations.empty()) << format(f, violations);
  const std::vector<std::byte> want = evaluated(f, c);
  if (!c.combination.rounds) {
    ASSERT_EQ(want, evaluated(function_of(c, false), c)) << "differs from combining one after the other";
  }
  for (const Device& device : Device::all()) {
    const std::vector<std::byte> got = executed(device, f, c);
    const auto differ = std::mismatch(want.begin(), want.end(), got.begin()).first - want.begin();
    ASSERT_EQ(std::size_t(differ), want.size()) << device.name() << ": first difference at byte " << differ;
  }
}

/// Layouts of different kinds for a shape, with their number of warps.
std::vector<std::pair<LinearLayout, int>> layouts_for(const Shape& shape) {
  std::vector<std::pair<LinearLayout, int>> all;
  std::vector<int> order = row_major(int(shape.size()));
  const auto add = [&](std::int64_t vector, int warps) {
    if (padded(shape[std::size_t(order[0])]) >= vector) all.emplace_back(blocked(shape, vector, order, warps), warps);
  };
  add(1, 1);
  add(4, 1);
  add(1, 4);
  add(4, 4);
  add(2, 8);
  std::reverse(order.begin(), order.end());
  if (shape.size() > 1) add(2, 4);
  return all;
}

const Shape kShapes[] = {{1}, {3}, {64}, {127}, {1000}, {24, 20}, {5, 6, 7}};

void for_all_layouts(const Combination& combination, bool scan) {
  for (const Shape& shape : kShapes)
    for (const auto& [layout, warps] : layouts_for(shape))
      for (int axis = 0; axis < int(shape.size()); ++axis) {
        Case c{shape, layout, warps, axis, combination};
        c.scan = scan;
        expect_agreement(c);
        if (::testing::Test::HasFatalFailure()) return;
      }
}

TEST(Reduce, SumsOfFloatsFollowTheLayoutsTree) {
  for_all_layouts(elementwise_combination("sum", Op::Add, DType::f32), false);
}
TEST(Reduce, OperandsOfCombinationsThatDoNotCommuteKeepTheirOrder) {
  for_all_layouts(affine(DType::i32), false);
  for_all_layouts(last_nonzero(DType::i16), false);
}
TEST(Reduce, PairsOfValueAndPosition) { for_all_layouts(arg_max(), false); }
TEST(Reduce, ElementTypesOfEveryWidth) {
  for (DType d : {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64,
                  DType::f16, DType::f32, DType::f64, DType::index})
    for (Op op : {Op::Add, Op::Min, Op::Max}) {
      const Combination combination = elementwise_combination(mnemonic(op), op, d);
      expect_agreement({{300}, blocked({300}, 2, {0}, 4), 4, 0, combination});
      expect_agreement({{6, 40}, blocked({6, 40}, 2, {1, 0}, 2), 2, 0, combination});
    }
  for (Op op : {Op::And, Op::Or, Op::Xor})
    for (DType d : {DType::i1, DType::u8, DType::i32, DType::i64})
      expect_agreement({{300}, blocked({300}, 2, {0}, 4), 4, 0, elementwise_combination(mnemonic(op), op, d)});
}

TEST(Scan, SumsOfFloatsFollowTheLayoutsTree) {
  for_all_layouts(elementwise_combination("sum", Op::Add, DType::f32), true);
}
TEST(Scan, OperandsKeepTheirOrder) { for_all_layouts(affine(DType::i32), true); }
TEST(Scan, ReverseAndExclusive) {
  for (const Combination& combination :
       {affine(DType::i32), last_nonzero(DType::i8), elementwise_combination("sum", Op::Add, DType::f32),
        elementwise_combination("max", Op::Max, DType::i64)})
    for (const Shape& shape : {Shape{127}, Shape{1000}, Shape{6, 40}})
      for (const auto& [layout, warps] : layouts_for(shape))
        for (int kind = 1; kind < 4; ++kind) {
          Case c{shape, layout, warps, int(shape.size()) - 1, combination, true, (kind & 1) != 0, (kind & 2) != 0};
          ASSERT_NO_FATAL_FAILURE(expect_agreement(c));
        }
}

}  // namespace
}  // namespace kiln::test
