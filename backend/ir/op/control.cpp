// Structured control flow. The types of a region's parameters and yields against its op are checked by the verifier.
#include <fmt/format.h>

#include <cstring>

#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

Types types_from(const InferInput& in, std::size_t first) {
  Types types;
  for (std::size_t i = first; i < in.operands.size(); ++i) types.push_back(in.type(i));
  return types;
}

}  // namespace

// --- for
// ---------------------------------------------------------------------------------------------------------------
Types infer_For(const InferInput& in) {
  const Type& lo = in.type(0);
  if (lo.tile || lo.ptr || !is_int(lo.dtype)) in.fail("bounds must be integer scalars, lower is " + lo.str());
  for (std::size_t i = 1; i < 3; ++i)
    if (in.type(i) != lo) in.fail("bounds differ: " + lo.str() + " and " + in.type(i).str());
  const auto carried = std::int64_t(in.operands.size()) - 3, stop = in.i64(AttrKey::stop);
  if (stop < 0 || stop > carried) in.fail(fmt::format("stop={} of {} carried values", stop, carried));
  if (stop > 0 && in.type(std::size_t(stop) + 2) != Type::scalar(DType::i1))
    in.fail("stop names a carried " + in.type(std::size_t(stop) + 2).str() + ", must be a scalar i1");
  return types_from(in, 3);
}
void eval_For(Evaluator& e, const Inst& inst) {
  const RegionId body = inst.regions[0];
  const std::vector<Value>& params = e.function().region(body).params;
  const std::span<const Value> carried = std::span(params).subspan(1), init = std::span(inst.operands).subspan(3);
  const Type& type = e.type(inst.operands[0]);
  const auto scalar = [&](Value v) {
    Literal l{type.dtype, 0};
    std::memcpy(&l.bits, e.data(v), element_bytes(type));
    return l;
  };
  const Literal hi = scalar(inst.operands[1]), step = scalar(inst.operands[2]);
  const auto stop = std::size_t(inst.i64(AttrKey::stop));
  const bool down = is_signed(type.dtype) && step.as_int() < 0;
  Literal iv = scalar(inst.operands[0]);
  e.assign(carried, init);
  while (step.bits != 0 && eval_elementwise(down ? Op::Gt : Op::Lt, {iv, hi}).bits) {
    std::memcpy(e.define(params[0]), &iv.bits, element_bytes(type));
    e.run_region(body);
    e.assign(carried, e.yielded());
    if (stop > 0 && *e.in<bool>(carried[stop - 1])) break;
    const Literal next = eval_elementwise(Op::Add, {iv, step});
    if (!eval_elementwise(down ? Op::Lt : Op::Gt, {next, iv}).bits) break;  // wrapped: the bound is passed
    iv = next;
  }
  e.assign(inst.results, carried);
}

// --- while
// -------------------------------------------------------------------------------------------------------------
Types infer_While(const InferInput& in) { return types_from(in, 0); }
void eval_While(Evaluator& e, const Inst& inst) {
  const RegionId condition = inst.regions[0], body = inst.regions[1];
  const std::vector<Value>&tested = e.function().region(condition).params, &carried = e.function().region(body).params;
  e.assign(tested, inst.operands);
  for (;;) {
    e.run_region(condition);
    if (!*e.in<bool>(e.yielded()[0])) break;
    e.assign(carried, tested);
    e.run_region(body);
    e.assign(tested, e.yielded());
  }
  e.assign(inst.results, tested);
}

// --- if
// ----------------------------------------------------------------------------------------------------------------
Types infer_If(const InferInput& in) {
  if (in.type(0) != Type::scalar(DType::i1)) in.fail("condition is " + in.type(0).str() + ", must be a scalar i1");
  return {in.stated.begin(), in.stated.end()};
}
void eval_If(Evaluator& e, const Inst& inst) {
  e.run_region(inst.regions[*e.in<bool>(inst.operands[0]) ? 0 : 1]);
  e.assign(inst.results, e.yielded());
}

// --- yield
// -------------------------------------------------------------------------------------------------------------
Types infer_Yield(const InferInput&) { return {}; }
void eval_Yield(Evaluator& e, const Inst& inst) { e.set_yielded(inst.operands); }

}  // namespace kiln::ir
