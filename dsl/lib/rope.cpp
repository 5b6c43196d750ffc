#include "dsl/lib/rope.h"

#include <fmt/format.h>

#include "dsl/lang/arrange.h"
#include "dsl/lib/blocks.h"
#include "runtime/base/error.h"

namespace kiln::lib {
namespace {

/// The heads and pairs of one program; a token of 32 heads of 128 is one.
struct Turn {
  Pairs pairs = Pairs::halves;
  int heads = 32, width = 64;
};
constexpr int kPairs = 2048, kWidest = 1024;

/// Elements a and b of the pairs from {h, k} on, of one token, and where they are.
template <class T>
struct PairsOf {
  const View<T, 2>& head;
  const Scalar &h, &k, &half;
  const Turn& t;

  View<T, 2> part(const Scalar& from) const { return head.sub({0, from}, {head.size(0), half}); }
  std::pair<Tile, Tile> load() const {
    if (t.pairs == Pairs::halves)
      return {part(0).load({h, k}, {t.heads, t.width}), part(half).load({h, k}, {t.heads, t.width})};
    return split(reshape(head.load({h, k * 2}, {t.heads, 2 * t.width}), {t.heads, t.width, 2}));
  }
  void store(const Tile& a, const Tile& b) const {
    if (t.pairs == Pairs::interleaved) return head.store({h, k * 2}, reshape(join(a, b), {t.heads, 2 * t.width}));
    part(0).store({h, k}, a);
    part(half).store({h, k}, b);
  }
};

template <class T>
void turn(const View<const T, 3>& x, const View<const float, 2>& cosines, const View<const float, 2>& sines,
          const Scalar& position, const View<T, 3>& y, const Turn& t) {
  const Scalar h = program_id(1) * t.heads, k = program_id(2) * t.width, half = cosines.size(1);
  const View<const T, 2> from = x.slice(program_id(0));
  const View<T, 2> to = y.slice(program_id(0));
  constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
  const Tile c = cosines.load({position, k}, {1, t.width}, kUnknown);
  const Tile s = sines.load({position, k}, {1, t.width}, kUnknown);
  const auto [first, second] = PairsOf<const T>{from, h, k, half, t}.load();
  const Tile a = first.cast(f32), b = second.cast(f32);
  PairsOf<T>{to, h, k, half, t}.store((a * c - b * s).template cast<T>(), (b * c + a * s).template cast<T>());
}

template <class T>
void at_positions_program(View<const T, 3> x, View<const float, 2> cosines, View<const float, 2> sines,
                          View<const std::int32_t, 1> positions, View<T, 3> y, Tune<Turn> t) {
  turn(x, cosines, sines, positions.at({program_id(0)}), y, t);
}
template <class T>
constinit auto at_positions = kernel("rope", at_positions_program<T>).names("x cosines sines positions y turn");
template <class T>
void in_order_program(View<const T, 3> x, View<const float, 2> cosines, View<const float, 2> sines, View<T, 3> y,
                      Tune<Turn> t) {
  turn(x, cosines, sines, program_id(0), y, t);
}
template <class T>
constinit auto in_order = kernel("rope_in_order", in_order_program<T>).names("x cosines sines y turn");

std::string shape_of(const std::array<std::int64_t, 3>& n) { return fmt::format("{}x{}x{}", n[0], n[1], n[2]); }

template <class T>
void check_contiguous(SourceLoc at, const char* name, const Heads<T>& x) {
  if (x.stride[2] != 1 && x.size[2] > 1)
    throw UserError(at, fmt::format("rope: the elements of a head of {} are {} apart, must be 1", name, x.stride[2]));
}

template <class T>
void check(SourceLoc at, const Heads<const T>& x, const Matrix<const float>& cosines, const Matrix<const float>& sines,
           const Heads<T>& y) {
  check_sizes("rope", at, "x", x.size);
  if (y.size != x.size)
    throw UserError(
        at, fmt::format("rope: y is {}, but x is {}: they must have one shape", shape_of(y.size), shape_of(x.size)));
  if (x.size[2] % 2 != 0) throw UserError(at, fmt::format("rope: dim is {}, must be even", x.size[2]));
  check_contiguous<const T>(at, "x", x);
  check_contiguous<T>(at, "y", y);
  check_rows("rope", at, {named<const float>("cosines", cosines), named<const float>("sines", sines)});
  if (cosines.size[1] != x.size[2] / 2)
    throw UserError(at, fmt::format("rope: cosines has {} columns, must have {} for a dim of {}", cosines.size[1],
                                    x.size[2] / 2, x.size[2]));
}

/// What one program turns, of heads with `pairs` pairs.
Turn turn_for(Pairs how, std::int64_t heads, std::int64_t pairs) {
  const int width = int(std::min<std::int64_t>(pairs, kWidest));
  return {how, block_for(heads, kPairs / block_for(width, kWidest)), width};
}
Grid grid_for(const std::array<std::int64_t, 3>& size, const Turn& t) {
  return {size[0], cdiv(size[1], t.heads), cdiv(size[2] / 2, t.width)};
}

}  // namespace

template <Real T>
void rope(On on, Heads<const T> x, Matrix<const float> cosines, Matrix<const float> sines,
          Vector<const std::int32_t> positions, Heads<T> y, Pairs pairs) {
  check<T>(on.at, x, cosines, sines, y);
  check_vector("rope", on.at, "positions", positions.size[0], positions.stride[0], x.size[0]);
  if (x.size[2] == 0) return;
  const Turn t = turn_for(pairs, x.size[1], x.size[2] / 2);
  at_positions<T>.launch(on, grid_for(x.size, t), x, cosines, sines, positions, y, t);
}

template <Real T>
void rope(On on, Heads<const T> x, Matrix<const float> cosines, Matrix<const float> sines, Heads<T> y, Pairs pairs) {
  check<T>(on.at, x, cosines, sines, y);
  if (x.size[2] == 0) return;
  const Turn t = turn_for(pairs, x.size[1], x.size[2] / 2);
  in_order<T>.launch(on, grid_for(x.size, t), x, cosines, sines, y, t);
}

#define KILN_INSTANTIATE(T)                                                                                       \
  template void rope<T>(On, Heads<const T>, Matrix<const float>, Matrix<const float>, Vector<const std::int32_t>, \
                        Heads<T>, Pairs);                                                                         \
  template void rope<T>(On, Heads<const T>, Matrix<const float>, Matrix<const float>, Heads<T>, Pairs);
KILN_INSTANTIATE(float)
KILN_INSTANTIATE(f16)
KILN_INSTANTIATE(bf16)
#undef KILN_INSTANTIATE

}  // namespace kiln::lib
