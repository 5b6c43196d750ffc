// Values as a debugger writes them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/dtype.h"

namespace kiln::rt::sim {

/// How bits are to be read: as a dtype, or as a hexadecimal number of so many bits.
struct Format {
  DType dtype = DType::u32;
  bool hex = false;
  int bits() const { return kiln::bits(dtype); }
};

/// "f32", "bf16", "i32", "s32", "u8", "x32" …, if it is one.
std::optional<Format> format_named(std::string_view);
/// Of a PTX register's type: "f32" as such, "b32" as hexadecimal.
Format format_of_register(std::string_view type);

/// `bits` in the low bits of the word.
std::string value_text(Format, std::uint64_t bits);
inline std::string value_text(DType d, std::uint64_t bits) { return value_text(Format{d, false}, bits); }
/// As a double; exact but for integers beyond 2^53.
double value_number(DType, std::uint64_t bits);

}  // namespace kiln::rt::sim
