#include "dsl/lang/view.h"

#include <fmt/format.h>

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

ViewBlock view_block(const Scalar& base, const Scalar* size, const Scalar* stride, const SArg* at, const int* dims,
                     int rank, RawLoc l) {
  auto op = [&](ir::Op o, const Handle& a, const Handle& b) {
    return Tile(binary(o, Operand(a, l), Operand(b, l), l));
  };
  const Operand zero(Number::of(0), l);
  Tile offset, inside;
  Tracer& t = Tracer::current(l);
  for (int d = 0; d < rank; ++d) {
    const Tile steps(Made{t.emit(l, [&](ir::Builder& b) { return b.arange(0, dims[d], l); }).id});
    const Tile i = op(ir::Op::Add, index_scalar(at[d]), steps);
    auto along = [&](const Tile& x) {  // [dims[d], 1, …, 1]: broadcasting adds the axes before d
      ir::Value v = t.read(x, l);
      for (int k = d + 1; k < rank; ++k) v = t.emit(l, [&](ir::Builder& b) { return b.expand_dims(v, k - d, l); });
      return Tile(Made{v.id});
    };
    const Tile not_before(binary(ir::Op::Ge, Operand(i, l), zero, l));
    const Tile not_beyond = op(ir::Op::Lt, i, size[d]);
    const Tile in = along(op(ir::Op::And, not_before, not_beyond));
    const Tile off = along(op(ir::Op::Mul, i, stride[d]));
    offset = d ? op(ir::Op::Add, offset, off) : off;
    inside = d ? op(ir::Op::And, inside, in) : in;
  }
  return {op(ir::Op::Add, base, offset), inside};
}

void view_store(const Scalar& base, const Scalar* size, const Scalar* stride, const SArg* at, const Tile& x, int rank,
                RawLoc l) {
  Tracer& t = Tracer::current(l);
  const ir::Type type = t.type(t.read(x, l));
  if (int(type.shape.size()) != rank)
    t.fail(l, fmt::format("store to a view of {} dimensions: value is {}", rank, type.str()));
  const std::vector<int> dims(type.shape.begin(), type.shape.end());
  const ViewBlock b = view_block(base, size, stride, at, dims.data(), rank, l);
  kiln::store(b.ptr, Arg(x, l), Arg(b.inside, l), l);
}

}  // namespace kiln::detail
