#include "backend/ir/op/movement.h"

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
      if (m.regs.back()[k].reg < 0) m.shared = true;
    }
  }
  return m;
}

// All elements of the operands, where some of them change threads.
std::int64_t scratch_shape(const Function& f, const Inst& inst) {
  bool shared = inst.op == Op::Gather;
  for (std::size_t i = 0; i < inst.results.size() && !shared; ++i) shared = movement(f, inst, i).shared;
  std::int64_t elements = 0;
  for (Value v : inst.operands) elements += f.type(v).elements();
  if (inst.op == Op::Gather) elements = f.type(inst.operands[0]).elements();
  return shared ? elements * std::int64_t(element_bytes(f.type(inst.operands[0]))) : 0;
}

}  // namespace kiln::ir
