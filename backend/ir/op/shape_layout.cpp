// In which layout the ops that rearrange tiles need their operands, so that every element of the result already stands
// in its thread: coordinates are renamed, axis by axis and bit by bit. Where padding or a shift makes that impossible
// (reshape [3,5] to [15], a slice that starts at 3), the operand keeps its layout, or gets one that memory is read well
// in, and elements move through shared memory (backend/llvm/op/shape.cpp, which is right for any layouts).
#include <algorithm>
#include <bit>
#include <functional>

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/operand_layout.h"
#include "backend/ir/op/reshape_groups.h"

namespace kiln::ir {
namespace {

using Coord = LinearLayout::Coord;

/// `l` with each basis replaced.
LinearLayout renamed(const LinearLayout& l, const Shape& extents, const std::function<Coord(const Coord&)>& to) {
  LinearLayout r(padded(extents));
  for (Dim d : l.in_dims())
    for (int bit = 0; bit < l.in_bits(d); ++bit) r.add_bit(d, to(l.basis(d, bit)));
  return r;
}

/// `l` with register bits of these bases below its own.
LinearLayout with_low_registers(const LinearLayout& l, const Shape& extents, const std::vector<Coord>& bases) {
  LinearLayout r(padded(extents));
  for (const Coord& basis : bases) r.add_bit(Hw::Register, basis);
  for (Dim d : l.in_dims())
    for (int bit = 0; bit < l.in_bits(d); ++bit) r.add_bit(d, l.basis(d, bit));
  return r;
}

const Type& operand_type(const Function& f, const Inst& inst, std::size_t k) { return f.type(inst.operands[k]); }

/// The layout operand k has; without one, 16-byte vectors along its last axis.
LinearLayout own_layout(const Function& f, const Inst& inst, std::size_t k) {
  const Type& t = operand_type(f, inst, k);
  if (t.layout != kNoLayout) return f.layout(t.layout);
  const std::int64_t threads = std::int64_t(32) * f.exec->warps * f.exec->cluster;
  const std::int64_t widest = 16 / (t.ptr ? 8 : bytes(t.dtype));
  std::int64_t vector = std::clamp<std::int64_t>(padded_elements(t.shape) / threads, 1, widest);
  vector = t.shape.empty() ? 1 : std::min(vector, padded(t.shape.back()));
  return blocked(t.shape, vector, row_major(int(t.shape.size())), f.exec->warps, f.exec->cluster);
}

}  // namespace

std::size_t ReshapeGroup::from_inner(const Shape& from) const {
  for (std::size_t a = from_end; a-- > from_begin;)
    if (from[a] > 1) return a;
  return from_end - 1;
}

std::vector<ReshapeGroup> reshape_groups(const Shape& from, const Shape& to) {
  std::vector<ReshapeGroup> groups;
  std::size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    ReshapeGroup g{i, i, j, j, true};
    std::int64_t p = from[i++], q = to[j++];
    while (p != q) (p < q ? p : q) *= p < q ? from[i++] : to[j++];
    g.from_end = i, g.to_end = j;
    groups.push_back(g);
  }
  if (!groups.empty()) groups.back().from_end = from.size(), groups.back().to_end = to.size();
  const auto inner_powers_of_two = [](const Shape& s, std::size_t begin, std::size_t end) {
    bool outermost = true;
    for (std::size_t a = begin; a < end; ++a) {
      if (s[a] == 1) continue;
      if (!outermost && !std::has_single_bit(std::uint64_t(s[a]))) return false;
      outermost = false;
    }
    return true;
  };
  for (ReshapeGroup& g : groups)
    g.aligned = inner_powers_of_two(from, g.from_begin, g.from_end) && inner_powers_of_two(to, g.to_begin, g.to_end);
  return groups;
}

bool only_renames(const Shape& from, const Shape& to) {
  if (from.empty() || to.empty()) return false;
  const std::vector<ReshapeGroup> groups = reshape_groups(from, to);
  return std::all_of(groups.begin(), groups.end(), [](const ReshapeGroup& g) { return g.aligned; });
}

std::optional<LinearLayout> reshaped(const LinearLayout& l, const Shape& from, const Shape& to) {
  if (!only_renames(from, to)) return std::nullopt;
  const std::vector<ReshapeGroup> groups = reshape_groups(from, to);
  return renamed(l, to, [&](const Coord& at) {
    Coord c(to.size(), 0);
    for (const ReshapeGroup& g : groups) {
      std::int64_t bits = 0;
      for (std::size_t a = g.from_begin; a < g.from_end; ++a) bits = bits * padded(from[a]) + at[a];
      for (std::size_t a = g.to_end; a-- > g.to_begin; bits /= padded(to[a])) c[a] = bits % padded(to[a]);
    }
    return c;
  });
}

LinearLayout layout_Reshape(const Function& f, const Inst& inst, std::size_t k, const LinearLayout& l) {
  const auto renamed_bits = reshaped(l, f.type(inst.results[0]).shape, operand_type(f, inst, k).shape);
  return renamed_bits ? *renamed_bits : own_layout(f, inst, k);
}

LinearLayout layout_Permute(const Function& f, const Inst& inst, std::size_t k, const LinearLayout& l) {
  const std::vector<std::int64_t>& order = inst.ints(AttrKey::order);
  return renamed(l, operand_type(f, inst, k).shape, [&](const Coord& at) {
    Coord c(at.size());
    for (std::size_t a = 0; a < at.size(); ++a) c[std::size_t(order[a])] = at[a];
    return c;
  });
}

LinearLayout layout_Join(const Function&, const Inst&, std::size_t, const LinearLayout& l) {
  return l.slice(l.rank() - 1).without_free_registers();
}

LinearLayout layout_Split(const Function& f, const Inst& inst, std::size_t k, const LinearLayout& l) {
  const Shape& x = operand_type(f, inst, k).shape;
  Coord half(x.size(), 0);
  half.back() = 1;
  return with_low_registers(l.expand(l.rank()), x, {half});
}

/// The positions that are not taken stand in further registers of the same thread, if they are few.
LinearLayout layout_Slice(const Function& f, const Inst& inst, std::size_t k, const LinearLayout& l) {
  constexpr std::int64_t kMost = 8;
  const Shape& x = operand_type(f, inst, k).shape;
  const auto axis = std::size_t(inst.i64(AttrKey::axis));
  const std::int64_t taken = l.out_shape()[axis], whole = padded(x[axis]);
  if (whole / taken > kMost) return own_layout(f, inst, k);
  LinearLayout r = renamed(l, x, [](const Coord& at) { return at; });
  for (std::int64_t bit = taken; bit < whole; bit *= 2) {
    Coord basis(x.size(), 0);
    basis[axis] = bit;
    r.add_bit(Hw::Register, basis);
  }
  return r;
}

/// Each part where the low bits of the position put it.
LinearLayout layout_Cat(const Function& f, const Inst& inst, std::size_t k, const LinearLayout& l) {
  const Shape& x = operand_type(f, inst, k).shape;
  const auto axis = std::size_t(inst.i64(AttrKey::axis));
  const std::int64_t part = padded(x[axis]);
  return renamed(l, x,
                 [&](Coord at) {
                   at[axis] &= part - 1;
                   return at;
                 })
      .without_free_registers();
}

LinearLayout layout_Flip(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }

LinearLayout layout_Gather(const Function& f, const Inst& inst, std::size_t k, const LinearLayout& l) {
  const bool as_result = k == 1 || operand_type(f, inst, 0).shape == f.type(inst.results[0]).shape;
  return as_result ? l : own_layout(f, inst, k);
}

}  // namespace kiln::ir
