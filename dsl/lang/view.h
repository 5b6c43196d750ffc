// View<T, N>: an N-dimensional array as one kernel parameter: pointer, sizes, strides (in elements, any value).
//
// Coordinates are braces of C++ integers, Const and Scalars mixed: x.at({r, 3}); shapes are braces of C++ integers. Too
// many or too few, and a traced value as a shape, do not compile. Coordinates outside the array, negative ones
// included, read the padding and write nothing. There is no operator[]: a proxy in `auto e = v[i]` would read later
// than it is written.
//
// A view is a value of pointers and sizes; sub, slice and trans give views of the same memory. Strides may be 0 or
// overlap; two elements at one address are one element of memory.
//
// What a block of a view costs: one comparison a row and a column, and 16-byte accesses where the stride of the last
// dimension is 1, the other strides and the sizes are multiples of 16 bytes, and so are the coordinates (facts that the
// key of a launch holds; program_id * BLOCK is known to be).
#pragma once
#include <array>

#include "dsl/lang/ops.h"

namespace kiln {

/// Instead of a padding: what lies outside the array reads the nearest element inside. Example: x.load({r, c}, {8, 8},
/// clamp_to_edge).
struct ClampToEdge {};
inline constexpr ClampToEdge clamp_to_edge;

namespace detail {
/// Pointer, mask of a block of `dims` elements at `at`. All arrays have `rank` entries.
struct ViewBlock {
  Tile ptr, inside;
};
ViewBlock view_block(const Scalar& base, const Scalar* size, const Scalar* stride, const SArg* at, const Extent* dims,
                     int rank, RawLoc);
/// The same with coordinates moved to the nearest inside; the mask only tells whether the array has any element.
ViewBlock clamped_block(const Scalar& base, const Scalar* size, const Scalar* stride, const SArg* at, const Extent* dims,
                        int rank, RawLoc);
Scalar view_address(const Scalar& base, const Scalar* stride, const SArg* at, int rank, RawLoc);
void view_store(const Scalar& base, const Scalar* size, const Scalar* stride, const SArg* at, const Tile& x, int rank,
                RawLoc);
Scalar index_scalar(const SArg&);
}  // namespace detail

template <class T, int N>
class View {
  static_assert(Element<T>, "kiln: View<T, N> needs an element type T");
  static_assert(N >= 1, "kiln: View<T, N> needs at least one dimension");

 public:
  using At = const SArg (&)[N];
  using Dims = const Extent (&)[N];
  View(const Scalar& ptr, const std::array<Scalar, N>& size, const std::array<Scalar, N>& stride)
      : ptr_(ptr), size_(size), stride_(stride) {}

  /// The element at coordinates 0, as a pointer.
  [[nodiscard]] const Scalar& pointer() const { return ptr_; }
  /// Extent and stride (elements) along dimension `d`, as index Scalars.
  [[nodiscard]] const Scalar& size(int d) const { return size_.at(std::size_t(d)); }
  [[nodiscard]] const Scalar& stride(int d) const { return stride_.at(std::size_t(d)); }

  /// The block of shape `dims` that starts at element `at`; elements outside read `pad`, any value of T's dtype.
  [[nodiscard]] Tile load(At at, Dims dims, SArg pad = 0, RawLoc l = RawLoc::current()) const {
    const detail::ViewBlock b = detail::view_block(ptr_, size_.data(), stride_.data(), at, dims, N, l);
    return kiln::load(b.ptr, Arg(b.inside, l), Arg(pad), l);
  }
  /// The block with nearest elements outside of the array; all 0 where a size is 0.
  [[nodiscard]] Tile load(At at, Dims dims, ClampToEdge, RawLoc l = RawLoc::current()) const {
    const detail::ViewBlock b = detail::clamped_block(ptr_, size_.data(), stride_.data(), at, dims, N, l);
    return kiln::load(b.ptr, Arg(b.inside, l), l);
  }
  /// Writes `x` (of rank N and T's dtype) at element `at`; elements outside are not written.
  void store(At at, const Tile& x, RawLoc l = RawLoc::current()) const requires(!std::is_const_v<T>) {
    detail::view_store(ptr_, size_.data(), stride_.data(), at, x, N, l);
  }
  /// The element at `at`, read now. @pre it is inside the array.
  [[nodiscard]] Scalar at(At at, RawLoc l = RawLoc::current()) const {
    return kiln::load(detail::view_address(ptr_, stride_.data(), at, N, l), l);
  }
  /// Writes one element. @pre it is inside the array.
  void put(At at, SArg x, RawLoc l = RawLoc::current()) const requires(!std::is_const_v<T>) {
    kiln::store(detail::view_address(ptr_, stride_.data(), at, N, l), x, l);
  }

  /// The part that starts at `from` and has `sizes` elements. @pre it lies inside this view.
  [[nodiscard]] View sub(At from, At sizes, RawLoc l = RawLoc::current()) const {
    std::array<Scalar, N> n;
    for (std::size_t d = 0; d < N; ++d) n[d] = detail::index_scalar(sizes[d]);
    return View(detail::view_address(ptr_, stride_.data(), from, N, l), n, stride_);
  }
  /// Dimension D fixed at `i`.
  template <int D = 0>
  [[nodiscard]] View<T, N - 1> slice(SArg i, RawLoc l = RawLoc::current()) const {
    static_assert(D >= 0 && D < N, "kiln: slice<D> needs 0 <= D < N");
    std::array<Scalar, N - 1> n, s;
    for (std::size_t d = 0, k = 0; d < N; ++d) {
      if (d == D) continue;
      n[k] = size_[d];
      s[k++] = stride_[d];
    }
    const SArg at[1] = {i};
    return {detail::view_address(ptr_, &stride_[D], at, 1, l), n, s};
  }
  /// The last two dimensions exchanged.
  [[nodiscard]] View trans() const requires(N >= 2) {
    std::array<Scalar, N> n = size_, s = stride_;
    std::swap(n[N - 2], n[N - 1]);
    std::swap(s[N - 2], s[N - 1]);
    return {ptr_, n, s};
  }

 private:
  Scalar ptr_;
  std::array<Scalar, N> size_, stride_;
};

}  // namespace kiln
