#include "dsl/lang/dot.h"

#include <fmt/format.h>

#include "dsl/lang/shaping.h"

namespace kiln {
namespace {

using detail::Made;
using detail::Tracer;

DType accumulator(Tracer& t, const ir::Type& a, const ir::Type& b, SourceLoc at) {
  const DType x = a.dtype, y = b.dtype;
  if (is_float(x) && is_float(y)) return x == DType::f64 || y == DType::f64 ? DType::f64 : DType::f32;
  if (!is_int(x) || !is_int(y))
    t.fail(at, fmt::format("dot: takes two tiles of floats or two of integers, not {} and {}", a.str(), b.str()));
  if (x == DType::u64 || y == DType::u64) return DType::u64;
  return bits(x) == 64 || bits(y) == 64 ? DType::i64 : DType::i32;
}

ir::Shape product_shape(Tracer& t, const ir::Type& a, const ir::Type& b, SourceLoc at) {
  const std::size_t rank = a.shape.size();
  if (rank < 2 || b.shape.size() != rank)
    t.fail(at, fmt::format("dot: takes tiles of one rank, at least 2, not {} and {}", a.str(), b.str()));
  ir::Shape shape = a.shape;
  shape.back() = b.shape.back();
  return shape;
}

static_assert(int(ir::Precision::Bf16x3) == int(Precision::bf16x3) && int(ir::Precision::Tf32) == int(Precision::tf32));

Tile multiply(Tracer& t, ir::Value a, ir::Value b, ir::Value acc, DotOptions options, SourceLoc at) {
  if (options.promote < 0 || options.promote % 32 != 0)
    t.fail(at, fmt::format("dot: promote is {}, must be a multiple of 32, or 0", options.promote));
  const std::int64_t precision = std::int64_t(options.precision),
                     promote = t.type(acc).dtype == DType::f32 ? options.promote : 0;
  std::vector<ir::Attr> attrs{{ir::AttrKey::precision, precision}, {ir::AttrKey::promote, promote}};
  std::erase_if(attrs, [](const ir::Attr& x) { return x.value == ir::AttrValue(std::int64_t(0)); });
  return Tile(Made{t.emit(at, [&](ir::Builder& m) { return m.make(ir::Op::Dot, {a, b, acc}, attrs, at); }).id});
}

}  // namespace

Tile dot(const Tile& a, const Tile& b, const Tile& acc, DotOptions options, RawLoc l) {
  Tracer& t = Tracer::current(l);
  const ir::Value x = t.read(a, l), y = t.read(b, l);
  return multiply(t, x, y, t.read(acc, l), options, l);
}

Tile dot(const Tile& a, const Tile& b, DotOptions options, RawLoc l) {
  Tracer& t = Tracer::current(l);
  const ir::Value x = t.read(a, l), y = t.read(b, l);
  const DType d = accumulator(t, t.type(x), t.type(y), l);
  const ir::Shape shape = product_shape(t, t.type(x), t.type(y), l);
  const ir::Value zero = t.constant(ir::Literal::of_int(d, 0), l);
  return multiply(t, x, y, t.emit(l, [&](ir::Builder& m) { return m.splat(zero, shape, l); }), options, l);
}

}  // namespace kiln
