// Elements of buffers as numbers and text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"

namespace kiln::rt::tools {

using Bytes = std::vector<std::uint8_t>;

/// A dtype by Kiln's name, or one of the spellings fp16, fp32, fp64.
std::optional<DType> element_type(std::string_view name);
/// "i8, i16, …"
std::string element_types();

/// Element `i` as a number; 64-bit integers are rounded.
double element(DType, const Bytes&, std::size_t i);
/// Element `i` exactly.
std::string element_text(DType, const Bytes&, std::size_t i);

/// Appends a number as an element, rounded once. False: an integer dtype does not hold it.
bool append(Bytes&, DType, double value);
/// … an integer, exactly.
bool append(Bytes&, DType, std::int64_t value);
bool append(Bytes&, DType, std::uint64_t value);
/// "-128 to 127"
std::string range_text(DType);

}  // namespace kiln::rt::tools
