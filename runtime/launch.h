// Launch: arguments packed once, checked against the signature, sent to a stream. No lock and no allocation.
//
// Facts are computed here and nowhere else, while packing: every argument adds one key word that holds its
// kind, dtype, access and facts. Two launches with equal key words may run the same code; a tracer reads the facts back
// with ArgPack::arg_of_key(). launch() itself checks the values against the image's facts, so an image is never
// launched with weaker ones, wherever it came from.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/device.h"
#include "runtime/image/kernel_image.h"

namespace kiln {

/// Number of programs along each axis. Any axis of 0 means: nothing to do, and nothing is launched.
struct Grid {
  std::int64_t x = 1, y = 1, z = 1;
  constexpr Grid(std::int64_t x_, std::int64_t y_ = 1, std::int64_t z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr bool empty() const { return x == 0 || y == 0 || z == 0; }
};

namespace rt {

/// Largest alignment that code is specialised for, and the divisor looked for in index arguments.
inline constexpr std::uint32_t kFactDivisor = 16;

/// The arguments of one launch, without allocation: a parameter buffer and the specialisation key. Lives on the stack
/// of one launch; about 9 KiB, none of it cleared.
class ArgPack {
 public:
  static constexpr std::size_t kMaxBytes = 4096;  ///< CUDA's limit for the parameter buffer
  static constexpr std::size_t kMaxArgs = 128;
  static constexpr std::size_t kMaxKeyWords = 256;

  /// `at`: the user's call, for errors.
  explicit ArgPack(SourceLoc at = {}) : at_(at) {}

  // Each throws UserError when there is no room for one more.

  /// Facts: address ÷16, else only ÷ the element's size (launch() refuses less); disjoint from every other pointer where
  /// one of the two is written, which an unknown extent never is. `bytes`: what lies there, 0 if unknown; `owner`:
  /// device that allocated it, null if unknown, in which case launch() asks the stream's device. `before`: bytes in
  /// front of `address` that the kernel may touch, too.
  void pointer(DType dtype, Access access, DevicePtr address, std::size_t bytes, const Device* owner,
               std::size_t before = 0);
  /// `bytes(dtype)` bytes at `value`; i1 as one byte. No fact.
  void scalar(DType dtype, const void* value);
  /// Facts: =1, ÷16.
  void index(std::int64_t value);
  /// Size or stride of a view of elements of `dtype`. Facts: =1; ÷16, else ÷ the number of elements in 16 bytes; within
  /// what a tensor map takes, 1 to 2^31 - 1 (is_extent).
  void extent(DType dtype, std::int64_t value);
  /// A Const or Tune value: key only, not passed.
  void key(std::uint64_t word);

  const void* params() const { return params_.data(); }
  std::size_t param_bytes() const { return used_; }
  const std::uint64_t* key_words() const { return key_.data(); }
  std::size_t key_size() const { return key_used_; }

  /// Arguments packed so far; key() adds none.
  std::size_t size() const { return args_used_; }
  /// What argument `i` is and which facts hold for it; to be named and appended to an ArgSig.
  Arg arg(std::size_t i) const { return arg_of_key(packed_[i].key); }
  /// The same from the key word that pointer(), scalar() or index() added.
  static Arg arg_of_key(std::uint64_t word);

  /// Whether argument `i` is a size or stride that a tensor map takes, as far as it alone decides that.
  bool is_extent(std::size_t i) const;

  /// One packed argument, as launch() checks it.
  struct Packed {
    std::uint64_t key;        ///< its key word
    const DeviceImpl* owner;  ///< of a pointer; null: unknown
    std::uint64_t value;      ///< address, index, or the scalar's bits
    std::uint64_t bytes;      ///< extent of a pointer; 0: unknown
    std::uint64_t before;     ///< and in front of it
    std::uint16_t key_at;     ///< of a pointer: where its key word stands
  };
  const Packed& packed(std::size_t i) const { return packed_[i]; }

 private:
  /// Whether a new pointer is disjoint; takes the fact from those that it overlaps.
  bool keep_apart(Access access, DevicePtr address, std::size_t extent, std::size_t before);
  void add_index(std::int64_t value, std::uint32_t divisor, std::uint64_t more_facts);
  void append(std::uint64_t key, std::uint64_t value, std::size_t size, const DeviceImpl* owner = nullptr,
              std::uint64_t bytes = 0, std::uint64_t before = 0);

  SourceLoc at_;

  alignas(16) std::array<std::byte, kMaxBytes + sizeof(std::uint64_t)> params_;  // room for the zeros behind the last
  std::array<std::uint64_t, kMaxKeyWords> key_;
  std::array<Packed, kMaxArgs> packed_;
  std::size_t used_ = 0, key_used_ = 0, args_used_ = 0;
};

/// Launches `kernel` on `grid` programs. Applies the grid rule and appends hidden parameters.
///
/// An empty grid returns at once: no address is looked at. Otherwise throws UserError at `at`, naming kernel, argument
/// and both values: count, kind or dtype of the arguments differ from the signature; a pointer is null, misaligned,
/// another device's, unknown to the device or shorter than stated; a fact of the image does not hold; an axis of the
/// grid is negative or above 2^31 − 1 (x) or 65535 (y, z). Errors of the device are DeviceError at `at`.
void launch(LoadedKernel& kernel, const Stream& stream, Grid grid, const ArgPack& args,
            SourceLoc at = RawLoc::current());

}  // namespace rt
}  // namespace kiln
