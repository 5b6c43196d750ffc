// Index tiles and the pointers made of them.
#include "dsl/tools/fuzz/generator.h"

#include <algorithm>
#include <set>

namespace kiln::fuzz {

using ir::Literal;
using ir::Op;
using ir::Shape;
using ir::Type;
using ir::Value;

void Generator::program() {
  Value n = b_.program_id(2, kLoc);
  for (int axis : {1, 0}) {
    const Value extent = chance(50) ? b_.num_programs(axis, kLoc) : uniform(p_.programs[std::size_t(axis)]);
    n = op(Op::Add, op(Op::Mul, n, extent), b_.program_id(axis, kLoc));
  }
  program_ = n;
}

Value Generator::op(Op o, Value x, Value y) {
  if (f_.type(x).tile && !f_.type(y).tile) y = b_.splat(y, f_.type(x).shape, kLoc);
  if (f_.type(y).tile && !f_.type(x).tile) x = b_.splat(x, f_.type(y).shape, kLoc);
  return b_.elementwise(o, {x, y}, kLoc);
}

void Generator::apply(Index& i, Op o, std::int64_t k, const std::function<std::int64_t(std::int64_t)>& f, bool free) {
  i.v = op(o, i.v, free ? uniform(k) : constant(k));
  for (std::int64_t& x : i.at) x = f(x);
}

Index Generator::line(std::int64_t n, bool distinct) {
  Index i;
  const std::int64_t start = chance(30) ? std::int64_t(below(64)) : 0;
  i.v = b_.arange(start, start + n, kLoc);
  for (std::int64_t k = 0; k < n; ++k) i.at.push_back(start + k);
  switch (chance(60) ? 99 : below(distinct ? 5 : 10)) {
    case 0: {
      const std::int64_t k = pick({2, 3, 4, 8, -1, -2, -4});
      apply(
          i, Op::Mul, k, [&](auto x) { return x * k; }, chance(30));
      break;
    }
    case 1: {
      const std::int64_t k = start + n - 1;
      i.v = op(Op::Sub, uniform(k), i.v);
      for (std::int64_t& x : i.at) x = k - x;
      break;
    }
    case 2: {
      const std::int64_t k = std::int64_t(below(64));
      apply(i, Op::Xor, k, [&](auto x) { return x ^ k; });
      break;
    }
    case 3: {
      const std::int64_t k = std::int64_t(below(std::uint64_t(n)));
      apply(i, Op::Add, k, [&](auto x) { return x + k; });
      apply(
          i, Op::Rem, n, [&](auto x) { return x % n; }, chance(20));
      break;
    }
    case 4: {
      const std::int64_t d = pick({1, 2, 3, 4, 7, 8, 16, 32}), e = d + pick({0, 0, 1, 4, 8});
      Index q = i, r = i;
      apply(
          q, Op::Div, d, [&](auto x) { return x / d; }, chance(20));
      apply(q, Op::Mul, e, [&](auto x) { return x * e; });
      apply(
          r, Op::Rem, d, [&](auto x) { return x % d; }, chance(20));
      i.v = op(Op::Add, q.v, r.v);
      for (std::size_t k = 0; k < i.at.size(); ++k) i.at[k] = q.at[k] + r.at[k];
      break;
    }
    case 5: {
      const std::int64_t d = pick({2, 3, 4, 16, 64});
      apply(
          i, Op::Div, d, [&](auto x) { return x / d; }, chance(20));
      break;
    }
    case 6: {
      const std::int64_t d = pick({1, 2, 3, 4, 16, 64});
      apply(
          i, Op::Rem, d, [&](auto x) { return x % d; }, chance(20));
      break;
    }
    case 7: apply(i, Op::Mul, 0, [&](auto) { return 0; }); break;
    case 8: {
      const std::int64_t k = std::int64_t(below(std::uint64_t(n))) + start;
      apply(i, Op::Min, k, [&](auto x) { return std::min(x, k); });
      break;
    }
    case 9: {
      const std::int64_t k = pick({-4, -8, 12, 7, 1});
      apply(i, Op::And, k, [&](auto x) { return x & k; });
      break;
    }
    default: break;
  }
  if (chance(8)) {
    const std::int64_t big = pick({std::int64_t(1) << 31, (std::int64_t(1) << 32) - 8, std::int64_t(1) << 40,
                                   -(std::int64_t(1) << 62), 0x7fffffff});
    i.v = op(Op::Sub, op(Op::Add, i.v, uniform(big)), uniform(big));
  }
  if (chance(15) && i.lo() >= -100 && i.hi() < 30000) {
    i.v = b_.cast(b_.cast(i.v, chance(50) ? DType::i16 : DType::i32, false, kLoc), DType::index, false, kLoc);
  }
  return i;
}

Value Generator::along(Value x, const Shape& s, std::size_t axis) {
  for (std::size_t a = 0; a < s.size(); ++a)
    if (a != axis) x = b_.expand_dims(x, int(a), kLoc);
  return f_.type(x).shape == s ? x : b_.broadcast(x, s, kLoc);
}

Index Generator::coordinates(const Shape& s, bool distinct) {
  if (s.size() == 1) return line(s[0], distinct);
  std::vector<std::size_t> order(s.size());
  for (std::size_t a = 0; a < order.size(); ++a) order[a] = a;
  if (chance(30)) std::shuffle(order.begin(), order.end(), random_);
  Index sum;
  sum.at.assign(std::size_t(Type::tile_of(DType::i1, s).elements()), 0);
  std::int64_t span = 1;
  for (std::size_t k = order.size(); k-- > 0;) {
    const std::size_t axis = order[k];
    Index x = line(s[axis], distinct);
    const std::int64_t ld = distinct || chance(70) ? span + pick({0, 0, 0, 1, 3, 8}) : pick({0, 1, 2});
    if (ld != 1 || chance(10)) apply(x, Op::Mul, ld, [&](auto v) { return v * ld; });
    span = ld * (x.hi() / std::max<std::int64_t>(ld, 1) - x.lo() / std::max<std::int64_t>(ld, 1) + 1);
    const Value wide = along(x.v, s, axis);
    sum.v = sum.v.valid() ? op(Op::Add, sum.v, wide) : wide;
    std::int64_t inner = 1;
    for (std::size_t a = axis + 1; a < s.size(); ++a) inner *= s[a];
    for (std::size_t e = 0; e < sum.at.size(); ++e) sum.at[e] += x.at[std::size_t(std::int64_t(e) / inner % s[axis])];
  }
  return sum;
}

Index Generator::gather(const Shape& s) {
  const std::int64_t k = pick({0, 1, 3, 7, 31, 255, 1023});
  const Value data = value(any_int(), s, 2);
  return {op(Op::And, b_.cast(data, DType::index, false, kLoc), constant(k)), {0, k}, false};
}

const Generator::Used* Generator::recent(const Shape& s, bool distinct) {
  std::vector<const Used*> out;
  for (const Used& u : used_)
    if (u.shape == s && (u.index.distinct || !distinct)) out.push_back(&u);
  return out.empty() || chance(35) ? nullptr : any(out);
}

Value Generator::address(const Pointer& p, const Shape& s, bool distinct) {
  const std::int64_t size = bytes(p.dtype), least = -(p.first / size), most = (kProgramMemory - p.first) / size - 1;
  const Used* near = recent(s, distinct);
  Index i = near != nullptr ? near->index : !distinct && chance(10) ? gather(s) : coordinates(s, distinct);
  if (distinct && std::set<std::int64_t>(i.at.begin(), i.at.end()).size() != i.at.size()) return {};
  const std::int64_t from = least - i.lo(), to = most - i.hi();
  if (from > to) return {};
  std::int64_t shift = from + std::int64_t(below(std::uint64_t(to - from + 1)));
  if (chance(50)) shift = std::clamp<std::int64_t>(shift & -16, from, to);
  if (from <= 0 && to >= 0 && chance(40)) shift = 0;
  if (near != nullptr)
    shift = std::clamp((near->first - p.first) / size + pick({0, 0, 1, -1, 2, 4, -4, 16, 33, -128}), from, to);
  used_.push_back({s, i, p.first + shift * size});
  // In a loop the place may move with its variable.
  Value offset;
  if (!loops_.empty() && chance(40)) {
    const Loop& l = any(loops_);
    const std::int64_t k = pick({1, 1, 4, 16, s.back(), -1});
    const std::int64_t low = std::min(l.lo * k, l.hi * k), high = std::max(l.lo * k, l.hi * k);
    if (to - high >= from - low) {
      shift = std::clamp(shift, from - low, to - high);
      offset = op(Op::Add, op(Op::Mul, l.variable, uniform(k)), uniform(shift));
    }
  }
  return placed(p, i, offset.valid() ? offset : uniform(shift));
}

Generator::Guarded Generator::guarded(const Pointer& p, const Shape& s, bool distinct) {
  const std::int64_t size = bytes(p.dtype), least = -(p.first / size), most = (kProgramMemory - p.first) / size - 1;
  Index i = distinct || chance(70)
                ? coordinates(s, distinct)
                : Index{b_.cast(value(any_int(), s, 2), DType::index, false, kLoc), {0, 1000}, false};
  if (distinct && std::set<std::int64_t>(i.at.begin(), i.at.end()).size() != i.at.size()) return {};
  std::int64_t shift =
      pick({least - i.lo(), most - i.hi()}) + pick({-200, -64, -16, -3, -1, 0, 1, 5, 16, 48, 128, 300});
  if (chance(50)) shift &= -16;
  if (chance(10)) shift += pick({std::int64_t(1) << 31, -(std::int64_t(1) << 32), std::int64_t(1) << 40});
  i.v = op(Op::Add, i.v, uniform(shift));
  const std::int64_t from = least + pick({0, 0, 1, 2, 4, 7}), to = most - pick({0, 0, 1, 3, 4, 16});
  const Value low = op(chance(50) ? Op::Ge : Op::Gt, i.v, uniform(from));
  const Value high = chance(50) ? op(Op::Le, i.v, uniform(to)) : op(Op::Lt, i.v, uniform(to + 1));
  return {placed(p, i, constant(0)), op(Op::And, low, high)};
}

Value Generator::placed(const Pointer& p, const Index& i, Value shift) {
  const Shape s = f_.type(i.v).shape;
  const Value mine = op(Op::Mul, program_, constant(kProgramMemory / bytes(p.dtype)));
  switch (below(5)) {
    case 0: {
      const Value q = b_.ptr_add(b_.ptr_add(p.v, mine, kLoc), shift, kLoc);
      return b_.ptr_add(b_.splat(q, s, kLoc), i.v, kLoc);
    }
    case 1: return b_.ptr_add(b_.splat(p.v, s, kLoc), op(Op::Add, op(Op::Add, i.v, mine), shift), kLoc);
    case 2: {
      const Value q = b_.ptr_add(p.v, op(Op::Add, mine, shift), kLoc);
      return b_.ptr_add(b_.splat(q, s, kLoc), i.v, kLoc);
    }
    case 3: {
      const Value narrow = b_.cast(op(Op::Add, i.v, shift), DType::i32, false, kLoc);
      return b_.ptr_add(b_.splat(b_.ptr_add(p.v, mine, kLoc), s, kLoc), narrow, kLoc);
    }
    default: {
      const Value q = b_.ptr_add(b_.splat(p.v, s, kLoc), i.v, kLoc);
      return b_.ptr_add(q, b_.splat(op(Op::Add, mine, shift), s, kLoc), kLoc);
    }
  }
}

Value Generator::scalar_address(const Pointer& p) {
  const std::int64_t size = bytes(p.dtype), least = -(p.first / size), most = (kProgramMemory - p.first) / size - 1;
  const std::int64_t at = least + std::int64_t(below(std::uint64_t(most - least + 1)));
  const Value mine = op(Op::Mul, program_, constant(kProgramMemory / size));
  return b_.ptr_add(b_.ptr_add(p.v, mine, kLoc), uniform(at), kLoc);
}

}  // namespace kiln::fuzz
