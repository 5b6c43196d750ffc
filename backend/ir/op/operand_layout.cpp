#include "backend/ir/op/operand_layout.h"

#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

LinearLayout no_tile_operand(const Inst& inst) {
  throw InternalError(std::string(mnemonic(inst.op)) + " has no tile operand");
}

}  // namespace

LinearLayout operand_layout(const Function& f, const Inst& inst, std::size_t k, const LinearLayout& l) {
  switch (inst.op) {
// clang-format off
#define KILN_EW(Enum, ...) case Op::Enum: return l;
#define KILN_OP(Enum, ...) case Op::Enum: return layout_##Enum(f, inst, k, l);
#include "backend/ir/ops.def"
    // clang-format on
  }
  return l;
}

// The operand is used where the result stands.
LinearLayout layout_Cast(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_Bitcast(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_Select(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_PtrAdd(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_Load(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_Store(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_AtomicRmw(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_AtomicCas(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_Opaque(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_InlinePtx(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_Print(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_Name(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_Assert(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_Sort(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }

// A tile of fewer axes or extents is replicated over the threads and registers that differ only in the missing ones.
LinearLayout layout_ExpandDims(const Function&, const Inst& inst, std::size_t, const LinearLayout& l) {
  return l.slice(int(inst.i64(AttrKey::axis))).without_free_registers();
}
LinearLayout layout_Broadcast(const Function& f, const Inst& inst, std::size_t, const LinearLayout& l) {
  LinearLayout r = l;
  const Shape& from = f.type(inst.operands[0]).shape;
  for (int axis = 0; axis < l.rank(); ++axis)
    if (from[std::size_t(axis)] == 1) r = r.collapse(axis);
  return r.without_free_registers();
}

// A conversion is where the layout changes: its operand keeps the one it has.
LinearLayout layout_Convert(const Function& f, const Inst& inst, std::size_t k, const LinearLayout&) {
  return f.layout(f.type(inst.operands[k]).layout);
}

// Their operands keep the layout they have; what the result needs of other threads is moved when it is computed.
LinearLayout layout_Histogram(const Function& f, const Inst& inst, std::size_t k, const LinearLayout&) {
  return f.layout(f.type(inst.operands[k]).layout);
}
// a and b go through shared memory, from whatever layout they have; the accumulator is where the result is.
LinearLayout layout_Dot(const Function& f, const Inst& inst, std::size_t k, const LinearLayout& l) {
  return k == 2 ? l : f.layout(f.type(inst.operands[k]).layout);
}

LinearLayout layout_Alloc(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
LinearLayout layout_Barrier(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
LinearLayout layout_Constant(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
LinearLayout layout_Param(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
LinearLayout layout_ProgramId(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
LinearLayout layout_NumPrograms(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
LinearLayout layout_Arange(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
LinearLayout layout_Splat(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}

// Scalars alone, or the accumulator, which is where the result is.
LinearLayout layout_Block(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
LinearLayout layout_Fill(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
// Fetches come behind assign-layouts; blocks stand as they are loaded.
LinearLayout layout_Fetch(const Function& f, const Inst& inst, std::size_t k, const LinearLayout&) {
  return f.layout(f.type(inst.operands[k]).layout);
}
LinearLayout layout_Take(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
LinearLayout layout_Release(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
LinearLayout layout_Walk(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
LinearLayout layout_Partitions(const Function&, const Inst& inst, std::size_t, const LinearLayout&) {
  return no_tile_operand(inst);
}
LinearLayout layout_StoreBlock(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_Settle(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_RingDot(const Function& f, const Inst& inst, std::size_t k, const LinearLayout& l) {
  return layout_Dot(f, inst, k, l);
}

// What enters or leaves a region is carried in one layout.
LinearLayout layout_For(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_While(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_If(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }
LinearLayout layout_Yield(const Function&, const Inst&, std::size_t, const LinearLayout& l) { return l; }

}  // namespace kiln::ir
