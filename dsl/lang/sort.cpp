#include "dsl/lang/sort.h"

#include <fmt/format.h>

#include "dsl/lang/shaping.h"

namespace kiln {
namespace {

using detail::Made;
using detail::Operand;
using detail::Tracer;

ir::Value tile_operand(Tracer& t, const Handle& x, const char* who, SourceLoc at) {
  const ir::Value v = t.read(x, at);
  if (t.type(v).ptr) t.fail(at, fmt::format("{}: takes values, not {}", who, t.type(v).str()));
  return v;
}

std::vector<ir::Value> sorted(Tracer& t, std::vector<ir::Value> tiles, int axis, bool descending, SourceLoc at) {
  std::vector<ir::Attr> attrs{{ir::AttrKey::axis, std::int64_t(axis)}};
  if (descending) attrs.push_back({ir::AttrKey::descending, std::int64_t(1)});
  ir::InstId inst = ir::kNone;
  t.emit_effect(at, [&](ir::Builder& b) { inst = b.append(ir::Op::Sort, std::move(tiles), {}, std::move(attrs), at); });
  return t.function().inst(inst).results;
}

/// Positions along `axis`, in the shape of x.
ir::Value positions(Tracer& t, const ir::Type& x, int axis, SourceLoc at) {
  ir::Value i = t.emit(at, [&](ir::Builder& b) { return b.arange(0, x.shape[std::size_t(axis)], at); });
  i = detail::cast_to(t, i, DType::i32, at);
  for (std::size_t after = std::size_t(axis) + 1; after < x.shape.size(); ++after)
    i = t.emit(at, [&](ir::Builder& b) { return b.expand_dims(i, int(t.type(i).shape.size()), at); });
  return detail::broadcast_like(t, i, x, "sort", at);
}

/// x sorted, and where each of its elements was.
std::vector<ir::Value> sorted_with_positions(Tracer& t, ir::Value x, int axis, bool descending, SourceLoc at) {
  return sorted(t, {x, positions(t, t.type(x), axis, at)}, axis, descending, at);
}

Made index_of(Tracer& t, ir::Value position, SourceLoc at) {
  return {detail::cast_to(t, position, DType::index, at).id};
}

Tile do_histogram(const Tile& x, int bins, const Operand* mask, SourceLoc at) {
  Tracer& t = Tracer::current(at);
  std::vector<ir::Value> operands{tile_operand(t, x, "histogram", at)};
  if (mask) {
    const ir::Type type = t.type(operands[0]);
    operands.push_back(detail::broadcast_like(t, detail::value_of(t, *mask, at), type, "histogram", at));
  }
  return Tile(Made{t.emit(at, [&](ir::Builder& b) {
                      return b.make(ir::Op::Histogram, operands, {}, at, ir::Type::tile_of(DType::i32, {bins}));
                    }).id});
}

}  // namespace

void detail::sort(const Handle* const* tiles, Made* out, std::size_t count, int axis, bool descending, SourceLoc at) {
  Tracer& t = Tracer::current(at);
  std::vector<ir::Value> in;
  for (std::size_t i = 0; i < count; ++i) in.push_back(tile_operand(t, *tiles[i], "sort", at));
  const int normal = normal_axis(t, axis, int(t.type(in[0]).shape.size()), "sort", at);
  const std::vector<ir::Value> results = sorted(t, std::move(in), normal, descending, at);
  for (std::size_t i = 0; i < count; ++i) out[i] = {results[i].id};
}

Tile sort(const Tile& x, int axis, bool descending, RawLoc l) {
  const Handle* in = &x;
  Made out{};
  detail::sort(&in, &out, 1, axis, descending, l);
  return Tile(out);
}

Tile argsort(const Tile& x, int axis, bool descending, RawLoc l) {
  Tracer& t = Tracer::current(l);
  const ir::Value v = tile_operand(t, x, "argsort", l);
  const int normal = detail::normal_axis(t, axis, int(t.type(v).shape.size()), "argsort", l);
  return Tile(index_of(t, sorted_with_positions(t, v, normal, descending, l)[1], l));
}

std::pair<Tile, Tile> topk(const Tile& x, int k, int axis, RawLoc l) {
  Tracer& t = Tracer::current(l);
  const ir::Value v = tile_operand(t, x, "topk", l);
  const int normal = detail::normal_axis(t, axis, int(t.type(v).shape.size()), "topk", l);
  const std::int64_t extent = t.type(v).shape[std::size_t(normal)];
  if (k < 1 || k > extent)
    t.fail(l, fmt::format("topk: k is {}, must be 1 to {}, the extent of axis {}", k, extent, normal));
  std::vector<ir::Value> best = sorted_with_positions(t, v, normal, /*descending=*/true, l);
  if (k < extent)
    for (ir::Value& b : best)
      b = t.emit(l, [&](ir::Builder& m) {
        return m.make(ir::Op::Slice, {b},
                      {{ir::AttrKey::axis, std::int64_t(normal)},
                       {ir::AttrKey::start, std::int64_t(0)},
                       {ir::AttrKey::end, std::int64_t(k)}},
                      l);
      });
  return {Tile(Made{best[0].id}), Tile(index_of(t, best[1], l))};
}

Tile histogram(const Tile& x, int bins, RawLoc l) { return do_histogram(x, bins, nullptr, l); }
Tile histogram(const Tile& x, int bins, Arg mask, RawLoc l) { return do_histogram(x, bins, &mask, l); }

}  // namespace kiln
