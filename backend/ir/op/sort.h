// What sorting needs to know before it is emitted: how wide a packed key is, and which bits of a position need shared
// memory.
#pragma once
#include <optional>

#include "backend/ir/function.h"

namespace kiln::ir {

/// The place whose bit, flipped, moves an element by exactly 2^bit along the axis: a register or a lane.
struct SortPlace {
  Hw where = Hw::Register;
  int bit = 0;
};
/// Nothing if there is none among registers and lanes: elements that far apart meet in shared memory.
std::optional<SortPlace> sort_place(const LinearLayout&, int axis, int bit);

/// Bits of a position along the axis of the sort.
int sort_position_bits(const Function&, const Inst& sort);
/// Bytes of a key packed with its position, 4, 8 or 16: what the sorting network moves.
int sort_packed_bytes(const Function&, const Inst& sort);

}  // namespace kiln::ir
