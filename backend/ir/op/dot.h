// How a dot is computed: by which unit, and how its operands go through shared memory, a slice of positions along k at
// a time.
#pragma once
#include "backend/ir/function.h"

namespace kiln::ir {

/// One instruction of a unit: result of m x n elements from k positions, and the bytes of an operand's element. Fma:
/// one element, in the accumulator's type.
struct MatrixShape {
  int m = 1, n = 1, k = 1;
  int element_bytes = 0;
};
MatrixShape matrix_shape(DotUnit);
inline DotUnit unit_of(const Inst& dot) { return DotUnit(dot.i64(AttrKey::unit)); }
inline Precision precision_of(const Inst& dot) { return Precision(dot.i64(AttrKey::precision)); }

/// Extents of operand 0 or 1 of a dot or ring_dot.
Shape operand_shape(const Function& f, const Inst& dot, std::size_t operand);
/// Rounded to the 10 bits of mantissa that tf32 has, ties away from zero; infinity and NaN stay.
float as_tf32(float x);

/// Copies of each operand that are multiplied: 2 where an element is split into a large and a small part.
int dot_parts(const Function& f, const Inst& dot);
/// The dtype of operand 0 or 1 in shared memory.
DType staged_dtype(const Function& f, const Inst& dot, std::size_t operand);

/// Bytes that the slices of a and b may take together; both fit there wherever that leaves one step of the unit.
inline constexpr std::int64_t kDotScratch = 48 << 10, kMatrixScratch = 96 << 10;

/// Positions along k that are in shared memory at a time: a power of two, and whole steps of the unit.
std::int64_t dot_slice(const Function& f, const Inst& dot);
/// Bytes of the slice of one part of operand 0 or 1; extents are padded.
std::int64_t dot_slice_bytes(const Function& f, const Inst& dot, std::size_t operand);

}  // namespace kiln::ir
