// chunk: the end of a row kernel, from its last reduction to its stores, in pieces that few registers hold.
//
// A program that holds a row in registers needs little besides: the row as it was loaded, and the statistics. But
// operations run a whole tile at a time, so that the weights of the whole row would be in registers, too, and the
// results before they are stored. This pass cuts what follows the last reduction along the row, one vector a thread in
// each piece; the pieces run one after the other.
//
//     %m = reduce … %x                              %m = reduce … %x
//     %w = load %p : tile<4096xbf16>                %x0 = opaque (slice start=0 end=2048 %x)
//     %y = mul (cast %x), (cast %w)          ->     %w0 = load %p0 : tile<2048xbf16>
//     store %q, %y                                  store %q0, (mul (cast %x0), (cast %w0))
//                                                   %x1 = opaque (slice start=2048 end=4096 %x)  …
//
// Each piece takes what it needs of a tile that was there before: a slice of it; where the tile was computed from a
// narrower one that was loaded, by a few cheap operations, those are done again, so that the narrow one alone stays
// in registers. opaque keeps the two computations apart.
//
// A load moves over stores and a store over others by this, so it is done only where the launch guarantees that they
// touch different memory (Param::disjoint). And where memory behind allows other vectors than memory before, the row
// changes its threads in between: not in a cluster, and only where shared memory holds two such rows.
#include <algorithm>
#include <map>

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/infer.h"
#include "backend/pass/access.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"
#include "backend/target.h"

namespace kiln::ir {
namespace {

constexpr int kThreadsPerWarp = 32;
constexpr std::int64_t kVectorBytes = 16;

class Chunker {
 public:
  Chunker(Function& f, const Target& target) : f_(f), target_(target) {}

  bool run() {
    if (!find_end() || !fits()) return false;
    const std::int64_t whole = shape_[0], piece = piece_elements();
    if (piece >= whole || (changes_threads() && !may_change_threads())) return false;
    for (lo_ = 0; lo_ < whole; lo_ += piece) {
      hi_ = std::min(whole, lo_ + piece);
      pieces_.clear();
      for (InstId i : effects_) effect(i);
    }
    for (auto i = tail_.rbegin(); i != tail_.rend(); ++i) f_.remove(*i);
    return true;
  }

 private:
  // --- what is cut ---------------------------------------------------------------------------------------------------
  /// The instructions on tiles after the last reduction, and among them the loads and stores.
  bool find_end() {
    const std::vector<InstId>& body = f_.region(f_.body()).insts;
    const auto last = std::find_if(body.rbegin(), body.rend(), [&](InstId i) { return f_.inst(i).op == Op::Reduce; });
    if (last == body.rend() || f_.type(f_.inst(*last).operands[0]).shape.size() != 1) return false;
    shape_ = f_.type(f_.inst(*last).operands[0]).shape;
    for (auto i = last.base(); i != body.end(); ++i) {
      const Inst& inst = f_.inst(*i);
      const bool access = inst.op == Op::Load || inst.op == Op::Store, tile = on_tiles(inst);
      if (!tile && (!info(inst.op).pure || !inst.regions.empty())) return false;
      if (!tile) continue;
      if (!access && !elementwise_like(inst.op) && inst.op != Op::Arange && inst.op != Op::Splat) return false;
      in_tail_[*i] = true;
      tail_.push_back(*i);
      if (access) effects_.push_back(*i);
    }
    return true;
  }

  bool on_tiles(const Inst& inst) const {
    const auto tile = [&](Value v) { return f_.type(v).tile; };
    return std::any_of(inst.operands.begin(), inst.operands.end(), tile) ||
           std::any_of(inst.results.begin(), inst.results.end(), tile);
  }
  static bool elementwise_like(Op op) {
    return info(op).elementwise || op == Op::Cast || op == Op::Bitcast || op == Op::Select || op == Op::PtrAdd ||
           op == Op::Opaque;
  }

  /// One shape, and no load or store that another one must not pass.
  bool fits() const {
    bool stores = false;
    for (InstId i : tail_)
      for (Value v : f_.inst(i).operands)
        if (f_.type(v).tile && f_.type(v).shape != shape_) return false;
    for (InstId a : effects_) {
      stores = stores || f_.inst(a).op == Op::Store;
      for (InstId b : effects_)
        if (a != b && (f_.inst(a).op == Op::Store || f_.inst(b).op == Op::Store) && !disjoint(a, b)) return false;
    }
    return stores;
  }
  bool disjoint(InstId a, InstId b) const {
    const Param *p = parameter(f_.inst(a).operands[0]), *q = parameter(f_.inst(b).operands[0]);
    return p != nullptr && q != nullptr && p != q && (p->disjoint || q->disjoint);
  }
  const Param* parameter(Value pointer) const {
    for (InstId i = f_.def(pointer); i != kNone; i = f_.def(f_.inst(i).operands[0])) {
      const Inst& inst = f_.inst(i);
      if (inst.op == Op::Param) return &f_.params[std::size_t(inst.i64(AttrKey::index))];
      if (inst.op != Op::PtrAdd && inst.op != Op::Splat) return nullptr;
    }
    return nullptr;
  }

  /// One vector a thread, of the widest elements that are loaded or stored.
  std::int64_t piece_elements() const {
    std::int64_t widest = 1;
    for (InstId i : effects_) widest = std::max<std::int64_t>(widest, bytes(f_.type(f_.inst(i).operands[0]).dtype));
    return kThreadsPerWarp * f_.exec->warps * f_.exec->cluster * (kVectorBytes / widest);
  }

  /// Whether loads before the end and accesses in it have vectors of different sizes.
  bool changes_threads() const {
    std::int64_t before = 0, behind = 0;
    const AxisAnalysis facts(f_);
    for (const Access& a : tile_accesses(f_)) {
      if (a.shape != shape_) continue;
      std::int64_t& vector = in_tail_.contains(a.inst) ? behind : before;
      const std::int64_t limit = vector_limit(facts, a, 0);
      vector = vector == 0 ? limit : std::min(vector, limit);
    }
    return before != 0 && before != behind;
  }
  bool may_change_threads() const {
    std::int64_t widest = 1;
    for (InstId i : tail_)
      for (Value v : f_.inst(i).operands)
        if (const Type& t = f_.type(v); t.tile && !t.ptr) widest = std::max<std::int64_t>(widest, bytes(t.dtype));
    return f_.exec->cluster == 1 && 2 * padded_elements(shape_) * widest <= std::int64_t(target_.max_shared_bytes);
  }

  // --- the pieces ----------------------------------------------------------------------------------------------------
  Value add(Op op, std::vector<Value> operands, std::vector<Attr> attrs, std::vector<Type> stated, SourceLoc loc) {
    Types types = infer({f_, op, operands, attrs, stated, loc});
    const InstId i = f_.create(op, std::move(operands), std::move(types), std::move(attrs), loc);
    f_.append(f_.body(), i);
    return f_.inst(i).results.empty() ? Value{} : f_.inst(i).results[0];
  }

  void effect(InstId i) {
    const Value v = again(i);
    if (v.valid()) pieces_[f_.inst(i).results[0].id] = v;
  }

  /// Instruction `i` on the pieces of its operands.
  Value again(InstId i) {
    const std::vector<Value> whole = f_.inst(i).operands;
    std::vector<Value> operands;
    for (Value v : whole) operands.push_back(piece(v));
    const Inst inst = f_.inst(i);  // a copy: adding instructions moves them
    std::vector<Type> stated;
    if (!inst.results.empty()) stated.push_back(f_.type(inst.results[0]).with_shape({hi_ - lo_}));
    return add(inst.op, std::move(operands), inst.attrs, std::move(stated), inst.loc);
  }

  Value piece(Value v) {
    if (!f_.type(v).tile) return v;
    if (const auto known = pieces_.find(v.id); known != pieces_.end()) return known->second;
    return pieces_[v.id] = make_piece(v);
  }

  Value make_piece(Value v) {
    const InstId i = f_.def(v);
    if (i == kNone) return sliced(v);
    const Inst& inst = f_.inst(i);
    if (inst.op == Op::Splat)
      return add(Op::Splat, {inst.operands[0]}, {}, {f_.type(v).with_shape({hi_ - lo_})}, inst.loc);
    if (inst.op == Op::Arange) {
      const std::int64_t start = inst.i64(AttrKey::start);
      return add(Op::Arange, {}, {{AttrKey::start, start + lo_}, {AttrKey::end, start + hi_}}, {}, inst.loc);
    }
    const Type& t = f_.type(v);
    const bool address = t.ptr || t.dtype == DType::index || t.dtype == DType::i1;
    if (elementwise_like(inst.op) && (in_tail_.count(i) || address || narrower_source(v))) return again(i);
    return sliced(v);
  }

  Value sliced(Value v) {
    const SourceLoc loc = f_.loc_of(v);
    const Value part =
        add(Op::Slice, {v}, {{AttrKey::axis, std::int64_t(0)}, {AttrKey::start, lo_}, {AttrKey::end, hi_}}, {}, loc);
    return add(Op::Opaque, {part}, {}, {}, loc);
  }

  /// Whether v follows by cheap operations from one tile of narrower elements, and scalars.
  bool narrower_source(Value v) const {
    Value source;
    return cheap(v, bytes(f_.type(v).dtype), source) && source.valid();
  }
  bool cheap(Value v, int width, Value& source) const {
    const InstId i = f_.def(v);
    if (i == kNone) return false;
    const Inst& inst = f_.inst(i);
    if (inst.op == Op::Splat) return true;
    if (bytes(f_.type(v).dtype) < width) {
      if (!source.valid()) source = v;
      return source == v;
    }
    if (!cheap_op(inst)) return false;
    return std::all_of(inst.operands.begin(), inst.operands.end(), [&](Value x) { return cheap(x, width, source); });
  }
  static bool cheap_op(const Inst& inst) {
    switch (inst.op) {
      case Op::Cast:
      case Op::Add:
      case Op::Sub:
      case Op::Mul:
      case Op::Fma:
      case Op::Neg:
      case Op::Abs:
      case Op::Min:
      case Op::Max:
      case Op::Relu:
      case Op::Opaque: return true;
      default: return inst.flag(AttrKey::fast);
    }
  }

  Function& f_;
  const Target& target_;
  Shape shape_;
  std::vector<InstId> tail_, effects_;
  std::map<InstId, bool> in_tail_;
  std::int64_t lo_ = 0, hi_ = 0;
  std::map<std::uint32_t, Value> pieces_;  ///< of this piece, by the whole value
};

}  // namespace

bool chunk(PassContext& context, Function& f) { return Chunker(f, context.target).run(); }

}  // namespace kiln::ir
