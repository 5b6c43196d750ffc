#include "backend/llvm/hazards.h"

#include <llvm/IR/Operator.h>

#include "backend/llvm/ptx_asm.h"

namespace kiln::cg {
namespace {

/// b - a in bytes, without the offset they share.
llvm::Value* distance(llvm::IRBuilder<>& at, llvm::Value* a, llvm::Value* b) {
  for (;;) {
    auto* ga = llvm::dyn_cast<llvm::GEPOperator>(a);
    auto* gb = llvm::dyn_cast<llvm::GEPOperator>(b);
    if (ga == nullptr || gb == nullptr || ga->getNumIndices() != 1 || gb->getNumIndices() != 1) break;
    if (ga->getOperand(1) != gb->getOperand(1) || ga->getSourceElementType() != gb->getSourceElementType()) break;
    a = ga->getPointerOperand();
    b = gb->getPointerOperand();
  }
  if (a == b) return at.getInt64(0);
  llvm::Type* i64 = at.getInt64Ty();
  return at.CreateSub(at.CreatePtrToInt(b, i64), at.CreatePtrToInt(a, i64));
}

bool same_pattern(const MemoryAccess& x, const MemoryAccess& y) {
  return x.private_pattern && y.private_pattern && x.scale == y.scale && x.regs == y.regs;
}

/// Whether thread-crossing order between x and y matters: false, true, or a predicate equal in all threads.
llvm::Value* conflict(llvm::IRBuilder<>& at, const MemoryAccess& x, const MemoryAccess& y) {
  if (!x.store && !y.store) return at.getFalse();
  const bool same = same_pattern(x, y);
  if (same && x.base == y.base) return at.getFalse();
  if (!x.bounded || !y.bounded) return at.getTrue();
  // [lo.x, hi.x) and d + [lo.y, hi.y) share a byte iff lo.x - hi.y < d < hi.x - lo.y
  llvm::Value* d = distance(at, x.base, y.base);
  const std::int64_t least = x.lo - y.hi + 1, count = x.hi - y.lo - least;
  llvm::Value* overlap =
      at.CreateICmpULT(at.CreateSub(d, at.getInt64(std::uint64_t(least))), at.getInt64(std::uint64_t(count)));
  return same ? at.CreateAnd(overlap, at.CreateICmpNE(d, at.getInt64(0))) : overlap;
}

}  // namespace

// The cluster barrier's default semantics, release and acquire at cluster scope, order global memory too.
void Hazards::barrier_where(llvm::IRBuilder<>& b, llvm::Value* active) {
  PtxAsm text;
  const std::string when = active == nullptr ? "" : "@" + text.in(active, 'b') + " ";
  if (cluster_) {
    text.line(when + "barrier.cluster.arrive.aligned;");
    text.line(when + "barrier.cluster.wait.aligned;");
  } else {
    text.line(when + "bar.sync 0;");
  }
  text.emit(b)->setConvergent();
}

void Hazards::barrier(llvm::IRBuilder<>& b) {
  barrier_where(b, nullptr);
  pending_.clear();
}

void Hazards::before(llvm::IRBuilder<>& b, MemoryAccess access) {
  llvm::Value* any = b.getFalse();
  for (const MemoryAccess& earlier : pending_) {
    any = b.CreateOr(any, conflict(b, earlier, access));
    if (llvm::isa<llvm::Constant>(any) && !llvm::cast<llvm::Constant>(any)->isNullValue()) break;
  }
  if (auto* known = llvm::dyn_cast<llvm::Constant>(any)) {
    if (!known->isNullValue()) barrier(b);
  } else {
    barrier_where(b, any);
  }
  stores_ += access.store;
  pending_.push_back(std::move(access));
}

void Hazards::leave(const Mark& before) {
  bool loads = false, stores = false;
  for (const MemoryAccess& a : pending_) (a.store ? stores : loads) = true;
  pending_ = before.pending;
  MemoryAccess unknown;
  if (loads) pending_.push_back(unknown);
  unknown.store = true;
  if (stores) pending_.push_back(unknown);
}

void Hazards::end_iteration(llvm::IRBuilder<>& b, const Mark& before) {
  if (stores_ != before.stores) barrier(b);
}

}  // namespace kiln::cg
