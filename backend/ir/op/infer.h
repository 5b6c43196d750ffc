// Type inference of ops: one function an op, declared from ops.def, so that a forgotten one is an undefined reference
// that names it. Builder, verifier and fold use infer(); the type rules of an op are written once.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "backend/ir/function.h"

namespace kiln::ir {

using Types = std::vector<Type>;

/// What an op's result types follow from. `stated`: the result types asked for (by a maker whose result is not implied
/// by its operands) or present (verifier).
struct InferInput {
  const Function& f;
  Op op;
  std::span<const Value> operands;
  std::span<const Attr> attrs;
  std::span<const Type> stated;
  SourceLoc loc;

  const Type& type(std::size_t operand) const { return f.type(operands[operand]); }
  std::int64_t i64(AttrKey) const;
  const Literal* literal(AttrKey) const;
  const std::vector<std::int64_t>& ints(AttrKey) const;
  /// The one type asked for.
  const Type& wanted() const;
  /// Throws UserError "<mnemonic>: <message>" at loc.
  [[noreturn]] void fail(const std::string& message) const;
};

/// Largest tile a program may hold; a clear error instead of exhausted memory.
inline constexpr std::int64_t kMaxTileElements = 1 << 20;
/// "[8,128]".
std::string shape_str(const Shape&);
/// Refuses empty and oversized shapes.
void check_shape(const InferInput&, const Shape&);
/// Refuses what is no tile, and an attribute `axis` that the tile does not have; gives the axis.
std::size_t checked_axis(const InferInput&, const Type& x);
/// `t` as inferred, with the layout of stated result number `i` where `t` is a tile: for ops that change the shape.
Type laid_out(const InferInput&, Type t, std::size_t i = 0);

/// Result types of an op after checking operand count, attributes and operand types; throws UserError at `loc`.
/// Layouts of results are those of the operands where the op works element by element, otherwise the stated ones.
Types infer(const InferInput&);

Types infer_elementwise(const InferInput&);
#define KILN_OP(Enum, ...) Types infer_##Enum(const InferInput&);
#include "backend/ir/ops.def"

}  // namespace kiln::ir
