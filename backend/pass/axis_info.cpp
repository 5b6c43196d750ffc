// Transfer functions of the axis analysis: for each op, what its result inherits. Sizes are powers of two throughout,
// so min() is gcd().
#include "backend/pass/axis_info.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <span>

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/reshape_groups.h"
#include "backend/ir/op/ring.h"

namespace kiln::ir {
namespace {

using Axis = AxisInfo::Axis;

/// Divisibility of zero, and the bound of every other: large enough for any access, small enough to multiply.
constexpr std::int64_t kMaxDivisor = std::int64_t(1) << 30;
constexpr std::int64_t kMaxProgramsX = (std::int64_t(1) << 31) - 1, kMaxProgramsYZ = 65535;  // limits of a launch

std::int64_t divisor_of(std::int64_t x) {
  if (x == 0) return kMaxDivisor;
  return std::min(kMaxDivisor, std::int64_t(1) << std::countr_zero(std::uint64_t(x)));
}

std::int64_t multiply_divisors(std::int64_t a, std::int64_t b) { return a >= kMaxDivisor / b ? kMaxDivisor : a * b; }

// --- intervals -------------------------------------------------------------------------------------------------------
Interval add(Interval a, Interval b) {
  Interval r;
  if (__builtin_add_overflow(a.lo, b.lo, &r.lo) || __builtin_add_overflow(a.hi, b.hi, &r.hi)) return {};
  return r;
}
Interval sub(Interval a, Interval b) {
  Interval r;
  if (__builtin_sub_overflow(a.lo, b.hi, &r.lo) || __builtin_sub_overflow(a.hi, b.lo, &r.hi)) return {};
  return r;
}
Interval mul(Interval a, Interval b) {
  std::int64_t p[4];
  if (__builtin_mul_overflow(a.lo, b.lo, &p[0]) || __builtin_mul_overflow(a.lo, b.hi, &p[1]) ||
      __builtin_mul_overflow(a.hi, b.lo, &p[2]) || __builtin_mul_overflow(a.hi, b.hi, &p[3]))
    return {};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}
Interval join(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

/// The truth value of a comparison of two ranges, as an interval of i1.
Interval compare(Op op, Interval a, Interval b) {
  const auto decided = [](bool yes, bool no) { return yes ? Interval::of(1) : no ? Interval::of(0) : Interval{0, 1}; };
  switch (op) {
    case Op::Lt: return decided(a.hi < b.lo, a.lo >= b.hi);
    case Op::Le: return decided(a.hi <= b.lo, a.lo > b.hi);
    case Op::Gt: return decided(a.lo > b.hi, a.hi <= b.lo);
    case Op::Ge: return decided(a.lo >= b.hi, a.hi < b.lo);
    case Op::Eq: return decided(a.single() && a == b, a.hi < b.lo || b.hi < a.lo);
    default: return decided(a.hi < b.lo || b.hi < a.lo, a.single() && a == b);  // Ne
  }
}

bool is_comparison(Op op) {
  return op == Op::Lt || op == Op::Le || op == Op::Gt || op == Op::Ge || op == Op::Eq || op == Op::Ne;
}

// --- the analysis ----------------------------------------------------------------------------------------------------
class Transfer {
 public:
  Transfer(const Function& f, std::vector<AxisInfo>& info) : f_(f), info_(info) {}

  /// Nothing is known of v but its type.
  AxisInfo unknown(Value v) const {
    const Type& t = f_.type(v);
    AxisInfo r{std::vector<Axis>(t.tile ? t.shape.size() : 1), {}};
    if (!t.ptr && !is_float(t.dtype)) r.range = Interval::all(t.dtype);
    return r;
  }

  /// The instructions of `r`, whose parameters are known, in order.
  void region(RegionId r) {
    for (InstId i : f_.region(r).insts) visit(f_.inst(i));
  }

  void visit(const Inst& inst) {
    if (inst.op == Op::For) return for_loop(inst);
    if (inst.op == Op::While) return while_loop(inst);
    if (inst.op == Op::If) return branch(inst);
    for (Value v : inst.results) info_[v.id] = unknown(v);
    if (inst.op == Op::Walk)
      for (Value v : f_.region(inst.regions[0]).params) info_[v.id] = unknown(v);
    for (RegionId r : inst.regions) region(r);
    if (inst.results.size() != 1 || !inst.regions.empty()) return;
    inst_ = &inst;
    result_ = inst.results[0];
    AxisInfo r = compute();
    const Type& t = f_.type(result_);
    if (!t.ptr && !is_float(t.dtype)) wrap(r, t.dtype);
    info_[result_.id] = std::move(r);
  }

 private:
  // --- control flow --------------------------------------------------------------------------------------------------

  std::span<const Value> yields(RegionId r) const { return f_.inst(f_.region(r).insts.back()).operands; }

  /// `known` becomes what holds of it and of `next`, too; false if it was that already. A range that grows is given up:
  /// it would grow with every trip.
  bool weaken(Value known, Value next) {
    AxisInfo &a = info_[known.id], before = a;
    const AxisInfo& b = info_[next.id];
    for (std::size_t i = 0; i < a.axes.size(); ++i) {
      Axis& x = a.axes[i];
      const Axis& y = b.axes[i];
      const std::int64_t c = std::min(x.contiguity, y.contiguity);
      const std::int64_t unit = f_.type(known).ptr ? bytes(f_.type(known).dtype) : 1;
      const auto at = [&](const Axis& z) {
        return z.contiguity <= c ? z.divisibility : std::min(z.divisibility, c * unit);
      };
      x = {c, std::min(at(x), at(y)), std::min(x.constancy, y.constancy)};
    }
    if (!b.range.inside(a.range)) a.range = unknown(known).range;
    return a.axes != before.axes || a.range != before.range;
  }

  /// The facts of carried values, which start as those of `init`: the strongest that the body keeps. `pass` visits it
  /// and gives what it yields. Deep nests would be visited too often; there nothing is known of carried values.
  template <class F>
  void settle(std::span<const Value> carried, std::span<const Value> init, F&& pass) {
    constexpr int kDeepest = 4;
    const bool deep = loops_ >= kDeepest;
    ++loops_;
    for (std::size_t k = 0; k < carried.size(); ++k)
      info_[carried[k].id] = deep ? unknown(carried[k]) : info_[init[k].id];
    for (bool again = true; again;) {
      const std::span<const Value> next = pass();
      again = false;
      for (std::size_t k = 0; k < carried.size() && !deep; ++k) again |= weaken(carried[k], next[k]);
    }
    --loops_;
  }

  void for_loop(const Inst& inst) {
    const RegionId body = inst.regions[0];
    const std::span<const Value> params = f_.region(body).params, carried = params.subspan(1);
    info_[params[0].id] = induction(inst, params[0]);
    settle(carried, std::span(inst.operands).subspan(3), [&] {
      region(body);
      return yields(body);
    });
    for (std::size_t k = 0; k < carried.size(); ++k) info_[inst.results[k].id] = info_[carried[k].id];
  }

  /// lo, lo + step, … on this side of hi, in a body that runs.
  AxisInfo induction(const Inst& inst, Value iv) const {
    AxisInfo r = unknown(iv);
    const AxisInfo &lo = info_[inst.operands[0].id], &step = info_[inst.operands[2].id];
    const Interval l = lo.range, h = info_[inst.operands[1].id].range, s = step.range;
    r.axes[0].divisibility = std::min(lo.axes[0].divisibility, step.axes[0].divisibility);
    const Interval up{l.lo, std::max(l.lo, h.hi - (h.hi > std::numeric_limits<std::int64_t>::min()))};
    const Interval down{std::min(l.hi, h.lo + (h.lo < std::numeric_limits<std::int64_t>::max())), l.hi};
    if (f_.type(iv).dtype != DType::u64) r.range = s.lo > 0 ? up : s.hi < 0 ? down : join(up, down);
    return r;
  }

  void while_loop(const Inst& inst) {
    const RegionId test = inst.regions[0], body = inst.regions[1];
    const std::span<const Value> tested = f_.region(test).params, carried = f_.region(body).params;
    settle(tested, inst.operands, [&] {
      region(test);
      for (std::size_t k = 0; k < tested.size(); ++k) info_[carried[k].id] = info_[tested[k].id];
      region(body);
      return yields(body);
    });
    for (std::size_t k = 0; k < tested.size(); ++k) info_[inst.results[k].id] = info_[tested[k].id];
  }

  void branch(const Inst& inst) {
    for (RegionId r : inst.regions) region(r);
    for (std::size_t k = 0; k < inst.results.size(); ++k) {
      const Value v = inst.results[k], other = yields(inst.regions[1])[k];
      info_[v.id] = info_[yields(inst.regions[0])[k].id];
      const Interval both = join(info_[v.id].range, info_[other.id].range);
      weaken(v, other);
      info_[v.id].range = both;
    }
  }

  // --- values --------------------------------------------------------------------------------------------------------

  const AxisInfo& in(std::size_t k) const { return info_[inst_->operands[k].id]; }
  const Type& type(std::size_t k) const { return f_.type(inst_->operands[k]); }
  std::size_t rank() const { return info_[result_.id].axes.size(); }
  bool has_range(std::size_t k) const {
    return !type(k).ptr && !is_float(type(k).dtype) && type(k).dtype != DType::u64;
  }

  /// What divides the elements of operand k at positions that are multiples of `step`.
  std::int64_t divisor_at(std::size_t k, std::size_t axis, std::int64_t step) const {
    const Axis& a = in(k).axes[axis];
    if (a.contiguity <= step) return a.divisibility;
    return std::min(a.divisibility, step * (type(k).ptr ? bytes(type(k).dtype) : 1));
  }
  std::int64_t divisor_of_all(std::size_t k, std::size_t axis) const { return divisor_at(k, axis, 1); }

  std::int64_t common_constancy(std::size_t axis) const {
    std::int64_t c = std::numeric_limits<std::int64_t>::max();
    for (std::size_t k = 0; k < inst_->operands.size(); ++k) c = std::min(c, in(k).axes[axis].constancy);
    return c;
  }

  /// Elementwise results start from equal operands giving equal results.
  AxisInfo elementwise() const {
    AxisInfo r = unknown(result_);
    for (std::size_t a = 0; a < rank(); ++a) r.axes[a].constancy = common_constancy(a);
    return r;
  }

  AxisInfo compute() {
    const Op op = inst_->op;
    switch (op) {
      case Op::Constant: return constant();
      case Op::Param: return param();
      case Op::Alloc: return alloc();
      case Op::ProgramId:
      case Op::NumPrograms: return grid();
      case Op::Arange: return arange();
      case Op::Splat: return splat();
      case Op::ExpandDims: return expand_dims();
      case Op::Broadcast: return broadcast();
      case Op::Convert: return in(0);
      case Op::Reshape: return reshape();
      case Op::Permute: return permute();
      case Op::Join: return join_tiles();
      case Op::Slice: return slice();
      case Op::Cat: return cat();
      case Op::Flip: return flip();
      case Op::Gather: return gather();
      case Op::Cast: return cast();
      case Op::Select: return select();
      case Op::PtrAdd: return sum();
      case Op::Load:
      case Op::Bitcast: return unknown(result_);
      default: return info(op).elementwise ? arithmetic() : unknown(result_);
    }
  }

  AxisInfo arithmetic() {
    if (is_comparison(inst_->op)) return comparison();
    if (is_float(type(0).dtype)) return elementwise();
    switch (inst_->op) {
      case Op::Add: return sum();
      case Op::Sub: return difference();
      case Op::Mul: return product();
      case Op::Div: return quotient();
      case Op::Rem: return remainder();
      case Op::Shl: return shift_left();
      case Op::Shr: return shift_right();
      case Op::And: return conjunction();
      case Op::Or:
      case Op::Xor:
      case Op::Min:
      case Op::Max: return either();
      case Op::Neg: return negation();
      default: return elementwise();
    }
  }

  AxisInfo constant() const {
    AxisInfo r = unknown(result_);
    const Literal& l = inst_->literal();
    if (is_float(l.dtype)) return r;
    r.axes[0].divisibility = divisor_of(l.as_int());
    if (l.dtype != DType::u64) r.range = Interval::of(l.as_int());
    return r;
  }

  AxisInfo param() const {
    AxisInfo r = unknown(result_);
    const Param& p = f_.params[std::size_t(inst_->i64(AttrKey::index))];
    if (p.is_one) r.range = Interval::of(1);
    else r.axes[0].divisibility = divisor_of(p.align);
    return r;
  }

  /// Shared memory is given out in units of 16 bytes.
  AxisInfo alloc() const {
    AxisInfo r = unknown(result_);
    r.axes[0].divisibility = 16;
    return r;
  }

  AxisInfo grid() const {
    AxisInfo r = unknown(result_);
    const std::int64_t most = inst_->i64(AttrKey::axis) == 0 ? kMaxProgramsX : kMaxProgramsYZ;
    r.range = inst_->op == Op::ProgramId ? Interval{0, most - 1} : Interval{1, most};
    return r;
  }

  AxisInfo arange() const {
    AxisInfo r = unknown(result_);
    const std::int64_t start = inst_->i64(AttrKey::start), end = inst_->i64(AttrKey::end);
    r.axes[0] = {padded(end - start), divisor_of(start), 1};
    r.range = {start, end - 1};
    return r;
  }

  AxisInfo splat() const {
    AxisInfo r = unknown(result_);
    const Shape& shape = f_.type(result_).shape;
    for (std::size_t a = 0; a < shape.size(); ++a) r.axes[a] = {1, in(0).axes[0].divisibility, padded(shape[a])};
    r.range = in(0).range;
    return r;
  }

  AxisInfo expand_dims() const {
    AxisInfo r = in(0);
    std::int64_t all = 1;  // along the new axis a group is any one element
    for (std::size_t a = 0; a < r.axes.size(); ++a) all = std::max(all, divisor_of_all(0, a));
    r.axes.insert(r.axes.begin() + inst_->i64(AttrKey::axis), Axis{1, all, 1});
    return r;
  }

  AxisInfo broadcast() const {
    AxisInfo r = in(0);
    const Shape &from = type(0).shape, &to = f_.type(result_).shape;
    for (std::size_t a = 0; a < to.size(); ++a)
      if (from[a] == 1) r.axes[a] = {1, divisor_of_all(0, a), padded(to[a])};
    return r;
  }

  // --- rearranging: groups stay groups where they stay aligned -------------------------------------------------------
  /// A group of axes that keep their row-major order: contiguity runs along the innermost of them, and what is equal
  /// along it for longer than its new extent is equal along the axis outside of it.
  AxisInfo reshape() const {
    AxisInfo r = unknown(result_);
    r.range = in(0).range;
    const Shape &from = type(0).shape, &to = f_.type(result_).shape;
    if (from.empty()) return r;
    for (const ReshapeGroup& g : reshape_groups(from, to)) {
      const std::size_t inner = g.from_inner(from);
      Axis run = in(0).axes[inner];
      if (!g.aligned) run.contiguity = run.constancy = 1;
      run.divisibility = divisor_of_all(0, inner);
      for (std::size_t a = g.to_end; a-- > g.to_begin;) {
        const std::int64_t extent = padded(to[a]);
        if (extent == 1) {
          r.axes[a] = {1, run.divisibility, 1};
          continue;
        }
        const std::int64_t c = std::min(run.contiguity, extent);
        r.axes[a] = {c, divisor_at(0, inner, c), std::min(run.constancy, extent)};
        run = {1, run.divisibility, std::max<std::int64_t>(run.constancy / extent, 1)};
      }
    }
    return r;
  }

  AxisInfo permute() const {
    AxisInfo r{{}, in(0).range};
    for (std::int64_t axis : inst_->ints(AttrKey::order)) r.axes.push_back(in(0).axes[std::size_t(axis)]);
    return r;
  }

  AxisInfo join_tiles() const {
    AxisInfo r = unknown(result_);
    for (std::size_t a = 0; a < rank(); ++a) r.axes[a] = a + 1 < rank() ? common_axis(a, kMaxDivisor) : Axis{};
    r.range = join(in(0).range, in(1).range);
    return r;
  }

  /// Axis `a` where groups of both operands stand in one axis: groups no larger than `aligned`.
  Axis common_axis(std::size_t a, std::int64_t aligned) const {
    const Axis &x = in(0).axes[a], &y = in(1).axes[a];
    const std::int64_t c = std::min({x.contiguity, y.contiguity, aligned});
    return {c, std::min(divisor_at(0, a, c), divisor_at(1, a, c)), std::min({x.constancy, y.constancy, aligned})};
  }

  AxisInfo slice() const {
    AxisInfo r = in(0);
    const auto a = std::size_t(inst_->i64(AttrKey::axis));
    const std::int64_t aligned = divisor_of(inst_->i64(AttrKey::start));
    const std::int64_t c = std::min(r.axes[a].contiguity, aligned);
    r.axes[a] = {c, divisor_at(0, a, c), std::min(r.axes[a].constancy, aligned)};
    return r;
  }

  AxisInfo cat() const {
    AxisInfo r = unknown(result_);
    const auto axis = std::size_t(inst_->i64(AttrKey::axis));
    for (std::size_t a = 0; a < rank(); ++a)
      r.axes[a] = common_axis(a, a == axis ? divisor_of(type(0).shape[a]) : kMaxDivisor);
    r.range = join(in(0).range, in(1).range);
    return r;
  }

  AxisInfo flip() const {
    AxisInfo r = in(0);
    const auto a = std::size_t(inst_->i64(AttrKey::axis));
    r.axes[a] = {1, divisor_of_all(0, a), std::min(r.axes[a].constancy, divisor_of(type(0).shape[a]))};
    return r;
  }

  /// Elements of operand 0, and 0.
  AxisInfo gather() const {
    AxisInfo r = unknown(result_);
    if (has_range(0)) r.range = join(in(0).range, Interval::of(0));
    return r;
  }

  AxisInfo cast() const {
    const DType from = type(0).dtype, to = f_.type(result_).dtype;
    AxisInfo r = elementwise();
    if (is_float(from) || is_float(to) || to == DType::i1) return r;
    r.axes = in(0).axes;
    if (has_range(0)) r.range = in(0).range;
    if (from == DType::u64 || from == DType::i1) r.range = Interval::all(from);
    return r;
  }

  AxisInfo select() const {
    AxisInfo r = elementwise();
    for (std::size_t a = 0; a < rank(); ++a) {
      Axis& x = r.axes[a];
      x.contiguity = std::min({in(0).axes[a].constancy, in(1).axes[a].contiguity, in(2).axes[a].contiguity});
      x.divisibility = std::min(divisor_at(1, a, x.contiguity), divisor_at(2, a, x.contiguity));
    }
    r.range = join(in(1).range, in(2).range);
    return r;
  }

  /// add and ptr_add: one side runs while the other stands.
  AxisInfo sum() const {
    AxisInfo r = elementwise();
    const std::int64_t unit = type(0).ptr ? bytes(type(0).dtype) : 1;
    for (std::size_t a = 0; a < rank(); ++a) {
      const Axis &x = in(0).axes[a], &y = in(1).axes[a];
      const std::int64_t c = std::max(std::min(x.contiguity, y.constancy), std::min(x.constancy, y.contiguity));
      r.axes[a].contiguity = c;
      r.axes[a].divisibility = std::min(divisor_at(0, a, c), multiply_divisors(divisor_at(1, a, c), unit));
    }
    if (!type(0).ptr) r.range = add(in(0).range, in(1).range);
    return r;
  }

  AxisInfo difference() const {
    AxisInfo r = elementwise();
    for (std::size_t a = 0; a < rank(); ++a) {
      const std::int64_t c = std::min(in(0).axes[a].contiguity, in(1).axes[a].constancy);
      r.axes[a].contiguity = c;
      r.axes[a].divisibility = std::min(divisor_at(0, a, c), divisor_at(1, a, c));
    }
    r.range = sub(in(0).range, in(1).range);
    return r;
  }

  AxisInfo product() const {
    for (std::size_t k : {0u, 1u})
      if (in(k).range == Interval::of(1)) return in(1 - k);
    AxisInfo r = elementwise();
    for (std::size_t a = 0; a < rank(); ++a)
      r.axes[a].divisibility = multiply_divisors(divisor_of_all(0, a), divisor_of_all(1, a));
    r.range = mul(in(0).range, in(1).range);
    return r;
  }

  /// The one positive value of operand 1 if it is a power of two, else 0.
  std::int64_t power_of_two_operand() const {
    const Interval d = in(1).range;
    return has_range(1) && d.single() && d.lo > 0 && std::has_single_bit(std::uint64_t(d.lo)) ? d.lo : 0;
  }

  /// Elements that count up from a multiple of d become equal d at a time when the low bits are dropped.
  AxisInfo dropped_low_bits(std::int64_t d) const {
    AxisInfo r = elementwise();
    for (std::size_t a = 0; a < rank(); ++a) {
      const Axis& x = in(0).axes[a];
      r.axes[a].constancy = std::max(r.axes[a].constancy, std::min({x.contiguity, x.divisibility, d}));
      r.axes[a].divisibility = std::max(divisor_of_all(0, a) / d, std::int64_t(1));
    }
    return r;
  }

  AxisInfo quotient() const {
    const Interval x = in(0).range;
    const std::int64_t d = power_of_two_operand();
    if (!has_range(0) || x.lo < 0 || d == 0) return elementwise();
    AxisInfo r = dropped_low_bits(d);
    r.range = {x.lo / d, x.hi / d};
    return r;
  }

  AxisInfo shift_right() const {
    const Interval by = in(1).range, x = in(0).range;
    if (!has_range(0) || !by.single() || by.lo < 0 || by.lo > 30) return elementwise();
    AxisInfo r = dropped_low_bits(std::int64_t(1) << by.lo);
    r.range = {x.lo >> by.lo, x.hi >> by.lo};
    return r;
  }

  /// x mod d: counting goes on within groups of d.
  AxisInfo kept_low_bits(std::int64_t d) const {
    AxisInfo r = elementwise();
    for (std::size_t a = 0; a < rank(); ++a) {
      const Axis& x = in(0).axes[a];
      const std::int64_t c = std::min({x.contiguity, x.divisibility, d});
      r.axes[a].contiguity = c;
      r.axes[a].divisibility = divisor_at(0, a, c) >= d ? kMaxDivisor : divisor_at(0, a, c);
    }
    r.range = {0, d - 1};
    return r;
  }

  AxisInfo remainder() const {
    const std::int64_t d = power_of_two_operand();
    return has_range(0) && in(0).range.lo >= 0 && d > 0 ? kept_low_bits(d) : elementwise();
  }

  AxisInfo conjunction() const {
    const Interval mask = in(1).range;
    if (has_range(1) && mask.single() && mask.lo >= 0 && mask.lo < kMaxDivisor &&
        std::has_single_bit(std::uint64_t(mask.lo + 1)))
      return kept_low_bits(mask.lo + 1);
    AxisInfo r = elementwise();
    for (std::size_t a = 0; a < rank(); ++a)
      r.axes[a].divisibility = std::max(divisor_of_all(0, a), divisor_of_all(1, a));
    return r;
  }

  AxisInfo shift_left() const {
    const Interval by = in(1).range;
    if (!has_range(1) || !by.single() || by.lo < 0 || by.lo > 30) return elementwise();
    if (by.lo == 0) return in(0);
    AxisInfo r = elementwise();
    const std::int64_t factor = std::int64_t(1) << by.lo;
    for (std::size_t a = 0; a < rank(); ++a) r.axes[a].divisibility = multiply_divisors(divisor_of_all(0, a), factor);
    r.range = mul(in(0).range, Interval::of(factor));
    return r;
  }

  /// or, xor, min, max: what divides both operands divides the result.
  AxisInfo either() const {
    AxisInfo r = elementwise();
    for (std::size_t a = 0; a < rank(); ++a)
      r.axes[a].divisibility = std::min(divisor_of_all(0, a), divisor_of_all(1, a));
    const Interval x = in(0).range, y = in(1).range;
    if (!has_range(0)) return r;
    if (inst_->op == Op::Min) r.range = {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
    if (inst_->op == Op::Max) r.range = {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    return r;
  }

  AxisInfo negation() const {
    AxisInfo r = elementwise();
    for (std::size_t a = 0; a < rank(); ++a) r.axes[a].divisibility = divisor_of_all(0, a);
    r.range = sub(Interval::of(0), in(0).range);
    return r;
  }

  /// A run that starts at a multiple of its length lies wholly on one side of any other multiple: `run < bound` and
  /// `run >= bound` are then the same for all of it. (`run <= bound` is not: it may hold for the first element only.)
  AxisInfo comparison() const {
    AxisInfo r = elementwise();
    const bool integers = !type(0).ptr && !is_float(type(0).dtype);
    if (!integers) return r;
    const Op op = inst_->op;
    for (std::size_t k : {0u, 1u}) {
      if (!(k == 0 ? op == Op::Lt || op == Op::Ge : op == Op::Gt || op == Op::Le)) continue;
      for (std::size_t a = 0; a < rank(); ++a) {
        const Axis &run = in(k).axes[a], &bound = in(1 - k).axes[a];
        const std::int64_t size =
            std::min({run.contiguity, run.divisibility, bound.constancy, divisor_of_all(1 - k, a)});
        r.axes[a].constancy = std::max(r.axes[a].constancy, size);
      }
    }
    if (has_range(0)) r.range = compare(op, in(0).range, in(1).range);
    return r;
  }

  /// Integers of dtype `d` wrap at its width.
  static void wrap(AxisInfo& r, DType d) {
    const Interval all = Interval::all(d);
    if (!r.range.inside(all) || d == DType::u64) r.range = all;
    if (bits(d) == 64 || r.range != all) return;
    for (Axis& a : r.axes) {
      a.contiguity = std::min(a.contiguity, a.divisibility);
      a.divisibility = std::min(a.divisibility, std::int64_t(1) << std::min(bits(d), 30));
    }
  }

  const Function& f_;
  std::vector<AxisInfo>& info_;
  const Inst* inst_ = nullptr;
  Value result_;
  int loops_ = 0;  // around the instruction that is visited
};

}  // namespace

Interval Interval::all(DType d) {
  if (d == DType::i1) return {0, 1};
  if (bits(d) == 64 || is_float(d)) return {};
  if (is_signed(d)) return {-(std::int64_t(1) << (bits(d) - 1)), (std::int64_t(1) << (bits(d) - 1)) - 1};
  return {0, (std::int64_t(1) << bits(d)) - 1};
}

AxisAnalysis::AxisAnalysis(const Function& f) : info_(f.value_count()) {
  Transfer transfer(f, info_);
  for (std::uint32_t id = 0; id < f.value_count(); ++id)
    info_[id] = transfer.unknown(Value{id});  // parameters of combine regions stay so
  transfer.region(f.body());
}

bool copy_aligned(const AxisAnalysis& facts, Value elements, DType dtype) {
  return facts[elements].axes[0].divisibility * bytes(dtype) % kCopyUnit == 0;
}

}  // namespace kiln::ir
