#include "dsl/lang/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "dsl/lang/shaping.h"

namespace kiln::detail {

Scalar index_scalar(const SArg& x) {
  Tracer& t = Tracer::current(x.at);
  const ir::Value v = value_as(t, x, DType::index, "view", x.at);
  if (t.type(v).ptr || !is_int(t.type(v).dtype))
    t.fail(x.at, fmt::format("view: a coordinate must be an integer, not {}", t.type(v).str()));
  return Scalar(Made{cast_to(t, v, DType::index, x.at).id});
}

Scalar view_address(const Scalar& base, const Scalar* stride, const SArg* at, int rank, RawLoc l) {
  Scalar p = base;
  for (int d = 0; d < rank; ++d) {
    const Scalar offset(binary(ir::Op::Mul, Operand(index_scalar(at[d]), l), Operand(stride[d], l), l));
    p = Scalar(binary(ir::Op::Add, Operand(p, l), Operand(offset, l), l));
  }
  return p;
}

namespace {

/// Builds the offsets and the mask of a block, one dimension after the other.
class BlockOf {
 public:
  BlockOf(const Extent* dims, int rank, RawLoc l) : dims_(dims), rank_(rank), at_(l), t_(Tracer::current(l)) {
    std::vector<std::int64_t> shape;
    for (int d = 0; d < rank; ++d) shape.push_back(dims[d].value);
    if (*std::min_element(shape.begin(), shape.end()) < 1)
      t_.fail(l, fmt::format("view: a block's extents are positive, shape is [{}]", fmt::join(shape, ",")));
  }

  Tile op(ir::Op o, const Handle& a, const Handle& b) const {
    return Tile(binary(o, Operand(a, at_), Operand(b, at_), at_));
  }
  Tile op(ir::Op o, const Handle& a, int b) const {
    return Tile(binary(o, Operand(a, at_), Operand(Number::of(b), at_), at_));
  }
  /// Coordinates start, start + 1, … of dimension d.
  Tile coordinates(const SArg& start, int d) const {
    const Tile steps(Made{t_.emit(at_, [&](ir::Builder& b) { return b.arange(0, dims_[d], at_); }).id});
    return op(ir::Op::Add, index_scalar(start), steps);
  }
  /// [dims[d], 1, …, 1]: broadcasting adds the axes before d.
  Tile along(const Tile& x, int d) const {
    ir::Value v = t_.read(x, at_);
    for (int k = d + 1; k < rank_; ++k) v = t_.emit(at_, [&](ir::Builder& b) { return b.expand_dims(v, k - d, at_); });
    return Tile(Made{v.id});
  }
  /// Adds dimension d: coordinates `i`, of which those where `in` holds are inside.
  void add(const Tile& i, const Tile& in, const Scalar& stride, int d) {
    const Tile offset = along(op(ir::Op::Mul, i, stride), d), inside = along(in, d);
    offset_ = d ? op(ir::Op::Add, offset_, offset) : offset;
    inside_ = d ? op(ir::Op::And, inside_, inside) : inside;
  }
  ViewBlock done(const Scalar& base) const { return {op(ir::Op::Add, base, offset_), inside_}; }

 private:
  const Extent* dims_;
  int rank_;
  RawLoc at_;
  Tracer& t_;
  Tile offset_, inside_;
};

}  // namespace

ViewBlock view_block(const Scalar& base, const Scalar* size, const Scalar* stride, const SArg* at, const Extent* dims,
                     int rank, RawLoc l) {
  const BlockOf checked(dims, rank, l);
  Tracer& t = Tracer::current(l);
  std::vector<std::int64_t> extents;
  std::vector<ir::Value> operands{t.read(base, l)};
  for (int d = 0; d < rank; ++d) extents.push_back(dims[d].value);
  for (int d = 0; d < rank; ++d) operands.push_back(t.read(size[d], l));
  for (int d = 0; d < rank; ++d) operands.push_back(t.read(stride[d], l));
  for (int d = 0; d < rank; ++d) operands.push_back(t.read(index_scalar(at[d]), l));
  ir::Value inside;
  const ir::Value ptr = t.emit(l, [&](ir::Builder& b) {
    const ir::InstId i = b.append(ir::Op::Block, operands, {}, {{ir::AttrKey::extents, extents}}, l);
    inside = b.function().inst(i).results[1];
    return b.function().inst(i).results[0];
  });
  return {Tile(Made{ptr.id}), Tile(Made{inside.id})};
}

ViewBlock clamped_block(const Scalar& base, const Scalar* size, const Scalar* stride, const SArg* at,
                        const Extent* dims, int rank, RawLoc l) {
  BlockOf block(dims, rank, l);
  for (int d = 0; d < rank; ++d) {
    const Scalar last(binary(ir::Op::Sub, Operand(size[d], l), Operand(Number::of(1), l), l));
    const Tile i = block.op(ir::Op::Max, block.op(ir::Op::Min, block.coordinates(at[d], d), last), 0);
    block.add(i, block.op(ir::Op::Lt, i, size[d]), stride[d], d);
  }
  return block.done(base);
}

void view_store(const Scalar& base, const Scalar* size, const Scalar* stride, const SArg* at, const Tile& x, int rank,
                RawLoc l) {
  Tracer& t = Tracer::current(l);
  const ir::Type type = t.type(t.read(x, l));
  if (int(type.shape.size()) != rank)
    t.fail(l, fmt::format("store to a view of {} dimensions: value is {}", rank, type.str()));
  const std::vector<Extent> dims(type.shape.begin(), type.shape.end());
  const ViewBlock b = view_block(base, size, stride, at, dims.data(), rank, l);
  kiln::store(b.ptr, Arg(x, l), Arg(b.inside, l), l);
}

}  // namespace kiln::detail
