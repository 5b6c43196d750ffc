// What every language function does with its operands: read them, find the dtype they meet in, make the shapes equal.
#pragma once
#include <string>
#include <utility>

#include "dsl/lang/operand.h"
#include "dsl/lang/tracer.h"

namespace kiln::detail {

/// The value of an operand; a number becomes a constant of dtype `d`. `who`: the function or operator, for messages.
ir::Value value_as(Tracer&, const Operand&, DType d, const char* who, SourceLoc at);
/// The value of an operand; a number becomes a constant of its own dtype.
ir::Value value_of(Tracer&, const Operand&, SourceLoc at);

/// Both operands read, a number taking the dtype of the other side. Not promoted, not broadcast.
std::pair<ir::Value, ir::Value> read_pair(Tracer&, const Operand& a, const Operand& b, const char* who, SourceLoc at);

/// All operands as values of one dtype and one shape: promoted, numbers taking the dtype of the variables, cast,
/// broadcast. Pointers meet only pointers of their own type.
std::vector<ir::Value> meet(Tracer&, const std::vector<const Operand*>&, const char* who, SourceLoc at);

/// x cast to `d`; x itself if it has that dtype.
ir::Value cast_to(Tracer&, ir::Value x, DType d, SourceLoc at);

/// The shape two operands broadcast to (from the right; a missing axis or an extent of 1 is repeated).
ir::Type common_shape(Tracer&, const ir::Type& a, const ir::Type& b, const char* who, SourceLoc at);
/// x repeated to the shape of `like` (a scalar `like`: x itself); UserError if it does not broadcast to it.
ir::Value broadcast_like(Tracer&, ir::Value x, const ir::Type& like, const char* who, SourceLoc at);

/// `axis` of a tile of `rank` axes, counted from the last if negative.
int normal_axis(Tracer&, int axis, int rank, const char* who, SourceLoc at);

}  // namespace kiln::detail
