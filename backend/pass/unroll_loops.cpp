// Unrolling: a loop with `unroll=n` gets n copies of its body a trip; with n = -1 it disappears.
//
// The trips that do not fill n follow as copies after the loop. A loop whose number of trips is no constant, or that an
// exit flag may end, stays as it is: the language refuses such a hint where it is written (dsl/lang/control.h). More
// copies than a kernel may hold are a UserError at the loop's line.
//
//     %3 = for unroll=2 %lo, %hi, %step, %x : f32 {(%i : index, %a : f32)        lo = 0, hi = 5, step = 1
//       %b = …%a, %i                                              ->
//       yield %b
//     }
//     %3 = for 0, 3, 2, %x : f32 {(%i : index, %a : f32)
//       %b = …%a, %i
//       %j = add %i, 1
//       %c = …%b, %j
//       yield %c
//     }
//     %4 = …%3, 4
#include <fmt/format.h>

#include <limits>

#include "backend/ir/fold.h"
#include "backend/pass/loop_rules.h"
#include "backend/pass/rewrite.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

constexpr std::int64_t kMaxInstructions = std::int64_t(1) << 16;

__extension__ typedef __int128 Wide;  // no bound or step of 64 bits overflows it

class Unroller {
 public:
  explicit Unroller(Function& f) : f_(f) {}

  bool run() {
    region(f_.body());
    return changed_;
  }

 private:
  /// A loop's bounds as numbers; iv(t) is that of trip t.
  struct Trips {
    Literal lo, step;
    std::int64_t count = 0;
    Wide iv(std::int64_t t) const { return number(lo) + Wide(t) * number(step); }
  };

  static Wide number(const Literal& l) { return l.dtype == DType::u64 ? Wide(l.bits) : Wide(l.as_int()); }
  static bool fits(Wide x, DType d) {
    if (is_signed(d)) {
      const Wide most = (Wide(1) << (bits(d) - 1)) - 1;
      return x >= -most - 1 && x <= most;
    }
    return x >= 0 && x < (Wide(1) << bits(d));
  }
  static Literal literal(Wide x, DType d) { return Literal::of_int(d, std::int64_t(x)); }

  void region(RegionId r) {
    const std::vector<InstId> order = f_.region(r).insts;
    for (InstId i : order) {
      for (RegionId inner : std::vector<RegionId>(f_.inst(i).regions)) region(inner);
      if (f_.inst(i).op == Op::For && f_.inst(i).find(AttrKey::unroll)) loop(i);
    }
  }

  [[noreturn]] void fail(InstId i, const std::string& why) const {
    const std::int64_t n = f_.inst(i).i64(AttrKey::unroll);
    throw UserError(f_.inst(i).loc, fmt::format("range: unroll({}): {}", n < 0 ? "" : fmt::format("{}", n), why));
  }

  /// Nothing where the number of trips is not a constant.
  std::optional<Trips> trips(InstId i) const {
    const Inst& inst = f_.inst(i);
    std::optional<Literal> bound[3];
    for (std::size_t k = 0; k < 3; ++k) bound[k] = literal_of(f_, inst.operands[k]);
    if (!bound[0] || !bound[1] || !bound[2] || inst.i64(AttrKey::stop) > 0) return std::nullopt;
    Trips t{*bound[0], *bound[2]};
    const Wide span = number(*bound[1]) - number(t.lo), step = number(t.step);
    const Wide count =
        step == 0 || (span > 0) != (step > 0) || span == 0 ? 0 : (span + step - (step > 0 ? 1 : -1)) / step;
    t.count = std::int64_t(std::min<Wide>(count, std::numeric_limits<std::int64_t>::max()));
    return t;
  }

  void loop(InstId i) {
    const std::int64_t hint = f_.inst(i).i64(AttrKey::unroll);
    const std::optional<Trips> known = trips(i);
    if (hint == 1 || !known) {
      changed_ |= set_attr(f_, i, AttrKey::unroll, 0);
      return;
    }
    const Trips& t = *known;
    check_size(i, hint < 0 ? t.count : std::min(hint, t.count));
    const std::int64_t n = hint < 0 ? std::max<std::int64_t>(t.count, 1) : hint, rounds = t.count / n;
    const Inst inst = f_.inst(i);
    std::vector<Value> carried(inst.operands.begin() + 3, inst.operands.end());
    if (rounds > 1) carried = shorter_loop(i, t, n, rounds, carried);
    for (std::int64_t trip = rounds > 1 ? rounds * n : 0; trip < t.count; ++trip) carried = copy(i, t, trip, carried);
    for (std::size_t k = 0; k < inst.results.size(); ++k) f_.replace_all_uses(inst.results[k], carried[k]);
    f_.remove(i);
    changed_ = true;
  }

  void check_size(InstId i, std::int64_t copies) const {
    std::int64_t size = 0;
    walk(f_, f_.inst(i).regions[0], [&](InstId) { ++size; });
    if (copies > kMaxInstructions / std::max<std::int64_t>(size, 1))
      fail(i, fmt::format("{} copies of {} operations are more than {}", copies, size, kMaxInstructions));
  }

  Value constant(InstId before, Wide x, DType d) {
    return insert_constant(f_, before, literal(x, d), Type::scalar(d), f_.inst(before).loc);
  }

  /// One copy of the body before the loop, for the trip number `trip`; gives what it yields.
  std::vector<Value> copy(InstId i, const Trips& t, std::int64_t trip, const std::vector<Value>& carried) {
    const RegionId body = f_.inst(i).regions[0];
    ValueMap map;
    map.set(f_.region(body).params[0], constant(i, t.iv(trip), t.lo.dtype));
    return copy_body(body, map, carried, [&](InstId c) { f_.insert_before(i, c); });
  }

  template <class Place>
  std::vector<Value> copy_body(RegionId body, ValueMap& map, const std::vector<Value>& carried, Place&& place) {
    for (std::size_t k = 0; k < carried.size(); ++k) map.set(f_.region(body).params[k + 1], carried[k]);
    const std::vector<InstId> insts = f_.region(body).insts;
    for (std::size_t k = 0; k + 1 < insts.size(); ++k) place(f_.clone(insts[k], map));
    std::vector<Value> next;
    for (Value v : f_.inst(insts.back()).operands) next.push_back(map(v));
    return next;
  }

  /// `rounds` trips of n copies each, in front of the loop.
  std::vector<Value> shorter_loop(InstId i, const Trips& t, std::int64_t n, std::int64_t rounds,
                                  const std::vector<Value>& init) {
    const DType d = t.lo.dtype;
    const Wide last = t.iv((rounds - 1) * n), step = number(t.step);
    if (!fits(step * n, d)) fail(i, fmt::format("{} steps at once do not fit {}", n, name(d)));
    std::vector<Value> operands{constant(i, number(t.lo), d), constant(i, last + (step > 0 ? 1 : -1), d),
                                constant(i, step * n, d)};
    operands.insert(operands.end(), init.begin(), init.end());
    std::vector<Type> types;
    for (Value v : f_.inst(i).results) types.push_back(f_.type(v));
    const SourceLoc at = f_.inst(i).loc;
    const InstId loop = f_.create(Op::For, std::move(operands), std::move(types), {}, at);
    f_.insert_before(i, loop);
    const RegionId from = f_.inst(i).regions[0], to = f_.add_region(loop);
    const Value iv = f_.add_region_param(to, Type::scalar(d));
    std::vector<Value> carried;
    for (Value v : init) carried.push_back(f_.add_region_param(to, Type(f_.type(v))));
    for (std::int64_t k = 0; k < n; ++k) {
      ValueMap map;
      map.set(f_.region(from).params[0], k == 0 ? iv : advanced(to, iv, literal(step * k, d), at));
      carried = copy_body(from, map, carried, [&](InstId c) { f_.append(to, c); });
    }
    f_.append(to, f_.create(Op::Yield, carried, {}, {}, at));
    return f_.inst(loop).results;
  }

  Value advanced(RegionId r, Value iv, const Literal& by, SourceLoc at) {
    const Type type = f_.type(iv);
    const InstId c = f_.create(Op::Constant, {}, {type}, {{AttrKey::value, by}}, at);
    f_.append(r, c);
    const InstId sum = f_.create(Op::Add, {iv, f_.inst(c).results[0]}, {type}, {}, at);
    f_.append(r, sum);
    return f_.inst(sum).results[0];
  }

  Function& f_;
  bool changed_ = false;
};

}  // namespace

bool unroll_loops(Function& f) { return Unroller(f).run(); }

}  // namespace kiln::ir
