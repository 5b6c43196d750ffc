// Pointer arithmetic, loads and stores of global memory.
#include <optional>

#include "backend/ir/op/scratch.h"
#include "backend/llvm/access.h"
#include "backend/llvm/index.h"

namespace kiln::cg {
namespace {

using llvm::Value;

/// One thread loads a scalar and hands it round (ir::is_handed_round).
TileValue hand_round(Emitter& e, const ir::Inst& inst, Value* loaded, Value* owner) {
  llvm::IRBuilder<>& b = e.b;
  const DType dtype = e.type(inst.results[0]).dtype;
  const Scratch slot = e.scratch(inst);
  llvm::IntegerType* bits_type = b.getIntNTy(unsigned(8 * bytes(dtype)));
  Value* bits = dtype == DType::i1 ? b.CreateZExt(loaded, bits_type) : b.CreateBitCast(loaded, bits_type);
  e.hazards.shared_write(b, slot.range);
  PtxAsm write;
  const std::string v = write.in(b.CreateZExt(bits, b.getInt64Ty())), p = write.in(owner, 'b'),
                    at = write.in(slot.address);
  if (e.exec().cluster == 1) write.line("@" + p + " st.shared.b64 [" + at + "], " + v + ";");
  else {
    write.line("{ .reg .b32 there;");
    for (int rank = 0; rank < e.exec().cluster; ++rank) {
      write.line("mapa.shared::cluster.u32 there, " + at + ", " + std::to_string(rank) + ";");
      write.line("@" + p + " st.shared::cluster.b64 [there], " + v + ";");
    }
    write.line("}");
  }
  write.emit(b);
  e.hazards.shared_read(b, slot.range);
  PtxAsm read;
  const std::string out = read.out(b.getInt64Ty());
  read.line("ld.shared.b64 " + out + ", [" + read.in(slot.address) + "];");
  read.emit(b);
  Value* same = b.CreateTrunc(read.result(b, 0), bits_type);
  TileValue t;
  t.regs.push_back({dtype == DType::i1 ? b.CreateIsNotNull(same) : b.CreateBitCast(same, e.c.type(dtype)), 0});
  return t;
}

}  // namespace

void emit_PtrAdd(Emitter& e, const ir::Inst& inst) {
  const ir::Value ptr = inst.operands[0], offset = inst.operands[1], result = inst.results[0];
  const Geometry& g = e.geometry_of(result);
  const DType type = e.type(offset).dtype;
  const TileValue by = type == DType::index ? e.get(offset) : index_of_integers(e.b, g, e.get(offset), type);
  e.set(result, advance(e.b, g, e.get(ptr), by, bytes(e.type(ptr).dtype)));
}

void emit_Load(Emitter& e, const ir::Inst& inst) {
  const ir::Value ptr = inst.operands[0], result = inst.results[0];
  const Geometry& g = e.geometry_of(result);
  Access access(e, inst, g, ptr);
  access.order(/*store=*/false);
  access.add_extents();
  if (inst.operands.size() > 1) access.add_mask(e.as_plain(inst.operands[1]));
  std::optional<TileValue> other;
  if (inst.operands.size() > 2) other = e.as_plain(inst.operands[2]);
  const bool broadcast = ir::is_handed_round(e.f, inst);
  if (broadcast) access.add_owner();
  TileValue loaded = access.load(other ? &*other : nullptr);
  if (broadcast) loaded = hand_round(e, inst, loaded.regs[0].v, g.owner);
  e.set_plain(result, std::move(loaded));
}

void emit_Store(Emitter& e, const ir::Inst& inst) {
  const ir::Value ptr = inst.operands[0], value = inst.operands[1];
  const Geometry& g = e.geometry_of(value);
  Access access(e, inst, g, ptr);
  access.order(/*store=*/true);
  access.add_extents();
  if (inst.operands.size() > 2) access.add_mask(e.as_plain(inst.operands[2]));
  access.add_owner();
  access.store(e.as_plain(value));
}

}  // namespace kiln::cg
