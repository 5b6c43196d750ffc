// assign-layouts: a register layout for every tile, and a conversion where one is not enough.
//
// 1. Loads and stores have a layout in which memory is moved well (access_layouts.h). Ops that impose one on their
//    operands (reductions) take that of what they work on. What control flow carries has the layout of what each
//    iteration makes of it, or of its first value, or that of its shape.
// 2. A value's *home* is the layout it gets without moving elements: a large load's own, what follows from it through
//    elementwise ops, permutations, slices (backend/ir/op/result_layout.h); a product's blocks. Cheap values have none:
//    they are computed wherever they are needed.
// 3. From each store, reduction and yield backwards, every value is asked for in a layout, and its operands in what
//    follows (backend/ir/op/operand_layout.h). A value asked for in a layout that its loads would suffer from stays at
//    home and is converted, at the place where fewest bytes move; a cheap one is computed again, next to the original,
//    so that it reads the same memory.
//
//     kernel "transpose" stage=canonical          kernel "transpose" stage=laid
//                                                 layout #0 = [register=(0,1)(0,2)(0,4)(1,0)… lane=(0,8)…] -> 128x128
//                                                 layout #1 = [register=(1,0)(2,0)(4,0)(0,1)… lane=(8,0)…] -> 128x128
//       %9 = load %8 : tile<128x128xbf16>    ->     %9 = load %8 : tile<128x128xbf16, #0>
//       %10 = permute order=[1,0] %9                %10 = permute order=[1,0] %9 : tile<128x128xbf16, #1>
//                                                   %11 = convert %10 : tile<128x128xbf16, #0>
//       store %15, %10                              store %15, %11
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/dot.h"
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/operand_layout.h"
#include "backend/ir/op/reshape_groups.h"
#include "backend/ir/op/result_layout.h"
#include "backend/ir/reduce_order.h"
#include "backend/pass/access_layouts.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

constexpr std::int64_t kSmallLoad = 8192;  // bytes along one axis that are loaded again rather than converted

class Layouts {
 public:
  explicit Layouts(Function& f) : f_(f), accesses_(f) {}

  /// Whether there was a tile to lay.
  bool run() {
    std::vector<InstId> order;
    walk(f_, [&](InstId i) {
      if (!in_combination(i)) order.push_back(i);
    });
    for (InstId i : order)
      if (is_store(i)) pair_transpositions(i);
    for (InstId i : order) imposed(i);
    for (InstId i : order)
      if (imposes(i) || (!removable(f_.inst(i).op) && !names(i))) root(i);
    for (InstId i : order)  // a value that somebody looks at stands where it would without
      if (names(i)) root(i);
    for (InstId i : order)  // whatever no store needs
      for (Value v : std::vector<Value>(f_.inst(i).results))
        if (unlaid(v)) need(v, at_home(v));
    return f_.layout_count() > 0;
  }

 private:
  // --- what an instruction is ---------------------------------------------------------------------------------------
  bool combines(InstId i) const { return f_.inst(i).op == Op::Reduce || f_.inst(i).op == Op::Scan; }
  /// Scalars inside the region of a reduction: no tiles.
  bool in_combination(InstId i) const {
    const InstId owner = f_.region(f_.inst(i).parent).owner;
    return owner != kNone && combines(owner);
  }
  bool is_store(InstId i) const { return f_.inst(i).op == Op::Store && f_.type(f_.inst(i).operands[0]).tile; }
  bool controls(InstId i) const { return !f_.inst(i).regions.empty() && !combines(i); }
  bool names(InstId i) const { return f_.inst(i).op == Op::Name; }
  /// Its results have a layout before anybody asks.
  bool imposes(InstId i) const { return combines(i) || controls(i) || is_matrix_product(i); }
  /// A product whose unit has its own layout of the result.
  bool is_matrix_product(InstId i) const {
    const Inst& inst = f_.inst(i);
    return inst.op == Op::RingDot || (inst.op == Op::Dot && unit_of(inst) != DotUnit::Fma);
  }
  bool unlaid(Value v) const { return f_.type(v).tile && f_.type(v).layout == kNoLayout; }
  /// Operand k may stand in any layout: its elements are found wherever they are.
  static bool takes_any(Op op, std::size_t k) { return op == Op::Histogram || (op == Op::Dot && k < 2); }

  LayoutId of_shape(Value v) { return accesses_.of_shape(f_.type(v).shape); }
  LayoutId at_home(Value v) {
    const std::optional<LayoutId> h = home(v);
    return h ? *h : of_shape(v);
  }

  // --- 1: layouts that are given -------------------------------------------------------------------------------------
  void imposed(InstId i) {
    if (combines(i)) combined(i);
    else if (controls(i)) carried(i);
    else if (is_matrix_product(i))
      set_layout(f_.inst(i).results[0], f_.intern(product_layout(f_.inst(i), f_.type(f_.inst(i).results[0]).shape)));
  }

  void combined(InstId i) {
    const Inst inst = f_.inst(i);
    const auto axis = int(inst.i64(AttrKey::axis));
    const Value x = inst.operands[0];
    const LinearLayout l = reducible_layout(f_, f_.layout(at_home(x)), f_.type(x).shape, axis);
    operands_of_[i] = f_.intern(l);
    const LayoutId result = f_.intern(*result_layout(f_, inst, 0, l));
    for (Value v : inst.results)
      if (f_.type(v).tile) set_layout(v, result);
  }

  /// Results and region parameters of control flow: one layout for each value that is carried.
  void carried(InstId i) {
    const Inst inst = f_.inst(i);
    const std::size_t first = inst.op == Op::For ? 3 : inst.op == Op::If ? inst.operands.size() : 0;
    for (std::size_t k = 0; k < inst.results.size(); ++k) {
      if (!f_.type(inst.results[k]).tile) continue;
      // What is computed in each iteration counts before what comes in once.
      std::vector<Value> sources;
      for (std::size_t r = inst.op == Op::While; r < inst.regions.size(); ++r)
        sources.push_back(f_.inst(f_.region(inst.regions[r]).insts.back()).operands[k]);
      if (first + k < inst.operands.size()) sources.push_back(inst.operands[first + k]);
      LayoutId l = kNoLayout;
      for (Value v : sources)
        if (const auto h = home(v); h && l == kNoLayout) l = *h;
      if (l == kNoLayout) l = of_shape(inst.results[k]);
      set_layout(inst.results[k], l);
      for (RegionId r : inst.regions) {
        const std::vector<Value>& params = f_.region(r).params;
        if (inst.op != Op::If) set_layout(params[params.size() - inst.results.size() + k], l);
      }
      homes_.clear();  // what was asked while the parameters had no layout
    }
  }

  // --- 2: home -------------------------------------------------------------------------------------------------------
  std::optional<LayoutId> home(Value v) {
    const Type& t = f_.type(v);
    if (!t.tile) return std::nullopt;
    if (t.layout != kNoLayout) return t.layout;
    const InstId i = f_.def(v);
    if (i == kNone || cheap(v)) return std::nullopt;
    if (const auto known = homes_.find(v.id); known != homes_.end()) return known->second;
    homes_[v.id] = std::nullopt;
    std::optional<LayoutId> h;
    const Inst inst = f_.inst(i);
    if (inst.op == Op::Load) h = accesses_.of(i);
    else if (inst.op == Op::Dot || inst.op == Op::RingDot) h = f_.intern(product_layout(inst, t.shape));
    else
      for (std::size_t k = 0; k < inst.operands.size() && !h; ++k)
        if (const auto from = home(inst.operands[k]))
          if (const auto to = result_layout(f_, inst, k, f_.layout(*from))) h = f_.intern(*to);
    return homes_[v.id] = h;
  }

  LinearLayout product_layout(const Inst& dot, const Shape& shape) const {
    if (dot.op == Op::RingDot) return warpgroup_blocks(shape, f_.exec->warps);
    if (unit_of(dot) == DotUnit::Fma) return product_blocks(shape, f_.exec->warps, f_.exec->cluster);
    return matrix_blocks(shape, matrix_shape(unit_of(dot)).m, f_.exec->warps);
  }

  /// Computing it again costs little.
  bool cheap(Value v) {
    if (!f_.type(v).tile) return true;
    const InstId i = f_.def(v);
    if (i == kNone) return false;
    if (const auto known = cheap_.find(v.id); known != cheap_.end()) return known->second;
    const Inst inst = f_.inst(i);
    bool yes = removable(inst.op) && !imposes(i) && moves_nothing(inst);
    if (inst.op == Op::Load) yes = is_small_line(f_.type(v));
    for (Value operand : inst.operands) yes = yes && cheap(operand);
    return cheap_[v.id] = yes;
  }
  static bool is_small_line(const Type& t) {
    const auto lines = std::count_if(t.shape.begin(), t.shape.end(), [](std::int64_t extent) { return extent > 1; });
    return lines <= 1 && t.elements() * bytes(t.dtype) <= kSmallLoad;
  }
  bool moves_nothing(const Inst& inst) const {
    switch (inst.op) {
      case Op::Sort:
      case Op::Histogram:
      case Op::Dot:
      case Op::RingDot:
      case Op::Gather:
      case Op::Cat:
      case Op::Slice: return false;
      case Op::Reshape: return only_renames(f_.type(inst.operands[0]).shape, f_.type(inst.results[0]).shape);
      default: return true;
    }
  }

  std::int64_t bytes_of(Value v) const { return f_.type(v).elements() * std::int64_t(element_bytes(f_.type(v))); }

  /// Bytes that change threads if v is needed in layout l: after v is computed at home, or before it is.
  std::int64_t moved(Value v, LayoutId l) {
    const Type& t = f_.type(v);
    if (!t.tile || t.layout == l || cheap(v)) return 0;
    if (t.layout != kNoLayout || f_.def(v) == kNone) return bytes_of(v);
    const auto [at, is_new] = moved_.emplace(std::pair(v.id, l), 0);
    if (!is_new) return at->second;
    std::int64_t least = moved_before(v, l);
    if (const auto h = home(v); h && *h != l) least = std::min(least, bytes_of(v) + moved_before(v, *h));
    return moved_[{v.id, l}] = least;
  }
  /// Those among its operands if v itself is computed in layout l; a load that runs across memory counts as moved.
  std::int64_t moved_before(Value v, LayoutId l) {
    const InstId i = f_.def(v);
    const Inst inst = f_.inst(i);
    std::int64_t total = 0;
    if (inst.op == Op::Load) total = accesses_.of(i) && !accesses_.coalesced(i, f_.layout(l)) ? bytes_of(v) : 0;
    if (inst.op == Op::Dot && home(v) != l) total = 2 * bytes_of(v);  // its operands would be read many times
    std::set<std::uint32_t> seen;
    for (std::size_t k = 0; k < inst.operands.size(); ++k)
      if (f_.type(inst.operands[k]).tile && seen.insert(inst.operands[k].id).second)
        total += moved(inst.operands[k], wanted(i, k, l));
    return total;
  }

  // --- 3: from the uses backwards
  // --------------------------------------------------------------------------------------
  /// In which layout operand k of `i` is needed when its results have layout l.
  LayoutId wanted(InstId i, std::size_t k, LayoutId l) {
    const Inst& inst = f_.inst(i);
    if (const auto given = operands_of_.find(i); given != operands_of_.end()) return given->second;
    if (inst.op == Op::Histogram) return at_home(inst.operands[0]);  // the mask stands beside the elements
    if (takes_any(inst.op, k)) return at_home(inst.operands[k]);
    return f_.intern(operand_layout(f_, inst, k, f_.layout(l)));
  }

  /// The tile operands of an instruction with effects, of control flow, or of a reduction.
  void root(InstId i) {
    const Inst inst = f_.inst(i);
    if (controls(i) || inst.op == Op::Yield) return carry(i);
    if (combines(i)) return ask(i, kNoLayout);
    if (is_matrix_product(i)) return ask(i, f_.type(f_.inst(i).results[0]).layout);
    LayoutId l = kNoLayout;
    if (const auto own = accesses_.of(i)) l = *own;
    if (is_store(i)) l = stored(i, l);
    if (inst.op == Op::StoreBlock) l = f_.intern(warpgroup_blocks(f_.type(inst.operands[0]).shape, f_.exec->warps));
    for (Value v : inst.operands)
      if (l == kNoLayout && f_.type(v).tile) l = at_home(v);
    for (Value v : inst.results)
      if (l == kNoLayout && f_.type(v).tile) l = of_shape(v);
    if (l == kNoLayout) return;
    for (Value v : inst.results)
      if (f_.type(v).tile) set_layout(v, l);
    ask(i, l);
  }

  /// A store may take its value where it stands if memory does not suffer, or the tile is small.
  LayoutId stored(InstId i, LayoutId own) {
    const Value value = f_.inst(i).operands[1];
    const std::int64_t threads = std::int64_t(32) * f_.exec->warps * f_.exec->cluster;
    if (own == kNoLayout) own = of_shape(value);
    const auto h = home(value);
    if (!h || moved(value, own) == 0) return own;
    return f_.type(value).elements() <= threads || accesses_.coalesced(i, f_.layout(*h)) ? *h : own;
  }

  /// Operands of control flow in the layouts of what they become.
  void carry(InstId i) {
    const Inst inst = f_.inst(i);
    std::vector<Value> become = inst.results;
    std::size_t first = inst.op == Op::For ? 3 : 0;
    if (inst.op == Op::If) return;
    if (inst.op == Op::Yield) {
      const Inst& owner = f_.inst(f_.region(inst.parent).owner);
      become = owner.results;
      const bool condition = owner.op == Op::While && owner.regions[0] == inst.parent;
      if (condition) return;
    }
    for (std::size_t k = 0; k < become.size(); ++k)
      if (f_.type(become[k]).tile)
        f_.set_operand(i, first + k, need(inst.operands[first + k], f_.type(become[k]).layout));
  }

  void ask(InstId i, LayoutId l) {
    const std::vector<Value> operands = f_.inst(i).operands;
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (f_.type(operands[k]).tile) f_.set_operand(i, k, need(operands[k], wanted(i, k, l)));
  }

  /// A value equal to v in layout `l`: v itself, a second computation of it, or a conversion.
  Value need(Value v, LayoutId l) {
    const LayoutId have = f_.type(v).layout;
    if (have == l) return v;
    if (const auto made = made_.find({v.id, l}); made != made_.end()) return made->second;
    if (have == kNoLayout) {
      const auto h = home(v);
      const std::int64_t before = moved_before(v, l);
      const bool stays = h && *h != l && before > 0 && moved_before(v, *h) + bytes_of(v) <= before;
      lay(f_.def(v), stays ? *h : l);
      return stays ? convert(v, l) : v;
    }
    return cheap(v) ? again(v, l) : convert(v, l);
  }

  Value again(Value v, LayoutId l) {
    const InstId original = f_.def(v);
    ValueMap none;
    const InstId copy = f_.clone(original, none);
    f_.insert_before(original, copy);
    const std::vector<Value>&from = f_.inst(original).results, &to = f_.inst(copy).results;
    for (std::size_t k = 0; k < from.size(); ++k) {
      made_[{from[k].id, l}] = to[k];
      cheap_[to[k].id] = true;
    }
    lay(copy, l);
    return made_.at({v.id, l});
  }

  /// Right behind v, so that it is done once, and outside of loops that v is outside of.
  Value convert(Value v, LayoutId l) {
    Type type = f_.type(v);
    type.layout = l;
    const InstId i = f_.create(Op::Convert, {v}, {type}, {}, f_.loc_of(v));
    const InstId def = f_.def(v);
    const std::vector<InstId>& insts = f_.region(def == kNone ? f_.param_region(v) : f_.inst(def).parent).insts;
    auto next = insts.begin();
    if (def != kNone) next = std::find(insts.begin(), insts.end(), def) + 1;
    f_.insert_before(*next, i);
    return made_[{v.id, l}] = f_.inst(i).results[0];
  }

  /// Gives the results of `i` layout `l`, and its operands what follows from that.
  void lay(InstId i, LayoutId l) {
    for (Value v : std::vector<Value>(f_.inst(i).results))
      if (f_.type(v).tile) set_layout(v, l);
    ask(i, l);
  }

  void set_layout(Value v, LayoutId l) {
    Type type = f_.type(v);
    type.layout = l;
    f_.set_type(v, type);
  }

  // --- transpositions
  // --------------------------------------------------------------------------------------------------
  /// Where a store takes elements from a load that runs along another axis, each of both owns the other's vector, too.
  void pair_transpositions(InstId store) {
    const auto l = accesses_.of(store);
    if (!l) return;
    const Value value = f_.inst(store).operands[1];
    for (const auto& [load, at] : loads_behind(value, f_.layout(*l))) {
      if (!accesses_.of(load) || accesses_.coalesced(load, at)) continue;
      const int across = step_axis(at);
      if (across < 0 || across == accesses_.axis(load)) continue;
      for (int axis = 0; axis < int(f_.type(value).shape.size()); ++axis) {
        if (axis == accesses_.axis(store) || f_.type(value).shape[std::size_t(axis)] < 2) continue;
        LinearLayout probe(padded(f_.type(value).shape));
        LinearLayout::Coord step(f_.type(value).shape.size(), 0);
        step[std::size_t(axis)] = 1;
        probe.add_bit(Hw::Register, step);
        for (const auto& [other, there] : loads_behind(value, probe))
          if (other == load && step_axis(there) == accesses_.axis(load)) {
            accesses_.own(load, across, accesses_.vector(store));
            accesses_.own(store, axis, accesses_.vector(load));
          }
      }
    }
  }

  /// The axis along which register bit 0 moves by one; -1: none.
  static int step_axis(const LinearLayout& l) {
    if (l.in_bits(Hw::Register) == 0) return -1;
    const LinearLayout::Coord& c = l.basis(Hw::Register, 0);
    for (std::size_t k = 0; k < c.size(); ++k)
      if (c[k] == 1) return int(k);
    return -1;
  }

  /// Large loads that v is computed from element by element, in the layouts in which they are needed when v has `l`.
  std::vector<std::pair<InstId, LinearLayout>> loads_behind(Value v, const LinearLayout& l) {
    std::vector<std::pair<InstId, LinearLayout>> loads;
    std::set<InstId> seen;
    collect_loads(v, l, loads, seen);
    return loads;
  }
  void collect_loads(Value v, const LinearLayout& l, std::vector<std::pair<InstId, LinearLayout>>& loads,
                     std::set<InstId>& seen) {
    const InstId i = f_.def(v);
    if (!f_.type(v).tile || cheap(v) || i == kNone || imposes(i) || !seen.insert(i).second) return;
    const Inst inst = f_.inst(i);
    if (inst.op == Op::Load) loads.emplace_back(i, l);
    if (inst.op == Op::Load || !moves_nothing(inst) || !removable(inst.op)) return;
    for (std::size_t k = 0; k < inst.operands.size(); ++k)
      if (f_.type(inst.operands[k]).tile) collect_loads(inst.operands[k], operand_layout(f_, inst, k, l), loads, seen);
  }

  Function& f_;
  AccessLayouts accesses_;
  std::map<InstId, LayoutId> operands_of_;  ///< of ops that impose it
  std::map<std::uint32_t, std::optional<LayoutId>> homes_;
  std::map<std::uint32_t, bool> cheap_;
  std::map<std::pair<std::uint32_t, LayoutId>, std::int64_t> moved_;
  std::map<std::pair<std::uint32_t, LayoutId>, Value> made_;  ///< what stands for a value in another layout
};

}  // namespace

bool assign_layouts(PassContext&, Function& f) { return Layouts(f).run(); }

}  // namespace kiln::ir
