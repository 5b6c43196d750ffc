// Promotion: which dtype two operands of an operator meet in. The one place where the rules stand.
//
//   equal                         that dtype
//   i1 with anything else         none: i1 takes part in no arithmetic
//   8-bit floats with any other   none: they are storage formats, cast first
//   two floats                    the wider; f16 with bf16 meets in f32
//   a float and an integer        the float
//   index with an integer         index (64-bit meaning), but none for u64
//   two integers                  the one that holds every value of the other; none where neither does (i32 with u32)
//   a C++ number                  the other side's dtype if it fits; a floating number turns integers into f32
#pragma once
#include <optional>

#include "backend/ir/function.h"
#include "dsl/lang/operand.h"

namespace kiln::detail {

std::optional<DType> promote(DType a, DType b);

/// The dtype a C++ number takes beside a value of `other`.
DType number_dtype(const Number&, DType other);
/// The number as a literal of `d`; nothing if `d` cannot hold it: an integer out of range, a fraction for an integer, a
/// finite number beyond the largest finite float. Floats round once.
std::optional<ir::Literal> literal_of(const Number&, DType d);
/// The number as the user wrote it.
std::string text_of(const Number&);

}  // namespace kiln::detail
