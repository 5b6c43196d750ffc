// The layouts in which memory is read and written well.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "backend/pass/access.h"

namespace kiln::ir {

/// Accesses of one shape along one axis are a group with one layout (layout_zoo.h, blocked): that axis runs fastest,
/// and each thread owns the widest vector that all of them allow, at most 16 bytes and no more than spreads the tile
/// over all threads. Misaligned accesses thus get one element a thread, neighbours side by side: scalar, but coalesced.
class AccessLayouts {
 public:
  explicit AccessLayouts(Function& f);

  /// Layout of the accesses of `inst`; nothing if no axis of its addresses is contiguous.
  std::optional<LayoutId> of(InstId inst);
  /// Of the accesses to tiles of this shape that move most bytes; for a shape that is not accessed, the last axis runs
  /// fastest.
  LayoutId of_shape(const Shape& shape);
  /// Whether `inst` in layout `l` uses what it moves: a warp covers as long a run of neighbours as in of(inst), or one
  /// of 128 bytes.
  bool coalesced(InstId inst, const LinearLayout& l);
  /// The layout of `inst` shall own, along `axis`, the vector of another access: tiles that go from one to the other
  /// layout then change hands in blocks.
  void own(InstId inst, int axis, std::int64_t vector);
  /// Elements side by side in a thread, and their axis.
  std::int64_t vector(InstId inst);
  int axis(InstId inst) const { return group_.at(inst).axis; }

 private:
  struct Group {
    Shape shape;
    int axis = -1;  ///< fastest; -1: none is
    auto operator<=>(const Group&) const = default;
  };
  struct Owned {
    int axis;
    std::int64_t vector;
  };
  Group group_of(const Access&) const;
  std::int64_t common_vector(const Group&) const;
  LinearLayout layout(const Group&) const;
  std::int64_t run_bytes(InstId inst, const LinearLayout& l) const;

  Function& f_;
  AxisAnalysis facts_;
  std::vector<Access> accesses_;
  std::map<InstId, Group> group_;
  std::map<InstId, Access> access_;
  std::map<Group, Owned> owned_;
};

}  // namespace kiln::ir
