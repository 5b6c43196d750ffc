// assign-layouts: a register layout for every tile, chosen from the memory accesses, with no conversion between
// layouts.
//
// 1. For each shape that memory is accessed in, one layout (layout_zoo.h, blocked): the axis along which most bytes are
//    contiguous runs fastest, and each thread owns the widest vector that all contiguous accesses of that shape allow,
//    at most 16 bytes and no more than spreads the tile over all threads. Misaligned accesses thus get one element a
//    thread, neighbours side by side: scalar, but coalesced.
// 2. Tiles that control flow carries (region parameters, yields, results) have the layout of their shape.
// 3. From each store and yield backwards, every value gets the layout in which it is needed; what expand_dims or
//    broadcast repeats is needed in a layout without that axis (backend/ir/op/operand_layout.h). A pure value or load
//    needed in a second layout is computed twice, side by side: a clone stands next to the original, so it reads the
//    same memory.
//
//     kernel "copy" stage=canonical                    kernel "copy" stage=laid
//     exec team=cta warps=4 …                          exec team=cta warps=4 …
//                                                      layout #0 = [register=(1)(2) lane=(4)…(64) warp=(128)(256)] -> 512
//       %4 = arange … : tile<512xindex>          ->      %4 = arange … : tile<512xindex, #0>
//       …                                                …
//       %12 = load %11, %8 : tile<512xf32>               %12 = load %11, %8 : tile<512xf32, #0>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/operand_layout.h"
#include "backend/ir/reduce_order.h"
#include "backend/pass/access.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

class Layouts {
 public:
  explicit Layouts(Function& f) : f_(f), facts_(f), accesses_(tile_accesses(f)) {}

  /// Whether there was a tile to lay.
  bool run() {
    std::vector<InstId> order;
    walk(f_, [&](InstId i) { order.push_back(i); });
    for (InstId i : order)
      if (combines(i)) combined(i);
      else if (!f_.inst(i).regions.empty()) carried(i);
    for (InstId i : order)
      if (!removable(f_.inst(i).op)) root(i);
    for (InstId i : order)
      if (combines(i)) root(i);
    for (InstId i : order)  // whatever no store needs
      for (Value v : std::vector<Value>(f_.inst(i).results))
        if (f_.type(v).tile && f_.type(v).layout == kNoLayout) need(v, for_shape(f_.type(v).shape));
    return f_.layout_count() > 0;
  }

 private:
  /// Results and region parameters of control flow.
  void carried(InstId i) {
    std::vector<Value> values = f_.inst(i).results;
    for (RegionId r : f_.inst(i).regions)
      values.insert(values.end(), f_.region(r).params.begin(), f_.region(r).params.end());
    for (Value v : values)
      if (f_.type(v).tile) set_layout(v, for_shape(f_.type(v).shape));
  }

  bool combines(InstId i) const { return f_.inst(i).op == Op::Reduce || f_.inst(i).op == Op::Scan; }

  /// A reduction or scan works in the layout of its operands' shape.
  void combined(InstId i) {
    const Inst inst = f_.inst(i);
    const Shape shape = f_.type(inst.operands[0]).shape;
    const int axis = int(inst.i64(AttrKey::axis));
    LinearLayout l = reducible_layout(f_, f_.layout(for_shape(shape)), shape, axis);
    if (inst.op == Op::Reduce) l = l.slice(axis).without_free_registers();
    for (Value v : inst.results)
      if (f_.type(v).tile) set_layout(v, f_.intern(l));
  }

  /// The tile operands of an instruction with effects, or of control flow.
  void root(InstId i) {
    const std::vector<Value> operands = f_.inst(i).operands;
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (const Type& t = f_.type(operands[k]); t.tile) {
        LinearLayout l = f_.layout(for_shape(t.shape));
        if (combines(i)) l = reducible_layout(f_, l, t.shape, int(f_.inst(i).i64(AttrKey::axis)));
        f_.set_operand(i, k, need(operands[k], f_.intern(combines(i) ? l : operand_layout(f_, f_.inst(i), k, l))));
      }
  }

  /// A value equal to v in layout `l`: v itself, or its clone.
  Value need(Value v, LayoutId l) {
    if (const LayoutId have = f_.type(v).layout; have != kNoLayout && have != l) return clone(v, l);
    if (f_.type(v).layout == l) return v;
    lay(f_.def(v), l);
    return v;
  }

  Value clone(Value v, LayoutId l) {
    const auto [at, is_new] = clones_.emplace(std::pair(v.id, l), Value{});
    if (!is_new) return at->second;
    const InstId original = f_.def(v);
    KILN_CHECK(original != kNone && removable(f_.inst(original).op) && !combines(original),
               fmt::format("{} is needed in two layouts and cannot be computed twice", f_.type(v).str()));
    ValueMap none;
    const InstId copy = f_.clone(original, none);
    f_.insert_before(original, copy);
    const std::vector<Value>& results = f_.inst(original).results;
    const auto number = std::size_t(std::find(results.begin(), results.end(), v) - results.begin());
    clones_[{v.id, l}] = f_.inst(copy).results[number];
    lay(copy, l);
    return f_.inst(copy).results[number];
  }

  /// Gives the result of `i` layout `l`, and its operands what follows from that.
  void lay(InstId i, LayoutId l) {
    for (Value v : std::vector<Value>(f_.inst(i).results)) set_layout(v, l);
    const std::vector<Value> operands = f_.inst(i).operands;
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (f_.type(operands[k]).tile) {
        const LayoutId wanted = f_.intern(operand_layout(f_, f_.inst(i), k, f_.layout(l)));
        f_.set_operand(i, k, need(operands[k], wanted));
      }
  }

  void set_layout(Value v, LayoutId l) {
    Type type = f_.type(v);
    type.layout = l;
    f_.set_type(v, type);
  }

  // --- the choice for one shape --------------------------------------------------------------------------------------
  LayoutId for_shape(const Shape& shape) {
    const auto [at, is_new] = chosen_.emplace(shape, kNoLayout);
    if (is_new) at->second = f_.intern(choose(shape));
    return at->second;
  }

  LinearLayout choose(const Shape& shape) const {
    const std::vector<int> order = axis_order(shape);
    const std::int64_t threads = std::int64_t(32) * f_.exec->warps * f_.exec->cluster;
    std::int64_t vector = std::max<std::int64_t>(padded_elements(shape) / threads, 1);
    if (order.empty()) vector = 1;
    else vector = std::min({vector, padded(shape[std::size_t(order[0])]), common_vector(shape, order[0])});
    return blocked(shape, vector, order, f_.exec->warps, f_.exec->cluster);
  }

  std::int64_t contiguity(const Access& a, int axis) const { return facts_[a.ptr].axes[std::size_t(axis)].contiguity; }

  /// Axes by bytes accessed contiguously along them, the last axis first where equal.
  std::vector<int> axis_order(const Shape& shape) const {
    std::vector<int> votes(shape.size(), 0), order = row_major(int(shape.size()));
    for (const Access& a : accesses_) {
      if (a.shape != shape) continue;
      const auto best = std::max_element(order.begin(), order.end(),
                                         [&](int x, int y) { return contiguity(a, x) < contiguity(a, y); });
      if (best != order.end() && contiguity(a, *best) > 1) votes[std::size_t(*best)] += a.element_bytes;
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int x, int y) { return votes[std::size_t(x)] > votes[std::size_t(y)]; });
    return order;
  }

  /// Elements a thread may own side by side so that every access contiguous along `axis` is one vector.
  std::int64_t common_vector(const Shape& shape, int axis) const {
    std::int64_t vector = 0;
    for (const Access& a : accesses_)
      if (a.shape == shape && contiguity(a, axis) > 1) {
        const std::int64_t limit = vector_limit(facts_, a, axis);
        vector = vector == 0 ? limit : std::min(vector, limit);
      }
    return std::max<std::int64_t>(vector, 1);
  }

  Function& f_;
  AxisAnalysis facts_;
  std::vector<Access> accesses_;
  std::map<Shape, LayoutId> chosen_;
  std::map<std::pair<std::uint32_t, LayoutId>, Value> clones_;
};

}  // namespace

bool assign_layouts(PassContext&, Function& f) {
  return Layouts(f).run();
}

}  // namespace kiln::ir
