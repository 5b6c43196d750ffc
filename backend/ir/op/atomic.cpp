// Atomic read-modify-write and compare-and-swap, here one element after the other in row-major order.
//
// Memory is changed in words of 16, 32 or 64 bits; i1 and the 8-bit types have no atomics. One result is not that of
// the elementwise op: an f32 sum in global memory counts denormal operands and results as zero (of their sign), because
// that is what every GPU's atomic unit does. Sums in shared memory keep them.
#include <cstring>

#include "backend/ir/op/atomic.h"
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

void check(const InferInput& in, std::size_t values, std::size_t mask) {
  const Type& ptr = in.type(0);
  if (!ptr.ptr) in.fail("takes a pointer, not " + ptr.str());
  if (ptr.read_only) in.fail("pointer is " + ptr.str() + ", which is read only");
  if (bits(ptr.dtype) < 16)
    in.fail("pointer is " + ptr.str() + "; only elements of 16, 32 and 64 bits are changed atomically");
  const Type element = ptr.with(ptr.dtype), wanted = ptr.with(DType::i1);
  for (std::size_t i = 1; i <= values; ++i)
    if (in.type(i) != element) in.fail("value is " + in.type(i).str() + ", pointer is " + ptr.str());
  if (in.operands.size() > mask && in.type(mask) != wanted)
    in.fail("mask is " + in.type(mask).str() + ", must be " + wanted.str() + " for a pointer of " + ptr.str());
}

std::uint64_t read(const std::byte* at, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, bytes);
  return bits;
}

std::uint64_t flushed(std::uint64_t f32) { return (f32 & 0x7f800000) == 0 ? f32 & 0x80000000 : f32; }

std::uint64_t combine(Rmw rmw, const Type& ptr, std::uint64_t old, std::uint64_t value) {
  if (rmw == Rmw::Exchange) return value;
  const bool flush = rmw == Rmw::Add && ptr.dtype == DType::f32 && !ptr.shared;
  if (flush) old = flushed(old), value = flushed(value);
  const void* operands[] = {&old, &value};
  std::uint64_t result = 0;
  elementwise_kernel(elementwise_of(rmw), ptr.dtype, operands, &result, 1);
  return flush ? flushed(result) : result;
}

/// Runs `next(i, old)` on every element that is not masked off; the result gets what was there.
template <class Next>
void update(Evaluator& e, const Inst& inst, std::size_t mask_operand, Next&& next) {
  const Value r = inst.results[0];
  const auto* address = e.in<std::uint64_t>(inst.operands[0]);
  const bool* mask = inst.operands.size() > mask_operand ? e.in<bool>(inst.operands[mask_operand]) : nullptr;
  const std::size_t bytes = element_bytes(e.type(r)), n = e.elements(r);
  std::byte* out = e.define(r);
  for (std::size_t i = 0; i < n; ++i, out += bytes) {
    std::uint64_t old = 0;
    if (!mask || mask[i]) {
      std::byte* memory = e.access(address[i], bytes, inst, i);
      old = read(memory, bytes);
      const std::uint64_t now = next(i, old);
      std::memcpy(memory, &now, bytes);
    }
    std::memcpy(out, &old, bytes);
  }
}

}  // namespace

Op elementwise_of(Rmw rmw) {
  switch (rmw) {
    case Rmw::Add: return Op::Add;
    case Rmw::Min: return Op::Min;
    case Rmw::Max: return Op::Max;
    case Rmw::And: return Op::And;
    case Rmw::Or: return Op::Or;
    case Rmw::Xor: return Op::Xor;
    case Rmw::Exchange: break;
  }
  throw InternalError("exchange combines nothing");
}

Types infer_AtomicRmw(const InferInput& in) {
  check(in, 1, 2);
  const auto rmw = Rmw(in.i64(AttrKey::rmw));
  const bool bitwise = rmw == Rmw::And || rmw == Rmw::Or || rmw == Rmw::Xor;
  if (bitwise && is_float(in.type(0).dtype))
    in.fail(std::string(name(rmw)) + " needs integers, pointer is " + in.type(0).str());
  return {in.type(1)};
}
void eval_AtomicRmw(Evaluator& e, const Inst& inst) {
  const auto rmw = Rmw(inst.i64(AttrKey::rmw));
  const Type& ptr = e.type(inst.operands[0]);
  const std::byte* value = e.data(inst.operands[1]);
  const std::size_t bytes = element_bytes(e.type(inst.operands[1]));
  update(e, inst, 2,
         [&](std::size_t i, std::uint64_t old) { return combine(rmw, ptr, old, read(value + i * bytes, bytes)); });
}

Types infer_AtomicCas(const InferInput& in) {
  check(in, 2, 3);
  return {in.type(1)};
}
void eval_AtomicCas(Evaluator& e, const Inst& inst) {
  const std::byte *expected = e.data(inst.operands[1]), *desired = e.data(inst.operands[2]);
  const std::size_t bytes = element_bytes(e.type(inst.operands[1]));
  update(e, inst, 3, [&](std::size_t i, std::uint64_t old) {
    return old == read(expected + i * bytes, bytes) ? read(desired + i * bytes, bytes) : old;
  });
}

}  // namespace kiln::ir
