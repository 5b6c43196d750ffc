// stage-results: in a program with a ring, tiles that are stored to a block of a matrix go through shared memory, so
// that memory sees whole lines whatever registers the product left its elements in.
//
//     %p, %in = block %y, … %m, %n          ->      store_block mapped=1 %r, %y, … %m, %n
//     store %p, %r, %in
//
// It takes tiles of whole lines whose rows are contiguous in memory. They leave by a tensor map where the array can be
// one, rows begin at and have multiples of the 16 bytes that the copy engine writes at once, no coordinate can be
// negative, and nothing depends on the moment of the copy: no access of the program but loads before it may touch the
// same memory. Else they leave as vectors.
#include <algorithm>

#include "backend/ir/fold.h"
#include "backend/ir/op/store_block.h"
#include "backend/ir/signature.h"
#include "backend/pass/axis_info.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"

namespace kiln::ir {
namespace {

class Results {
 public:
  explicit Results(Function& f) : f_(f), facts_(f) {
    walk(f_, [&](InstId i) {
      order_.push_back(i);
      if (f_.inst(i).op == Op::RingDot) warps_ = ring_warps(f_.inst(i).ints(AttrKey::extents)[0]);
    });
  }

  bool run() {
    std::vector<std::pair<InstId, bool>> stores;  // all looked at before any changes
    for (InstId i : order_)
      if (f_.inst(i).op == Op::Store) stores.emplace_back(i, alone(i));
    bool changed = false;
    for (const auto& [store, alone] : stores) changed |= rewrite(store, alone);
    return changed;
  }

 private:
  bool rewrite(InstId store, bool alone) {
    const Inst inst = f_.inst(store);
    const InstId block = inst.operands.size() == 3 ? f_.def(inst.operands[0]) : kNone;
    if (block == kNone || f_.inst(block).op != Op::Block || inst.operands[2] != f_.inst(block).results[1]) return false;
    if (!can_stage(f_.type(inst.operands[1]), warps_) || inst.i64(AttrKey::cache) != 0) return false;
    std::vector<Value> operands{inst.operands[1]};
    const std::vector<Value>& array = f_.inst(block).operands;
    operands.insert(operands.end(), array.begin(), array.end());
    if (!is_one(operands[5])) return false;
    const InstId staged = insert_op(f_, store, Op::StoreBlock, operands, {}, {}, inst.loc);
    const auto map = block_map(f_, stored_array(f_.inst(staged)), staged_piece(f_.type(inst.operands[1]).dtype));
    if (map && tensor_map_obstacle(f_, *map).empty() && can_be_copied(f_.inst(staged)) && alone)
      set_attr(f_, staged, AttrKey::mapped, 1);
    f_.remove(store);
    return true;
  }

  /// Rows begin at whole units of the copy engine and have so many; no coordinate is below 0, which it takes for loads
  /// only.
  bool can_be_copied(const Inst& staged) const {
    const DType dtype = f_.type(staged.operands[0]).dtype;
    const Value columns = staged.operands[3], row = staged.operands[6], column = staged.operands[7];
    return copy_aligned(facts_, columns, dtype) && copy_aligned(facts_, column, dtype) && facts_[row].range.lo >= 0 &&
           facts_[column].range.lo >= 0;
  }

  const Param* param_of(Value v) const {
    const InstId i = f_.def(v);
    if (i == kNone || f_.inst(i).op != Op::Param) return nullptr;
    return &f_.params[std::size_t(f_.inst(i).i64(AttrKey::index))];
  }
  bool is_one(Value stride) const {
    const Param* p = param_of(stride);
    const auto known = literal_of(f_, stride);
    return (p != nullptr && p->is_one) || (known && known->as_int() == 1);
  }

  /// The parameter that a pointer starts from, or null.
  const Param* origin(Value pointer) const {
    for (InstId i = f_.def(pointer); i != kNone; i = f_.def(f_.inst(i).operands[0])) switch (f_.inst(i).op) {
        case Op::Param: return &f_.params[std::size_t(f_.inst(i).i64(AttrKey::index))];
        case Op::PtrAdd:
        case Op::Splat:
        case Op::ExpandDims:
        case Op::Broadcast:
        case Op::Permute:
        case Op::Block: break;
        default: return nullptr;
      }
    return nullptr;
  }
  bool in_loop(InstId i) const {
    for (InstId around = f_.region(f_.inst(i).parent).owner; around != kNone;
         around = f_.region(f_.inst(around).parent).owner)
      if (f_.inst(around).op != Op::If) return true;
    return false;
  }

  /// Whether other accesses of the program touch other memory, or are loads in front of it.
  bool alone(InstId store) const {
    const Param* mine = origin(f_.inst(store).operands[0]);
    if (mine == nullptr || in_loop(store)) return false;
    bool before = true;
    for (InstId i : order_) {
      if (i == store) before = false;
      else if (!(before && f_.inst(i).op == Op::Load) && may_meet(f_.inst(i), *mine)) return false;
    }
    return true;
  }
  bool may_meet(const Inst& other, const Param& mine) const {
    switch (other.op) {
      case Op::Fill:  // of arrays that nobody writes
      case Op::Print:
      case Op::Assert: return false;
      case Op::Load:
      case Op::Store:
      case Op::AtomicRmw:
      case Op::AtomicCas: break;
      default: return writes_memory(other.op);
    }
    const Param* its = origin(other.operands[0]);
    return its == nullptr || its == &mine || (!its->disjoint && !mine.disjoint);
  }
  static bool writes_memory(Op op) {
    const auto& effects = info(op).effects;
    return std::any_of(effects.begin(), effects.end(), [](const Effect& e) { return e.space == MemorySpace::Global; });
  }

  Function& f_;
  const AxisAnalysis facts_;
  std::vector<InstId> order_;
  int warps_ = 4;
};

}  // namespace

bool stage_results(PassContext&, Function& f) { return fill_of(f) != kNone && Results(f).run(); }

}  // namespace kiln::ir
