// Steps of a block without control flow: memory, arithmetic.
#include "dsl/tools/fuzz/generator.h"

#include <algorithm>

namespace kiln::fuzz {

using ir::Literal;
using ir::Op;
using ir::Shape;
using ir::Type;
using ir::Value;

// Control flow nests, but not without end. What works inside one block only has no place in a cluster.
void Generator::step() {
  const std::uint64_t kind = below(depth_ < 3 ? 24 : 21);
  if (p_.options.cluster > 1) {
    if ((kind >= 10 && kind <= 12) || kind == 15) return combine(chance(50));
    if (kind == 16) return chance(60) ? atomic() : compare_and_swap();
  }
  switch (kind) {
    case 0:
    case 1:
    case 2: return load();
    case 3:
    case 4:
    case 5: return store();
    case 6:
    case 7: return load(), store();
    case 8: return shifted();
    case 9: return approximate();
    case 10:
    case 11:
    case 12: return move_elements();
    case 13: return combine(false);
    case 14: return combine(true);
    case 15: return chance(50) ? sort() : histogram();
    case 16: return chance(40) ? dot() : chance(60) ? atomic() : compare_and_swap();
    case 21: return for_loop();
    case 22: return while_loop();
    case 23: return if_else();
    default: return compute();
  }
}

void Generator::load() {
  const Pointer& p = any(pointers_);
  const std::optional<Shape> s = any_shape();
  if (!s) return pool_.push_back(b_.load(scalar_address(p), {}, {}, ir::CacheHint::Plain, kLoc));
  Guarded g;
  if (chance(30)) g = guarded(p, *s, false);
  else g = {address(p, *s, false), chance(50) ? mask(*s) : Value{}};
  if (!g.at.valid()) return;
  const auto [at, m] = g;
  const Value other = m.valid() && chance(50) ? value(p.dtype, s, 2) : Value{};
  pool_.push_back(b_.load(at, m, other, ir::CacheHint(below(4)), kLoc));
}

void Generator::store() {
  const Pointer& p = any(pointers_);
  if (p.read_only) return;
  const std::optional<Shape> s = any_shape();
  Guarded g;
  if (s && chance(30)) g = guarded(p, *s, true);
  else g = {s ? address(p, *s, true) : scalar_address(p), s && chance(50) ? mask(*s) : Value{}};
  if (!g.at.valid()) return;
  if (g.mask.valid() && chance(20)) g.mask = op(Op::And, g.mask, mask(*s));
  const Value v = storable(p.dtype, s);
  b_.store(g.at, v, g.mask, ir::CacheHint(below(4)), kLoc);
}

void Generator::shifted() {
  const Pointer& p = any(pointers_);
  const Shape s{pick({100, 256, 512, 1000, 1024, 2048})};
  const std::int64_t size = bytes(p.dtype), room = kProgramMemory / size - s[0] - 64;
  if (p.read_only || room < 0) return;
  const Value i = b_.arange(0, s[0], kLoc), mine = op(Op::Mul, program_, constant(kProgramMemory / size));
  const std::int64_t near = std::int64_t(below(std::uint64_t(room + 1))) - p.first / size;
  const auto at = [&] {
    const std::int64_t shift = near + pick({0, 0, 1, 2, 4, 16, 33, 63});
    const Value base = b_.ptr_add(p.v, op(Op::Add, mine, param(DType::index, std::uint64_t(shift))), kLoc);
    return b_.ptr_add(b_.splat(base, s, kLoc), i, kLoc);
  };
  for (int k = 0; k < 3; ++k) {
    pool_.push_back(b_.load(at(), {}, {}, ir::CacheHint::Plain, kLoc));
    b_.store(at(), storable(p.dtype, s), chance(20) ? mask(s) : Value{}, ir::CacheHint::Plain, kLoc);
  }
}

void Generator::compute() {
  const std::optional<Shape> s = any_shape();
  DType d = any_dtype();
  if (chance(12)) return pool_.push_back(b_.select(value(DType::i1, s, 2), value(d, s, 2), value(d, s, 2), kLoc));
  if (chance(10)) return pool_.push_back(cast(value(any_dtype(), s, 2), d));
  if (chance(4)) return bitcast(s);
  static const std::vector<Op> all = [] {
    std::vector<Op> ops;
    for (int k = 0; k < ir::kOpCount; ++k)
      if (ir::info(Op(k)).elementwise && ir::info(Op(k)).accuracy.bound == ir::Bound::Exact) ops.push_back(Op(k));
    return ops;
  }();
  const Op o = any(all);
  while (!takes(ir::info(o).rule, d)) d = any_dtype();
  std::vector<Value> operands;
  for (int k = 0; k < ir::info(o).arity; ++k) operands.push_back(value(d, s, 2));
  pool_.push_back(b_.elementwise(o, operands, kLoc));
}

bool Generator::takes(ir::TypeRule rule, DType d) {
  if (is_f8(d)) return false;
  switch (rule) {
    case ir::TypeRule::Num: return d != DType::i1;
    case ir::TypeRule::Float:
    case ir::TypeRule::Math: return is_float(d);
    case ir::TypeRule::Int: return is_int(d);
    case ir::TypeRule::Bits: return !is_float(d);
    default: return true;
  }
}

void Generator::bitcast(const std::optional<Shape>& s) {
  static const std::vector<std::pair<DType, DType>> pairs{
      {DType::i32, DType::f32}, {DType::u32, DType::i32}, {DType::i16, DType::f16},  {DType::u16, DType::bf16},
      {DType::u64, DType::f64}, {DType::u8, DType::i8},   {DType::u8, DType::f8e5m2}};
  const auto [from, to] = any(pairs);
  pool_.push_back(b_.bitcast(value(from, s, 2), to, kLoc));
}

void Generator::approximate() {
  static const std::vector<Op> all = [] {
    std::vector<Op> ops;
    for (int k = 0; k < ir::kOpCount; ++k)
      if (ir::info(Op(k)).elementwise && ir::info(Op(k)).accuracy.bound != ir::Bound::Exact) ops.push_back(Op(k));
    return ops;
  }();
  static const std::vector<DType> dtypes{DType::f16, DType::bf16, DType::f32};
  if (p_.slots.size() == std::size_t(kSlots)) return;
  const Op o = any(all);
  const DType d = any(dtypes);
  const Shape s = any(shapes_);
  std::vector<Value> operands;
  for (int k = 0; k < ir::info(o).arity; ++k) operands.push_back(storable(d, s));
  const std::int64_t slot = std::int64_t(p_.slots.size()) * kSlotBytes / 4;
  p_.slots.push_back({d, ir::info(o).accuracy});
  Value line;
  for (std::size_t axis = s.size(), stride = 1; axis-- > 0; stride *= std::size_t(s[axis])) {
    const Value x = along(op(Op::Mul, b_.arange(0, s[axis], kLoc), constant(std::int64_t(stride))), s, axis);
    line = line.valid() ? op(Op::Add, line, x) : x;
  }
  const Value base =
      b_.ptr_add(loose_.v, op(Op::Add, op(Op::Mul, program_, constant(kLooseMemory / 4)), constant(slot)), kLoc);
  const Value at = b_.ptr_add(b_.splat(base, s, kLoc), line, kLoc);
  const Value half = b_.splat(constant(kMaxElements), s, kLoc);
  b_.store(at, cast(b_.elementwise(o, operands, kLoc), DType::f32), {}, ir::CacheHint::Plain, kLoc);
  b_.store(b_.ptr_add(at, half, kLoc), cast(operands[0], DType::f32), {}, ir::CacheHint::Plain, kLoc);
}

}  // namespace kiln::fuzz
