// Pointer arithmetic, loads and stores of global memory.
#include <llvm/IR/Module.h>

#include <optional>

#include "backend/llvm/access.h"
#include "backend/llvm/index.h"

namespace kiln::cg {
namespace {

using llvm::Value;

/// A loaded scalar may decide a branch with a barrier inside, so it must be the same in all threads whatever other
/// programs write meanwhile: one thread loads it and hands it round.
TileValue hand_round(Emitter& e, Value* loaded, const Geometry& g, DType dtype) {
  llvm::IRBuilder<>& b = e.b;
  llvm::Type* memory = e.c.memory_type(dtype);
  llvm::Module& m = e.c.module();
  const char* name = "kiln_scalar";
  llvm::GlobalVariable* slot = m.getNamedGlobal(name);
  if (slot == nullptr) {
    llvm::Type* i64 = b.getInt64Ty();
    slot = new llvm::GlobalVariable(m, i64, false, llvm::GlobalValue::InternalLinkage, llvm::PoisonValue::get(i64),
                                    name, nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
    slot->setAlignment(llvm::Align(8));
  }
  const unsigned width = memory->getPrimitiveSizeInBits().getFixedValue() == 0
                             ? 64
                             : unsigned(memory->getPrimitiveSizeInBits().getFixedValue());
  Value* bits = dtype == DType::i1 ? b.CreateZExt(loaded, b.getInt8Ty()) : b.CreateBitCast(loaded, b.getIntNTy(width));
  PtxAsm write;
  const std::string v = write.in(b.CreateZExt(bits, b.getInt64Ty())), p = write.in(g.owner, 'b');
  const std::string at = write.in(b.CreatePtrToInt(slot, b.getInt64Ty()));
  if (e.exec().cluster == 1) write.line("@" + p + " st.shared.b64 [" + at + "], " + v + ";");
  else {
    write.line("{ .reg .b64 there;");
    for (int rank = 0; rank < e.exec().cluster; ++rank) {
      write.line("mapa.shared::cluster.u64 there, " + at + ", " + std::to_string(rank) + ";");
      write.line("@" + p + " st.shared::cluster.b64 [there], " + v + ";");
    }
    write.line("}");
  }
  write.emit(b);
  e.hazards.barrier(b);
  PtxAsm read;
  const std::string out = read.out(b.getInt64Ty());
  read.line("ld.shared.b64 " + out + ", [" + read.in(b.CreatePtrToInt(slot, b.getInt64Ty())) + "];");
  read.emit(b);
  Value* same = b.CreateTrunc(read.result(b, 0), b.getIntNTy(width));
  e.hazards.barrier(b);
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
  const bool broadcast = e.type(result).is_scalar() && e.has_control_flow;
  if (broadcast) access.add_owner();
  TileValue loaded = access.load(other ? &*other : nullptr);
  if (broadcast) loaded = hand_round(e, loaded.regs[0].v, g, e.type(result).dtype);
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
