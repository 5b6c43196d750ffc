// How the axes of a reshape correspond: the smallest groups of neighbouring axes of both shapes with equal products.
#pragma once
#include <optional>
#include <vector>

#include "backend/ir/layout.h"
#include "backend/ir/type.h"

namespace kiln::ir {

/// Axes [from_begin, from_end) of one shape hold the same elements as [to_begin, to_end) of the other. Axes of extent 1
/// belong to the group after them, the last ones to the last group.
struct ReshapeGroup {
  std::size_t from_begin = 0, from_end = 0, to_begin = 0, to_end = 0;
  /// On both sides all extents but the outermost above 1 are powers of two. Then the bits of the padded coordinates,
  /// one axis after the other, are the same number on both sides, and reshaping only renames bits.
  ///     [6] and [3,2], [5,4] and [10,2]: yes.  [3,5] and [15], [2,3] and [6]: no.
  bool aligned = true;
  /// The innermost axis above 1 of `from`, or its last axis.
  std::size_t from_inner(const Shape& from) const;
};

/// @pre equal products, `from` has an axis
std::vector<ReshapeGroup> reshape_groups(const Shape& from, const Shape& to);

/// Whether all groups are aligned.
bool only_renames(const Shape& from, const Shape& to);
/// Layout `l` of a tile of shape `from` as that of the same elements in shape `to`, if that only renames.
std::optional<LinearLayout> reshaped(const LinearLayout& l, const Shape& from, const Shape& to);

}  // namespace kiln::ir
