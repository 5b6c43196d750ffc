// Carried: how a value crosses from one block to another, so that index values and pointers keep their parts.
//
//   split    the parts of threads and registers are the same on every way in, so only the uniform part is a phi:
//            `p += 256` on a tile of pointers costs a loop one 64-bit addition. Scalars are always so: they are uniform.
//   whole    one phi for each live register
//
// For a loop this has to be known before its body has code. A carried value keeps its parts if the body only adds
// uniform values to it, whatever loops and branches do so (Advances); what they add tells the phi's divisor and range.
#pragma once
#include <unordered_map>

#include "backend/llvm/emitter.h"
#include "backend/pass/axis_info.h"

namespace kiln::cg {

struct CarriedForm {
  bool split = false;
  TileValue shape = {};  ///< split: all but the uniform part
};

/// What a loop's body adds to a carried value.
class Advances {
 public:
  Advances(const ir::Function& f, const ir::AxisAnalysis& facts, ir::Value param) : f_(f), facts_(facts), param_(param) {}

  /// Whether `v`, which the body computes, is the parameter plus uniform values.
  bool reach(ir::Value v);
  /// After reach() of what the body yields: what is known of the uniform part of the parameter, which begins as `init`.
  Known uniform_known(const Known& init) const;

 private:
  bool follow(ir::Value v);
  bool loop_result(const ir::Inst&, std::size_t k);
  bool addend(ir::Value v, bool minus);

  const ir::Function& f_;
  const ir::AxisAnalysis& facts_;
  const ir::Value param_;
  std::unordered_map<std::uint32_t, bool> seen_;
  bool failed_ = false;
  Range step_ = Range::of(0);  ///< of the sum of all addends, each taken at most once
  std::int64_t divisor_ = 0;   ///< bytes for a pointer
};

/// The form in which a loop carries `init`; `param` and `next`: of the region that computes the next value.
CarriedForm loop_form(Emitter&, ir::Value init, ir::Value param, ir::Value next);
/// The form in which two branches give `a` or `b`, both emitted.
CarriedForm branch_form(Emitter&, ir::Value a, ir::Value b);

/// Phis of several values, in a block that has nothing else yet; the values are set once all phis stand.
class PhiGroup {
 public:
  PhiGroup(Emitter&, std::vector<ir::Value> values, std::vector<CarriedForm> forms);

  void define(Emitter& e) const { define_as(e, values_); }
  /// Sets each of `values` to what the phis of its number are.
  void define_as(Emitter&, const std::vector<ir::Value>& values) const;
  /// The values that flow in from the builder's block, which ends with a branch to the phis'.
  void flow_in(Emitter&, const std::vector<ir::Value>& from) const;

 private:
  std::vector<llvm::Value*> parts_of(Emitter&, std::size_t i, ir::Value from) const;

  std::vector<ir::Value> values_;
  std::vector<CarriedForm> forms_;
  std::vector<std::vector<llvm::PHINode*>> phis_;
};

}  // namespace kiln::cg
