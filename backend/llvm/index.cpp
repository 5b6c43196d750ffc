#include "backend/llvm/index.h"

#include <llvm/IR/Module.h>

#include <algorithm>
#include <set>

#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using ir::Op;
using llvm::Value;
using Reg = TileValue::Reg;
using Builder = llvm::IRBuilder<>;

Value* widen(Builder& b, Value* v) { return v->getType()->isIntegerTy(64) ? v : b.CreateSExt(v, b.getInt64Ty()); }

Value* sum(Builder& b, Value* x, Value* y) { return x == nullptr ? y : y == nullptr ? x : b.CreateAdd(x, y); }

Value* plus(Builder& b, Value* x, std::int64_t k) {
  if (x == nullptr) return b.getInt64(std::uint64_t(k));
  return k == 0 ? x : b.CreateAdd(x, b.getInt64(std::uint64_t(k)));
}

std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) { return std::int64_t(std::uint64_t(a) * std::uint64_t(b)); }
std::int64_t wrapping_add(std::int64_t a, std::int64_t b) { return std::int64_t(std::uint64_t(a) + std::uint64_t(b)); }

/// One result per distinct pair of thread parts, so that registers with equal operands keep one LLVM value.
class PairMemo {
 public:
  template <class Fn>
  Value* operator()(Value* x, Value* y, std::int64_t k, Fn&& fn) {
    for (const Entry& e : entries_)
      if (e.x == x && e.y == y && e.k == k) return e.result;
    entries_.push_back({x, y, k, fn()});
    return entries_.back().result;
  }

 private:
  struct Entry {
    Value *x, *y;
    std::int64_t k;
    Value* result;
  };
  std::vector<Entry> entries_;
};

/// x ± y of thread parts, in 32 bits where both have 32 and the result fits.
Value* add_threads(Builder& b, Value* x, Value* y, bool minus, const Known& known) {
  if (y == nullptr) return x;
  if (x == nullptr && !minus) return y;
  const bool narrow =
      y->getType()->isIntegerTy(32) && (x == nullptr || x->getType()->isIntegerTy(32)) && known.range.fits32();
  Value* r = narrow ? y : widen(b, y);
  Value* l = x == nullptr ? llvm::ConstantInt::get(r->getType(), 0) : narrow ? x : widen(b, x);
  const bool nsw = narrow || !known.range.full();
  return minus ? b.CreateSub(l, r, "", false, nsw) : b.CreateAdd(l, r, "", false, nsw);
}

TileValue add(Builder& b, const TileValue& x, const TileValue& y, bool minus) {
  TileValue out;
  out.kind = TileValue::Kind::Index;
  if (minus && y.uniform != nullptr)
    out.uniform = b.CreateSub(x.uniform == nullptr ? b.getInt64(0) : x.uniform, y.uniform);
  else out.uniform = sum(b, x.uniform, y.uniform);
  out.uniform_known = minus ? x.uniform_known - y.uniform_known : x.uniform_known + y.uniform_known;
  out.thread_known = minus ? x.thread_known - y.thread_known : x.thread_known + y.thread_known;
  PairMemo memo;
  for (std::size_t r = 0; r < x.regs.size(); ++r) {
    const Reg &p = x.regs[r], &q = y.regs[r];
    Value* v = memo(p.v, q.v, 0, [&] { return add_threads(b, p.v, q.v, minus, out.thread_known); });
    out.regs.push_back({v, wrapping_add(p.c, minus ? wrapping_mul(q.c, -1) : q.c)});
  }
  out.distinct = (x.distinct && y.is_uniform()) || (y.distinct && x.is_uniform());
  return out;
}

TileValue times_constant(Builder& b, const TileValue& x, std::int64_t k) {
  TileValue out = x;
  const Known known = Known::constant(k);
  if (x.uniform != nullptr) out.uniform = b.CreateMul(x.uniform, b.getInt64(std::uint64_t(k)));
  out.uniform_known = x.uniform_known * known;
  out.thread_known = x.thread_known * known;
  out.distinct = x.distinct && k != 0 && !(x.known() * known).range.full();
  PairMemo memo;
  for (Reg& r : out.regs) {
    r.c = wrapping_mul(r.c, k);
    if (r.v == nullptr) continue;
    r.v = memo(r.v, nullptr, 0, [&] {
      const bool narrow = r.v->getType()->isIntegerTy(32) && out.thread_known.range.fits32();
      Value* v = narrow ? r.v : widen(b, r.v);
      Value* by = llvm::ConstantInt::getSigned(v->getType(), k);
      return b.CreateMul(v, by, "", false, narrow || !out.thread_known.range.full());
    });
  }
  return out;
}

/// Only the thread parts of t, times k.
TileValue scaled_threads(Builder& b, const TileValue& t, std::int64_t k) {
  TileValue threads;
  threads.kind = TileValue::Kind::Index;
  threads.thread_known = t.thread_known;
  for (const Reg& r : t.regs) threads.regs.push_back({r.v, 0});
  return times_constant(b, threads, k);
}

/// (u + t + c) * s = u*s + (t*s + c*s): the parts that differ between threads and registers, in 64 bits.
TileValue times_scalar(Builder& b, const TileValue& x, const TileValue& scalar) {
  Value* s = index_value(b, scalar, 0);
  const Known known = scalar.known();
  TileValue out;
  out.kind = TileValue::Kind::Index;
  if (x.uniform != nullptr) out.uniform = b.CreateMul(x.uniform, s);
  out.uniform_known = x.uniform_known * known;
  out.thread_known = (x.thread_known + x.constants_known()) * known;
  PairMemo memo;
  for (const Reg& r : x.regs) {
    Value* v = memo(r.v, nullptr, r.c, [&] {
      Value* fixed = b.CreateMul(b.getInt64(std::uint64_t(r.c)), s);
      return r.v == nullptr ? fixed : b.CreateAdd(b.CreateMul(widen(b, r.v), s), fixed);
    });
    out.regs.push_back({v, 0});
  }
  return out;
}

TileValue broadcast_scalar(const TileValue& scalar, std::size_t regs) {
  TileValue out = scalar;
  out.regs.assign(regs, scalar.regs[0]);
  return out;
}

/// The constant value of t, if it has one.
bool constant_of(const TileValue& t, std::int64_t& k) {
  const Range r = t.known().range;
  if (!t.is_uniform() || r.lo != r.hi) return false;
  k = r.lo;
  return true;
}

Known known_of_result(Op op, const TileValue& x, const TileValue& y) {
  const Range a = x.known().range, b = y.known().range;
  switch (op) {
    case Op::Div: return {a.lo >= 0 && b.lo >= 0 ? Range{0, a.hi} : Range{}, 1};
    case Op::Rem: return {a.lo >= 0 ? Range{0, a.hi} : Range{}, 1};
    case Op::Min: return {{std::min(a.lo, b.lo), std::min(a.hi, b.hi)}, std::gcd(x.known().divisor, y.known().divisor)};
    case Op::Max: return {{std::max(a.lo, b.lo), std::max(a.hi, b.hi)}, std::gcd(x.known().divisor, y.known().divisor)};
    default: return {};
  }
}

/// Ops without a better form: each element as a whole, in 32 bits where operands and result fit.
TileValue materialised(EmitContext& c, const Geometry& g, Op op, llvm::ArrayRef<TileValue> operands) {
  const bool binary = operands.size() == 2;
  const Known known = known_of_result(op, operands[0], operands[binary ? 1 : 0]);
  bool narrow = binary && (op == Op::Div || op == Op::Rem || op == Op::Min || op == Op::Max);
  bool uniform = true;
  for (const TileValue& t : operands) {
    const Range r = t.known().range;
    narrow &= r.fits32() && r.lo > std::numeric_limits<std::int32_t>::min();
    uniform &= t.is_uniform();
  }
  const auto element = [&](int r) {
    llvm::SmallVector<Value*, 3> in;
    for (const TileValue& t : operands) in.push_back(narrow ? index_low_bits(c.b, t, r, 32) : index_value(c.b, t, r));
    return emit_elementwise(c, op, narrow ? DType::i32 : DType::i64, in, false);
  };
  Known bound = known;
  if (narrow && !known.range.fits32())
    bound.range = {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
  if (uniform) return broadcast_scalar(index_scalar(widen(c.b, element(0)), bound), operands[0].regs.size());

  TileValue out;
  out.kind = TileValue::Kind::Index;
  out.thread_known = bound;
  std::vector<std::pair<llvm::SmallVector<Reg, 3>, Value*>> done;
  for (int r = 0; r < g.regs(); ++r) {
    llvm::SmallVector<Reg, 3> key;
    for (const TileValue& t : operands) key.push_back(t.regs[std::size_t(r)]);
    auto it = std::find_if(done.begin(), done.end(), [&](const auto& d) { return d.first == key; });
    if (it == done.end()) it = done.insert(done.end(), {key, element(r)});
    out.regs.push_back({it->second, 0});
  }
  return out;
}

/// x / k and x % k for x >= 0 and a constant k > 0. Where a power of two w divides k and everything of x but the low
/// bits of its constants, w neighbours share one quotient and their remainders are neighbours too.
TileValue divide(EmitContext& c, const TileValue& x, std::int64_t k, bool remainder) {
  Builder& b = c.b;
  const Range range = x.known().range;
  std::int64_t w = 16;
  for (std::int64_t d : {k, x.uniform_known.divisor, x.thread_known.divisor})
    if (d != 0) w = std::min(w, d & -d);
  const bool narrow = range.fits32();
  TileValue out;
  out.kind = TileValue::Kind::Index;
  const std::int64_t whole =
      remainder ? std::gcd(std::gcd(x.uniform_known.divisor, x.thread_known.divisor), std::gcd(k, w)) : 1;
  out.thread_known = {remainder ? Range{0, std::min(k - 1, range.hi)} : Range{0, range.hi / k}, whole};
  PairMemo memo;
  TileValue high = x;
  for (std::size_t r = 0; r < x.regs.size(); ++r) {
    const std::int64_t low = x.regs[r].c & (w - 1);
    high.regs[r].c -= low;
    Value* v = memo(x.regs[r].v, nullptr, high.regs[r].c, [&]() -> Value* {
      Value* n = narrow ? index_low_bits(b, high, int(r), 32) : index_value(b, high, int(r));
      Value* by = llvm::ConstantInt::get(n->getType(), std::uint64_t(k));
      Value* q = remainder ? b.CreateURem(n, by) : b.CreateUDiv(n, by);
      return !narrow && out.thread_known.range.fits32() ? b.CreateTrunc(q, b.getInt32Ty()) : q;
    });
    out.regs.push_back({v, remainder ? low : 0});
  }
  if (!x.is_uniform()) return out;
  TileValue scalar = index_scalar(b.CreateZExt(out.regs[0].v, b.getInt64Ty()), {out.thread_known.range, whole});
  scalar.regs[0].c = out.regs[0].c;
  return broadcast_scalar(scalar, x.regs.size());
}

llvm::CmpInst::Predicate predicate(Op op) {
  switch (op) {
    case Op::Lt: return llvm::CmpInst::ICMP_SLT;
    case Op::Le: return llvm::CmpInst::ICMP_SLE;
    case Op::Gt: return llvm::CmpInst::ICMP_SGT;
    case Op::Ge: return llvm::CmpInst::ICMP_SGE;
    case Op::Eq: return llvm::CmpInst::ICMP_EQ;
    case Op::Ne: return llvm::CmpInst::ICMP_NE;
    default: KILN_CHECK(false, "not a comparison");
  }
  return llvm::CmpInst::ICMP_EQ;
}

Op swapped(Op op) {
  switch (op) {
    case Op::Lt: return Op::Gt;
    case Op::Le: return Op::Ge;
    case Op::Gt: return Op::Lt;
    case Op::Ge: return Op::Le;
    default: return op;
  }
}

TileValue plain_of(llvm::ArrayRef<Value*> elements) {
  TileValue out;
  for (Value* v : elements) out.regs.push_back({v, 0});
  return out;
}

/// x ⋚ limit, whose x is exact in 64 bits and whose limit is one scalar. With d = limit - uniform, x < limit is t + c <
/// d; where w divides t and d, it has one answer for all c in [k·w, (k+1)·w): such registers share one comparison. From
/// three comparisons on, d is clamped to the range of t + c once and compared in 32 bits.
TileValue compare_with_scalar(Builder& b, Op op, const TileValue& x, Value* limit, const Known& limit_known) {
  const bool strict = op == Op::Lt || op == Op::Ge;
  TileValue v = x;
  if (strict) {
    std::int64_t w = 16;
    for (std::int64_t d : {x.uniform_known.divisor, x.thread_known.divisor, limit_known.divisor})
      if (d != 0) w = std::min(w, d & -d);
    for (Reg& r : v.regs) r.c &= -w;
  }
  std::set<std::pair<Value*, std::int64_t>> comparisons;
  for (const Reg& r : v.regs) comparisons.insert({r.v, r.c});

  const Range constants = v.constants_known().range, varying = v.thread_known.range + constants;
  const Range clamp = varying + Range{strict ? 0 : -1, op == Op::Le || op == Op::Gt ? 0 : 1};
  const auto wide = [](const Reg& r) { return r.v != nullptr && !r.v->getType()->isIntegerTy(32); };
  const bool thread32 = std::none_of(v.regs.begin(), v.regs.end(), wide) && clamp.fits32() &&
                        (clamp - constants).fits32() && !(v.uniform_known.range + clamp).full();
  Value* d32 = nullptr;
  if (comparisons.size() > 2 && thread32) {
    Value* least = plus(b, v.uniform, clamp.lo);
    Value* most = plus(b, v.uniform, clamp.hi);
    Value* m = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, limit, least);
    m = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, m, most);
    d32 = b.CreateTrunc(m, b.getInt32Ty());
    if (v.uniform != nullptr) d32 = b.CreateSub(d32, b.CreateTrunc(v.uniform, b.getInt32Ty()));
  }
  PairMemo memo;
  llvm::SmallVector<Value*, 8> out;
  for (std::size_t r = 0; r < v.regs.size(); ++r) {
    const Reg& reg = v.regs[r];
    out.push_back(memo(reg.v, nullptr, reg.c, [&] {
      if (d32 == nullptr) return b.CreateICmp(predicate(op), index_value(b, v, int(r)), limit);
      Value* bound = b.CreateSub(d32, b.getInt32(std::uint32_t(reg.c)), "", false, true);
      return b.CreateICmp(predicate(op), reg.v == nullptr ? b.getInt32(0) : reg.v, bound);
    }));
  }
  return plain_of(out);
}

TileValue compare(Builder& b, Op op, const TileValue& x, const TileValue& y) {
  if (y.is_uniform() && x.is_uniform()) {
    Value* r = b.CreateICmp(predicate(op), index_value(b, x, 0), index_value(b, y, 0));
    return plain_of(llvm::SmallVector<Value*, 8>(x.regs.size(), r));
  }
  if (x.is_uniform()) return compare(b, swapped(op), y, x);
  if (!x.known().range.full()) {
    if (y.is_uniform()) return compare_with_scalar(b, op, x, index_value(b, y, 0), y.known());
    if (!y.known().range.full()) {
      const TileValue difference = add(b, x, y, true);
      if (!difference.known().range.full())
        return compare(b, op, difference, broadcast_scalar(index_constant(0), x.regs.size()));
    }
  }
  llvm::SmallVector<Value*, 8> out;
  for (int r = 0; r < int(x.regs.size()); ++r)
    out.push_back(b.CreateICmp(predicate(op), index_value(b, x, r), index_value(b, y, r)));
  return plain_of(out);
}

}  // namespace

TileValue index_scalar(Value* i64, Known known) {
  TileValue t;
  t.kind = TileValue::Kind::Index;
  t.regs.push_back({});
  t.uniform = i64;
  t.uniform_known = known;
  return t;
}

TileValue index_constant(std::int64_t x) {
  TileValue t;
  t.kind = TileValue::Kind::Index;
  t.regs.push_back({nullptr, x});
  return t;
}

Value* index_value(Builder& b, const TileValue& t, int r) {
  const Reg& reg = t.regs[std::size_t(r)];
  Value* v = sum(b, t.uniform, reg.v == nullptr ? nullptr : widen(b, reg.v));
  return plus(b, v, reg.c);
}

Value* index_low_bits(Builder& b, const TileValue& t, int r, unsigned bits) {
  if (bits > 32) return index_value(b, t, r);
  const Reg& reg = t.regs[std::size_t(r)];
  llvm::Type* i32 = b.getInt32Ty();
  Value* v = sum(b, t.uniform == nullptr ? nullptr : b.CreateTrunc(t.uniform, i32),
                 reg.v == nullptr ? nullptr : b.CreateTrunc(reg.v, i32));
  Value* c = b.getInt32(std::uint32_t(reg.c));
  v = v == nullptr ? c : reg.c == 0 ? v : b.CreateAdd(v, c);
  return bits == 32 ? v : b.CreateTrunc(v, b.getIntNTy(bits));
}

TileValue index_of_integers(Builder& b, const Geometry& g, const TileValue& plain, DType from) {
  const bool is_i1 = from == DType::i1;
  const int width = is_i1 ? 1 : bits(from);
  const bool signs = is_signed(from);
  TileValue out;
  out.kind = TileValue::Kind::Index;
  out.regs.resize(plain.regs.size());
  if (width < 64) {
    const std::int64_t top = std::int64_t(1) << (signs ? width - 1 : width);
    out.thread_known = {{signs ? -top : 0, top - 1}, 1};
  } else {
    out.thread_known = Known{};
  }
  llvm::Type* type = b.getIntNTy(out.thread_known.range.fits32() ? 32 : 64);
  PairMemo memo;
  bool uniform = true;
  for (int r = 0; r < g.regs(); ++r) {
    Value* v = plain.regs[std::size_t(r)].v;
    if (v == nullptr) continue;
    out.regs[std::size_t(r)].v =
        memo(v, nullptr, 0, [&] { return signs ? b.CreateSExtOrTrunc(v, type) : b.CreateZExtOrTrunc(v, type); });
    uniform &= v == plain.regs[0].v;
  }
  // A scalar, or the splat of one: the same in all threads only for scalars, so a tile keeps it in the registers.
  if (!g.axes.empty() || !uniform) return out;
  return index_scalar(widen(b, out.regs[0].v), out.thread_known);
}

TileValue index_elementwise(EmitContext& c, const Geometry& g, Op op, llvm::ArrayRef<TileValue> in) {
  std::int64_t k = 0;
  switch (op) {
    case Op::Add: return add(c.b, in[0], in[1], false);
    case Op::Sub: return add(c.b, in[0], in[1], true);
    case Op::Neg: return add(c.b, broadcast_scalar(index_constant(0), in[0].regs.size()), in[0], true);
    case Op::Mul:
      if (constant_of(in[1], k)) return times_constant(c.b, in[0], k);
      if (constant_of(in[0], k)) return times_constant(c.b, in[1], k);
      if (in[1].is_uniform()) return times_scalar(c.b, in[0], in[1]);
      if (in[0].is_uniform()) return times_scalar(c.b, in[1], in[0]);
      return materialised(c, g, op, in);
    case Op::Div:
    case Op::Rem:
      if (constant_of(in[1], k) && k > 0 && in[0].known().range.lo >= 0) return divide(c, in[0], k, op == Op::Rem);
      return materialised(c, g, op, in);
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
    case Op::Eq:
    case Op::Ne: return compare(c.b, op, in[0], in[1]);
    default: return materialised(c, g, op, in);
  }
}

TileValue advance(Builder& b, const Geometry& g, const TileValue& ptr, const TileValue& offset, std::int64_t bytes) {
  TileValue out = ptr;
  const Known size = Known::constant(bytes);
  if (offset.uniform != nullptr) {
    llvm::Type* element = b.getIntNTy(unsigned(8 * bytes));
    out.uniform = b.CreateGEP(element, ptr.uniform, offset.uniform);
  }
  out.uniform_known.divisor = std::gcd(ptr.uniform_known.divisor, (offset.uniform_known * size).divisor);
  const bool first = std::all_of(ptr.regs.begin(), ptr.regs.end(), [](const Reg& r) { return r.v == nullptr; });
  const bool same_scale = first || ptr.scale == bytes;
  const bool no_threads =
      std::all_of(offset.regs.begin(), offset.regs.end(), [](const Reg& r) { return r.v == nullptr; });
  if (!no_threads) {
    const TileValue by = same_scale ? offset : scaled_threads(b, offset, bytes);
    const TileValue from = same_scale ? ptr : scaled_threads(b, ptr, ptr.scale);
    out.scale = same_scale ? bytes : 1;
    out.thread_known = first ? by.thread_known : from.thread_known + by.thread_known;
    PairMemo memo;
    for (int r = 0; r < g.regs(); ++r) {
      Value *x = from.regs[std::size_t(r)].v, *y = by.regs[std::size_t(r)].v;
      out.regs[std::size_t(r)].v = memo(x, y, 0, [&] { return add_threads(b, x, y, false, out.thread_known); });
    }
  }
  for (int r = 0; r < g.regs(); ++r)
    out.regs[std::size_t(r)].c =
        wrapping_add(ptr.regs[std::size_t(r)].c, wrapping_mul(offset.regs[std::size_t(r)].c, bytes));
  out.distinct = (offset.distinct && ptr.is_uniform()) || (ptr.distinct && offset.is_uniform());
  return out;
}

Value* address(Builder& b, const TileValue& ptr, int r) {
  Value* v = ptr.regs[std::size_t(r)].v;
  if (v == nullptr) return ptr.uniform;
  Value* bytes = b.CreateMul(widen(b, v), b.getInt64(std::uint64_t(ptr.scale)));
  return b.CreatePtrAdd(ptr.uniform, bytes);
}

Value* pointer_value(Builder& b, const TileValue& ptr, int r) {
  const std::int64_t c = ptr.regs[std::size_t(r)].c;
  Value* a = address(b, ptr, r);
  return c == 0 ? a : b.CreatePtrAdd(a, b.getInt64(std::uint64_t(c)));
}

}  // namespace kiln::cg
