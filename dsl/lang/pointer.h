// Operands of memory operations: a pointer, a mask over it, values of its element type.
#pragma once
#include "dsl/lang/shaping.h"

namespace kiln::detail {

// `who`: the function, for messages. Each throws UserError at `at`.

ir::Value pointer_operand(Tracer&, const Handle& ptr, const char* who, SourceLoc at);
/// The same for an operation that writes: an In parameter's pointer is refused.
ir::Value written_pointer(Tracer&, const Handle& ptr, const char* who, SourceLoc at);
/// i1, broadcast to the pointer's shape; invalid for the C++ constant true, which masks nothing.
ir::Value mask_operand(Tracer&, const Operand& mask, const ir::Type& ptr, const char* who, SourceLoc at);
/// `what`: "value" or "other", an operand that must have the pointer's element type; broadcast to its shape.
ir::Value element_operand(Tracer&, const Operand&, const ir::Type& ptr, const char* who, const char* what,
                          SourceLoc at);

}  // namespace kiln::detail
