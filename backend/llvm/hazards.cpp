#include "backend/llvm/hazards.h"

#include <fmt/format.h>

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Operator.h>

#include <algorithm>

#include "backend/llvm/ptx_asm.h"

namespace kiln::cg {
namespace {

using Space = MemoryAccess::Space;

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

/// The parameter that an access starts from; null where that is not known.
llvm::Argument* parameter(const MemoryAccess& x) {
  if (x.base == nullptr) return nullptr;
  return llvm::dyn_cast<llvm::Argument>(llvm::getUnderlyingObject(x.base, 0));
}

/// Whether the launch guarantees that two accesses touch different memory (ir::Param::disjoint).
bool disjoint(const MemoryAccess& x, const MemoryAccess& y) {
  const llvm::Argument *p = parameter(x), *q = parameter(y);
  return p != nullptr && q != nullptr && p != q && (p->hasNoAliasAttr() || q->hasNoAliasAttr());
}

/// What is left of an access outside of the region it is in: which parameter it starts from.
MemoryAccess origin_of(const MemoryAccess& x) {
  MemoryAccess origin;
  origin.space = x.space;
  origin.store = x.store;
  origin.commutes = x.commutes;
  origin.base = parameter(x);
  return origin;
}

bool same_origin(const MemoryAccess& x, const MemoryAccess& y) {
  return x.space == y.space && x.store == y.store && x.commutes == y.commutes && x.base == y.base;
}

bool overlap(const MemoryAccess& x, const MemoryAccess& y) { return x.lo < y.hi && y.lo < x.hi; }

bool unordered(const MemoryAccess& x, const MemoryAccess& y) {
  return (!x.store && !y.store) || (x.commutes != 0 && x.commutes == y.commutes);
}

/// Whether thread-crossing order between x and y matters: false, true, or a predicate equal in all threads.
llvm::Value* conflict(llvm::IRBuilder<>& at, const MemoryAccess& x, const MemoryAccess& y) {
  if (x.space != y.space || unordered(x, y)) return at.getFalse();
  if (x.space == Space::Scratch) return at.getInt1(overlap(x, y));
  if (disjoint(x, y)) return at.getFalse();
  const bool same = same_pattern(x, y);
  if (same && x.base == y.base) return at.getFalse();
  if (!x.bounded || !y.bounded) return at.getTrue();
  // [lo.x, hi.x) and d + [lo.y, hi.y) share a byte iff lo.x - hi.y < d < hi.x - lo.y
  llvm::Value* d = distance(at, x.base, y.base);
  const std::int64_t least = x.lo - y.hi + 1, count = x.hi - y.lo - least;
  llvm::Value* meet =
      at.CreateICmpULT(at.CreateSub(d, at.getInt64(std::uint64_t(least))), at.getInt64(std::uint64_t(count)));
  return same ? at.CreateAnd(meet, at.CreateICmpNE(d, at.getInt64(0))) : meet;
}

/// Whether y of the next iteration must wait for x of this one.
bool conflict_with_next(const MemoryAccess& x, const MemoryAccess& y) {
  return x.space == y.space && !unordered(x, y) && (x.space == Space::Scratch ? overlap(x, y) : !disjoint(x, y));
}

bool same_range(const MemoryAccess& x, const MemoryAccess& y) {
  return x.space == Space::Scratch && y.space == x.space && x.store == y.store && x.lo == y.lo && x.hi == y.hi;
}

MemoryAccess of_range(ir::SharedRange range, bool store) {
  MemoryAccess access;
  access.store = store;
  access.space = Space::Scratch;
  access.lo = range.lo;
  access.hi = range.hi;
  return access;
}

}  // namespace

// The cluster barrier's default semantics, release and acquire at cluster scope, order global memory too.
void Hazards::barrier_where(llvm::IRBuilder<>& b, llvm::Value* active) {
  PtxAsm text;
  const std::string when = active == nullptr ? "" : "@" + text.in(active, 'b') + " ";
  switch (team_) {
    case ir::Team::Warp: text.line(when + "bar.warp.sync 0xffffffff;"); break;
    case ir::Team::Cta: text.line(when + (named_ == 0 ? "bar.sync 0;" : fmt::format("bar.sync 1, {};", named_))); break;
    case ir::Team::Cluster:
      text.line(when + "barrier.cluster.arrive.aligned;");
      text.line(when + "barrier.cluster.wait.aligned;");
      break;
  }
  text.emit(b)->setConvergent();
}

void Hazards::barrier(llvm::IRBuilder<>& b) {
  barrier_where(b, nullptr);
  reached();
}

void Hazards::reached() {
  pending_.clear();
  ++epoch_;
}

void Hazards::record(MemoryAccess access) {
  access.number = log_.size();
  log_.push_back({access, epoch_});
  pending_.push_back(std::move(access));
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
  record(std::move(access));
}

void Hazards::shared(llvm::IRBuilder<>& b, ir::SharedRange range, bool store) { before(b, of_range(range, store)); }

void Hazards::shared_touched(ir::SharedRange range, bool store) { record(of_range(range, store)); }

void Hazards::shared_read_in_warp(llvm::IRBuilder<>& b, ir::SharedRange range) {
  PtxAsm text;
  text.line("bar.warp.sync 0xffffffff;");
  text.emit(b)->setConvergent();
  record(of_range(range, /*store=*/false));
}

void Hazards::resume(const Mark& at) {
  pending_ = at.pending;
  epoch_ = at.epoch;
}

void Hazards::add(const Mark& other) {
  pending_.insert(pending_.end(), other.pending.begin(), other.pending.end());
  epoch_ = std::min(epoch_, other.epoch);
}

void Hazards::leave(const Mark& before) {
  std::vector<MemoryAccess> ranges, origins;
  for (MemoryAccess& a : pending_) {
    if (a.number < before.seen) continue;  // resume() brings it back, and with all that is known of it
    const MemoryAccess origin = origin_of(a);
    if (a.space == Space::Scratch) ranges.push_back(std::move(a));
    else if (std::none_of(origins.begin(), origins.end(), [&](const auto& o) { return same_origin(o, origin); }))
      origins.push_back(origin);
  }
  resume(before);
  for (const MemoryAccess& origin : origins) record(origin);
  for (MemoryAccess& range : ranges)
    if (std::none_of(pending_.begin(), pending_.end(), [&](const auto& p) { return same_range(p, range); }))
      pending_.push_back(std::move(range));
}

void Hazards::end_iteration(llvm::IRBuilder<>& b, const Mark& before) { end(b, before, /*same_program=*/true); }
void Hazards::end_program(llvm::IRBuilder<>& b, const Mark& before) { end(b, before, /*same_program=*/false); }

void Hazards::end(llvm::IRBuilder<>& b, const Mark& before, bool same_program) {
  const auto waits = [&](const MemoryAccess& x) {
    return x.number >= before.seen && (same_program || x.space != Space::Global) &&
           std::any_of(log_.begin() + std::ptrdiff_t(before.seen), log_.end(), [&](const Logged& next) {
             return next.epoch == before.epoch && conflict_with_next(x, next.access);
           });
  };
  if (std::any_of(pending_.begin(), pending_.end(), waits)) barrier(b);
}

}  // namespace kiln::cg
