// DType: the element types of tiles, scalars and buffers, generated from dtype.def.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "runtime/base/float16.h"

namespace kiln {

/// Stand-in host type of `index`; a host passes any C++ integer.
struct IndexHost {};

enum class DType : std::uint8_t {
#define KILN_DTYPE(name, bits, kind, host) name,
#include "runtime/base/dtype.def"
};

enum class DKind : std::uint8_t { Bool, Int, UInt, Float, Index };

/// `f32`, `bf16`, …: the name used in IR text, messages and image files.
const char* name(DType);
/// The dtype called `text`, if there is one.
std::optional<DType> dtype_named(std::string_view text);
int bits(DType);
/// Bytes of one element in memory; i1 occupies one byte.
int bytes(DType);
DKind kind(DType);

inline bool is_float(DType d) { return kind(d) == DKind::Float; }
/// i8…i64, u8…u64 and index; not i1.
inline bool is_int(DType d) { return kind(d) == DKind::Int || kind(d) == DKind::UInt || kind(d) == DKind::Index; }
inline bool is_signed(DType d) { return kind(d) == DKind::Int || kind(d) == DKind::Index; }

// Names for use in kernels: cast(f32), zeros(i32, {n}). The 16- and 8-bit floats have C++ types of those names, so their
// DType is written DType::bf16, or cast<bf16>().
inline constexpr DType i1 = DType::i1, i8 = DType::i8, i16 = DType::i16, i32 = DType::i32, i64 = DType::i64;
inline constexpr DType u8 = DType::u8, u16 = DType::u16, u32 = DType::u32, u64 = DType::u64;
inline constexpr DType f32 = DType::f32, f64 = DType::f64;

namespace detail {
template <class T> struct DTypeOf;  // undefined: T is not an element type
#define KILN_DTYPE(name, bits, kind, host) \
  template <> struct DTypeOf<host> { static constexpr DType value = DType::name; };
#include "runtime/base/dtype.def"
}  // namespace detail

template <class T> concept Element = requires { detail::DTypeOf<std::remove_const_t<T>>::value; };
/// The DType of a C++ element type: dtype_of<float> == f32, dtype_of<const bf16> == DType::bf16.
template <Element T> inline constexpr DType dtype_of = detail::DTypeOf<std::remove_const_t<T>>::value;

}  // namespace kiln
