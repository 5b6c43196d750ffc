// Load and store. A masked-off lane touches no memory, whatever its pointer is. A store writes elements in row-major
// order of the tile: where two lanes hold one address, the last one stays.
#include <cstring>

#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

void check_pointer(const InferInput& in) {
  if (!in.type(0).ptr) in.fail("takes a pointer, not " + in.type(0).str());
}

void check_mask(const InferInput& in, std::size_t operand) {
  const Type &mask = in.type(operand), wanted = in.type(0).with(DType::i1);
  if (mask != wanted)
    in.fail("mask is " + mask.str() + ", must be " + wanted.str() + " for a pointer of " + in.type(0).str());
}

}  // namespace

Types infer_Load(const InferInput& in) {
  check_pointer(in);
  const Type element = in.type(0).with(in.type(0).dtype);
  if (in.operands.size() > 1) check_mask(in, 1);
  if (in.operands.size() > 2 && in.type(2) != element)
    in.fail("other is " + in.type(2).str() + ", must be " + element.str() + " for a pointer of " + in.type(0).str());
  return {element};
}
void eval_Load(Evaluator& e, const Inst& inst) {
  const Value r = inst.results[0];
  const auto* address = e.in<std::uint64_t>(inst.operands[0]);
  const bool* mask = inst.operands.size() > 1 ? e.in<bool>(inst.operands[1]) : nullptr;
  const std::byte* other = inst.operands.size() > 2 ? e.data(inst.operands[2]) : nullptr;
  const std::size_t bytes = element_bytes(e.type(r)), n = e.elements(r);
  std::byte* out = e.define(r);
  for (std::size_t i = 0; i < n; ++i, out += bytes) {
    if (!mask || mask[i]) std::memcpy(out, e.access(address[i], bytes, inst, i), bytes);
    else if (other) std::memcpy(out, other + i * bytes, bytes);
    else std::memset(out, 0, bytes);
  }
  if (e.type(r).dtype == DType::i1) {  // any nonzero byte is true
    auto* first = e.define(r);
    for (std::size_t i = 0; i < n; ++i) first[i] = std::byte(first[i] != std::byte(0));
  }
}

Types infer_Store(const InferInput& in) {
  check_pointer(in);
  const Type &ptr = in.type(0), &value = in.type(1);
  if (ptr.read_only) in.fail("pointer is " + ptr.str() + ", which is read only");
  if (value != ptr.with(ptr.dtype)) in.fail("value is " + value.str() + ", pointer is " + ptr.str());
  if (in.operands.size() > 2) check_mask(in, 2);
  return {};
}
void eval_Store(Evaluator& e, const Inst& inst) {
  const Value value = inst.operands[1];
  const auto* address = e.in<std::uint64_t>(inst.operands[0]);
  const std::byte* from = e.data(value);
  const bool* mask = inst.operands.size() > 2 ? e.in<bool>(inst.operands[2]) : nullptr;
  const std::size_t bytes = element_bytes(e.type(value)), n = e.elements(value);
  for (std::size_t i = 0; i < n; ++i)
    if (!mask || mask[i]) std::memcpy(e.access(address[i], bytes, inst, i), from + i * bytes, bytes);
}

}  // namespace kiln::ir
