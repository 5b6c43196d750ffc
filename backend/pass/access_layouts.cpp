#include "backend/pass/access_layouts.h"

#include <algorithm>

#include "backend/ir/gf2.h"
#include "backend/ir/layout_zoo.h"

namespace kiln::ir {

AccessLayouts::AccessLayouts(Function& f) : f_(f), facts_(f), accesses_(tile_accesses(f)) {
  for (const Access& a : accesses_) {
    group_[a.inst] = group_of(a);
    access_[a.inst] = a;
  }
}

AccessLayouts::Group AccessLayouts::group_of(const Access& a) const {
  Group g{a.shape, -1};
  std::int64_t most = 1;
  for (int axis : row_major(int(a.shape.size())))
    if (const std::int64_t c = facts_[a.ptr].axes[std::size_t(axis)].contiguity; c > most) {
      most = c;
      g.axis = axis;
    }
  return g;
}

std::optional<LayoutId> AccessLayouts::of(InstId inst) {
  const auto g = group_.find(inst);
  if (g == group_.end() || g->second.axis < 0) return std::nullopt;
  return f_.intern(layout(g->second));
}

LayoutId AccessLayouts::of_shape(const Shape& shape) {
  std::vector<int> votes(shape.size(), 0);
  for (const Access& a : accesses_)
    if (const Group& g = group_.at(a.inst); g.shape == shape && g.axis >= 0)
      votes[std::size_t(g.axis)] += a.element_bytes;
  Group best{shape, shape.empty() ? -1 : int(shape.size()) - 1};
  for (int axis : row_major(int(shape.size())))
    if (votes[std::size_t(axis)] > votes[std::size_t(best.axis)]) best.axis = axis;
  return f_.intern(layout(best));
}

std::int64_t AccessLayouts::common_vector(const Group& group) const {
  std::int64_t vector = 0;
  for (const Access& a : accesses_)
    if (group_.at(a.inst) == group) {
      const std::int64_t limit = vector_limit(facts_, a, group.axis);
      vector = vector == 0 ? limit : std::min(vector, limit);
    }
  return std::max<std::int64_t>(vector, 1);
}

LinearLayout AccessLayouts::layout(const Group& group) const {
  const Exec& exec = *f_.exec;
  if (group.axis < 0) return blocked(group.shape, 1, row_major(int(group.shape.size())), exec.warps, exec.cluster);
  std::vector<int> order = row_major(int(group.shape.size()));
  std::stable_partition(order.begin(), order.end(), [&](int axis) { return axis == group.axis; });
  const std::int64_t each =
      std::max<std::int64_t>(padded_elements(group.shape) / (std::int64_t(32) * exec.warps * exec.cluster), 1);
  std::vector<std::int64_t> owned(group.shape.size(), 1);
  std::int64_t& vector = owned[std::size_t(group.axis)];
  vector = std::min({each, padded(group.shape[std::size_t(group.axis)]), common_vector(group)});
  if (const auto more = owned_.find(group); more != owned_.end()) {
    std::int64_t& other = owned[std::size_t(more->second.axis)];
    other = std::min(more->second.vector, padded(group.shape[std::size_t(more->second.axis)]));
    while (vector * other > each) (vector > other ? vector : other) /= 2;
  }
  return blocked(group.shape, owned, order, exec.warps, exec.cluster);
}

std::int64_t AccessLayouts::vector(InstId inst) { return common_vector(group_.at(inst)); }

void AccessLayouts::own(InstId inst, int axis, std::int64_t vector) {
  Owned& owned = owned_.try_emplace(group_.at(inst), Owned{axis, vector}).first->second;
  if (owned.axis == axis) owned.vector = std::max(owned.vector, vector);
}

/// Neighbours along the access's axis that one access of a warp covers.
std::int64_t AccessLayouts::run_bytes(InstId inst, const LinearLayout& l) const {
  const Group& g = group_.at(inst);
  const Access& a = access_.at(inst);
  const std::int64_t extent =
      std::min(padded(g.shape[std::size_t(g.axis)]), facts_[a.ptr].axes[std::size_t(g.axis)].contiguity);
  // Bit k of the packed coordinate is bit k along the axis; the other axes follow above.
  const auto packed = [&](const LinearLayout::Coord& c) {
    std::uint64_t v = std::uint64_t(c[std::size_t(g.axis)]);
    int shift = 32;
    for (std::size_t k = 0; k < c.size(); ++k)
      if (int(k) != g.axis && c[k] != 0) v |= std::uint64_t(1) << (shift + int(k));  // not along the axis alone
    return v;
  };
  Basis reached;
  for (Hw h : {Hw::Register, Hw::Lane})
    for (int bit = 0; bit < l.in_bits(h); ++bit) reached.add(packed(l.basis(h, bit)));
  std::int64_t run = 1;
  while (run < extent && reached.contains(std::uint64_t(run))) run *= 2;
  return run * a.element_bytes;
}

bool AccessLayouts::coalesced(InstId inst, const LinearLayout& l) {
  const Group& g = group_.at(inst);
  if (g.axis < 0) return true;
  return run_bytes(inst, l) >= std::min<std::int64_t>(128, run_bytes(inst, layout(g)));
}

}  // namespace kiln::ir
