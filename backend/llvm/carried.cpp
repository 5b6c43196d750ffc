#include "backend/llvm/carried.h"

#include <algorithm>
#include <numeric>

#include "backend/llvm/index.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using ir::Op;
using llvm::Value;

bool has_parts(const ir::Type& t) { return t.ptr || t.dtype == DType::index; }

/// A scalar is its uniform part alone.
TileValue scalar_shape(const ir::Type& t, Known known) {
  TileValue shape;
  shape.kind = t.ptr ? TileValue::Kind::Pointer : TileValue::Kind::Index;
  shape.regs.push_back({});
  shape.uniform_known = known;
  return shape;
}

/// What is known of a scalar as a whole: for pointers the divisor, in bytes.
Known whole_known(const TileValue& t) {
  return t.kind == TileValue::Kind::Index ? t.known()
                                          : Known{Range{}, std::gcd(t.uniform_known.divisor, t.constants_known().divisor)};
}

std::size_t first_live(const Geometry& g) {
  std::size_t r = 0;
  while (!g.live[r]) ++r;
  return r;
}

/// Whether x and y differ by a uniform value alone.
bool same_parts(const Geometry& g, const TileValue& x, const TileValue& y) {
  const std::size_t first = first_live(g);
  const auto apart = [&](std::size_t r) { return std::uint64_t(y.regs[r].c) - std::uint64_t(x.regs[r].c); };
  bool threads = false;
  for (std::size_t r = first; r < x.regs.size(); ++r) {
    if (!g.live[r]) continue;
    if (x.regs[r].v != y.regs[r].v || apart(r) != apart(first)) return false;
    threads |= x.regs[r].v != nullptr;
  }
  return x.kind == y.kind && (!threads || x.scale == y.scale);
}

Known either(const Known& a, const Known& b) { return {join(a.range, b.range), std::gcd(a.divisor, b.divisor)}; }

}  // namespace

// --- what a loop adds ------------------------------------------------------------------------------------------------

bool Advances::reach(ir::Value v) {
  if (failed_) return false;
  const auto [at, is_new] = seen_.emplace(v.id, false);
  if (!is_new) return at->second;
  const bool reached = follow(v);
  return seen_[v.id] = reached;
}

bool Advances::follow(ir::Value v) {
  if (v == param_) return true;
  const ir::InstId def = f_.def(v);
  if (def == ir::kNone) return false;
  const ir::Inst& inst = f_.inst(def);
  switch (inst.op) {
    case Op::Add:
      return (reach(inst.operands[0]) && addend(inst.operands[1], false)) ||
             (reach(inst.operands[1]) && addend(inst.operands[0], false));
    case Op::PtrAdd: return reach(inst.operands[0]) && addend(inst.operands[1], false);
    case Op::Sub: return reach(inst.operands[0]) && addend(inst.operands[1], true);
    case Op::If: {
      const std::size_t k = std::size_t(std::find(inst.results.begin(), inst.results.end(), v) - inst.results.begin());
      const auto yield = [&](std::size_t r) { return f_.inst(f_.region(inst.regions[r]).insts.back()).operands[k]; };
      return reach(yield(0)) && reach(yield(1));
    }
    case Op::For:
    case Op::While:
      return loop_result(inst,
                         std::size_t(std::find(inst.results.begin(), inst.results.end(), v) - inst.results.begin()));
    default: return false;
  }
}

/// Result k of an inner loop: its initial value follows the parameter, and each trip only adds to it.
bool Advances::loop_result(const ir::Inst& inst, std::size_t k) {
  const std::size_t first = inst.op == Op::For ? 3 : 0;
  if (!reach(inst.operands[first + k])) return false;
  const ir::RegionId body = inst.regions.back();
  for (ir::RegionId r : inst.regions) {
    const std::vector<ir::Value>& params = f_.region(r).params;
    seen_[params[k + (inst.op == Op::For ? 1 : 0)].id] = true;
  }
  failed_ = !reach(f_.inst(f_.region(body).insts.back()).operands[k]);  // what rests on the assumption is wrong, too
  return !failed_;
}

bool Advances::addend(ir::Value v, bool minus) {
  if (f_.type(v).tile) {
    const ir::InstId def = f_.def(v);
    if (def == ir::kNone || f_.inst(def).op != Op::Splat) return false;
    v = f_.inst(def).operands[0];
    if (f_.type(v).dtype != DType::index) return false;
  }
  const ir::AxisInfo& x = facts_[v];
  const Range r{x.range.lo, x.range.hi};
  const Range by = minus ? Range::of(0) - r : r;
  step_ = step_ + join(by, Range::of(0));
  const std::int64_t unit = f_.type(param_).ptr ? bytes(f_.type(param_).dtype) : 1;
  divisor_ = std::gcd(divisor_, x.axes[0].divisibility * unit);
  return true;
}

// No program makes 2^41 trips, so steps below 2^20 from a start below 2^61 stay below 2^62.
Known Advances::uniform_known(const Known& init) const {
  constexpr std::int64_t start = std::int64_t(1) << 61, stride = std::int64_t(1) << 20, trips = std::int64_t(1) << 41;
  Known k{{}, std::gcd(init.divisor, divisor_)};
  const auto within = [](Range r, std::int64_t most) { return r.lo >= -most && r.hi <= most; };
  if (within(init.range, start) && within(step_, stride)) k.range = init.range + step_ * Range{0, trips};
  return k;
}

// --- forms -----------------------------------------------------------------------------------------------------------

CarriedForm loop_form(Emitter& e, ir::Value init, ir::Value param, ir::Value next) {
  const ir::Type& t = e.type(param);
  if (!has_parts(t)) return {};
  const TileValue& from = e.get(init);
  Advances added(e.f, e.facts(), param);
  const bool advances = added.reach(next);
  if (!t.tile) {
    const ir::AxisInfo& facts = e.facts()[param];
    Known known{{facts.range.lo, facts.range.hi}, facts.axes[0].divisibility};
    if (t.ptr) known.range = Range{};
    if (advances && known.range.full()) known.range = added.uniform_known(whole_known(from)).range;
    return {true, scalar_shape(t, known)};
  }
  if (!advances) return {};
  CarriedForm form{true, from};
  form.shape.uniform_known = added.uniform_known(from.uniform_known);
  return form;
}

CarriedForm branch_form(Emitter& e, ir::Value a, ir::Value b) {
  const ir::Type& t = e.type(a);
  if (!has_parts(t)) return {};
  const TileValue &x = e.get(a), &y = e.get(b);
  if (!t.tile) return {true, scalar_shape(t, either(whole_known(x), whole_known(y)))};
  const Geometry& g = e.geometry_of(a);
  if (!same_parts(g, x, y)) return {};
  CarriedForm form{true, x};
  const std::size_t r = first_live(g);
  const Known apart = Known::constant(std::int64_t(std::uint64_t(y.regs[r].c) - std::uint64_t(x.regs[r].c)));
  form.shape.uniform_known = either(x.uniform_known, y.uniform_known + apart);
  form.shape.thread_known = either(x.thread_known, y.thread_known);
  form.shape.distinct = x.distinct && y.distinct;
  return form;
}

// --- phis ------------------------------------------------------------------------------------------------------------

PhiGroup::PhiGroup(Emitter& e, std::vector<ir::Value> values, std::vector<CarriedForm> forms)
    : values_(std::move(values)), forms_(std::move(forms)), phis_(values_.size()) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const ir::Type& t = e.type(values_[i]);
    llvm::Type* type = t.ptr ? llvm::PointerType::get(e.c.context(), t.shared ? kShared : kGlobal) : e.c.type(t.dtype);
    const Geometry& g = e.geometry_of(values_[i]);
    for (std::size_t r = 0; r < std::size_t(g.regs()); ++r)
      if (g.live[r] && (!forms_[i].split || phis_[i].empty())) phis_[i].push_back(e.b.CreatePHI(type, 2));
  }
}

void PhiGroup::define_as(Emitter& e, const std::vector<ir::Value>& values) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (forms_[i].split) {
      TileValue t = forms_[i].shape;
      t.uniform = phis_[i][0];
      e.set(values[i], std::move(t));
      continue;
    }
    const Geometry& g = e.geometry_of(values[i]);
    TileValue plain;
    plain.regs.resize(std::size_t(g.regs()));
    std::size_t next = 0;
    for (std::size_t r = 0; r < plain.regs.size(); ++r)
      if (g.live[r]) plain.regs[r].v = phis_[i][next++];
    e.set_plain(values[i], plain);
  }
}

std::vector<Value*> PhiGroup::parts_of(Emitter& e, std::size_t i, ir::Value from) const {
  const Geometry& g = e.geometry_of(values_[i]);
  if (!forms_[i].split) {
    const TileValue plain = e.as_plain(from);
    std::vector<Value*> parts;
    for (std::size_t r = 0; r < plain.regs.size(); ++r)
      if (g.live[r]) parts.push_back(plain.regs[r].v);
    return parts;
  }
  if (!e.type(from).tile) return {e.scalar(from)};
  const TileValue &t = e.get(from), &shape = forms_[i].shape;
  KILN_CHECK(same_parts(g, shape, t), "a carried value does not keep its parts");
  const std::size_t r = first_live(g);
  const std::uint64_t apart = std::uint64_t(t.regs[r].c) - std::uint64_t(shape.regs[r].c);
  if (t.kind == TileValue::Kind::Pointer)
    return {apart == 0 ? t.uniform : e.b.CreatePtrAdd(t.uniform, e.b.getInt64(apart))};
  Value* uniform = t.uniform == nullptr ? e.b.getInt64(0) : t.uniform;
  return {apart == 0 ? uniform : e.b.CreateAdd(uniform, e.b.getInt64(apart))};
}

void PhiGroup::flow_in(Emitter& e, const std::vector<ir::Value>& from) const {
  std::vector<std::vector<Value*>> in;
  for (std::size_t i = 0; i < values_.size(); ++i) in.push_back(parts_of(e, i, from[i]));
  llvm::BasicBlock* at = e.b.GetInsertBlock();
  for (std::size_t i = 0; i < values_.size(); ++i)
    for (std::size_t k = 0; k < in[i].size(); ++k) phis_[i][k]->addIncoming(in[i][k], at);
}

}  // namespace kiln::cg
