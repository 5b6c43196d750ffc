// rematerialise: what a row keeps in registers across a reduction is its elements as they were loaded.
//
// A row of 32 bf16 elements a thread takes 16 registers as loaded and 32 as f32, and a thread with 16 registers more
// means fewer threads at once, hence fewer loads in flight. So a tile that is computed cheaply from a narrower one and
// used on both sides of a reduction is computed again behind it. `opaque` keeps later stages from seeing that both are
// the same.
//
//     %5 = load …            : tile<4096xbf16>         %5 = load …
//     %6 = cast %5           : tile<4096xf32>          %6 = cast %5
//     %7 = reduce axis=0 %6 { max }                    %7 = reduce axis=0 %6 { max }
//     %8 = splat %7                              ->    %20 = opaque %5
//     %9 = sub %6, %8                                  %21 = cast %20
//                                                      %8 = splat %7
//                                                      %9 = sub %21, %8
//
// Cheap are conversions from narrower types, sums, products and differences with what all elements share; where a
// thread owns so many elements that their f32 form would not fit, e^x too.
#include <algorithm>
#include <map>

#include "backend/ir/layout_zoo.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"

namespace kiln::ir {
namespace {

constexpr std::int64_t kFewElements = 16;   ///< a thread: nothing is won
constexpr std::int64_t kManyElements = 32;  ///< more than half of the 64 registers that let 1024 threads run

class Rematerialiser {
 public:
  explicit Rematerialiser(Function& f) : f_(f) {}

  bool run() {
    std::vector<InstId> reductions;
    walk(f_, [&](InstId i) {
      if (f_.inst(i).op == Op::Reduce) reductions.push_back(i);
    });
    for (InstId r : reductions) across(r);
    return changed_;
  }

 private:
  /// Replaces what is alive across reduction `r`.
  void across(InstId r) {
    const RegionId region = f_.inst(r).parent;
    const std::vector<InstId> order = f_.region(region).insts;
    const auto at = std::find(order.begin(), order.end(), r);
    if (at + 1 == order.end()) return;
    position_ = at[1];
    fresh_.clear();
    const std::vector<InstId> before(order.begin(), at);
    const std::vector<bool> late = instructions_from(at + 1, order.end());
    for (InstId i : before)
      for (Value v : std::vector<Value>(f_.inst(i).results)) replace_late_uses(v, late);
  }

  /// The instructions of a stretch of a region and of the regions inside, by number.
  template <class It>
  std::vector<bool> instructions_from(It first, It last) const {
    std::vector<bool> found(f_.inst_count());
    for (; first != last; ++first) {
      found[*first] = true;
      for (RegionId inner : f_.inst(*first).regions) walk(f_, inner, [&](InstId i) { found[i] = true; });
    }
    return found;
  }

  void replace_late_uses(Value v, const std::vector<bool>& late) {
    if (!worthwhile(f_.type(v)) || is_free(v)) return;
    std::vector<InstId> users = f_.users(v);
    std::erase_if(users, [&](InstId i) { return i >= late.size() || !late[i]; });
    if (users.empty() || !can_rebuild(v, 0)) return;
    const Value again = rebuild(v);
    for (InstId user : users) {
      const std::vector<Value> operands = f_.inst(user).operands;
      for (std::size_t k = 0; k < operands.size(); ++k)
        if (operands[k] == v) f_.set_operand(user, k, again);
    }
    changed_ = true;
  }

  std::int64_t elements_per_thread(const Type& t) const {
    return padded_elements(t.shape) / (std::int64_t(32) * f_.exec->warps * f_.exec->cluster);
  }
  bool worthwhile(const Type& t) const {
    return t.tile && !t.ptr && t.dtype == DType::f32 && elements_per_thread(t) >= kFewElements;
  }

  /// Takes no registers of its own.
  bool is_free(Value v) const {
    const InstId def = f_.def(v);
    if (def == kNone) return false;
    const Op op = f_.inst(def).op;
    return op == Op::Splat || op == Op::Broadcast || op == Op::Constant;
  }

  bool is_narrow_source(Value v) const {
    const Type& t = f_.type(v);
    return t.tile && !t.ptr && is_float(t.dtype) && bits(t.dtype) <= 16;
  }

  bool can_rebuild(Value v, int depth) const {
    if (is_free(v)) return true;
    const InstId def = f_.def(v);
    if (def == kNone || depth > 4 || f_.inst(def).parent != f_.inst(position_).parent) return false;
    const Inst& inst = f_.inst(def);
    const auto operands_can = [&] {
      return std::all_of(inst.operands.begin(), inst.operands.end(),
                         [&](Value o) { return can_rebuild(o, depth + 1); });
    };
    switch (inst.op) {
      case Op::Cast: return is_narrow_source(inst.operands[0]);
      case Op::Add:
      case Op::Sub:
      case Op::Mul:
      case Op::Neg: return operands_can();
      case Op::Exp:
      case Op::Exp2: return elements_per_thread(f_.type(v)) > kManyElements && operands_can();
      default: return false;
    }
  }

  Value rebuild(Value v) {
    if (is_free(v)) return v;
    if (const auto known = fresh_.find(v.id); known != fresh_.end()) return known->second;
    const Inst inst = f_.inst(f_.def(v));
    std::vector<Value> operands;
    for (Value o : inst.operands) operands.push_back(inst.op == Op::Cast ? hidden(o) : rebuild(o));
    const InstId again = insert_op(f_, position_, inst.op, operands, inst.attrs, {f_.type(v)}, inst.loc);
    return fresh_[v.id] = f_.inst(again).results[0];
  }

  Value hidden(Value narrow) {
    if (const auto known = fresh_.find(narrow.id); known != fresh_.end()) return known->second;
    const InstId opaque = insert_op(f_, position_, Op::Opaque, {narrow}, {}, {}, f_.loc_of(narrow));
    return fresh_[narrow.id] = f_.inst(opaque).results[0];
  }

  Function& f_;
  InstId position_ = kNone;               ///< new instructions go before it
  std::map<std::uint32_t, Value> fresh_;  ///< what stands for a value behind the reduction
  bool changed_ = false;
};

}  // namespace

bool rematerialise(PassContext&, Function& f) { return Rematerialiser(f).run(); }

}  // namespace kiln::ir
