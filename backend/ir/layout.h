// LinearLayout: where the elements of a tile live, as a linear map over GF(2). (Essay and worked example: to be written
// by this file's owner.)
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kiln::ir {

/// Hardware (input) dimensions, in order.
enum class Hw : std::uint8_t { Register, Lane, Warp, Block, Offset };
const char* name(Hw);

/// A map from hardware bits to tile coordinates: basis(h, k) is the coordinate vector of bit k of dimension h; the
/// coordinate of an index is the XOR of the bases of its set bits. Extents of the tile are powers of two here; a tile
/// with other extents is padded, and elements outside have no meaning.
class LinearLayout {
 public:
  using Coord = std::vector<std::int64_t>;

  LinearLayout() = default;
  /// `out_shape`: padded extents (powers of two). No input bits yet.
  explicit LinearLayout(std::vector<std::int64_t> out_shape);
  /// One input dimension of `size` (a power of two) counting along output axis `axis` of a rank-`rank` tile of 1s.
  static LinearLayout identity(Hw, std::int64_t size, int axis, int rank);
  /// `size` indices of `h` that all map to coordinate 0: replication.
  static LinearLayout zeros(Hw h, std::int64_t size, int rank);

  int rank() const { return int(out_shape_.size()); }
  const std::vector<std::int64_t>& out_shape() const { return out_shape_; }
  int in_bits(Hw) const;
  std::int64_t in_size(Hw h) const { return std::int64_t(1) << in_bits(h); }
  const Coord& basis(Hw h, int bit) const;
  void add_bit(Hw, Coord basis);

  /// Coordinate of the element held at these indices; dimensions left out are 0.
  Coord apply(const std::vector<std::pair<Hw, std::int64_t>>& index) const;

  /// Every coordinate is reached. / No two indices share one (no zero or dependent bits).
  bool surjective() const;
  bool injective() const;
  /// Per input dimension, a mask of bits that do not change the coordinate (their basis depends on earlier ones).
  std::int64_t free_bits(Hw) const;

  /// Product: `outer` placed beside this one; sizes multiply per dimension (this varies fastest).
  LinearLayout operator*(const LinearLayout& outer) const;
  /// x with x * divisor == *this, if there is one.
  bool divide(const LinearLayout& divisor, LinearLayout& quotient) const;
  /// The map (this ∘ inverse-on-the-image-of other): hardware index of `other` for hardware index of this holding the
  /// same element. Defined when other is surjective on this's image.
  LinearLayout compose(const LinearLayout& inner) const;
  LinearLayout invert() const;
  /// Removes output axis `axis`: coordinates keep their other components (the layout of a slice).
  LinearLayout slice(int axis) const;
  /// Inserts an output axis of extent 1.
  LinearLayout expand(int axis) const;

  bool operator==(const LinearLayout&) const = default;
  /// `[reg=(0,1)(0,2) lane=(0,4)(0,8)… warp=… ] -> 8x128`.
  std::string str() const;

 private:
  struct In {
    Hw dim;
    std::vector<Coord> bases;
    bool operator==(const In&) const = default;
  };
  std::vector<In> in_;
  std::vector<std::int64_t> out_shape_;
};

}  // namespace kiln::ir
