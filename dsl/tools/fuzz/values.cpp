// Shapes, literals, parameters, and values out of old ones.
#include "dsl/tools/fuzz/generator.h"

#include <algorithm>
#include <cmath>

namespace kiln::fuzz {

using ir::Literal;
using ir::Op;
using ir::Shape;
using ir::Type;
using ir::Value;

DType Generator::any_dtype() {
  static const std::vector<DType> all{DType::i1,  DType::i8,     DType::i16,    DType::i32, DType::i64,  DType::u8,
                                      DType::u16, DType::u32,    DType::u64,    DType::f16, DType::bf16, DType::f32,
                                      DType::f64, DType::f8e4m3, DType::f8e5m2, DType::f32, DType::i32,  DType::index};
  return any(all);
}

DType Generator::any_int() {
  static const std::vector<DType> ints{DType::i8, DType::i16, DType::i32,  DType::i64,
                                       DType::u8, DType::u32, DType::index};
  return any(ints);
}

Shape Generator::shape() {
  static const std::vector<std::int64_t> one{1,  2,   3,   5,   7,   8,   16,  31,   32,   33,
                                             64, 100, 128, 129, 256, 500, 512, 1000, 1024, 2048};
  static const std::vector<std::int64_t> more{1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 32, 33, 64, 100, 128};
  const int rank = int(pick({1, 1, 1, 1, 2, 2, 2, 3, 4}));
  if (rank == 1) return {chance(40) ? pick({512, 1024, 2048}) : any(one)};
  for (;;) {
    Shape s;
    std::int64_t n = 1;
    for (int a = 0; a < rank; ++a) s.push_back(any(more)), n *= s.back();
    if (n <= kMaxElements) return s;
  }
}

Literal Generator::literal(DType d) {
  if (d == DType::i1) return Literal::of_int(d, std::int64_t(below(2)));
  if (is_float(d)) {
    if (chance(60)) return Literal::of_float(d, double(std::int64_t(below(41)) - 20) / 4);
    static const std::vector<double> special{0.,  -0.,   1.,     -1.,  INFINITY, -INFINITY,
                                             NAN, 1e-40, 65504., 448., 3e38,     1e300};
    return Literal::of_float(d, any(special));
  }
  if (chance(60)) return Literal::of_int(d, std::int64_t(below(40)) - 16);
  return Literal::of_int(d, std::int64_t(random_() >> below(64)));
}

Value Generator::uniform(std::int64_t x, DType d) {
  const Literal l = Literal::of_int(d, x);
  return p_.args.size() > 100 || chance(60) ? b_.constant(l, kLoc) : param(d, l.bits);
}

void Generator::keep(Value v) {
  pool_.push_back(v);
  const Type& t = f_.type(v);
  if (!t.tile || t.elements() > kMaxElements || std::count(shapes_.begin(), shapes_.end(), t.shape)) return;
  if (shapes_.size() < 7) shapes_.push_back(t.shape);
  else shapes_[3 + below(4)] = t.shape;
}
void Generator::keep_all(ir::InstId inst) {
  const std::vector<Value> results = f_.inst(inst).results;
  for (Value v : results) keep(v);
}

Value Generator::param(DType d, std::uint64_t bits) {
  ir::Param p{Type::scalar(d), "", rt::Access::Read, 1, false};
  if (d == DType::index && bits % 16 == 0 && chance(60)) p.align = 16;
  if (d == DType::index && bits == 1 && chance(60)) p.is_one = true;
  f_.params.push_back(p);
  p_.args.push_back(bits);
  return b_.param(int(f_.params.size()) - 1, kLoc);
}

Pointer Generator::pointer() {
  const DType d = pointers_.empty() || chance(50) ? any_dtype() : any(pointers_).dtype;
  const std::int64_t size = bytes(d);
  Pointer p{{}, d, chance(25), size * std::int64_t(below(std::uint64_t(kProgramMemory / size / 2)))};
  if (chance(50)) p.first &= -16;
  ir::Param param{Type::pointer(d, p.read_only), "", p.read_only ? rt::Access::Read : rt::Access::ReadWrite, int(size),
                  false};
  if (p.first % 16 == 0 && chance(80)) param.align = 16;
  f_.params.push_back(param);
  p_.args.push_back(std::uint64_t(p.first));
  p.v = b_.param(int(f_.params.size()) - 1, kLoc);
  return p;
}

bool Generator::has(Value v, const std::optional<Shape>& s) const {
  const Type& t = f_.type(v);
  return s ? t.tile && t.shape == *s : !t.tile;
}

std::vector<Value> Generator::known(const std::optional<Shape>& s, std::optional<DType> d) const {
  std::vector<Value> out;
  for (Value v : pool_)
    if (has(v, s) && (!d || f_.type(v).dtype == *d)) out.push_back(v);
  return out;
}

Value Generator::value(DType d, const std::optional<Shape>& s, int depth) {
  const auto one_of = [&](const std::vector<Value>& v) { return chance(50) ? v.back() : any(v); };
  if (const auto same = known(s, d); !same.empty() && chance(60)) return one_of(same);
  if (const auto other = known(s, std::nullopt); !other.empty() && chance(70)) return cast(one_of(other), d);
  if (!s) return chance(30) || depth == 0 ? b_.constant(literal(d), kLoc) : cast(program_, d);
  switch (below(4)) {
    case 0: return b_.splat(value(d, std::nullopt, 0), *s, kLoc);
    case 1: {
      const std::size_t axis = below(s->size());
      if (depth > 0 && s->size() > 1) return along(value(d, Shape{(*s)[axis]}, depth - 1), *s, axis);
      [[fallthrough]];
    }
    case 2: return cast(coordinates(*s, false).v, d);
    default: return b_.splat(b_.constant(literal(d), kLoc), *s, kLoc);
  }
}

Value Generator::cast(Value v, DType d) {
  const DType from = f_.type(v).dtype;
  return from == d ? v : b_.cast(v, d, is_float(d) && chance(20), kLoc);
}

Value Generator::mask(const Shape& s) {
  switch (below(5)) {
    case 0: {
      const Index i = coordinates(s, false);
      const std::int64_t bound = i.lo() + std::int64_t(below(std::uint64_t(i.hi() - i.lo() + 3)));
      return op(any(std::vector<Op>{Op::Lt, Op::Le, Op::Ge, Op::Gt, Op::Ne, Op::Eq}), i.v, uniform(bound));
    }
    case 1: {
      const std::size_t axis = below(s.size());
      const Value i = b_.arange(0, s[axis], kLoc), bound = uniform(std::int64_t(below(std::uint64_t(s[axis] + 2))));
      return along(op(Op::Lt, i, bound), s, axis);
    }
    case 2: {
      const Value x = mask(s), y = mask(s);
      return op(any(std::vector<Op>{Op::And, Op::Or, Op::Xor}), x, y);
    }
    case 3: return b_.elementwise(Op::Not, {mask(s)}, kLoc);
    default: return value(DType::i1, s, 2);
  }
}

Value Generator::storable(DType d, const std::optional<Shape>& s) {
  if (is_f8(d)) return b_.cast(storable(DType::f32, s), d, true, kLoc);
  const Value v = value(d, s, 2);
  if (!is_float(d)) return v;
  Value nine = b_.constant(Literal::of_int(d, 9), kLoc);
  if (s) nine = b_.splat(nine, *s, kLoc);
  return b_.select(b_.elementwise(Op::Ne, {v, v}, kLoc), nine, v, kLoc);
}

}  // namespace kiln::fuzz
