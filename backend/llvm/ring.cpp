#include "backend/llvm/ring.h"

#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "backend/ir/op/store_block.h"
#include "backend/llvm/hidden.h"
#include "backend/llvm/ptx_asm.h"

namespace kiln::cg {
namespace {

using llvm::Value;
constexpr int kMbarrierBytes = 8;

const ir::Inst& fill_of(Emitter& e) { return e.f.inst(ir::fill_of(e.f)); }

}  // namespace

Value* thread_number(llvm::IRBuilder<>& b) {
  return b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, llvm::ArrayRef<llvm::Type*>{}, {});
}

Value* warpgroup_number(Emitter& e) {
  llvm::IRBuilder<>& entry = e.geometry.entry();
  return entry.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, llvm::ArrayRef<llvm::Type*>{},
                               {entry.getInt32(~0u), entry.CreateLShr(thread_number(entry), std::uint64_t(7)),
                                entry.getInt32(0), entry.getInt32(31)});
}

Value* cluster_rank(Emitter& e) {
  return e.geometry.entry().CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_cluster_ctarank,
                                            llvm::ArrayRef<llvm::Type*>{}, {});
}

// A last program without a neighbour has its block wait for nothing: not worth it where there are few.
Value* pair_shares(Emitter& e) {
  const ir::InstId walk = ir::walk_of(e.f);
  const std::int64_t pair = walk == ir::kNone ? 0 : e.f.inst(walk).i64(ir::AttrKey::pair);
  if (pair == 0) return nullptr;
  constexpr std::int64_t kMany = 10;
  llvm::IRBuilder<>& entry = e.geometry.entry();
  Value* programs = hidden_arg(e, rt::HiddenParam::UserGrid, unsigned(pair - 1));
  Value* odd = entry.CreateTrunc(programs, entry.getInt1Ty());
  return entry.CreateOr(entry.CreateNot(odd), entry.CreateICmpUGT(programs, entry.getInt64(kMany)));
}

Value* coordinate(Emitter& e, ir::Value v) {
  llvm::IRBuilder<>& b = e.b;
  Value* x = e.scalar(v);
  Value* low = b.CreateTrunc(x, b.getInt32Ty());
  Value* fits = b.CreateICmpEQ(b.CreateSExt(low, b.getInt64Ty()), x);
  return b.CreateSelect(fits, low, b.getInt32(std::uint32_t(INT32_MIN)));
}

Ring::Ring(Emitter& e)
    : e_(e),
      stages_(fill_of(e).i64(ir::AttrKey::stages)),
      slot_bytes_(ir::slot_bytes(e.f, fill_of(e))),
      base_(e.scratch(fill_of(e)).address) {
  full_ = stages_ * slot_bytes_;
  empty_ = full_ + stages_ * kMbarrierBytes;
  if (e_.ring.slot != nullptr) return;
  llvm::IRBuilder<>& entry = e_.geometry.entry();
  for (llvm::AllocaInst** at : {&e_.ring.slot, &e_.ring.phase}) {
    *at = entry.CreateAlloca(entry.getInt32Ty());
    entry.CreateStore(entry.getInt32(0), *at);
  }
  e_.ring.behind = entry.CreateAlloca(entry.getInt1Ty());
  entry.CreateStore(entry.getFalse(), e_.ring.behind);
}

void Ring::open() {
  llvm::IRBuilder<>& b = e_.b;
  PtxAsm text;
  const std::string base = text.in_register(base_);
  Value* tid = thread_number(b);
  const std::string first = text.in(b.CreateICmpEQ(tid, b.getInt32(0)), 'b');
  const auto readers =
      std::uint32_t(e_.exec().warps / 4);  // one arrival a warpgroup of each block that a slot's half goes to
  Value *shares = pair_shares(e_), *arrivals = b.getInt32(readers);
  if (shares != nullptr) arrivals = b.CreateSelect(shares, b.getInt32(2 * readers), arrivals);
  const std::string empties = text.in(arrivals);
  // One branch, not one an mbarrier, which is what predicates become here.
  text.line("{");
  text.line(fmt::format("@!{} bra OPEN_${{:uid}};", first));
  for (std::int64_t s = 0; s < stages_; ++s) {
    text.line(fmt::format("mbarrier.init.shared::cta.b64 [{}+{}], 1;", base, full_ + s * kMbarrierBytes));
    text.line(fmt::format("mbarrier.init.shared::cta.b64 [{}+{}], {};", base, empty_ + s * kMbarrierBytes, empties));
  }
  text.line("fence.mbarrier_init.release.cluster;");
  text.line("OPEN_${:uid}:");
  text.line("}");
  // The maps come from memory while a warp that has nothing else to do waits.
  const std::string other = text.in(b.CreateICmpEQ(tid, b.getInt32(32)), 'b');
  for (std::size_t i = 0; i < ir::kernel_maps(e_.f).size(); ++i)
    text.line(fmt::format("@{} prefetch.tensormap [{}];", other, text.in_register(tensor_map(e_, b, i))));
  if (shares == nullptr) text.line("bar.sync 0;");
  else {
    // Relaxed: the fence has published the mbarriers, and a releasing arrival would wait for all memory.
    text.line("barrier.cluster.arrive.relaxed.aligned;");
    text.line("barrier.cluster.wait.aligned;");
  }
  // What stands before it needs nothing of the launches before.
  if (e_.c.target.has_dependent_launch()) text.line("griddepcontrol.wait;");
  text.emit(b)->setConvergent();
}

Value* Ring::position() { return e_.b.CreateLoad(e_.b.getInt32Ty(), e_.ring.slot); }
Value* Ring::phase() { return e_.b.CreateLoad(e_.b.getInt32Ty(), e_.ring.phase); }

Value* Ring::slot() {
  return e_.b.CreateAdd(base_, e_.b.CreateMul(position(), e_.b.getInt32(std::uint32_t(slot_bytes_))));
}

Value* Ring::mbarrier(std::int64_t first, Value* slot) {
  Value* at = e_.b.CreateAdd(base_, e_.b.CreateMul(slot, e_.b.getInt32(kMbarrierBytes)));
  return e_.b.CreateAdd(at, e_.b.getInt32(std::uint32_t(first)));
}

void Ring::wait(std::int64_t first, Value* parity) {
  PtxAsm text;
  const std::string at = text.in_register(mbarrier(first, position())), want = text.in_register(parity);
  text.line("{");
  text.line(".reg .pred done;");
  text.line("WAIT_${:uid}:");
  text.line(fmt::format("mbarrier.try_wait.parity.shared::cta.b64 done, [{}], {};", at, want));
  text.line("@!done bra WAIT_${:uid};");
  text.line("}");
  text.emit(e_.b)->setConvergent();
}

void Ring::next() {
  llvm::IRBuilder<>& b = e_.b;
  Value* after = b.CreateAdd(position(), b.getInt32(1));
  Value* wraps = b.CreateICmpEQ(after, b.getInt32(std::uint32_t(stages_)));
  b.CreateStore(b.CreateXor(phase(), b.CreateZExt(wraps, b.getInt32Ty())), e_.ring.phase);
  b.CreateStore(b.CreateSelect(wraps, b.getInt32(0), after), e_.ring.slot);
}

/// One thread of each warpgroup says that it is done with the slot, where `where` is true (null: always).
void Ring::arrive(Value* slot, Value* where) {
  llvm::IRBuilder<>& b = e_.b;
  Value* shares = pair_shares(e_);
  if (shares != nullptr) return arrive_at_both(slot, where, shares);
  Value* tid = thread_number(b);
  Value* speaks = b.CreateICmpEQ(b.CreateAnd(tid, b.getInt32(kWarpgroup - 1)), b.getInt32(0));
  if (where != nullptr) speaks = b.CreateAnd(speaks, where);
  PtxAsm text;
  const std::string who = text.in(speaks, 'b'), at = text.in_register(mbarrier(empty_, slot));
  text.line(fmt::format("@{} mbarrier.arrive.shared::cta.b64 _, [{}];", who, at));
  text.emit(b)->setConvergent();
}

/// The same to both blocks of a pair, by one thread each; to this one alone where it shares nothing. The default scope
/// is enough: what follows is a copy into memory that nobody has written by other means.
void Ring::arrive_at_both(Value* slot, Value* where, Value* shares) {
  llvm::IRBuilder<>& b = e_.b;
  Value* thread = b.CreateAnd(thread_number(b), b.getInt32(kWarpgroup - 1));
  Value* speaks = b.CreateICmpULT(thread, b.CreateSelect(shares, b.getInt32(2), b.getInt32(1)));
  if (where != nullptr) speaks = b.CreateAnd(speaks, where);
  Value* to = b.CreateSelect(shares, thread, cluster_rank(e_));
  PtxAsm text;
  const std::string who = text.in(speaks, 'b'), at = text.in_register(mbarrier(empty_, slot)),
                    rank = text.in_register(to);
  text.line("{");
  text.line(".reg .b32 there;");
  text.line(fmt::format("@{} mapa.shared::cluster.u32 there, {}, {};", who, at, rank));
  text.line(fmt::format("@{} mbarrier.arrive.shared::cluster.b64 _, [there];", who));
  text.line("}");
  text.emit(b)->setConvergent();
}

void Ring::drain() {
  for (std::int64_t s = 0; s < stages_; ++s) {
    wait_empty();
    next();
  }
}

void Ring::release_behind(bool then) {
  llvm::IRBuilder<>& b = e_.b;
  Value* here = position();
  Value* first = b.CreateICmpEQ(here, b.getInt32(0));
  Value* before = b.CreateSub(b.CreateSelect(first, b.getInt32(std::uint32_t(stages_)), here), b.getInt32(1));
  arrive(before, b.CreateLoad(b.getInt1Ty(), e_.ring.behind));
  b.CreateStore(b.getInt1(then), e_.ring.behind);
}

}  // namespace kiln::cg
