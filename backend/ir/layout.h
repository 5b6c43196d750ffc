// LinearLayout: where the elements of a tile live, as a linear map over GF(2).
//
// What it is. The elements of a tile are spread over the registers, lanes and warps of the threads that run a program
// (or over the bytes of shared memory). A layout says which: it maps a *place* (register r of lane l of warp w) to the
// *coordinate* of the element held there. Everything is written in bits. A layout lists, for each bit of each place
// dimension, one coordinate vector, its basis; the coordinate of a place is the XOR, axis by axis, of the bases of the
// bits that are 1. XOR is addition over GF(2), so a layout is a matrix of zeros and ones, and composing, inverting and
// comparing layouts is linear algebra on small matrices.
//
// A worked example. A 4x4 tile on 4 lanes, 4 registers each; two bits of each:
//
//     register bit 0 -> (0,1)      lane bit 0 -> (0,2)
//     register bit 1 -> (2,0)      lane bit 1 -> (1,0)
//
// Which element is in register 2 of lane 3? Register 2 is binary 10: bit 1 is set, giving (2,0). Lane 3 is binary 11:
// both bits, (0,2) ^ (1,0) = (1,2). Together (2,0) ^ (1,2) = (3,2): row 3, column 2. All sixteen, as lane and register:
//
//              column 0   1    2    3
//       row 0        00  01 | 10  11        lanes 0 and 1 hold row 0 (registers 0, 1) and row 2 (registers 2, 3),
//       row 1        20  21 | 30  31        lanes 2 and 3 rows 1 and 3; each lane holds two neighbours of a row,
//       row 2        02  03 | 12  13        which one vector access can move.
//       row 3        22  23 | 32  33
//
// Usual bases are single powers of two along one axis, and a layout is then just "which bit of the coordinate is which
// bit of the place". XOR earns its keep where a basis has several ones. A swizzled shared-memory layout of an 8x8 tile
// keeps offset bits 0..2 -> (0,1) (0,2) (0,4) and sends bits 3..5 -> (1,1) (2,2) (4,4): row i is stored with its
// columns XORed by i, so a column, too, is spread over all banks. mma fragments and block-distributed tiles are the
// same thing.
//
// Replication. A basis may be zero, or the XOR of others: then several places hold one element. The bits that add
// nothing to those before them (register first, then lane, warp, block, low bits first) are the *free bits*. The place
// whose free bits are all zero is the element's owner; it alone performs effects such as stores.
//
// Padding. Extents here are powers of two. A tile of 24 columns has a layout of 32; an element outside the tile has no
// meaning. A register whose whole image (over all lanes, warps and blocks) is outside is dead: it is never allocated,
// loaded, computed or stored. register_use() tells dead, partly outside and inside apart.
//
// Why place -> coordinate and not the other way. A place holds exactly one element, but an element may be in many
// places or, for a padded register, in none that matters. Only this direction is a function for every layout of
// interest. Where the other direction is needed, invert() picks the owner.
//
// The algebra is typed by dimension names: a layout maps named input dimensions to named output dimensions. For a tile
// the inputs are hardware dimensions and the outputs are axes 0..rank-1; an inverse has them exchanged; to move a tile
// from layout A to layout B, B.invert().compose(A) maps each place of A to the place of B that holds the same element.
// A hardware dimension without bits is as good as absent; axes are always all listed.
//
// Source: "Linear Layouts" (Zhou et al., 2025). tests/layout checks each @post below over all points.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln::ir {

/// Dimensions of a place, in order. Offset counts elements in shared memory; the others name a thread's register.
enum class Hw : std::uint8_t { Register, Lane, Warp, Block, Offset };
const char* name(Hw);

/// A named dimension of a layout: a hardware dimension or an axis of the tile.
class Dim {
 public:
  constexpr Dim(Hw h) : id_(std::uint8_t(h)) {}
  static constexpr Dim axis(int k) { return Dim(std::uint8_t(kFirstAxis + k)); }
  constexpr bool is_axis() const { return id_ >= kFirstAxis; }
  constexpr int axis_number() const { return id_ - kFirstAxis; }
  constexpr auto operator<=>(const Dim&) const = default;
  /// "register", "lane", …, "axis0".
  std::string str() const;

 private:
  static constexpr std::uint8_t kFirstAxis = 16;
  constexpr explicit Dim(std::uint8_t id) : id_(id) {}
  std::uint8_t id_;
};

class LinearLayout {
 public:
  /// One value per output dimension, in order; for a tile: the coordinate of an element.
  using Coord = std::vector<std::int64_t>;
  using Index = std::vector<std::pair<Dim, std::int64_t>>;

  LinearLayout() = default;
  /// Outputs axes 0… of these extents (powers of two); no input bits yet.
  explicit LinearLayout(std::vector<std::int64_t> out_shape);
  /// One input dimension of `size` (a power of two) that counts along output axis `axis` of a rank-`rank` tile whose
  /// other extents are 1.
  /// @post apply({{in, i}})[axis] == i for i < size
  static LinearLayout identity(Dim in, std::int64_t size, int axis, int rank);
  /// `size` indices of `in` that all map to coordinate 0: replication.
  /// @post apply({{in, i}}) is all zeros for i < size
  static LinearLayout zeros(Dim in, std::int64_t size, int rank);

  int rank() const { return int(out_shape_.size()); }
  const std::vector<std::int64_t>& out_shape() const { return out_shape_; }
  const std::vector<Dim>& out_dims() const { return out_dims_; }
  /// Input dimensions that have bits (axes: all), in order.
  std::vector<Dim> in_dims() const;
  int in_bits(Dim) const;
  std::int64_t in_size(Dim d) const { return std::int64_t(1) << in_bits(d); }
  int total_in_bits() const;
  int total_out_bits() const;
  const Coord& basis(Dim, int bit) const;
  /// Appends the next higher bit of `in`. Throws InternalError for a basis outside the output extents.
  void add_bit(Dim in, Coord basis);

  /// Outputs at these inputs; dimensions left out are 0.
  /// @post linear: apply(a ^ b) == apply(a) ^ apply(b)
  Coord apply(const Index& index) const;

  /// Every coordinate is reached.
  bool surjective() const;
  /// No two places hold the same element: there are no free bits.
  bool injective() const;
  /// Mask over the bits of `in` that replicate: those whose basis is zero or the XOR of bases before it.
  /// @post an element is held by exactly 2^(free bits of all dimensions) places, one of which has them all zero
  std::int64_t free_bits(Dim in) const;

  /// Product: copies of this one arranged by `outer`; sizes multiply per dimension and this one's bits vary fastest.
  /// @pre same output dimensions
  /// @post (a * b).apply(i)[k] == a.apply(i mod a)[k] + a.out_shape()[k] * b.apply(i div a)[k]
  LinearLayout operator*(const LinearLayout& outer) const;
  /// x with inner * x == *this, if there is one.
  std::optional<LinearLayout> divide(const LinearLayout& inner) const;

  /// this ∘ inner: outputs of `inner` are matched with inputs of this by name; inputs that `inner` does not give are 0.
  /// @pre each output of `inner` of size > 1 is an input of this, at least as large
  /// @post compose(b).apply(i) == apply(b.apply(i))
  LinearLayout compose(const LinearLayout& inner) const;
  /// Right inverse with all free bits 0: from a coordinate to its owner.
  /// @pre surjective
  /// @post compose(invert()) is the identity; if injective, invert().compose(*this) too
  LinearLayout invert() const;
  /// The identity on `dims` of these sizes.
  static LinearLayout identity_on(const std::vector<Dim>& dims, const std::vector<std::int64_t>& sizes);

  /// Axis `axis` shrunk to extent 1: what is left of the coordinate when that axis is broadcast.
  /// @post collapse(k).apply(i) == apply(i) with component k set to 0
  LinearLayout collapse(int axis) const;
  /// Axis `axis` removed, later axes move down: the layout of a slice.
  /// @post slice(k).apply(i) == apply(i) without component k
  LinearLayout slice(int axis) const;
  /// An axis of extent 1 inserted before `axis`.
  /// @post expand(k).slice(k) == *this
  LinearLayout expand(int axis) const;
  /// Without the register bits that are free: no thread holds an element twice.
  /// @post each thread holds the same elements as before
  LinearLayout without_free_registers() const;

  bool operator==(const LinearLayout&) const = default;
  /// `[register=(0,1)(2,0) lane=(0,2)(1,0)] -> 4x4`.
  std::string str() const;

 private:
  struct In {
    Dim dim;
    std::vector<Coord> bases;
    bool operator==(const In&) const = default;
  };
  const In* find(Dim) const;
  In& in(Dim);
  std::uint64_t pack(const Coord&) const;
  Coord unpack(std::uint64_t) const;

  std::vector<In> in_;  // sorted by dim; hardware dimensions only with bits
  std::vector<Dim> out_dims_;
  std::vector<std::int64_t> out_shape_;
};

/// What a register of a padded layout holds, seen over all lanes, warps and blocks.
enum class RegisterUse : std::uint8_t {
  Dead,     ///< every element is outside the tile
  Partial,  ///< some are; effects need a mask
  Full,     ///< none is
};
RegisterUse register_use(const LinearLayout&, std::int64_t reg, const std::vector<std::int64_t>& extents);

/// For each register of `to`, the register of `from` that holds in the same thread the element of the same coordinate,
/// components of extent 1 in `from` taken as 0 (a broadcast). Nothing if any such element is in another thread.
/// @pre equal ranks
std::optional<std::vector<std::int64_t>> same_thread_registers(const LinearLayout& from, const LinearLayout& to);

}  // namespace kiln::ir
