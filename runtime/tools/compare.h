// Comparing a buffer with what it must hold.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/tools/element.h"

namespace kiln::rt::tools {

/// Integers must be equal. Floats must be equal, or both NaN, or |got − want| ≤ t·(|want| + rms of what is wanted).
struct Comparison {
  std::uint64_t elements = 0, wrong = 0;
  std::uint64_t first_wrong = 0;  ///< index of the first wrong element
  std::string got, want;          ///< that element
  double largest_error = 0;       ///< |got − want| of any element; infinite where only one is a number
  double allowed = 0;             ///< t·rms: what is allowed next to 0; 0 for integers
  bool matches() const { return wrong == 0; }
};

/// t: 1e-5 for f32, 1e-2 for the 16-bit floats, 1e-12 for f64, one step for the 8-bit ones; 0 for integers.
double tolerance(DType);

/// @pre both have the same size, a multiple of the element's.
Comparison compare(DType, const Bytes& got, const Bytes& want);

}  // namespace kiln::rt::tools
