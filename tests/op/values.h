// Inputs of the op sweep as bit patterns, and what patterns mean.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/base/dtype.h"

namespace kiln::test {

/// Every dtype, in the order of dtype.def.
const std::vector<DType>& all_dtypes();

/// Values where operations change their behaviour: zeros, denormals, ties, extremes, infinities, NaN; for integers the
/// limits and every shift count around the width.
std::vector<std::uint64_t> special_values(DType);
/// special_values and random ones: patterns, and numbers of moderate size. Every pattern for types of at most 16 bits.
std::vector<std::uint64_t> sweep_values(DType, int random_count);
/// For ops of two and three operands: columns[k][i] is operand k of case i. All pairs of special values, then random
/// ones.
std::vector<std::vector<std::uint64_t>> sweep_tuples(DType, int arity, int random_count);

/// Value of a float pattern; integers as far as double holds them.
double value_of(DType, std::uint64_t bits);
bool is_nan(DType, std::uint64_t bits);
/// The same pattern, or NaN both: payload and sign of a NaN are no part of a result.
bool same_result(DType, std::uint64_t a, std::uint64_t b);
/// Distance between neighbouring values of a float type around v.
double ulp_of(DType, double v);
/// The largest finite value of a float type.
double largest(DType);

/// Little-endian array of `values`, each in the bytes its dtype has in memory, and back.
std::vector<std::byte> to_bytes(DType, const std::vector<std::uint64_t>& values);
std::vector<std::uint64_t> from_bytes(DType, const std::vector<std::byte>& bytes);

}  // namespace kiln::test
