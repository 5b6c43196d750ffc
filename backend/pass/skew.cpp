// skew: operands of products in a loop are copied to a ring of slots in shared memory while earlier trips multiply; the
// threads that multiply also copy (cp.async).
//
//                                                    %ring = alloc
//                                                    fetch position=1 %ring, %lo < %hi, … %lo …
//     for %k = %lo … (%acc) {                        fetch position=2 %ring, %lo + step < %hi, … %lo + step …
//       %a = load %p, %inside                        for %k = %lo … (%acc) {
//       %b = load %q, %within                ->        %a, %b = take %ring
//       %r = dot %a, %b, %acc                          fetch %ring, %k + 2 step < %hi, … %k + 2 step …
//       yield %r                                       %r = ring_dot %a, %b, %acc
//     }                                                release %ring
//                                                      yield %r
//                                                    }
//
// Where a load stood its pointers and its mask are computed for the trip that comes as many trips later as the ring has
// slots but one; in front of the loop, for the first ones. A trip that does not come fetches nothing: %k < %hi says so
// where the mask does not. The slot that is
// filled is the one that the trip before has read, so one barrier a trip, in `take`, serves both.
//
// What this needs, and what leaves a load, or the loop, as it is:
//   loop       counts by index with a positive constant step; no unroll, no break; no ring of other warps' in the
//   program unit       tensor cores on elements as they lie in memory (f32 is rounded to tf32 behind ldmatrix), no
//   split f32;
//              whole steps of the unit along k
//   operand    a load of the loop's body, or its transpose, used by products alone; zeros where it is masked off; at
//              least 4 bytes beside each other with one mask, which are elements along k or not of one byte
//   addresses  pure operations on the counter and on what stands in front of the loop; memory that nothing writes while
//              the loop runs
// The other operand of such a product may be a tile: it goes through shared memory in its trip, as operands of a dot
// do.
#include "backend/pass/skew.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backend/ir/fold.h"
#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/dot.h"
#include "backend/ir/op/fetch.h"
#include "backend/ir/op/ring.h"
#include "backend/ir/op/scratch.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

constexpr std::int64_t kLeastCopy = 4, kMostCopy = 16;  ///< bytes of one copy
constexpr std::int64_t kUnitRow = 16;                   ///< bytes of a row of a matrix that ldmatrix reads
constexpr std::int64_t kMostTile = 32 << 10;  ///< bytes of an operand that goes through shared memory beside the ring
constexpr std::int64_t kSlots = 5, kFewSlots = 3;
constexpr std::int64_t kAhead = 48 << 10;  ///< bytes of a block on their way: some 1000 cycles of multiplying
constexpr int kMostWished = 64;
constexpr std::int64_t kReserved = 1024;  ///< shared memory of a block that the system takes

std::int64_t aligned(std::int64_t n) { return (n + 127) / 128 * 128; }

}  // namespace

SkewedLoop::SkewedLoop(Function& f, const AxisAnalysis& facts, InstId loop)
    : f_(f), facts_(facts), loop_(loop), body_(f.inst(loop).regions[0]) {
  step_ = 0;
  if (const std::optional<Literal> step = literal_of(f, f.inst(loop).operands[2])) step_ = step->as_int();
  walk(f, body_, [&](InstId i) {
    const Op op = inst(i).op;
    has_loop_ = has_loop_ || op == Op::For || op == Op::While;
    for (const Effect& e : info(op).effects)
      writes_ = writes_ || (e.kind == EffectKind::Write && e.space == MemorySpace::Global);
  });
}

/// Why the loop as such cannot be skewed; empty if it can.
std::string SkewedLoop::obstacle() const {
  const Inst& loop = inst(loop_);
  if (loop.find(AttrKey::unroll) != nullptr) return "it is unrolled";
  if (loop.find(AttrKey::stop) != nullptr) return "it has a break_if";
  if (f_.type(loop.operands[0]).dtype != DType::index) return "its counter is no index";
  if (step_ <= 0) return "its step is no positive constant";
  return "";
}

/// Whether v is the same for equal counters: what it follows from in the loop goes to `needed`.
bool SkewedLoop::follows_from_counter(Value v, std::set<InstId>& needed) const {
  const InstId i = f_.def(v);
  if (i == kNone) return f_.param_region(v) != body_ || v == f_.region(body_).params[0];
  if (inst(i).parent != body_) return true;  // in front of the loop, as what regions of the body hold is not seen here
  if (!info(inst(i).op).pure || !inst(i).regions.empty()) return false;
  if (!needed.insert(i).second) return true;
  return std::all_of(inst(i).operands.begin(), inst(i).operands.end(),
                     [&](Value operand) { return follows_from_counter(operand, needed); });
}

/// Whether the memory that `pointer` reaches is not written during the launch.
bool SkewedLoop::is_constant_memory(Value pointer) const {
  InstId from = f_.def(pointer);
  while (from != kNone && inst(from).op != Op::Param && !inst(from).operands.empty())
    from = f_.def(inst(from).operands[0]);
  if (from == kNone || inst(from).op != Op::Param) return false;
  const Param& p = f_.params[std::size_t(inst(from).i64(AttrKey::index))];
  return p.type.ptr && p.access == rt::Access::Read && p.disjoint;
}

/// Elements of `load` that lie beside each other along `axis`, in memory and in one thread, all masked off or none.
std::int64_t SkewedLoop::run(const Inst& load, int axis) const {
  const Type& t = f_.type(load.results[0]);
  const std::int64_t size = bytes(t.dtype);
  const AxisInfo::Axis& along = facts_[load.operands[0]].axes[std::size_t(axis)];
  std::int64_t n = std::min({along.contiguity, along.divisibility / size, kMostCopy / size});
  if (load.operands.size() > 1) n = std::min(n, facts_[load.operands[1]].axes[std::size_t(axis)].constancy);
  const LinearLayout& l = f_.layout(t.layout);
  std::int64_t in_thread = 1;
  for (int bit = 0; bit < l.in_bits(Hw::Register); ++bit)
    if (l.basis(Hw::Register, bit)[std::size_t(axis)] == in_thread) in_thread *= 2;
  return std::min(n, in_thread);
}

std::string SkewedLoop::takes_load(const Inst& dot, std::size_t which, SkewedOperand& out) const {
  out.value = dot.operands[which];
  InstId load = f_.def(out.value);
  out.turned = load != kNone && inst(load).op == Op::Permute && inst(load).parent == body_;
  if (out.turned) load = f_.def(inst(load).operands[0]);
  if (load == kNone || inst(load).op != Op::Load || inst(load).parent != body_)
    return "it is not loaded in the loop as it is";
  out.load = load;
  const Inst& l = inst(load);
  if (l.operands.size() > 2) {
    const std::optional<Literal> other = literal_of(f_, l.operands[2]);
    if (!other || other->bits != 0) return "where it is masked off it is not zero";
  }
  if (f_.type(out.value).dtype != staged_dtype(f_, dot, which)) return "its elements are converted";
  if (writes_ && !is_constant_memory(l.operands[0])) return "its memory may be written meanwhile";
  std::set<InstId> needed;
  for (Value v : std::span(l.operands).first(std::min<std::size_t>(l.operands.size(), 2)))
    if (!follows_from_counter(v, needed)) return "its addresses do not follow from the loop's counter alone";
  const Type& t = f_.type(l.results[0]);
  int axis = 1;
  for (int other : {1, 0})
    if (run(l, other) > run(l, axis)) axis = other;
  if (run(l, axis) * bytes(t.dtype) < kLeastCopy)
    return "fewer than 4 bytes of it are known to lie beside each other, aligned";
  out.along = out.turned ? 1 - axis : axis;
  const bool along_depth = (which == 0) == (out.along == 1);
  if (!along_depth && (bytes(t.dtype) == 1 || padded(t.shape[std::size_t(axis)]) * bytes(t.dtype) < kUnitRow))
    return "its elements have to be turned on the way";
  return "";
}

/// Whether `dot` is taken with at least one operand; else why not.
std::string SkewedLoop::takes(InstId i) {
  const Inst& dot = inst(i);
  if (unit_of(dot) == DotUnit::Fma) return "its products are not computed by tensor cores";
  if (f_.type(dot.results[0]).shape.size() != 2) return "its products are batched";
  if (dot_parts(f_, dot) != 1) return "its operands are split in two parts";
  if (operand_shape(f_, dot, 0)[1] % matrix_shape(unit_of(dot)).k != 0)
    return fmt::format("positions along k are no multiple of {}", matrix_shape(unit_of(dot)).k);
  SkewedOperand sides[2];
  std::string why[2];
  for (std::size_t k : {0, 1}) why[k] = takes_load(dot, k, sides[k]);
  for (std::size_t k : {0, 1})
    if (!why[k].empty() && dot_slice_bytes(f_, dot, k) > kMostTile) why[0] = why[1] = why[k];
  if (!why[0].empty() && !why[1].empty())
    return why[0] == why[1] ? why[0] : fmt::format("of a, {}; of b, {}", why[0], why[1]);
  dots_.push_back(i);
  for (std::size_t k : {0, 1})
    if (why[k].empty() && std::none_of(operands_.begin(), operands_.end(),
                                       [&](const SkewedOperand& x) { return x.value == sides[k].value; }))
      operands_.push_back(sides[k]);
  return "";
}

/// Operands whose loads something else needs, too, stay.
void SkewedLoop::drop_shared_loads() {
  const auto is_turn = [&](InstId user) {
    return std::any_of(operands_.begin(), operands_.end(),
                       [&](const SkewedOperand& o) { return o.turned && f_.def(o.value) == user; });
  };
  const auto is_product = [&](InstId user, Value v) {
    return std::find(dots_.begin(), dots_.end(), user) != dots_.end() && inst(user).operands[2] != v;
  };
  std::set<InstId> shared;
  for (const SkewedOperand& o : operands_)
    for (Value v : {o.value, inst(o.load).results[0]})
      for (InstId user : f_.users(v))
        if (!is_turn(user) && !is_product(user, v)) shared.insert(o.load);
  std::erase_if(operands_, [&](const SkewedOperand& o) { return shared.contains(o.load); });
  std::erase_if(dots_, [&](InstId dot) {
    return std::none_of(operands_.begin(), operands_.end(), [&](const SkewedOperand& o) {
      return o.value == inst(dot).operands[0] || o.value == inst(dot).operands[1];
    });
  });
}

std::string SkewedLoop::find() {
  if (const std::string why = obstacle(); !why.empty()) return why;
  std::string why = "no product stands in it";
  for (InstId i : f_.region(body_).insts)
    if (inst(i).op == Op::Dot)
      if (const std::string w = takes(i); !w.empty()) why = w;
  drop_shared_loads();
  if (dots_.empty()) return operands_.empty() ? why : "its operands are used by other operations, too";
  return "";
}

std::int64_t SkewedLoop::slot_bytes() const {
  std::vector<std::int64_t> sizes;
  for (const SkewedOperand& o : operands_) {
    const Type& t = f_.type(inst(o.load).results[0]);
    sizes.push_back(padded_elements(t.shape) * bytes(t.dtype));
  }
  return slot_offsets(sizes).back();
}

// --- the rewrite -----------------------------------------------------------------------------------------------------

namespace {

Value op(Function& f, InstId at, Op o, std::vector<Value> operands, SourceLoc loc) {
  return f.inst(insert_op(f, at, o, std::move(operands), {}, {}, loc)).results[0];
}
Value index_constant(Function& f, InstId at, std::int64_t x, SourceLoc loc) {
  return insert_constant(f, at, Literal::of_int(DType::index, x), Type::scalar(DType::index), loc);
}

}  // namespace

/// Whether elements of v are the counter, or lie behind it.
bool SkewedLoop::is_from_counter_on(Value v) const {
  const InstId i = f_.def(v);
  if (i == kNone) return false;
  if (inst(i).op == Op::Splat) return inst(i).operands[0] == f_.region(body_).params[0];
  if (inst(i).op != Op::Add) return false;
  for (std::size_t k : {0, 1}) {
    const InstId steps = f_.def(inst(i).operands[k]);
    if (steps != kNone && inst(steps).op == Op::Arange && inst(steps).i64(AttrKey::start) >= 0)
      return is_from_counter_on(inst(i).operands[1 - k]);
  }
  return false;
}

/// Whether `i` asks if something from the counter on is at least 0, in a loop that starts there or behind.
bool SkewedLoop::always_holds(InstId i) const {
  if (inst(i).op != Op::Ge || !is_from_counter_on(inst(i).operands[0])) return false;
  const std::optional<Literal> lo = literal_of(f_, inst(loop_).operands[0]), zero = literal_of(f_, inst(i).operands[1]);
  return lo && zero && lo->as_int() >= 0 && zero->bits == 0;
}

/// Whether `mask` is false beyond the loop's end: it holds only below the end what lies from the counter on.
bool SkewedLoop::ends_with_loop(Value mask) const {
  const InstId i = f_.def(mask);
  if (i == kNone || inst(i).operands.empty()) return false;
  const std::vector<Value>& operands = inst(i).operands;
  switch (inst(i).op) {
    case Op::And: return ends_with_loop(operands[0]) || ends_with_loop(operands[1]);
    case Op::Broadcast:
    case Op::ExpandDims: return ends_with_loop(operands[0]);
    case Op::Lt: {
      const InstId end = f_.def(operands[1]);
      return is_from_counter_on(operands[0]) && end != kNone && inst(end).op == Op::Splat &&
             inst(end).operands[0] == inst(loop_).operands[1];
    }
    default: return false;
  }
}

/// `v`, which is turned where the operand is.
Value SkewedLoop::turned(InstId at, const SkewedOperand& o, Value v) {
  if (!o.turned) return v;
  const Inst permute = inst(f_.def(o.value));
  Type type = f_.type(v);
  type.shape = f_.type(o.value).shape;
  type.layout = f_.type(o.value).layout;
  return f_.inst(insert_op(f_, at, Op::Permute, {v}, permute.attrs, {type}, permute.loc)).results[0];
}

/// The fetch of the trip whose counter is `counter`, before `at`; `slot` as in the attribute.
void SkewedLoop::fetch(InstId at, Value ring, Value counter, std::int64_t position) {
  const Inst& loop = inst(loop_);
  ValueMap map;
  map.set(f_.region(body_).params[0], counter);
  std::set<InstId> needed;
  for (const SkewedOperand& o : operands_)
    for (Value v : std::span(inst(o.load).operands).first(std::min<std::size_t>(inst(o.load).operands.size(), 2)))
      follows_from_counter(v, needed);
  const bool masked = std::all_of(operands_.begin(), operands_.end(), [&](const SkewedOperand& o) {
    return inst(o.load).operands.size() > 1 && ends_with_loop(inst(o.load).operands[1]);
  });
  const Literal yes = Literal::of_int(DType::i1, 1);
  const Value active = masked ? insert_constant(f_, at, yes, Type::scalar(DType::i1), loop.loc)
                              : op(f_, at, Op::Lt, {counter, loop.operands[1]}, loop.loc);
  for (InstId i : std::vector<InstId>(f_.region(body_).insts)) {
    if (!needed.contains(i)) continue;
    const Value result = inst(i).results[0];
    if (always_holds(i)) map.set(result, insert_constant(f_, at, yes, f_.type(result), inst(i).loc));
    else f_.insert_before(at, f_.clone(i, map));
  }
  std::vector<Value> operands{ring, active};
  std::vector<std::int64_t> along;
  SourceLoc loc;
  for (const SkewedOperand& o : operands_) {
    const Inst load = inst(o.load);
    loc = load.loc;
    const Value pointer = map(load.operands[0]);
    const Value mask = load.operands.size() > 1 ? map(load.operands[1])
                                                : insert_constant(f_, at, Literal::of_int(DType::i1, 1),
                                                                  f_.type(pointer).with(DType::i1), loc);
    operands.push_back(turned(at, o, pointer));
    operands.push_back(turned(at, o, mask));
    along.push_back(o.along);
  }
  insert_op(f_, at, Op::Fetch, operands, {{AttrKey::along, along}, {AttrKey::position, position}}, {}, loc);
}

void SkewedLoop::multiply(const Inst& take) {
  for (InstId i : dots_) {
    const Inst dot = inst(i);
    std::vector<Value> operands = dot.operands;
    std::vector<std::int64_t> along{1, 0};
    for (std::size_t k : {0, 1})
      for (std::size_t b = 0; b < operands_.size(); ++b)
        if (operands_[b].value == dot.operands[k]) {
          operands[k] = take.results[b];
          along[k] = operands_[b].along;
        }
    const std::int64_t m = f_.type(dot.results[0]).shape[0], n = f_.type(dot.results[0]).shape[1],
                       depth = operand_shape(f_, dot, 0)[1];
    const InstId product =
        insert_op(f_, i, Op::RingDot, operands,
                  {{AttrKey::extents, std::vector<std::int64_t>{m, n, depth}}, {AttrKey::along, along}}, {}, dot.loc);
    for (AttrKey key : {AttrKey::promote, AttrKey::unit}) set_attr(f_, product, key, dot.i64(key));
    f_.replace_all_uses(dot.results[0], inst(product).results[0]);
    f_.remove(i);
  }
}

void SkewedLoop::rewrite(std::int64_t slots) {
  const SourceLoc loc = inst(loop_).loc;
  const Value lo = inst(loop_).operands[0];
  const Value ring = inst(insert_op(f_, loop_, Op::Alloc, {}, {{AttrKey::count, slots * slot_bytes()}},
                                    {Type::shared_pointer(DType::u8)}, loc))
                         .results[0];
  for (std::int64_t s = 0; s + 1 < slots; ++s)
    fetch(loop_, ring, s == 0 ? lo : op(f_, loop_, Op::Add, {lo, index_constant(f_, loop_, s * step_, loc)}, loc),
          s + 1);

  const InstId first = f_.region(body_).insts.front();
  std::vector<std::int64_t> extents;
  std::vector<Type> pointers;
  for (const SkewedOperand& o : operands_) {
    const Type& t = f_.type(o.value);
    extents.insert(extents.end(), t.shape.begin(), t.shape.end());
    pointers.push_back(Type::shared_pointer(t.dtype));
  }
  const Inst take = inst(insert_op(f_, first, Op::Take, {ring}, {{AttrKey::extents, extents}}, pointers, loc));
  const Value ahead =
      op(f_, first, Op::Add, {f_.region(body_).params[0], index_constant(f_, first, (slots - 1) * step_, loc)}, loc);
  fetch(first, ring, ahead, 0);
  multiply(take);
  std::set<InstId> loads;
  for (const SkewedOperand& o : operands_) {
    if (o.turned) f_.remove(f_.def(o.value));
    loads.insert(o.load);
  }
  for (InstId i : loads) f_.remove(i);
  insert_op(f_, f_.region(body_).insts.back(), Op::Release, {ring}, {}, {}, loc);
}

// --- the pass --------------------------------------------------------------------------------------------------------

namespace {

/// Shared memory of everything but rings: what stays, and the largest of what passes.
std::int64_t other_shared_bytes(const Function& f) {
  std::int64_t kept = 0, largest = 0;
  walk(f, [&](InstId i) {
    const std::int64_t n = aligned(scratch_bytes(f, f.inst(i)));
    if (f.inst(i).op == Op::Alloc) kept += n;
    else largest = std::max(largest, n);
  });
  return kept + largest;
}

/// As many slots as keep kAhead bytes on their way.
std::int64_t wanted_slots(std::int64_t slot) { return std::clamp((kAhead + slot - 1) / slot + 1, kFewSlots, kSlots); }

/// So many, where two blocks have room for them on a multiprocessor; where they do not, as many as one block has room
/// for.
std::int64_t best_slots(std::int64_t slot, std::int64_t others, std::int64_t limit) {
  const std::int64_t half = (limit + kReserved) / 2 - kReserved;
  const std::int64_t of_two = (half - others) / slot, of_one = (limit - others) / slot;
  return std::min(of_two >= kFewSlots ? of_two : of_one, wanted_slots(slot));
}

class Skew {
 public:
  Skew(PassContext& context, Function& f) : wish_(context.options), target_(context.target), f_(f) {}

  bool run() {
    if (wish_.stages < 0 || wish_.stages > kMostWished)
      throw UserError(wish_.at.known() ? wish_.at : f_.loc,
                      fmt::format("{}: stages is {}, must be 0 to {}", f_.name, wish_.stages, kMostWished));
    std::vector<InstId> loops;
    walk(f_, [&](InstId i) {
      if (f_.inst(i).op == Op::For) loops.push_back(i);
    });
    bool changed = false;
    std::string why = "it has no loop";
    for (InstId i : loops)
      if (const std::string w = loop(i); w.empty()) changed = true;
      else why = w;
    // What the options ask for is asked for somewhere in the kernel.
    if (wish_.stages > 1 && !changed && !wish_.debug && fill_of(f_) == kNone)
      throw UserError(
          wish_.at.known() ? wish_.at : f_.loc,
          fmt::format("{}: stages is {}, but no loop of the kernel has a ring: {}", f_.name, wish_.stages, why));
    return changed;
  }

 private:
  /// Gives the loop a ring; why it gets none, or nothing. UserError where the user wants one.
  std::string loop(InstId i) {
    const std::int64_t wanted = stages_wished(f_, i, wish_);
    if (wanted == 1 || wish_.debug || takes_filled(i)) return "its products are to be left as they are";
    if (f_.inst(i).flag(AttrKey::roles)) refuse(i, "warp_specialize()", no_roles());
    std::string why;
    if (f_.exec->cluster > 1) why = "the program runs on a cluster of blocks";
    else if (fill_of(f_) != kNone) why = "another loop of the kernel has a ring that other warps fill";
    else why = with_ring(i, wanted);
    if (!why.empty() && f_.inst(i).i64(AttrKey::stages) > 1) refuse(i, fmt::format("stages({})", wanted), why);
    return why;
  }

  std::string with_ring(InstId i, std::int64_t wanted) {
    const std::vector<InstId>& body = f_.region(f_.inst(i).regions[0]).insts;
    if (std::none_of(body.begin(), body.end(), [&](InstId x) { return f_.inst(x).op == Op::Dot; }))
      return "no product stands in it";
    const AxisAnalysis facts(f_);
    SkewedLoop loop(f_, facts, i);
    if (const std::string why = loop.find(); !why.empty()) return why;
    if (loop.holds_loops()) return "loops stand in it";
    const std::int64_t limit = std::int64_t(target_.max_shared_bytes) / f_.exec->programs_per_cta;
    const std::int64_t slot = loop.slot_bytes(), others = other_shared_bytes(f_);
    const std::int64_t slots = wanted > 0 ? wanted : best_slots(slot, others, limit);
    if (slots < 2 || slots * slot + others > limit)
      return fmt::format("{} slots of {} bytes and {} bytes of other shared memory do not fit {}",
                         std::max<std::int64_t>(slots, 2), slot, others, limit);
    const SourceLoc where = f_.inst(i).loc;
    loop.rewrite(slots);
    const char* reason = wanted > 0                    ? "as the kernel or its options ask"
                         : slots == wanted_slots(slot) ? "as many as hide the way to memory"
                                                       : "as many as shared memory has room for";
    f_.notes.push_back(
        fmt::format("{}: cp.async fills a ring of {} slots of {} bytes: {}", where.str(), slots, slot, reason));
    return "";
  }

  /// Whether other warps fill the ring of this loop.
  bool takes_filled(InstId i) const {
    const std::vector<InstId>& body = f_.region(f_.inst(i).regions[0]).insts;
    return std::any_of(body.begin(), body.end(), [&](InstId x) {
      return f_.inst(x).op == Op::Fill || (f_.inst(x).op == Op::Take && f_.inst(x).operands.empty());
    });
  }

  std::string no_roles() const {
    if (!target_.has_warpgroups()) return fmt::format("{} has no units of a warpgroup", target_.arch);
    if (fill_of(f_) != kNone) return "another loop of the kernel has the ring that other warps fill";
    if (wish_.cluster > 1) return fmt::format("cluster is {}, must be 1", wish_.cluster);
    if (wish_.max_registers != 0) return fmt::format("max_registers is {}, must be left out", wish_.max_registers);
    if (wish_.stages == 1) return "stages is 1, which is no ring";
    return fmt::format(
        "with {} warps no product of it takes blocks of views, arrays of the launch that nothing writes, "
        "in a form that tensor maps copy and the units of a warpgroup multiply",
        f_.exec->warps);
  }

  [[noreturn]] void refuse(InstId i, const std::string& hint, const std::string& why) const {
    throw UserError(f_.inst(i).loc, fmt::format("{}: {} cannot be met for this loop: {}", f_.name, hint, why));
  }

  const CompileOptions& wish_;
  const Target& target_;
  Function& f_;
};

}  // namespace

std::int64_t stages_wished(const Function& f, InstId loop, const CompileOptions& wish) {
  const std::int64_t own = f.inst(loop).i64(AttrKey::stages);
  return own != 0 ? own : wish.stages;
}

bool skew(PassContext& context, Function& f) { return Skew(context, f).run(); }

}  // namespace kiln::ir
