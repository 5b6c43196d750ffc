#include "dsl/lang/arrange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "dsl/lang/shaping.h"

namespace kiln {
namespace {

using detail::Made;
using detail::Tracer;

/// A tile operand; scalars cannot get here, but a variable may hold none.
struct TileIn {
  Tracer& t;
  ir::Value v;
  TileIn(const Tile& x, SourceLoc at) : t(Tracer::current(at)), v(t.read(x, at)) {}
  const ir::Type& type() const { return t.type(v); }
  int rank() const { return int(type().shape.size()); }
};

Tile made(Tracer& t, SourceLoc at, ir::Op op, std::vector<ir::Value> operands, std::vector<ir::Attr> attrs,
          std::optional<ir::Type> type = {}) {
  const ir::Value v = t.emit(
      at, [&](ir::Builder& b) { return b.make(op, std::move(operands), std::move(attrs), at, std::move(type)); });
  return Tile(Made{v.id});
}

ir::Attr axis_attr(std::int64_t axis) { return {ir::AttrKey::axis, axis}; }

/// `shape` with its extent of -1, if any, worked out.
ir::Shape complete(const TileIn& x, ir::Shape shape, SourceLoc at) {
  std::int64_t known = 1, *unknown = nullptr;
  for (std::int64_t& extent : shape) {
    if (extent == -1 && unknown)
      x.t.fail(at, fmt::format("reshape: shape [{}] leaves two extents open", fmt::join(shape, ",")));
    if (extent == -1) unknown = &extent;
    else if (__builtin_mul_overflow(known, extent, &known)) known = 0;
  }
  if (!unknown) return shape;
  if (known <= 0 || x.type().elements() % known != 0)
    x.t.fail(at, fmt::format("reshape: no extent makes shape [{}] hold the {} elements of {}", fmt::join(shape, ","),
                             x.type().elements(), x.type().str()));
  *unknown = x.type().elements() / known;
  return shape;
}

ir::Value cat_values(Tracer& t, const std::vector<ir::Value>& v, std::size_t from, std::size_t to, std::int64_t axis,
                     SourceLoc at) {
  if (to - from == 1) return v[from];
  const std::size_t middle = from + (to - from + 1) / 2;  // halves: equal tiles pair up to powers of two
  const ir::Value a = cat_values(t, v, from, middle, axis, at), b = cat_values(t, v, middle, to, axis, at);
  return t.emit(at, [&](ir::Builder& m) { return m.make(ir::Op::Cat, {a, b}, {axis_attr(axis)}, at); });
}

}  // namespace

Tile reshape(const Tile& x, const Shape& shape, RawLoc l) {
  const TileIn in(x, l);
  const ir::Shape to = complete(in, shape.extents(), l);
  return made(in.t, l, ir::Op::Reshape, {in.v}, {}, in.type().with_shape(to));
}

Tile ravel(const Tile& x, RawLoc l) {
  const TileIn in(x, l);
  return made(in.t, l, ir::Op::Reshape, {in.v}, {}, in.type().with_shape({in.type().elements()}));
}

Tile squeeze(const Tile& x, int axis, RawLoc l) {
  const TileIn in(x, l);
  ir::Shape shape = in.type().shape;
  const int at = detail::normal_axis(in.t, axis, in.rank(), "squeeze", l);
  if (shape[std::size_t(at)] != 1 || in.rank() == 1)
    in.t.fail(l, fmt::format("squeeze: axis {} of {} is not an axis of extent 1 beside others", axis, in.type().str()));
  shape.erase(shape.begin() + at);
  return made(in.t, l, ir::Op::Reshape, {in.v}, {}, in.type().with_shape(shape));
}

Tile permute(const Tile& x, const std::vector<int>& order, RawLoc l) {
  const TileIn in(x, l);
  std::vector<std::int64_t> axes;
  for (int a : order) axes.push_back(detail::normal_axis(in.t, a, in.rank(), "permute", l));
  return made(in.t, l, ir::Op::Permute, {in.v}, {{ir::AttrKey::order, axes}});
}

Tile trans(const Tile& x, RawLoc l) {
  const TileIn in(x, l);
  if (in.rank() < 2) in.t.fail(l, fmt::format("trans: needs a tile of rank 2 or more, not {}", in.type().str()));
  std::vector<std::int64_t> order(std::size_t(in.rank()));
  std::iota(order.begin(), order.end(), std::int64_t(0));
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return made(in.t, l, ir::Op::Permute, {in.v}, {{ir::AttrKey::order, order}});
}

Tile join(const Tile& a, const Tile& b, RawLoc l) {
  const TileIn x(a, l), y(b, l);
  return made(x.t, l, ir::Op::Join, {x.v, y.v}, {});
}

std::pair<Tile, Tile> split(const Tile& x, RawLoc l) {
  const TileIn in(x, l);
  ir::InstId i = ir::kNone;
  in.t.emit_effect(l, [&](ir::Builder& b) { i = b.append(ir::Op::Split, {in.v}, {}, {}, l); });
  const std::vector<ir::Value> halves = in.t.function().inst(i).results;
  return {Tile(Made{halves[0].id}), Tile(Made{halves[1].id})};
}

Tile slice(const Tile& x, int axis, std::int64_t start, std::int64_t end, RawLoc l) {
  const TileIn in(x, l);
  const int at = detail::normal_axis(in.t, axis, in.rank(), "slice", l);
  return made(in.t, l, ir::Op::Slice, {in.v}, {axis_attr(at), {ir::AttrKey::start, start}, {ir::AttrKey::end, end}});
}

Tile cat(const Tile& a, const Tile& b, int axis, RawLoc l) {
  const TileIn x(a, l), y(b, l);
  return made(x.t, l, ir::Op::Cat, {x.v, y.v}, {axis_attr(detail::normal_axis(x.t, axis, x.rank(), "cat", l))});
}

Tile cat(const std::vector<Tile>& tiles, int axis, RawLoc l) {
  if (tiles.empty()) Tracer::current(l).fail(l, "cat: needs at least one tile");
  std::vector<ir::Value> v;
  for (const Tile& x : tiles) v.push_back(TileIn(x, l).v);
  const TileIn first(tiles[0], l);
  const int at = detail::normal_axis(first.t, axis, first.rank(), "cat", l);
  return Tile(Made{cat_values(first.t, v, 0, v.size(), at, l).id});
}

Tile flip(const Tile& x, int axis, RawLoc l) {
  const TileIn in(x, l);
  return made(in.t, l, ir::Op::Flip, {in.v}, {axis_attr(detail::normal_axis(in.t, axis, in.rank(), "flip", l))});
}

Tile gather(const Tile& x, const Tile& indices, int axis, RawLoc l) {
  const TileIn in(x, l), picks(indices, l);
  return made(in.t, l, ir::Op::Gather, {in.v, picks.v},
              {axis_attr(detail::normal_axis(in.t, axis, in.rank(), "gather", l))});
}

}  // namespace kiln
