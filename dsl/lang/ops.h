// The basic operations of kernels: program numbers, making tiles, memory, selection, integer helpers.
#pragma once
#include <concepts>
#include <utility>

#include "dsl/lang/tile.h"

namespace kiln {

// --- where this program stands ---------------------------------------------------------------------------------------

/// This program's number along grid axis 0, 1 or 2 (index).
[[nodiscard]] Scalar program_id(int axis = 0, RawLoc l = RawLoc::current());
/// Programs of the launch along grid axis 0, 1 or 2 (index).
[[nodiscard]] Scalar num_programs(int axis = 0, RawLoc l = RawLoc::current());

// --- making tiles ----------------------------------------------------------------------------------------------------

/// index[n]: 0, 1, …, n-1. n need not be a power of two.
[[nodiscard]] Tile arange(std::int64_t n, RawLoc l = RawLoc::current());
/// index[end - begin]: begin, begin + 1, …, end - 1.
[[nodiscard]] Tile arange(std::int64_t begin, std::int64_t end, RawLoc l = RawLoc::current());
template <std::derived_from<Handle> T>
Tile arange(const T&) {
  static_assert(detail::always_false<T>,
                "kiln: the extent of a tile is a C++ value: take it from a Const<int> parameter, and mask the rest, as "
                "in arange(BLOCK) < n");
  return {};
}
/// Every element `value`, of dtype `d`. A Scalar must have that dtype; a C++ number must fit it.
[[nodiscard]] Tile full(DType d, const Shape& shape, SArg value, RawLoc l = RawLoc::current());
[[nodiscard]] Tile zeros(DType d, const Shape& shape, RawLoc l = RawLoc::current());
/// x with an axis of extent 1 inserted before `axis`; -1 appends one. Example: expand(arange(8), 1) is index[8,1].
[[nodiscard]] Tile expand(const Tile& x, int axis, RawLoc l = RawLoc::current());
/// x repeated to `shape`: axes count from the right, a missing axis or an extent of 1 is repeated.
[[nodiscard]] Tile broadcast_to(const Tile& x, const Shape& shape, RawLoc l = RawLoc::current());
[[nodiscard]] Tile broadcast_to(const Scalar& x, const Shape& shape, RawLoc l = RawLoc::current());

// --- memory ----------------------------------------------------------------------------------------------------------
// Pointers are Scalars or Tiles: a parameter In<T>, Out<T>, InOut<T> plus integers. mask: i1, broadcast to the
// pointer's shape; where it is false no memory is touched, and a load gives `other` (0 if not given; 0 itself is a
// value like any). Errors: UserError for a mask that is not i1, for a value or `other` of another dtype than the
// pointer's (cast first; C++ numbers adapt), for shapes that do not broadcast to the pointer's, for a store through an
// In pointer.


/// What the caches should do with the data; never changes a result. A hint that the target has no instruction for is
/// left out.
enum class Cache : std::uint8_t {
  plain,        ///< the compiler chooses
  no_allocate,  ///< read or written once: leaves L1 alone
  streaming,    ///< likely used once: first to go from every cache
  evict_first,  ///< first to go from L1
  evict_last,   ///< used again soon: last to go from L1
};
/// How to access: `load(p, mask, 0, {.cache = Cache::evict_last})`.
struct Hints {
  Cache cache = Cache::plain;
};

[[nodiscard]] Tile load(const Tile& ptr, RawLoc l = RawLoc::current());
[[nodiscard]] Tile load(const Tile& ptr, Arg mask, RawLoc l = RawLoc::current());
[[nodiscard]] Tile load(const Tile& ptr, Arg mask, Arg other, RawLoc l = RawLoc::current());
[[nodiscard]] Tile load(const Tile& ptr, Hints, RawLoc l = RawLoc::current());
[[nodiscard]] Tile load(const Tile& ptr, Arg mask, Hints, RawLoc l = RawLoc::current());
[[nodiscard]] Tile load(const Tile& ptr, Arg mask, Arg other, Hints, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar load(const Scalar& ptr, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar load(const Scalar& ptr, SArg mask, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar load(const Scalar& ptr, SArg mask, SArg other, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar load(const Scalar& ptr, Hints, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar load(const Scalar& ptr, SArg mask, Hints, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar load(const Scalar& ptr, SArg mask, SArg other, Hints, RawLoc l = RawLoc::current());
void store(const Tile& ptr, Arg value, RawLoc l = RawLoc::current());
void store(const Tile& ptr, Arg value, Arg mask, RawLoc l = RawLoc::current());
void store(const Tile& ptr, Arg value, Hints, RawLoc l = RawLoc::current());
void store(const Tile& ptr, Arg value, Arg mask, Hints, RawLoc l = RawLoc::current());
void store(const Scalar& ptr, SArg value, RawLoc l = RawLoc::current());
void store(const Scalar& ptr, SArg value, SArg mask, RawLoc l = RawLoc::current());
void store(const Scalar& ptr, SArg value, Hints, RawLoc l = RawLoc::current());
void store(const Scalar& ptr, SArg value, SArg mask, Hints, RawLoc l = RawLoc::current());
template <class... Rest>
void store(const Scalar&, const Tile&, const Rest&...) {
  static_assert(detail::always_false<Rest...>,
                "kiln: a pointer to one element stores one Scalar; a tile goes through a tile of pointers, as in "
                "store(p + arange(n), x)");
}

// --- selection -------------------------------------------------------------------------------------------------------

/// a where cond (i1), else b, per element; both are evaluated. Dtypes are promoted, shapes broadcast; two i1 or two
/// pointers of one type may be selected too.
[[nodiscard]] Tile select(const Tile& cond, Arg a, Arg b, RawLoc l = RawLoc::current());
[[nodiscard]] Tile select(const Scalar& cond, const Tile& a, Arg b, RawLoc l = RawLoc::current());
[[nodiscard]] Tile select(const Scalar& cond, SArg a, const Tile& b, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar select(const Scalar& cond, SArg a, SArg b, RawLoc l = RawLoc::current());

// --- arithmetic that is no operator ----------------------------------------------------------------------------------

/// |x|; of the smallest integer, itself.
[[nodiscard]] Tile abs(const Tile& x, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar abs(const Scalar& x, RawLoc l = RawLoc::current());
/// max(x, 0): NaN stays NaN, -0 becomes +0.
[[nodiscard]] Tile relu(const Tile& x, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar relu(const Scalar& x, RawLoc l = RawLoc::current());
/// The smaller / larger operand per element: NaN if either is NaN; -0 < +0.
[[nodiscard]] Tile minimum(const Tile& a, Arg b);
[[nodiscard]] Tile minimum(SArg a, const Tile& b);
[[nodiscard]] Scalar minimum(const Scalar& a, SArg b);
[[nodiscard]] Scalar minimum(CArg a, const Scalar& b);
[[nodiscard]] Tile maximum(const Tile& a, Arg b);
[[nodiscard]] Tile maximum(SArg a, const Tile& b);
[[nodiscard]] Scalar maximum(const Scalar& a, SArg b);
[[nodiscard]] Scalar maximum(CArg a, const Scalar& b);

namespace detail {
template <class T>
struct ConstInteger : std::false_type {};
template <std::integral T>
struct ConstInteger<Const<T>> : std::true_type {};
template <class T>
concept HostInteger = std::integral<T> || ConstInteger<T>::value;
}  // namespace detail

/// ⌈a / b⌉ for a ≥ 0, b > 0: of C++ integers (host code, launch grids), or traced. Never overflows on the way.
template <detail::HostInteger A, detail::HostInteger B>
[[nodiscard]] constexpr std::int64_t cdiv(A a, B b) {
  const auto x = std::int64_t(a), y = std::int64_t(b);
  return x / y + (x % y != 0);
}
[[nodiscard]] Scalar cdiv(const Scalar& a, SArg b);
[[nodiscard]] Scalar cdiv(CArg a, const Scalar& b);
[[nodiscard]] Tile cdiv(const Tile& a, Arg b);

/// Quotient (toward zero) and remainder (with a's sign) of a / b; both 0 for an integer b of 0.
[[nodiscard]] std::pair<Scalar, Scalar> divmod(const Scalar& a, SArg b);
[[nodiscard]] std::pair<Scalar, Scalar> divmod(CArg a, const Scalar& b);
[[nodiscard]] std::pair<Tile, Tile> divmod(const Tile& a, Arg b);
[[nodiscard]] std::pair<Tile, Tile> divmod(SArg a, const Tile& b);

}  // namespace kiln
