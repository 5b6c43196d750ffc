// Reductions: the steps of reduce_order.h, each over one bit of the axis.
//
//   register bit   two registers of a thread combine
//   lane bit       each lane combines its partial result with its partner's, so that both have the result
//   warp bits      each warp puts its partial results into shared memory, and after a barrier every thread reads those
//                  of all warps along the axis and combines them itself: again all have the result
//   block bits     the same between the blocks of a cluster: each thread reads what its place has in the other blocks
//
// Elements outside the tile: where the combination has an identity, registers that are partly outside take it there;
// otherwise a step over a partner that does not exist leaves the partial result as it is. Registers that lie outside as
// a whole take no part.
#include "backend/llvm/combine.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using llvm::Value;

class Reduction {
 public:
  Reduction(Emitter& e, const ir::Inst& inst)
      : e_(e),
        inst_(inst),
        type_(e.type(inst.operands[0])),
        axis_(int(inst.i64(ir::AttrKey::axis))),
        g_(e.geometry_of(inst.operands[0])),
        combine_(e, inst),
        numbers_(e, type_, g_, axis_) {}

  void run() {
    load();
    const std::vector<ir::AxisBit> order = ir::reduce_order(e_.f.layout(type_.layout), axis_, combine_.commutes);
    for (std::size_t i = 0; i < order.size(); i += done_.size() - i) {
      std::size_t n = 1;
      while (i + n < order.size() && order[i + n].hw == order[i].hw) ++n;
      step({order.begin() + std::ptrdiff_t(i), order.begin() + std::ptrdiff_t(i + n)});
    }
    store();
  }

 private:
  /// The elements of this thread, those outside replaced by the identity.
  void load() {
    std::vector<TileValue> operands;
    for (ir::Value v : inst_.operands) {
      KILN_CHECK(e_.type(v).layout == type_.layout, "operands of a reduction in several layouts");
      operands.push_back(e_.as_plain(v));
    }
    partial_.resize(std::size_t(g_.regs()));
    for (int r = 0; r < g_.regs(); ++r) {
      if (!g_.live[std::size_t(r)] || g_.first[std::size_t(r)] != r) continue;
      Group x;
      for (const TileValue& t : operands) x.push_back(t.regs[std::size_t(r)].v);
      if (!combine_.identity.empty()) x = combine_.select(numbers_.exists(r), x, combine_.identity);
      partial_[std::size_t(r)] = x;
    }
  }

  void step(const std::vector<ir::AxisBit>& run) {
    switch (run[0].hw) {
      case ir::Hw::Register: registers(run); break;
      case ir::Hw::Lane: lanes(run); break;
      case ir::Hw::Warp: warps(run); break;
      case ir::Hw::Block: blocks(run); break;
      case ir::Hw::Offset: throw InternalError("a reduction over offsets in shared memory");
    }
    for (const ir::AxisBit& b : run) combined_ |= std::int64_t(1) << b.position;
    done_.insert(done_.end(), run.begin(), run.end());
  }

  /// left ∘ right; what does not exist was replaced by the identity, or is named by `right_exists`.
  Group join(const Group& left, const Group& right, Condition right_exists) {
    return combine_.append(left, right, combine_.identity.empty() ? right_exists : nullptr);
  }

  void registers(const std::vector<ir::AxisBit>& run) {
    std::size_t bits = 0;
    for (const ir::AxisBit& b : run) bits |= std::size_t(1) << b.bit;
    for (std::size_t r = 0; r < partial_.size(); ++r)
      if ((r & bits) == 0 && !partial_[r].empty()) partial_[r] = fold(r, run, run.size());
    for (std::size_t r = 0; r < partial_.size(); ++r)
      if ((r & bits) != 0) partial_[r].clear();
  }

  /// One half after the other, so that few partial results wait at any time.
  Group fold(std::size_t r, const std::vector<ir::AxisBit>& run, std::size_t n) {
    if (n == 0) return partial_[r];
    const std::size_t other = r | std::size_t(1) << run[n - 1].bit;
    Group left = fold(r, run, n - 1);
    if (partial_[other].empty()) return left;
    return join(left, fold(other, run, n - 1), numbers_.exists(std::int64_t(other), 0, combined_));
  }

  void lanes(const std::vector<ir::AxisBit>& run) {
    std::int64_t combined = combined_;
    if (run.size() == 5 && reduce_warps()) return;
    for (const ir::AxisBit& b : run) {
      const std::int64_t number = std::int64_t(1) << b.position;
      combined |= number;
      for (std::size_t r = 0; r < partial_.size(); ++r)
        if (!partial_[r].empty()) lane_step(r, b, numbers_.exists(std::int64_t(r), number, combined));
    }
  }

  bool reduce_warps() {
    std::vector<Group> all(partial_.size());
    for (std::size_t r = 0; r < partial_.size(); ++r) {
      if (partial_[r].empty()) continue;
      all[r] = combine_.reduce_warp(partial_[r]);
      if (all[r].empty()) return false;
    }
    partial_ = all;
    return true;
  }

  void lane_step(std::size_t r, const ir::AxisBit& b, Condition right_exists) {
    const Group mine = partial_[r], other = combine_.exchange_lanes(mine, 1u << b.bit);
    if (!combine_.identity.empty()) right_exists = nullptr;
    if (combine_.commutes && always(right_exists)) {
      partial_[r] = combine_(mine, other);
      return;
    }
    Value* upper = bit_of(e_.b, lane_number(e_), b.bit);
    const Group left = combine_.select(upper, other, mine), right = combine_.select(upper, mine, other);
    partial_[r] = combine_.append(left, right, right_exists);
  }

  void warps(const std::vector<ir::AxisBit>& run) {
    ir::WarpExchange x = ir::warp_exchange(e_.f, type_, done_, run);
    std::vector<Group> mine;
    for (std::int64_t r : x.registers) mine.push_back(partial_[std::size_t(r)]);
    WarpSlots slots(e_, inst_, x, combine_.types, scratch_used_);
    scratch_used_ += slots.bytes();
    combine_all(run, x, slots.exchange(mine));
  }

  void blocks(const std::vector<ir::AxisBit>& run) {
    const ir::WarpExchange x = ir::block_exchange(e_.f, type_, done_, run);
    std::vector<Group> mine;
    for (std::int64_t r : x.registers) mine.push_back(partial_[std::size_t(r)]);
    BlockSlots slots(e_, inst_, x, combine_.types, scratch_used_);
    scratch_used_ += slots.bytes();
    combine_all(run, x, slots.exchange(mine));
  }

  /// all[register][warp or block along the axis], in pairs over one bit after the other.
  void combine_all(const std::vector<ir::AxisBit>& run, const ir::WarpExchange& x, std::vector<std::vector<Group>> all) {
    std::int64_t combined = combined_;
    for (const ir::AxisBit& b : run) combined |= std::int64_t(1) << b.position;
    for (std::size_t k = 0; k < all.size(); ++k) {
      for (std::size_t bit = 1; bit < all[k].size(); bit *= 2)
        for (std::size_t w = 0; w < all[k].size(); w += 2 * bit)
          all[k][w] =
              join(all[k][w], all[k][w + bit], numbers_.exists(x.registers[k], number_of(run, w + bit), combined));
      partial_[std::size_t(x.registers[k])] = all[k][0];
    }
  }

  /// Bits of the elements' numbers that warp or block `w` along the axis stands for.
  static std::int64_t number_of(const std::vector<ir::AxisBit>& run, std::size_t w) {
    std::int64_t number = 0;
    for (std::size_t i = 0; i < run.size(); ++i)
      if (w >> i & 1) number |= std::int64_t(1) << run[i].position;
    return number;
  }

  void store() {
    for (std::size_t k = 0; k < inst_.results.size(); ++k) {
      const ir::Value v = inst_.results[k];
      if (!e_.type(v).tile) e_.set_plain(v, partial_[0][k]);
      else e_.set_plain(v, tile(v, k));
    }
  }

  TileValue tile(ir::Value v, std::size_t component) {
    KILN_CHECK(e_.f.layout(e_.type(v).layout) == e_.f.layout(type_.layout).slice(axis_).without_free_registers(),
               "the result of a reduction is not in what is left of its operand's layout");
    const Geometry& out = e_.geometry_of(v);
    TileValue t;
    t.regs.resize(std::size_t(out.regs()));
    for (std::size_t r = 0; r < partial_.size(); ++r) {
      if (partial_[r].empty()) continue;
      std::vector<std::int64_t> place = g_.parts[r];
      place.erase(place.begin() + axis_);
      for (std::size_t o = 0; o < t.regs.size(); ++o)
        if (out.live[o] && out.parts[o] == place) t.regs[o].v = partial_[r][component];
    }
    return t;
  }

  Emitter& e_;
  const ir::Inst& inst_;
  const ir::Type& type_;
  int axis_;
  const Geometry& g_;
  Combine combine_;
  AxisNumbers numbers_;
  std::vector<Group> partial_;  ///< by register, the bits combined so far being 0
  std::vector<ir::AxisBit> done_;
  std::int64_t combined_ = 0;  ///< bits of the elements' numbers that are done
  std::int64_t scratch_used_ = 0;
};

}  // namespace

void emit_Reduce(Emitter& e, const ir::Inst& inst) { Reduction(e, inst).run(); }

}  // namespace kiln::cg
