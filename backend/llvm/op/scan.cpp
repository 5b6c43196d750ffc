// Scans: the runs of reduce_order.h. A thread keeps the total of its block and what precedes it inside (its prefix) and
// widens the block run by run:
//
//   lowest registers   each thread scans its own elements, one after the other
//   lane bit           lanes exchange totals with their partners: the one behind puts the partner's total before its
//                      prefix, both join the two totals
//   warp bits          totals cross in shared memory; each thread joins those of the warps before its own
//   block bits         the same between the blocks of a cluster
//   higher registers   one after the other again
//
// Last, the prefix goes before each of the thread's own elements. From the first element to the last, what lies outside
// the tile comes last and reaches nothing; in reverse it comes first, and is left out by the identity or a condition.
#include <algorithm>

#include "backend/llvm/combine.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using llvm::Value;
using Run = std::vector<ir::AxisBit>;

/// What precedes a block. `has`: whether anything does.
struct Prefix {
  Group value;
  Condition has = nullptr;
};

class Scan {
 public:
  Scan(Emitter& e, const ir::Inst& inst)
      : e_(e),
        inst_(inst),
        type_(e.type(inst.operands[0])),
        axis_(int(inst.i64(ir::AttrKey::axis))),
        reverse_(inst.flag(ir::AttrKey::reverse)),
        exclusive_(inst.flag(ir::AttrKey::exclusive)),
        g_(e.geometry_of(inst.operands[0])),
        combine_(e, inst),
        numbers_(e, type_, g_, axis_) {}

  void run() {
    load();
    for (const Run& run : ir::scan_order(e_.f.layout(type_.layout), axis_)) {
      switch (run[0].hw) {
        case ir::Hw::Register: done_.empty() ? own_registers(run) : registers(run); break;
        case ir::Hw::Lane: lane(run[0]); break;
        case ir::Hw::Warp: exchange<WarpSlots>(ir::warp_exchange(e_.f, type_, done_, run)); break;
        case ir::Hw::Block: exchange<BlockSlots>(ir::block_exchange(e_.f, type_, done_, run)); break;
        case ir::Hw::Offset: break;  // of places in memory only
      }
      for (const ir::AxisBit& b : run) combined_ |= std::int64_t(1) << b.position;
      done_.insert(done_.end(), run.begin(), run.end());
    }
    store();
  }

 private:
  bool known_identity() const { return !combine_.identity.empty(); }
  /// Whether a block before another exists: going forward always, if that other one matters.
  Condition exists(std::size_t reg, std::int64_t set = 0, std::int64_t cleared = 0) const {
    return reverse_ && !known_identity() ? numbers_.exists(std::int64_t(reg), set, cleared) : nullptr;
  }
  Condition both(Condition a, Condition b) const { return always(a) ? b : always(b) ? a : e_.b.CreateAnd(a, b); }
  Condition either(Condition a, Condition b) const { return always(a) || always(b) ? nullptr : e_.b.CreateOr(a, b); }

  void load() {
    std::vector<TileValue> operands;
    for (std::size_t k = 0; k < combine_.components(); ++k) {
      KILN_CHECK(e_.type(inst_.operands[k]).layout == type_.layout && e_.type(inst_.results[k]).layout == type_.layout,
                 "a scan in several layouts");
      operands.push_back(e_.as_plain(inst_.operands[k]));
    }
    local_.resize(std::size_t(g_.regs()));
    prefix_.resize(local_.size());
    for (int r = 0; r < g_.regs(); ++r) {
      if (!g_.live[std::size_t(r)] || g_.first[std::size_t(r)] != r) continue;
      Group x;
      for (const TileValue& t : operands) x.push_back(t.regs[std::size_t(r)].v);
      if (reverse_ && known_identity()) x = combine_.select(numbers_.exists(r), x, combine_.identity);
      local_[std::size_t(r)] = x;
      prefix_[std::size_t(r)] = {combine_.identity, known_identity() ? nullptr : e_.b.getFalse()};
    }
    total_ = local_;
  }

  /// The registers of a run that belong to block `r` (the run's bits 0), in the order of the scan.
  std::vector<std::size_t> in_order(std::size_t r, const Run& run) const {
    std::vector<std::size_t> order;
    for (std::size_t j = 0; j < std::size_t(1) << run.size(); ++j) {
      std::size_t at = r;
      for (std::size_t i = 0; i < run.size(); ++i)
        if (j >> i & 1) at |= std::size_t(1) << run[i].bit;
      if (!local_[at].empty()) order.push_back(at);
    }
    if (reverse_) std::reverse(order.begin(), order.end());
    return order;
  }
  static std::size_t register_bits(const Run& run) {
    std::size_t bits = 0;
    for (const ir::AxisBit& b : run)
      if (b.hw == ir::Hw::Register) bits |= std::size_t(1) << b.bit;
    return bits;
  }

  void own_registers(const Run& run) {
    own_ = run;
    own_bits_ = register_bits(run);
    for (std::size_t r = 0; r < local_.size(); ++r) {
      if ((r & own_bits_) != 0 || local_[r].empty()) continue;
      const std::vector<std::size_t> order = in_order(r, run);
      for (std::size_t j = 1; j < order.size(); ++j)
        local_[order[j]] = combine_.prepend(local_[order[j - 1]], local_[order[j]], exists(order[j - 1]));
      total_[r] = local_[order.back()];
    }
  }

  /// `before` ∘ what precedes the block of `r` already, where `when`.
  void precede(std::size_t r, const Group& before, Condition when) {
    Prefix& p = prefix_[r];
    const Group longer = never(p.has) ? before : combine_.select(p.has, combine_(before, p.value), before);
    p.value = p.value.empty() ? longer : combine_.select(when, longer, p.value);
    p.has = never(p.has) ? when : either(p.has, when);
  }

  /// Whether `r` stands for a block: the register bits combined so far are 0.
  bool is_block(std::size_t r) const { return !local_[r].empty() && (r & register_bits(done_)) == 0; }
  /// Calls fn for the registers inside block `r` that have prefixes of their own.
  template <class F>
  void for_prefixes(std::size_t r, F&& fn) const {
    const std::size_t inside = register_bits(done_) & ~own_bits_;
    for (std::size_t q = 0; q < local_.size(); ++q)
      if (!local_[q].empty() && (q & own_bits_) == 0 && (q & ~inside) == r) fn(q);
  }

  void lane(const ir::AxisBit& b) {
    const std::int64_t number = std::int64_t(1) << b.position, combined = combined_ | number;
    Value* upper = bit_of(e_.b, lane_number(e_), b.bit);
    Value* behind = reverse_ ? e_.b.CreateNot(upper) : upper;
    for (std::size_t r = 0; r < local_.size(); ++r) {
      if (!is_block(r)) continue;
      const Group mine = total_[r], other = combine_.exchange_lanes(mine, 1u << b.bit);
      const Condition front_exists = exists(r, number, combined);
      for_prefixes(r, [&](std::size_t q) { precede(q, other, both(behind, front_exists)); });
      const bool order = !combine_.commutes || !always(front_exists);
      const Group front = order ? combine_.select(behind, other, mine) : mine;
      const Group back = order ? combine_.select(behind, mine, other) : other;
      total_[r] = combine_.prepend(front, back, front_exists);
    }
  }

  /// Through WarpSlots or BlockSlots: the totals of all warps or blocks along a run of their bits.
  template <class Slots>
  void exchange(const ir::WarpExchange& x) {
    std::vector<Group> mine;
    for (std::int64_t r : x.registers) mine.push_back(total_[std::size_t(r)]);
    Slots slots(e_, inst_, x, combine_.types, scratch_used_);
    scratch_used_ += slots.bytes();
    const std::vector<std::vector<Group>> all = slots.exchange(mine);
    for (std::size_t k = 0; k < all.size(); ++k)
      join_totals(std::size_t(x.registers[k]), x.bits, all[k], slots.place());
  }

  /// `totals` of the warps or blocks along `run`, of which this thread's is number `place`.
  void join_totals(std::size_t r, const Run& run, const std::vector<Group>& totals, Value* place) {
    std::int64_t combined = combined_;
    for (const ir::AxisBit& b : run) combined |= std::int64_t(1) << b.position;
    const auto nth = [&](std::size_t s) { return reverse_ ? totals.size() - 1 - s : s; };
    const auto number = [&](std::size_t w) {
      std::int64_t n = 0;
      for (std::size_t i = 0; i < run.size(); ++i)
        if (w >> i & 1) n |= std::int64_t(1) << run[i].position;
      return n;
    };
    Group acc = totals[nth(0)], before = acc;
    Condition has = nullptr;  // of `before`
    Value* first = e_.b.CreateICmpEQ(place, e_.b.getInt32(std::uint32_t(nth(0))));
    for (std::size_t s = 1; s < totals.size(); ++s) {
      const Condition acc_exists = exists(r, number(nth(s - 1)), combined);
      Value* here = e_.b.CreateICmpEQ(place, e_.b.getInt32(std::uint32_t(nth(s))));
      before = s == 1 ? acc : combine_.select(here, acc, before);
      if (reverse_ && !known_identity()) {
        Value* now = always(acc_exists) ? e_.b.getTrue() : acc_exists;
        has = s == 1 ? now : e_.b.CreateSelect(here, now, has);
      }
      acc = combine_.prepend(acc, totals[nth(s)], acc_exists);
    }
    const Condition when = both(e_.b.CreateNot(first), has);
    for_prefixes(r, [&](std::size_t q) { precede(q, before, when); });
    total_[r] = acc;
  }

  void registers(const Run& run) {
    const std::size_t bits = register_bits(run);
    for (std::size_t r = 0; r < local_.size(); ++r) {
      if (!is_block(r) || (r & bits) != 0) continue;
      const std::vector<std::size_t> order = in_order(r, run);
      Group acc = total_[order[0]];
      for (std::size_t j = 1; j < order.size(); ++j) {
        const Condition acc_exists = exists(order[j - 1], 0, combined_);
        if (!never(acc_exists)) for_prefixes(order[j], [&](std::size_t q) { precede(q, acc, acc_exists); });
        acc = combine_.prepend(acc, total_[order[j]], acc_exists);
      }
      total_[r] = acc;
    }
  }

  Group result(std::size_t r, const Group& init) {
    const Prefix& p = prefix_[r & ~own_bits_];
    if (!exclusive_) return never(p.has) ? local_[r] : combine_.select(p.has, combine_(p.value, local_[r]), local_[r]);
    const Group start = never(p.has) ? init : combine_.select(p.has, combine_(init, p.value), init);
    const std::vector<std::size_t> order = in_order(r & ~own_bits_, own_);
    const auto at = std::find(order.begin(), order.end(), r);
    if (at == order.begin()) return start;
    const Condition has = exists(at[-1]);
    return never(has) ? start : combine_.select(has, combine_(start, local_[at[-1]]), start);
  }

  void store() {
    Group init;
    if (exclusive_)
      for (std::size_t k = 0; k < combine_.components(); ++k)
        init.push_back(e_.scalar(inst_.operands[k + combine_.components()]));
    std::vector<TileValue> out(combine_.components());
    for (TileValue& t : out) t.regs.resize(local_.size());
    for (std::size_t r = 0; r < local_.size(); ++r) {
      if (local_[r].empty()) continue;
      const Group x = result(r, init);
      for (std::size_t k = 0; k < out.size(); ++k) out[k].regs[r].v = x[k];
    }
    for (std::size_t r = 0; r < local_.size(); ++r)
      if (g_.live[r])
        for (TileValue& t : out) t.regs[r].v = t.regs[std::size_t(g_.first[r])].v;
    for (std::size_t k = 0; k < out.size(); ++k) e_.set_plain(inst_.results[k], out[k]);
  }

  Emitter& e_;
  const ir::Inst& inst_;
  const ir::Type& type_;
  int axis_;
  bool reverse_, exclusive_;
  const Geometry& g_;
  Combine combine_;
  AxisNumbers numbers_;
  std::vector<Group> local_;    ///< by register: the elements, scanned inside the thread's own lowest block
  std::vector<Group> total_;    ///< by register that stands for a block
  std::vector<Prefix> prefix_;  ///< by register, the bits of the lowest block being 0
  Run own_, done_;
  std::size_t own_bits_ = 0;
  std::int64_t combined_ = 0, scratch_used_ = 0;
};

}  // namespace

void emit_Scan(Emitter& e, const ir::Inst& inst) { Scan(e, inst).run(); }

}  // namespace kiln::cg
