// stage-products: operands of products in a loop travel through a ring in shared memory, filled by copies of tensor
// maps ahead of their use, and are multiplied from there by the units of a warpgroup.
//
//     for %k … (%acc) {                             for %k … (%acc) {
//       %p, %in = block %x … %m, %k                   fill %x … %m, %k, %w … %k, %n
//       %a = load %p, %in                             %a, %b = take
//       …                                     ->      %r = ring_dot unit=bf16 %a, %b, %acc
//       %b = load %q, %inside                         release
//       %r = dot unit=bf16 %a, %b, %acc               yield %r
//       yield %r                                    }
//     }                                             settle
//
// Fill and take stand side by side, so the meaning is that of the loads; `specialise` lets the fills run ahead. What
// this needs, and what makes a loop stay as it is:
//   target     units of a warpgroup: sm_90a; no other number of warps asked for than a ring has (ring_warps)
//   unit       16-bit floats of one type, 8-bit floats, 8-bit integers, as they lie in memory; f32 as tf32, to which
//              the copies round it
//   result     64, 128 or 256 rows, a multiple of 8 up to 256 columns, at most 128 registers a thread
//   operands   blocks of views or their transposes, used by nothing else, with zeros outside; arrays that nothing else
//              writes and a tensor map takes (signature.h); lines of whole 128 bytes, from a multiple of 16 bytes on;
//              elements of other than 16 bits lie along k
//   addresses  coordinates, bounds and conditions around the loop are scalars that follow from parameters and the
//              program's number alone: the warps that fill compute them again
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backend/ir/fold.h"
#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/dot.h"
#include "backend/ir/op/ring.h"
#include "backend/ir/signature.h"
#include "backend/pass/axis_info.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"
#include "backend/pass/skew.h"

namespace kiln::ir {
namespace {

constexpr std::int64_t kMostSums = 128;        ///< registers a thread
constexpr std::int64_t kMostSlot = 100 << 10;  ///< two slots must fit
constexpr std::int64_t kRows = 64;             ///< of one warpgroup

/// A matrix that a fill brings: the operand of products, the load it comes from, and that one's block.
struct Operand {
  Value value;
  InstId load = kNone, block = kNone;
  int along = 1;        ///< axis of the operand
  bool turned = false;  ///< the operand is the transpose of what is loaded
};

class Loop {
 public:
  Loop(Function& f, InstId loop) : f_(f), facts_(f), loop_(loop), body_(f.inst(loop).regions[0]) {}

  /// Finds the products whose operands can travel; whether there is one.
  /// `warps`: as many as the user wants; 0: any number.
  bool find(int warps);
  void rewrite();
  /// Why not, of the product that came closest; and the line it is about.
  const std::string& why() const { return why_; }
  SourceLoc where() const { return where_; }
  void run_behind(InstId product, InstId release);

 private:
  const Inst& inst(InstId i) const { return f_.inst(i); }
  /// false; keeps the first reason.
  bool refuse(InstId at, std::string why) const {
    if (why_.empty()) {
      why_ = std::move(why);
      where_ = inst(at).loc;
    }
    return false;
  }
  bool takes(const Inst& dot, InstId at);
  bool takes_operand(const Inst& dot, InstId at, std::size_t which, Operand& out);
  bool is_mapped(InstId load, const Inst& block, int& along) const;
  const Param* param_of(Value v) const;
  bool computed_again(Value v, std::set<std::uint32_t>& seen) const;
  bool surroundings_computed_again() const;
  std::int64_t slot() const;

  Function& f_;
  const AxisAnalysis facts_;
  const InstId loop_;
  const RegionId body_;
  std::vector<InstId> dots_;
  std::vector<Operand> operands_;  ///< each load once, in the order of the fill
  mutable std::string why_;
  mutable SourceLoc where_;
};

/// The parameter that v is, or null.
const Param* Loop::param_of(Value v) const {
  const InstId i = f_.def(v);
  if (i == kNone || inst(i).op != Op::Param) return nullptr;
  return &f_.params[std::size_t(inst(i).i64(AttrKey::index))];
}

bool Loop::is_mapped(InstId load, const Inst& block, int& along) const {
  if (block.ints(AttrKey::extents).size() != 2) return refuse(load, "the block has not two axes");
  const Param* base = param_of(block.operands[0]);
  if (base == nullptr) return refuse(load, "the view is no argument as it was passed");
  const std::string name = base->name.empty() ? "the array" : base->name;
  if (base->access != rt::Access::Read || !base->disjoint)
    return refuse(load, name + " may overlap memory that is written");
  std::string why = "no axis of " + name + " is known to be contiguous";
  for (along = 1; along >= 0; --along) {
    const Param* stride = param_of(block.operands[3 + std::size_t(along)]);
    if (stride == nullptr || !stride->is_one) continue;
    const std::vector<std::int64_t>& extents = block.ints(AttrKey::extents);
    const RingBlock shape{f_.type(block.operands[0]).dtype, {extents[0], extents[1]}, along, 0};
    const auto map = block_map(f_, std::span(block.operands).first(5), shape);
    why = map ? tensor_map_obstacle(f_, *map) : "sizes or strides of " + name + " are no arguments as they were passed";
    if (why.empty() && !copy_aligned(facts_, block.operands[5 + std::size_t(along)], shape.dtype))
      why = fmt::format("its place along axis {} of {} is not known to be a multiple of {} bytes", along, name,
                        kCopyUnit);
    if (why.empty()) return true;
  }
  return refuse(load, why);
}

bool Loop::takes_operand(const Inst& dot, InstId at, std::size_t which, Operand& out) {
  out.value = dot.operands[which];
  InstId load = f_.def(out.value);
  out.turned = load != kNone && inst(load).op == Op::Permute && inst(load).parent == body_ &&
               inst(load).ints(AttrKey::order) == std::vector<std::int64_t>{1, 0};
  if (out.turned) load = f_.def(inst(load).operands[0]);
  if (load == kNone || inst(load).op != Op::Load) return refuse(at, "an operand is changed after it is loaded");
  if (inst(load).parent != body_) return refuse(load, "an operand is loaded outside of the loop");
  const Inst& l = inst(load);
  const InstId block = l.operands.size() > 1 ? f_.def(l.operands[0]) : kNone;
  if (block == kNone || inst(block).op != Op::Block || l.operands[1] != inst(block).results[1])
    return refuse(load, "an operand is no block of a view");
  if (l.operands.size() > 2) {
    const std::optional<Literal> other = literal_of(f_, l.operands[2]);
    if (!other || other->bits != 0) return refuse(load, "what lies outside of the view is not read as 0");
  }
  int along = 1;
  if (!is_mapped(load, inst(block), along)) return false;
  const std::vector<std::int64_t>& extents = inst(block).ints(AttrKey::extents);
  const DType dtype = f_.type(l.results[0]).dtype;
  const std::int64_t line = extents[std::size_t(along)] * bytes(dtype), lines = extents[std::size_t(1 - along)];
  out.along = out.turned ? 1 - along : along;
  const bool along_depth = (which == 0) == (out.along == 1);
  if (line % kLine != 0 || lines % 8 != 0 || (lines > kMaxBox && lines % kMaxBox != 0))
    return refuse(
        load, fmt::format("a block of {} lines of {} bytes: lines must be whole {} bytes, and a multiple of 8", lines,
                          line, kLine));
  if (!along_depth && bytes(dtype) != 2)
    return refuse(load, fmt::format("{} does not lie along k, as units of a warpgroup read it", kiln::name(dtype)));
  out.load = load;
  out.block = block;
  return true;
}

bool Loop::takes(const Inst& dot, InstId at) {
  const DotUnit unit = unit_of(dot);
  bool fits = unit != DotUnit::Fma && unit != DotUnit::F64 && dot_parts(f_, dot) == 1;
  for (std::size_t k = 0; k < 2; ++k) fits = fits && f_.type(dot.operands[k]).dtype == staged_dtype(f_, dot, k);
  if (!fits)
    return refuse(at,
                  fmt::format("{} by {} is nothing that units of a warpgroup multiply as it lies in memory",
                              kiln::name(f_.type(dot.operands[0]).dtype), kiln::name(f_.type(dot.operands[1]).dtype)));
  const Shape& result = f_.type(dot.results[0]).shape;
  if (result.size() != 2) return refuse(at, "the product is batched");
  const std::int64_t threads = 32 * ring_warps(result[0]), depth = f_.type(dot.operands[0]).shape[1];
  const bool rows = result[0] == kRows || result[0] == 2 * kRows || result[0] == 4 * kRows;
  if (!rows || result[1] % (unit == DotUnit::I8 ? 16 : 8) != 0 || result[1] > 256 ||
      result[0] * padded(result[1]) / threads > kMostSums || depth % matrix_shape(unit).k != 0)
    return refuse(
        at, fmt::format("the block is {} x {} x {}: it must have 64, 128 or 256 rows, a multiple of {} up to 256 "
                        "columns, {} sums a thread at most, and a multiple of {} along k",
                        result[0], result[1], depth, unit == DotUnit::I8 ? 16 : 8, kMostSums, matrix_shape(unit).k));
  return true;
}

bool Loop::find(int warps) {
  std::set<InstId> before;  // what stands in front of the first product, as the fill will
  for (InstId i : f_.region(body_).insts) {
    if (dots_.empty()) before.insert(i);
    if (inst(i).op != Op::Dot || !takes(inst(i), i)) continue;
    if (const int needs = ring_warps(f_.type(inst(i).results[0]).shape[0]); warps != 0 && warps != needs) {
      refuse(i, fmt::format("num_warps is {}, blocks of so many rows need {}", warps, needs));
      continue;
    }
    Operand sides[2];
    if (!takes_operand(inst(i), i, 0, sides[0]) || !takes_operand(inst(i), i, 1, sides[1])) continue;
    if (!before.contains(sides[0].load) || !before.contains(sides[1].load)) {
      refuse(i, "an operand is loaded behind another product");
      continue;
    }
    dots_.push_back(i);
    for (const Operand& o : sides)
      if (std::none_of(operands_.begin(), operands_.end(), [&](const Operand& x) { return x.value == o.value; }))
        operands_.push_back(o);
  }
  if (dots_.empty()) return false;
  if (inst(loop_).find(AttrKey::unroll) != nullptr || inst(loop_).find(AttrKey::stop) != nullptr)
    return refuse(loop_, "the loop is unrolled, or left early");
  const auto travels = [&](InstId user) {
    const bool turns = std::any_of(operands_.begin(), operands_.end(),
                                   [&](const Operand& o) { return o.turned && f_.def(o.value) == user; });
    return turns || std::find(dots_.begin(), dots_.end(), user) != dots_.end();
  };
  for (const Operand& o : operands_)
    for (Value v : {o.value, inst(o.load).results[0]})
      for (InstId user : f_.users(v))
        if (!travels(user)) return refuse(o.load, "an operand is used by more than products");
  if (slot() > kMostSlot)
    return refuse(dots_[0], fmt::format("operands of a trip are {} bytes, at most {} can be: make the blocks smaller",
                                        slot(), kMostSlot));
  return surroundings_computed_again() ||
         refuse(dots_[0], "coordinates, bounds or conditions around the product follow from what is loaded or carried");
}

std::int64_t Loop::slot() const {
  std::int64_t n = 0;
  for (const Operand& o : operands_) {
    const Type& t = f_.type(inst(o.load).results[0]);
    n += (t.elements() * bytes(t.dtype) + kRingAlign - 1) / kRingAlign * kRingAlign;
  }
  return n;
}

/// Whether v is a scalar that pure operations make of parameters, the program's number and counters of loops.
bool Loop::computed_again(Value v, std::set<std::uint32_t>& seen) const {
  if (!seen.insert(v.id).second) return true;
  if (f_.type(v).tile) return false;
  const InstId i = f_.def(v);
  if (i == kNone) {
    const Region& r = f_.region(f_.param_region(v));
    return r.owner != kNone && inst(r.owner).op == Op::For && r.params[0] == v;
  }
  if (!info(inst(i).op).pure || !inst(i).regions.empty()) return false;
  return std::all_of(inst(i).operands.begin(), inst(i).operands.end(),
                     [&](Value operand) { return computed_again(operand, seen); });
}

bool Loop::surroundings_computed_again() const {
  std::set<std::uint32_t> seen;
  const auto all = [&](std::span<const Value> values) {
    return std::all_of(values.begin(), values.end(), [&](Value v) { return computed_again(v, seen); });
  };
  for (const Operand& o : operands_)
    if (!all(inst(o.block).operands)) return false;
  for (InstId around = loop_; around != kNone; around = f_.region(inst(around).parent).owner) {
    const Inst& x = inst(around);
    if (x.op == Op::For ? !all(std::span(x.operands).first(3)) || x.find(AttrKey::stop)
                        : x.op != Op::If || !all(x.operands))
      return false;
  }
  return true;
}

void Loop::rewrite() {
  std::vector<Value> sources;
  std::vector<std::int64_t> extents, along;
  std::vector<Type> pointers;
  InstId last = kNone;
  for (InstId i : f_.region(body_).insts)
    for (const Operand& o : operands_)
      if (o.load == i) last = i;
  for (const Operand& o : operands_) {
    std::vector<Value> array = inst(o.block).operands;
    std::vector<std::int64_t> e = inst(o.block).ints(AttrKey::extents);
    if (o.turned) {
      for (std::size_t pair : {1, 3, 5}) std::swap(array[pair], array[pair + 1]);
      std::swap(e[0], e[1]);
    }
    sources.insert(sources.end(), array.begin(), array.end());
    extents.insert(extents.end(), e.begin(), e.end());
    along.push_back(o.along);
    pointers.push_back(Type::shared_pointer(f_.type(inst(o.load).results[0]).dtype));
  }
  const SourceLoc loc = inst(last).loc;
  const InstId fill =
      insert_op(f_, last, Op::Fill, sources, {{AttrKey::extents, extents}, {AttrKey::along, along}}, {}, loc);
  for (const Operand& o : operands_) f_.inst(fill).parts.push_back(inst(o.load).loc);
  const InstId take = insert_op(f_, last, Op::Take, {}, {{AttrKey::extents, extents}}, pointers, loc);
  const auto number = [&](Value v) {
    const auto at = std::find_if(operands_.begin(), operands_.end(), [&](const Operand& o) { return o.value == v; });
    return std::size_t(at - operands_.begin());
  };
  InstId product = kNone;
  for (InstId i : dots_) {
    const Inst dot = inst(i);
    const std::size_t a = number(dot.operands[0]), b = number(dot.operands[1]);
    const std::int64_t m = f_.type(dot.results[0]).shape[0], n = f_.type(dot.results[0]).shape[1],
                       k = f_.type(dot.operands[0]).shape[1];
    const std::vector<Attr> attrs{{AttrKey::extents, std::vector<std::int64_t>{m, n, k}},
                                  {AttrKey::along, std::vector<std::int64_t>{along[a], along[b]}},
                                  {AttrKey::unit, std::int64_t(unit_of(dot))}};
    product = insert_op(f_, i, Op::RingDot, {inst(take).results[a], inst(take).results[b], dot.operands[2]}, attrs, {},
                        dot.loc);
    set_attr(f_, product, AttrKey::promote, dot.i64(AttrKey::promote));
    f_.replace_all_uses(dot.results[0], inst(product).results[0]);
    f_.remove(i);
  }
  std::set<InstId> loads;
  for (const Operand& o : operands_) {
    if (o.turned) f_.remove(f_.def(o.value));
    loads.insert(o.load);
  }
  for (InstId i : loads) f_.remove(i);
  const InstId release = insert_op(f_, f_.region(body_).insts.back(), Op::Release, {}, {}, {}, loc);
  if (product != kNone) run_behind(product, release);
}

/// A product that nothing in the loop looks at, but the next trip's, goes on while the trip ends: it is done when the
/// next one is issued, and behind the loop.
void Loop::run_behind(InstId product, InstId release) {
  const Region& body = f_.region(body_);
  const Value sum = inst(product).results[0], start = inst(product).operands[2];
  const std::vector<Value> yields = inst(body.insts.back()).operands;
  const auto carried = std::size_t(std::find(yields.begin(), yields.end(), sum) - yields.begin());
  if (dots_.size() != 1 || f_.use_count(sum) != 1 || carried == yields.size() || f_.use_count(start) != 1 ||
      start != body.params[carried + 1] || inst(product).i64(AttrKey::promote) != 0)
    return;
  set_attr(f_, product, AttrKey::behind, 1);
  set_attr(f_, release, AttrKey::behind, 1);
  const std::vector<InstId>& around = f_.region(inst(loop_).parent).insts;
  const auto next = std::find(around.begin(), around.end(), loop_) + 1;
  const Value result = inst(loop_).results[carried];
  const InstId settle = f_.create(Op::Settle, {result}, {f_.type(result)}, {}, inst(product).loc);
  if (next == around.end()) f_.append(inst(loop_).parent, settle);
  else f_.insert_before(*next, settle);
  f_.replace_all_uses(result, inst(settle).results[0]);
  f_.set_operand(settle, 0, result);
}

/// Ops that count on all threads of the block being the program's.
bool needs_whole_block(const Function& f) {
  bool needs = false;
  walk(f, [&](InstId i) {
    const Op op = f.inst(i).op;
    needs = needs || op == Op::Barrier || op == Op::Alloc || op == Op::InlinePtx;
  });
  return needs;
}

}  // namespace

namespace {

/// What no loop of the function can change.
std::string general_obstacle(const PassContext& context, const Function& f) {
  const CompileOptions& wish = context.options;
  if (wish.debug) return "the kernel is compiled for a debugger";
  if (wish.cluster > 2) return fmt::format("cluster is {}", wish.cluster);
  if (wish.max_registers != 0) return fmt::format("max_registers is {}", wish.max_registers);
  return needs_whole_block(f) ? "shared memory, barriers or PTX of the kernel's own count on the block's threads" : "";
}

bool multiplies(const Function& f, InstId loop) {
  const std::vector<InstId>& body = f.region(f.inst(loop).regions[0]).insts;
  return std::any_of(body.begin(), body.end(), [&](InstId i) { return f.inst(i).op == Op::Dot; });
}

void note(Function& f, SourceLoc where, const std::string& why) {
  f.notes.push_back(fmt::format("{}: no ring of tensor maps feeds the product: {}", where.str(), why));
}

}  // namespace

bool stage_products(PassContext& context, Function& f) {
  if (!context.target.has_warpgroups()) return false;
  std::vector<InstId> loops;
  walk(f, [&](InstId i) {
    if (f.inst(i).op == Op::For && multiplies(f, i)) loops.push_back(i);
  });
  const std::string never = general_obstacle(context, f);
  bool has_ring = false;
  for (InstId i : loops) {
    Loop loop(f, i);
    if (stages_wished(f, i, context.options) == 1) note(f, f.inst(i).loc, "its loop is to have one stage");
    else if (!never.empty() || has_ring) note(f, f.inst(i).loc, has_ring ? "another loop's have the ring" : never);
    else if (loop.find(context.options.num_warps)) loop.rewrite();
    else note(f, loop.where(), loop.why());
    has_ring = fill_of(f) != kNone;
  }
  return has_ring;
}

}  // namespace kiln::ir
