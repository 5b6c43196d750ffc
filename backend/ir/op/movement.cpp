#include "backend/ir/op/movement.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/scratch.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

constexpr int kLanes = 32;

/// A layout with coordinates packed into one word, axis by axis: their exclusive or is one instruction.
class Places {
 public:
  Places(const LinearLayout& l, const Exec& exec) {
    int used = 0;
    for (std::int64_t extent : l.out_shape()) {
      shift_.push_back(used);
      used += std::countr_zero(std::uint64_t(extent));
    }
    KILN_CHECK(used <= 64, "layout " + l.str() + " has more than 64 bits");
    regs = combinations(l, Hw::Register, l.in_bits(Hw::Register), {0});
    threads = combinations(l, Hw::Lane, 5, {0});
    threads = combinations(l, Hw::Warp, std::countr_zero(unsigned(exec.warps)), threads);
    threads = combinations(l, Hw::Block, std::countr_zero(unsigned(exec.cluster)), threads);
    mask_ = l.out_shape();
    for (std::size_t r = regs.size(); r-- > 0;) reg_of_[regs[r]] = int(r);
  }

  std::uint64_t pack(const Shape& at) const {
    std::uint64_t word = 0;
    for (std::size_t a = 0; a < at.size(); ++a) word |= std::uint64_t(at[a]) << shift_[a];
    return word;
  }
  void unpack(std::uint64_t word, Shape& at) const {
    for (std::size_t a = 0; a < at.size(); ++a) at[a] = std::int64_t(word >> shift_[a]) & (mask_[a] - 1);
  }
  /// The lowest register with this part of a coordinate, -1 without one.
  int reg_of(std::uint64_t part) const {
    const auto at = reg_of_.find(part);
    return at == reg_of_.end() ? -1 : at->second;
  }

  std::vector<std::uint64_t> regs, threads;  ///< the part of each register, of each thread

 private:
  std::vector<std::uint64_t> combinations(const LinearLayout& l, Hw h, int bits, std::vector<std::uint64_t> all) const {
    for (int bit = 0; bit < bits; ++bit) {
      const std::uint64_t basis = bit < l.in_bits(h) ? pack(l.basis(h, bit)) : 0;
      for (std::size_t n = all.size(), i = 0; i < n; ++i) all.push_back(all[i] ^ basis);
    }
    return all;
  }

  std::vector<int> shift_;
  Shape mask_;
  std::unordered_map<std::uint64_t, int> reg_of_;
};

/// One element that a thread wants from an operand.
struct Wanted {
  std::size_t thread;
  std::uint64_t element;
};

Movement::Place place_for(const Places& from, const std::vector<Wanted>& wanted, int lane_xor) {
  const Wanted& first = wanted[0];
  const int reg = from.reg_of(first.element ^ from.threads[first.thread ^ std::size_t(lane_xor)]);
  if (reg < 0) return {};
  for (const Wanted& w : wanted)
    if ((from.regs[std::size_t(reg)] ^ from.threads[w.thread ^ std::size_t(lane_xor)]) != w.element) return {};
  return {reg, lane_xor};
}

/// The place that serves all of `wanted`, in the same thread if possible.
Movement::Place common_place(const Places& from, const std::vector<Wanted>& wanted) {
  for (int lane_xor = 0; lane_xor < kLanes; ++lane_xor)
    if (const Movement::Place p = place_for(from, wanted, lane_xor); p.reg >= 0) return p;
  return {};
}

}  // namespace

std::size_t source_of(const Function& f, const Inst& inst, std::size_t result, const Shape& at, Shape& from) {
  const Shape& x = f.type(inst.operands[0]).shape;
  const auto axis = std::size_t(inst.i64(AttrKey::axis));
  from = at;
  switch (inst.op) {
    case Op::ExpandDims: from.erase(from.begin() + std::ptrdiff_t(axis)); return 0;
    case Op::Broadcast:
      for (std::size_t a = 0; a < x.size(); ++a)
        if (x[a] == 1) from[a] = 0;
      return 0;
    case Op::Reshape: {
      const Shape& shape = f.type(inst.results[result]).shape;
      std::int64_t number = 0;
      for (std::size_t a = 0; a < shape.size(); ++a) number = number * shape[a] + at[a];
      from.resize(x.size());
      for (std::size_t a = x.size(); a-- > 0; number /= x[a]) from[a] = number % x[a];
      return 0;
    }
    case Op::Permute: {
      const std::vector<std::int64_t>& order = inst.ints(AttrKey::order);
      for (std::size_t a = 0; a < at.size(); ++a) from[std::size_t(order[a])] = at[a];
      return 0;
    }
    case Op::Join: from.pop_back(); return std::size_t(at.back());
    case Op::Split: from.push_back(std::int64_t(result)); return 0;
    case Op::Slice: from[axis] += inst.i64(AttrKey::start); return 0;
    case Op::Cat:
      if (at[axis] < x[axis]) return 0;
      from[axis] -= x[axis];
      return 1;
    case Op::Flip: from[axis] = x[axis] - 1 - at[axis]; return 0;
    default: throw InternalError(std::string(mnemonic(inst.op)) + " does not rearrange tiles");
  }
}

Movement movement(const Function& f, const Inst& inst, std::size_t result) {
  const Type& type = f.type(inst.results[result]);
  const Places to(f.layout(type.layout), *f.exec);
  std::vector<Places> from;
  for (Value v : inst.operands) from.emplace_back(f.layout(f.type(v).layout), *f.exec);
  Movement m;
  Shape at(type.shape.size()), source;
  std::array<std::vector<Wanted>, 2> wanted;
  for (std::uint64_t part : to.regs) {
    for (std::vector<Wanted>& w : wanted) w.clear();
    for (std::size_t t = 0; t < to.threads.size(); ++t) {
      to.unpack(part ^ to.threads[t], at);
      bool inside = true;
      for (std::size_t a = 0; a < at.size(); ++a) inside &= at[a] < type.shape[a];
      if (!inside) continue;
      const std::size_t k = source_of(f, inst, result, at, source);
      wanted[k].push_back({t, from[k].pack(source)});
    }
    m.regs.emplace_back();
    for (std::size_t k = 0; k < from.size(); ++k) {
      if (wanted[k].empty()) continue;
      m.regs.back()[k] = common_place(from[k], wanted[k]);
      m.shared = m.regs.back()[k].reg < 0;
      if (m.shared) return m;
    }
  }
  return m;
}

namespace {

LinearLayout::Coord without(LinearLayout::Coord at, std::size_t axis) {
  at[axis] = 0;
  return at;
}

/// Bits of `h` that count along `axis`, in order of what they count: places[b] = bit. False if one counts along another
/// axis too, or not by a power of two, or a position is counted twice.
bool positions(const LinearLayout& l, Hw h, std::size_t axis, std::vector<int>& places) {
  for (int bit = 0; bit < l.in_bits(h); ++bit) {
    const LinearLayout::Coord& basis = l.basis(h, bit);
    if (basis[axis] == 0) continue;
    const auto step = std::uint64_t(basis[axis]);
    const auto at = std::size_t(std::countr_zero(step));
    if (!std::has_single_bit(step) || without(basis, axis) != LinearLayout::Coord(basis.size(), 0) || places[at] >= 0)
      return false;
    places[at] = bit;
  }
  return true;
}

bool equal_threads_but_for(std::size_t axis, const LinearLayout& a, const LinearLayout& b, Hw h) {
  const LinearLayout::Coord none(std::size_t(a.rank()), 0);
  for (int bit = 0; bit < std::max(a.in_bits(h), b.in_bits(h)); ++bit) {
    const LinearLayout::Coord x = bit < a.in_bits(h) ? a.basis(h, bit) : none,
                              y = bit < b.in_bits(h) ? b.basis(h, bit) : none;
    if (without(x, axis) != without(y, axis)) return false;
  }
  return true;
}

}  // namespace

std::optional<WarpGather> warp_gather(const Function& f, const Inst& gather) {
  const auto axis = std::size_t(gather.i64(AttrKey::axis));
  const LinearLayout &x = f.layout(f.type(gather.operands[0]).layout), &r = f.layout(f.type(gather.results[0]).layout);
  const int bits = std::countr_zero(std::uint64_t(x.out_shape()[axis]));
  WarpGather g;
  g.lane_bit.assign(std::size_t(bits), -1);
  std::vector<int> reg_bit(std::size_t(bits), -1), elsewhere(std::size_t(bits), -1);
  for (Hw h : {Hw::Lane, Hw::Warp, Hw::Block})
    if (!equal_threads_but_for(axis, x, r, h)) return std::nullopt;
  if (!positions(x, Hw::Lane, axis, g.lane_bit) || !positions(x, Hw::Register, axis, reg_bit)) return std::nullopt;
  for (Hw h : {Hw::Warp, Hw::Block})
    if (!positions(x, h, axis, elsewhere)) return std::nullopt;
  std::vector<std::int64_t> steps;  // along the axis, of the register bits
  for (std::size_t b = 0; b < std::size_t(bits); ++b) {
    if (elsewhere[b] >= 0 || (g.lane_bit[b] >= 0) == (reg_bit[b] >= 0)) return std::nullopt;
    if (reg_bit[b] >= 0) steps.push_back(std::int64_t(1) << b);
  }
  g.register_bits = int(steps.size());
  if (g.register_bits > 2) return std::nullopt;
  const Places from(x, *f.exec);
  for (std::int64_t q = 0; q < r.in_size(Hw::Register); ++q) {
    LinearLayout::Coord at = without(r.apply({{Hw::Register, q}}), axis);
    std::vector<int> choices;
    for (std::size_t c = 0; c < std::size_t(1) << steps.size(); ++c) {
      at[axis] = 0;
      for (std::size_t k = 0; k < steps.size(); ++k) at[axis] += c >> k & 1 ? steps[k] : 0;
      choices.push_back(from.reg_of(from.pack(at)));
      if (choices.back() < 0) return std::nullopt;
    }
    g.regs.push_back(choices);
  }
  return g;
}

// All elements of the operands, where some of them change threads.
std::int64_t scratch_shape(const Function& f, const Inst& inst) {
  bool shared = inst.op == Op::Gather && !warp_gather(f, inst);
  for (std::size_t i = 0; i < inst.results.size() && !shared && inst.op != Op::Gather; ++i)
    shared = movement(f, inst, i).shared;
  std::int64_t elements = 0;
  for (Value v : inst.operands) elements += f.type(v).elements();
  if (inst.op == Op::Gather) elements = f.type(inst.operands[0]).elements();
  const std::size_t bytes = element_bytes(f.type(inst.operands[0]));
  const ScratchRows rows(bytes);
  return shared ? (elements + elements / rows.elements * rows.gap) * std::int64_t(bytes) : 0;
}

}  // namespace kiln::ir
