// expand-blocks: pointers and masks of blocks become arithmetic on coordinates.
//
//     %p, %in = block extents=[8,128] %base, %rows, %columns, %pitch, %one, %r, %c
//  -> %i = %r + arange(8), %j = %c + arange(128)
//     %p = %base + (%i * %pitch + %j * %one),  %in = 0 <= %i < %rows & 0 <= %j < %columns      (all broadcast)
//
// It runs behind stage-products, which takes whole blocks, and before whatever reasons about addresses.
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"

namespace kiln::ir {
namespace {

class Expansion {
 public:
  Expansion(Function& f, InstId block) : f_(f), block_(block), inst_(f.inst(block)) {}

  void run() {
    const Shape extents = inst_.ints(AttrKey::extents);
    const std::size_t rank = extents.size();
    Value offset, inside;
    for (std::size_t d = 0; d < rank; ++d) {
      const Value size = inst_.operands[1 + d], stride = inst_.operands[1 + rank + d],
                  at = inst_.operands[1 + 2 * rank + d];
      const Value steps = op(Op::Arange, {}, {{AttrKey::start, std::int64_t(0)}, {AttrKey::end, extents[d]}});
      const Value i = op(Op::Add, {splat(at, {extents[d]}), steps});
      const Value in =
          op(Op::And,
             {op(Op::Ge, {i, insert_constant(f_, block_, Literal::of_int(DType::index, 0), f_.type(i), inst_.loc)}),
              op(Op::Lt, {i, splat(size, {extents[d]})})});
      const Value step = op(Op::Mul, {i, splat(stride, {extents[d]})});
      Shape shape(extents.begin(), extents.begin() + std::ptrdiff_t(d) + 1);
      shape.resize(rank, 1);
      offset = d == 0 ? spread(step, d, shape) : op(Op::Add, {spread(offset, 0, shape), spread(step, d, shape)});
      inside = d == 0 ? spread(in, d, shape) : op(Op::And, {spread(inside, 0, shape), spread(in, d, shape)});
    }
    f_.replace_all_uses(inst_.results[0], op(Op::PtrAdd, {splat(inst_.operands[0], extents), offset}));
    f_.replace_all_uses(inst_.results[1], inside);
    f_.remove(block_);
  }

 private:
  Value op(Op o, std::vector<Value> operands, std::vector<Attr> attrs = {}, std::vector<Type> stated = {}) {
    return f_.inst(insert_op(f_, block_, o, std::move(operands), std::move(attrs), std::move(stated), inst_.loc))
        .results[0];
  }
  Value splat(Value x, const Shape& shape) { return op(Op::Splat, {x}, {}, {f_.type(x).with_shape(shape)}); }
  /// `x`, whose first axis is axis d of `shape`, with axes of extent 1 around it, repeated to `shape`.
  Value spread(Value x, std::size_t d, const Shape& shape) {
    if (f_.type(x).shape.size() < shape.size()) {
      for (std::size_t k = d + 1; k < shape.size(); ++k)
        x = op(Op::ExpandDims, {x}, {{AttrKey::axis, std::int64_t(k - d)}});
      for (std::size_t k = 0; k < d; ++k) x = op(Op::ExpandDims, {x}, {{AttrKey::axis, std::int64_t(0)}});
    }
    return f_.type(x).shape == shape ? x : op(Op::Broadcast, {x}, {}, {f_.type(x).with_shape(shape)});
  }

  Function& f_;
  const InstId block_;
  const Inst inst_;
};

}  // namespace

bool expand_blocks(PassContext&, Function& f) {
  std::vector<InstId> blocks;
  walk(f, [&](InstId i) {
    if (f.inst(i).op == Op::Block) blocks.push_back(i);
  });
  for (InstId i : blocks) {
    if (f.has_uses(f.inst(i).results[0]) || f.has_uses(f.inst(i).results[1])) Expansion(f, i).run();
    else f.remove(i);
  }
  return !blocks.empty();
}

}  // namespace kiln::ir
