// Structured control flow as basic blocks and phis. Conditions and bounds are scalars, equal in all threads, so every
// branch is uniform and barriers inside are legal.
//
// Carried index and pointer tiles lose their split into uniform, thread and constant parts: a phi holds whole elements.
#include "backend/llvm/emitter.h"
#include "backend/llvm/index.h"

namespace kiln::cg {
namespace {

using llvm::BasicBlock;
using llvm::Value;

BasicBlock* block(Emitter& e, const char* name) { return BasicBlock::Create(e.c.context(), name, e.kernel); }

/// One phi per live register of `v`.
std::vector<llvm::PHINode*> phis(Emitter& e, ir::Value v, unsigned incoming) {
  const Geometry& g = e.geometry_of(v);
  const ir::Type& t = e.type(v);
  llvm::Type* type = t.ptr ? llvm::PointerType::get(e.c.context(), kGlobal) : e.c.type(t.dtype);
  std::vector<llvm::PHINode*> made;
  for (int r = 0; r < g.regs(); ++r)
    if (g.live[std::size_t(r)]) made.push_back(e.b.CreatePHI(type, incoming));
  return made;
}

/// Phis of several values, in a block that has nothing else yet; the values are set once all phis stand.
struct PhiGroup {
  std::vector<ir::Value> values;
  std::vector<std::vector<llvm::PHINode*>> phis_of;

  PhiGroup(Emitter& e, std::vector<ir::Value> vs, unsigned incoming) : values(std::move(vs)) {
    for (ir::Value v : values) phis_of.push_back(phis(e, v, incoming));
  }
  void define(Emitter& e) const {
    for (std::size_t i = 0; i < values.size(); ++i) define_as(e, i, values[i]);
  }
  /// Sets `v` to what value number i is.
  void define_as(Emitter& e, std::size_t i, ir::Value v) const {
    const Geometry& g = e.geometry_of(v);
    TileValue plain;
    plain.regs.resize(std::size_t(g.regs()));
    std::size_t next = 0;
    for (int r = 0; r < g.regs(); ++r)
      if (g.live[std::size_t(r)]) plain.regs[std::size_t(r)].v = phis_of[i][next++];
    e.set_plain(v, plain);
  }
  /// The values that flow in from the builder's block, which ends with a branch to the phis'.
  void flow_in(Emitter& e, llvm::ArrayRef<ir::Value> from) const {
    std::vector<std::vector<Value*>> in;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const TileValue plain = e.as_plain(from[i]);
      in.emplace_back();
      const Geometry& g = e.geometry_of(values[i]);
      for (int r = 0; r < g.regs(); ++r)
        if (g.live[std::size_t(r)]) in.back().push_back(plain.regs[std::size_t(r)].v);
    }
    BasicBlock* at = e.b.GetInsertBlock();
    for (std::size_t i = 0; i < values.size(); ++i)
      for (std::size_t k = 0; k < in[i].size(); ++k) phis_of[i][k]->addIncoming(in[i][k], at);
  }
};

std::vector<ir::Value> tail(const std::vector<ir::Value>& v, std::size_t from) {
  return {v.begin() + std::ptrdiff_t(from), v.end()};
}

/// Range and divisor of an index induction variable.
Known induction_known(const TileValue& lo, const TileValue& hi, const TileValue& step) {
  const Known l = lo.known(), h = hi.known(), s = step.known();
  Known k{{}, std::gcd(l.divisor, s.divisor)};
  if (k.divisor != 0) k.divisor &= -k.divisor;
  if (s.range.lo <= 0 || h.range.hi == std::numeric_limits<std::int64_t>::min()) return k;
  k.range = {l.range.lo, h.range.hi - 1};
  // No loop runs 2^41 times, so small steps from a start below 2^61 stay below 2^62 whatever the bound is.
  constexpr std::int64_t start = std::int64_t(1) << 61, stride = std::int64_t(1) << 20;
  if (l.range.hi <= start && s.range.hi <= stride) k.range.hi = std::min(k.range.hi, 2 * start);
  return k;
}

}  // namespace

// The trip test compares what is left, hi - iv, with the step as unsigned numbers: it cannot wrap.
void emit_For(Emitter& e, const ir::Inst& inst) {
  const ir::RegionId body_region = inst.regions[0];
  const std::vector<ir::Value> params = e.f.region(body_region).params, init = tail(inst.operands, 3);
  const ir::Value iv_value = params[0];
  const bool index = e.type(iv_value).dtype == DType::index, signs = is_signed(e.type(iv_value).dtype);
  const Known known =
      index ? induction_known(e.get(inst.operands[0]), e.get(inst.operands[1]), e.get(inst.operands[2])) : Known{};
  Value *lo = e.scalar(inst.operands[0]), *hi = e.scalar(inst.operands[1]), *step = e.scalar(inst.operands[2]);
  Value* zero = llvm::ConstantInt::get(step->getType(), 0);
  Value* down = signs ? e.b.CreateICmpSLT(step, zero) : e.b.getFalse();
  Value* stride = e.b.CreateSelect(down, e.b.CreateNeg(step), step);
  const auto left = [&](Value* iv) { return e.b.CreateSelect(down, e.b.CreateSub(iv, hi), e.b.CreateSub(hi, iv)); };
  const auto less = [&](Value* x, Value* y) { return signs ? e.b.CreateICmpSLT(x, y) : e.b.CreateICmpULT(x, y); };

  BasicBlock *body = block(e, "for"), *exit = block(e, "for.exit"), *before = e.b.GetInsertBlock();
  Value* runs = e.b.CreateAnd(e.b.CreateSelect(down, less(hi, lo), less(lo, hi)), e.b.CreateICmpNE(step, zero));
  e.b.SetInsertPoint(exit);
  PhiGroup results(e, inst.results, 2);
  e.b.SetInsertPoint(before);
  results.flow_in(e, init);
  e.b.SetInsertPoint(body);
  llvm::PHINode* iv = e.b.CreatePHI(lo->getType(), 2);
  PhiGroup carried(e, tail(params, 1), 2);
  e.b.SetInsertPoint(before);
  carried.flow_in(e, init);
  iv->addIncoming(lo, e.b.GetInsertBlock());
  e.b.CreateCondBr(runs, body, exit);

  e.b.SetInsertPoint(body);
  if (index) e.set(iv_value, index_scalar(iv, known));
  else e.set_plain(iv_value, iv);
  carried.define(e);
  const Hazards::Mark mark = e.hazards.mark();
  e.region(body_region);
  e.hazards.end_iteration(e.b, mark);
  const std::vector<ir::Value> next = e.yielded;
  Value* again = e.b.CreateICmpUGT(left(iv), stride);
  if (const auto stop = std::size_t(inst.i64(ir::AttrKey::stop)); stop > 0)
    again = e.b.CreateAnd(again, e.b.CreateNot(e.scalar(next[stop - 1])));
  Value* next_iv = e.b.CreateAdd(iv, step);
  carried.flow_in(e, next);
  results.flow_in(e, next);
  iv->addIncoming(next_iv, e.b.GetInsertBlock());
  e.b.CreateCondBr(again, body, exit);
  e.hazards.leave(mark);
  e.b.SetInsertPoint(exit);
  results.define(e);
}

void emit_While(Emitter& e, const ir::Inst& inst) {
  const ir::RegionId test_region = inst.regions[0], body_region = inst.regions[1];
  BasicBlock *test = block(e, "while"), *body = block(e, "while.body"), *exit = block(e, "while.exit"),
             *before = e.b.GetInsertBlock();
  e.b.SetInsertPoint(test);
  PhiGroup tested(e, e.f.region(test_region).params, 2);
  e.b.SetInsertPoint(before);
  tested.flow_in(e, inst.operands);
  e.b.CreateBr(test);

  e.b.SetInsertPoint(test);
  tested.define(e);
  const Hazards::Mark mark = e.hazards.mark();
  e.region(test_region);
  e.b.CreateCondBr(e.scalar(e.yielded[0]), body, exit);
  const Hazards::Mark after_test = e.hazards.mark();

  e.b.SetInsertPoint(body);
  const std::vector<ir::Value>& carried = e.f.region(body_region).params;
  for (std::size_t i = 0; i < carried.size(); ++i) tested.define_as(e, i, carried[i]);
  e.region(body_region);
  e.hazards.end_iteration(e.b, mark);
  tested.flow_in(e, e.yielded);
  e.b.CreateBr(test);

  e.hazards.resume(after_test);
  e.hazards.leave(mark);
  e.b.SetInsertPoint(exit);
  for (std::size_t i = 0; i < inst.results.size(); ++i) tested.define_as(e, i, inst.results[i]);
}

void emit_If(Emitter& e, const ir::Inst& inst) {
  BasicBlock *yes = block(e, "if"), *no = block(e, "else"), *exit = block(e, "if.exit");
  e.b.CreateCondBr(e.scalar(inst.operands[0]), yes, no);
  e.b.SetInsertPoint(exit);
  PhiGroup results(e, inst.results, 2);
  const Hazards::Mark mark = e.hazards.mark();
  const auto side = [&](BasicBlock* at, ir::RegionId region) {
    e.b.SetInsertPoint(at);
    e.region(region);
    results.flow_in(e, e.yielded);
    e.b.CreateBr(exit);
  };
  side(yes, inst.regions[0]);
  const Hazards::Mark after_yes = e.hazards.mark();
  e.hazards.resume(mark);
  side(no, inst.regions[1]);
  e.hazards.add(after_yes);
  e.hazards.leave(mark);
  e.b.SetInsertPoint(exit);
  results.define(e);
}

void emit_Yield(Emitter& e, const ir::Inst& inst) { e.yielded = inst.operands; }

}  // namespace kiln::cg
