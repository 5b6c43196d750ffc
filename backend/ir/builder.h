// Builder: appends instructions with inferred types, folds constants through the reference evaluator, keeps locations.
#pragma once
#include <optional>
#include <vector>

#include "backend/ir/function.h"

namespace kiln::ir {

/// Every maker throws UserError at `loc` with both types when operands do not fit, so the tracer can call it directly.
/// Elementwise makers broadcast nothing: operands must have equal shapes (the language inserts splat/broadcast).
class Builder {
 public:
  explicit Builder(Function& f) : f_(f), region_(f.body()) {}
  Function& function() { return f_; }
  void set_region(RegionId r) { region_ = r; }
  RegionId region() const { return region_; }

  Value constant(Literal, SourceLoc);
  Value param(int index, SourceLoc);                          ///< of f.params[index]
  Value program_id(int axis, SourceLoc);
  Value num_programs(int axis, SourceLoc);
  Value arange(std::int64_t start, std::int64_t end, SourceLoc);
  Value splat(Value x, Shape, SourceLoc);
  Value expand_dims(Value x, int axis, SourceLoc);
  Value broadcast(Value x, Shape, SourceLoc);
  Value cast(Value x, DType, bool saturate, SourceLoc);
  Value bitcast(Value x, DType, SourceLoc);
  Value select(Value cond, Value a, Value b, SourceLoc);
  Value ptr_add(Value ptr, Value offset, SourceLoc);
  /// mask and other may be invalid; other is only used in lanes whose mask is false, so it is dropped without a mask.
  Value load(Value ptr, Value mask, Value other, CacheHint, SourceLoc);
  void store(Value ptr, Value value, Value mask, CacheHint, SourceLoc);
  /// Any elementwise op of ops.def; `fast` only where ops.def offers it, and for floats.
  Value elementwise(Op, std::vector<Value> operands, SourceLoc, bool fast = false);

  /// The literal of v if it is a constant (or a splat of one).
  std::optional<Literal> literal(Value v) const;
  /// Appends any op of at most one result after type inference, or gives what fold() knows it to be; the makers above
  /// are written with it. `result`: its type where operands do not imply it (shape of splat, dtype of cast). The value
  /// is invalid for an op without results.
  Value make(Op, std::vector<Value> operands, std::vector<Attr> attrs, SourceLoc, std::optional<Type> result = {});
  /// Appends any op after type inference, unfolded; regions are added by the caller. `stated`: result types of an if.
  InstId append(Op, std::vector<Value> operands, std::vector<Type> stated, std::vector<Attr> attrs, SourceLoc);

 private:
  Value filled(const Literal&, const Type&, SourceLoc);

  Function& f_;
  RegionId region_;
};

}  // namespace kiln::ir
