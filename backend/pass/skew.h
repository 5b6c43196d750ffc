// SkewedLoop: a loop whose products get their operands from a ring that the loop itself fills (skew.cpp).
#pragma once
#include <set>
#include <string>
#include <vector>

#include "backend/ir/function.h"
#include "backend/options.h"
#include "backend/pass/axis_info.h"

namespace kiln::ir {

/// Slots that the ring of a loop shall have: its own hint, or the kernel's; 0: chosen.
std::int64_t stages_wished(const Function& f, InstId loop, const CompileOptions& wish);

/// An operand of products that is fetched: the load it comes from.
struct SkewedOperand {
  Value value;
  InstId load = kNone;
  int along = 1;        ///< axis of the operand whose elements lie beside each other in memory
  bool turned = false;  ///< the operand is the transpose of what is loaded
};

class SkewedLoop {
 public:
  SkewedLoop(Function& f, const AxisAnalysis& facts, InstId loop);

  /// Finds the products whose operands can be fetched; why there is none, or nothing.
  std::string find();
  /// Whether loops stand in its body.
  bool holds_loops() const { return has_loop_; }
  /// Bytes of a slot of its ring.
  std::int64_t slot_bytes() const;
  /// @pre find() gave nothing; slots >= 2
  void rewrite(std::int64_t slots);

 private:
  const Inst& inst(InstId i) const { return f_.inst(i); }
  std::string obstacle() const;
  bool follows_from_counter(Value v, std::set<InstId>& needed) const;
  bool is_constant_memory(Value pointer) const;
  std::int64_t run(const Inst& load, int axis) const;
  std::string takes_load(const Inst& dot, std::size_t which, SkewedOperand& out) const;
  std::string takes(InstId dot);
  void drop_shared_loads();
  bool is_from_counter_on(Value v) const;
  bool always_holds(InstId i) const;
  bool ends_with_loop(Value mask) const;
  Value turned(InstId at, const SkewedOperand& o, Value v);
  void fetch(InstId at, Value ring, Value counter, std::int64_t position);
  void multiply(const Inst& take);

  Function& f_;
  const AxisAnalysis& facts_;
  const InstId loop_;
  const RegionId body_;
  std::int64_t step_ = 0;
  bool has_loop_ = false, writes_ = false;  ///< writes_: something in it writes global memory
  std::vector<InstId> dots_;
  std::vector<SkewedOperand> operands_;  ///< each once, in the order of the slot
};

}  // namespace kiln::ir
