// Structured control flow as basic blocks and phis. Conditions and bounds are scalars, equal in all threads, so every
// branch is uniform and barriers inside are legal.
//
// Carried index values and pointers keep their parts where the loop allows it (carried.h).
#include "backend/llvm/carried.h"
#include "backend/llvm/emitter.h"
#include "backend/llvm/index.h"

namespace kiln::cg {
namespace {

using llvm::BasicBlock;
using llvm::Value;

BasicBlock* block(Emitter& e, const char* name) { return BasicBlock::Create(e.c.context(), name, e.kernel); }

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

const std::vector<ir::Value>& yields(const Emitter& e, ir::RegionId r) {
  return e.f.inst(e.f.region(r).insts.back()).operands;
}

/// How a loop carries `init`; `params` of the region that yields the next values.
std::vector<CarriedForm> loop_forms(Emitter& e, const std::vector<ir::Value>& init, const std::vector<ir::Value>& params,
                                    ir::RegionId body) {
  std::vector<CarriedForm> forms;
  for (std::size_t k = 0; k < init.size(); ++k)
    forms.push_back(loop_form(e, init[k], params[k], yields(e, body)[k]));
  return forms;
}

}  // namespace

// The trip test looks ahead, so that the induction variable never passes the last value of its type.
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
  // A further trip starts before hi - step, or behind it on the way down. Saturation is right where that is no number of
  // the type; and where nothing wraps, NVIDIA's assembler, which unrolls, does not compare numbers that did.
  Value* last = e.b.CreateBinaryIntrinsic(signs ? llvm::Intrinsic::ssub_sat : llvm::Intrinsic::usub_sat, hi, step);
  const auto less = [&](Value* x, Value* y) { return signs ? e.b.CreateICmpSLT(x, y) : e.b.CreateICmpULT(x, y); };

  BasicBlock *body = block(e, "for"), *exit = block(e, "for.exit"), *before = e.b.GetInsertBlock();
  Value* runs = e.b.CreateAnd(e.b.CreateSelect(down, less(hi, lo), less(lo, hi)), e.b.CreateICmpNE(step, zero));
  const std::vector<CarriedForm> forms = loop_forms(e, init, tail(params, 1), body_region);
  e.b.SetInsertPoint(exit);
  const PhiGroup results(e, inst.results, forms);
  e.b.SetInsertPoint(before);
  results.flow_in(e, init);
  e.b.SetInsertPoint(body);
  llvm::PHINode* iv = e.b.CreatePHI(lo->getType(), 2);
  const PhiGroup carried(e, tail(params, 1), forms);
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
  Value* again = e.b.CreateSelect(down, less(last, iv), less(iv, last));
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
  const std::vector<ir::Value>& carried = e.f.region(body_region).params;
  const std::vector<CarriedForm> forms = loop_forms(e, inst.operands, carried, body_region);
  e.b.SetInsertPoint(test);
  const PhiGroup tested(e, e.f.region(test_region).params, forms);
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
  tested.define_as(e, carried);
  e.region(body_region);
  e.hazards.end_iteration(e.b, mark);
  tested.flow_in(e, e.yielded);
  e.b.CreateBr(test);

  // The test comes after an iteration, or first.
  const Hazards::Mark after_body = e.hazards.mark();
  e.hazards.resume(after_test);
  e.hazards.add(after_body);
  e.hazards.leave(mark);
  e.b.SetInsertPoint(exit);
  tested.define_as(e, inst.results);
}

void emit_If(Emitter& e, const ir::Inst& inst) {
  BasicBlock *yes = block(e, "if"), *no = block(e, "else"), *exit = block(e, "if.exit");
  e.b.CreateCondBr(e.scalar(inst.operands[0]), yes, no);
  const Hazards::Mark mark = e.hazards.mark();
  e.b.SetInsertPoint(yes);
  e.region(inst.regions[0]);
  BasicBlock* yes_end = e.b.GetInsertBlock();
  const Hazards::Mark after_yes = e.hazards.mark();
  e.hazards.resume(mark);
  e.b.SetInsertPoint(no);
  e.region(inst.regions[1]);
  BasicBlock* no_end = e.b.GetInsertBlock();
  e.hazards.add(after_yes);
  e.hazards.leave(mark);

  const std::vector<ir::Value>&a = yields(e, inst.regions[0]), &b = yields(e, inst.regions[1]);
  std::vector<CarriedForm> forms;
  for (std::size_t k = 0; k < a.size(); ++k) forms.push_back(branch_form(e, a[k], b[k]));
  e.b.SetInsertPoint(exit);
  const PhiGroup results(e, inst.results, std::move(forms));
  for (const auto& [end, from] : {std::pair(yes_end, &a), std::pair(no_end, &b)}) {
    e.b.SetInsertPoint(end);
    results.flow_in(e, *from);
    e.b.CreateBr(exit);
  }
  e.b.SetInsertPoint(exit);
  results.define(e);
}

void emit_Yield(Emitter& e, const ir::Inst& inst) { e.yielded = inst.operands; }

}  // namespace kiln::cg
