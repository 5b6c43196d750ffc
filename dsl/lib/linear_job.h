// What a product is made of on the host, and how it is launched: one struct for each of linear, linear_batched and
// linear_grouped, with what they share.
#pragma once
#include <algorithm>
#include <bit>
#include <optional>
#include <span>

#include "dsl/lib/linear_kernels.h"
#include "dsl/lib/linear_memory.h"
#include "dsl/lib/linear_tuning.h"

namespace kiln::lib {

/// How linear is to work.
struct LinearOptions {
  /// The bits of a row do not depend on how many rows there are: the blocks follow from w alone.
  bool batch_invariant = false;
  /// Pieces that k is cut into, each summed by programs of its own and then added in their order; 0: as many as fill
  /// the device. Only of linear. Pieces change the order of a sum, so the bits of float results.
  int splits = 1;
  /// What f32 elements are multiplied as (dsl/lang/dot.h).
  Precision precision = Precision::exact;
  /// Of 8-bit floats in pairs: steps of k after which a sum of its own is added in f32, a multiple of 32; 0: none,
  /// which is faster and keeps 13 bits of the sum.
  int promote = 128;
  /// Instead of the table's. BM, BN and BK are at least 16, or 8 for BM; a power of two.
  LinearBlocks blocks = {};
  int num_warps = 0;  ///< instead of the table's
};

/// An array of three dimensions: {x, {batches, rows, cols}}, or with strides.
template <class T>
using Cube = typename Param<View<T, 3>>::Host;

namespace chain {

/// UserErrors about x, w and the options; `packed`: elements of w in one of its memory.
void check_operands(const char* function, SourceLoc, std::span<const std::int64_t> x, std::span<const std::int64_t> w,
                    int packed);
void check_options(const char* function, SourceLoc, const LinearOptions&, bool may_split);
/// UserError where scales do not fit: `rows` of them, one for `group` steps of k.
void check_scales(const char* function, SourceLoc, const char* name, std::span<const std::int64_t> size,
                  std::int64_t groups, std::int64_t rows, std::int64_t k, int group);
void check_written(const char* function, SourceLoc, std::span<const std::int64_t> y,
                   std::span<const std::int64_t> expected);
void check_groups(const char* function, SourceLoc, std::int64_t x, std::int64_t w);
/// `other`: the group of the other operand's scales, 0 if it has none.
void check_scale_groups(const char* function, SourceLoc, int group, int other, int rows);
/// The largest step of k, at most `most`, that does not straddle a group of scales.
int step_within(int most, int group);
/// How many pieces of k fill a device of `sms` multiprocessors.
std::int64_t pieces_for(std::int64_t tiles, std::int64_t k, int step, int sms);

template <class T>
inline constexpr bool is_eight_bit_float = std::same_as<T, f8e4m3> || std::same_as<T, f8e5m2>;

/// x or w with contiguous columns becomes the matrix of its columns.
template <class M>
bool lie_by_columns(M& m) {
  const std::size_t r = m.size.size() - 2, c = r + 1;
  if (m.stride[r] != 1 || m.stride[c] == 1) return false;
  std::swap(m.stride[r], m.stride[c]);
  std::swap(m.size[r], m.size[c]);
  return true;
}
/// The same array with a dimension of one product in front.
inline Cube<const float> one_of(const Matrix<const float>& m) {
  Cube<const float> c(TypedPtr<float>{}, {1, m.size[0], m.size[1]}, {0, m.stride[0], m.stride[1]});
  c.data = m.data;
  return c;
}
inline Cube<const float> one_of(const Cube<const float>& c) { return c; }

/// The operands of all kinds. RX, RW: dimensions of x and w.
template <class X_, class W_, int RX, int RW, class Before_, bool HasX, bool HasW>
struct Operands {
  using X = X_;
  using W = W_;
  using Before = Before_;
  using Scales = PartScales<HasX, HasW>;
  static constexpr int kPack = kPacked<W>;
  static constexpr bool kHasX = HasX, kHasW = HasW;

  typename Param<View<const X, RX>>::Host x;
  typename Param<View<const Stored<W>, RW>>::Host w;
  Before before;
  typename Param<Scales>::Host scales;
  LinearOptions options;
  int k_group = 0, w_group = 1;

  std::int64_t rows() const { return x.size[RX - 2]; }
  std::int64_t cols() const { return w.size[RW - 2]; }
  std::int64_t depth() const { return x.size[RX - 1]; }

  /// With another chain before it, or other scales.
  template <class B, bool HX, bool HW>
  Operands<X, W, RX, RW, B, HX, HW> with(const B& b) const {
    return {x, w, b, {scales.x, scales.w}, options, k_group, w_group};
  }
  void check(const char* function, SourceLoc at, std::int64_t x_groups, std::int64_t w_groups) const {
    check_operands(function, at, x.size, w.size, kPack);
    if constexpr (HasX) check_scales(function, at, "x's scales", scales.x->size, x_groups, rows(), depth(), k_group);
    if constexpr (HasW)
      check_scales(function, at, "w's scales", scales.w->size, w_groups, cdiv(cols(), w_group), depth(), k_group);
  }
  struct Cut {
    Blocks t;
    int warps;
    typename Param<View<const X, RX>>::Host x;  ///< turned so that the last dimension is contiguous where one is
    typename Param<View<const Stored<W>, RW>>::Host w;
  };
  static constexpr bool kPairs = is_eight_bit_float<X> && is_eight_bit_float<Stored<W>>;
  LinearShape shape(const Device& device, bool crowded) const {
    constexpr DType weights = std::same_as<W, Int4> ? i8 : dtype_of<Stored<W>>;
    // A product of a batch or group is a view that the kernel computes, which no tensor map takes.
    const bool as_it_lies = RX == 2 && RW == 2 && std::same_as<Before, Chain<1>> && !Scales::kAny && std::same_as<X, W>;
    // The units of a warpgroup read elements of other than 16 bits along k.
    const bool along_k = x.stride[RX - 1] == 1 && w.stride[RW - 1] == 1;
    const bool direct = as_it_lies && in_rows_of_16_bytes(x) && in_rows_of_16_bytes(w) && (sizeof(X) == 2 || along_k);
    constexpr bool kRounds = std::same_as<X, float> && std::same_as<W, float>;
    return {rows(),
            cols(),
            depth(),
            dtype_of<X>,
            weights,
            device.target(),
            device.sm_count(),
            direct,
            crowded || (kPairs && !direct && options.promote != 0),
            kRounds ? options.precision : Precision::exact};
  }
  /// A measured plan is one for some number of rows, so bits that do not depend on it take the table's.
  LinearPlan plan_of(const Device& device, const char* kind, bool crowded) const {
    const LinearShape s = shape(device, crowded);
    return options.batch_invariant ? linear_plan(s, true) : tuned_linear_plan(device, kind, s);
  }
  Cut cut(const Device& device, const char* kind, bool crowded) const {
    LinearPlan plan = plan_of(device, kind, crowded);
    if (options.blocks.BM) plan = {options.blocks, linear_warps(shape(device, crowded), options.blocks)};
    if (options.num_warps) plan.num_warps = options.num_warps;
    const LinearBlocks& b = plan.blocks;
    Cut c{{b.BM, b.BN, b.BK, b.weights_first, false, false, options.precision, kPairs ? options.promote : 0, k_group,
           w_group},
          plan.num_warps,
          x,
          w};
    if (Scales::kAny) c.t.BK = step_within(b.BK, k_group);
    c.t.x_columns = lie_by_columns(c.x);
    c.t.w_columns = kPack == 1 && lie_by_columns(c.w);
    return c;
  }
};

/// All but the kernels; `groups`: products of the shape.
LinearExplanation explained(const Device&, const char* kind, const LinearShape&, const LinearOptions&,
                            std::int64_t groups);

// --- kinds of products -----------------------------------------------------------------------------------------------
// Each has: its operands `o`, kName, kRank (dimensions of its results), the extents of its results, and launch().

template <class O>
struct Plain {
  using Operands = O;
  template <class P>
  Plain<P> with(const P& p) const {
    return {p};
  }
  static constexpr const char* kName = "linear";
  static constexpr int kRank = 2;
  static constexpr bool kSplits = true, kWhole = true;  ///< whole: its tiles cover one matrix of results
  using XScales = Matrix<const float>;
  using WScales = Matrix<const float>;
  O o;

  Extents extents() const { return {o.rows(), o.cols(), 1}; }
  std::array<std::int64_t, 2> written(std::int64_t cols) const { return {o.rows(), cols}; }
  void check(SourceLoc at) const { o.check(kName, at, 1, 1); }
  Grid grid(const Blocks& t) const { return {cdiv(o.rows(), t.BM), cdiv(o.cols(), t.BN)}; }

  /// `use(kernel, grid, arguments…)` for each kernel of a launch. `pieces`: of k, in a workspace there; 1 needs none.
  template <class Then, class Y, class Use>
  void kernels(const typename O::Cut& c, const Then& then, const typename Param<Y>::Host& y, std::int64_t pieces,
               DevicePtr workspace, const Use& use) const {
    const Blocks& t = c.t;
    using X = typename O::X;
    using W = typename O::W;
    using B = typename O::Before;
    using S = typename O::Scales;
    const CompileOptions warps{.num_warps = c.warps};
    if (pieces == 1) {
      use(plain_kernel<X, W, B, S, Then, Y>.with(warps), grid(t), c.x, c.w, o.before, o.scales, then, y, t);
      return;
    }
    const std::int64_t piece = cdiv(cdiv(o.depth(), pieces), t.BK) * t.BK;
    const std::array<std::int64_t, 3> size{pieces, o.rows(), o.cols()};
    using Pieces = View<Sum<X, W>, 3>;
    const auto memory = device_ptr<Sum<X, W>>(workspace, std::size_t(pieces * o.rows() * o.cols()));
    const typename Param<Pieces>::Host sums(memory, size);
    const typename Param<View<const Sum<X, W>, 3>>::Host to_add(memory, size);
    Grid g = grid(t);
    g.z = pieces;
    use(piece_kernel<X, W, B, S>.with(warps), g, c.x, c.w, o.before, o.scales, sums, piece, t);
    use(merge_kernel<Sum<X, W>, Then, Y>.with({}), grid(t), to_add, then, y, t);
  }
};

template <class O>
struct Batched {
  using Operands = O;
  template <class P>
  Batched<P> with(const P& p) const {
    return {p};
  }
  static constexpr const char* kName = "linear_batched";
  static constexpr int kRank = 3;
  static constexpr bool kSplits = false, kWhole = false;
  using XScales = Cube<const float>;
  using WScales = Cube<const float>;
  O o;

  Extents extents() const { return {o.rows(), o.cols(), o.x.size[0]}; }
  std::array<std::int64_t, 3> written(std::int64_t cols) const { return {o.x.size[0], o.rows(), cols}; }
  void check(SourceLoc at) const {
    check_groups(kName, at, o.x.size[0], o.w.size[0]);
    o.check(kName, at, o.x.size[0], o.w.size[0]);
  }
  template <class Then, class Y, class Use>
  void kernels(const typename O::Cut& c, const Then& then, const typename Param<Y>::Host& y, std::int64_t, DevicePtr,
               const Use& use) const {
    const Blocks& t = c.t;
    use(batched_kernel<typename O::X, typename O::W, typename O::Before, typename O::Scales, Then, Y>.with(
            {.num_warps = c.warps}),
        Grid(cdiv(o.rows(), t.BM), cdiv(o.cols(), t.BN), o.x.size[0]), c.x, c.w, o.before, o.scales, then, y, t);
  }
};

template <class O>
struct Grouped {
  using Operands = O;
  template <class P>
  Grouped<P> with(const P& p) const {
    return {p, offsets};
  }
  static constexpr const char* kName = "linear_grouped";
  static constexpr int kRank = 2;
  static constexpr bool kSplits = false, kWhole = false;
  using XScales = Matrix<const float>;
  using WScales = Cube<const float>;
  O o;
  Vector<const std::int32_t> offsets;

  Extents extents() const { return {o.rows(), o.cols(), o.w.size[0]}; }
  std::array<std::int64_t, 2> written(std::int64_t cols) const { return {o.rows(), cols}; }
  void check(SourceLoc at) const {
    check_vector(kName, at, "offsets", offsets.size[0], offsets.stride[0], o.w.size[0] + 1);
    o.check(kName, at, 1, o.w.size[0]);
  }
  template <class Then, class Y, class Use>
  void kernels(const typename O::Cut& c, const Then& then, const typename Param<Y>::Host& y, std::int64_t, DevicePtr,
               const Use& use) const {
    const Blocks& t = c.t;
    const std::int64_t groups = o.w.size[0];
    // Each group may end in a tile that it does not fill.
    const std::int64_t tiles = std::min(o.rows(), o.rows() / t.BM + groups);
    use(grouped_kernel<typename O::X, typename O::W, typename O::Before, typename O::Scales, Then, Y>.with(
            {.num_warps = c.warps}),
        Grid(tiles, cdiv(o.cols(), t.BN)), c.x, c.w, offsets, o.before, o.scales, then, y, t,
        int(std::bit_ceil(std::uint64_t(groups))));
  }
};

}  // namespace chain
}  // namespace kiln::lib
