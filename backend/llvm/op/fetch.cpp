// Fetches: tiles go to a slot of a ring by cp.async, one group of copies a fetch.
//
// The groups are counted, not the slots: a fetch that is not active commits an empty one. So with n slots, n - 2 groups
// may be open when a slot is taken, and the barrier behind the wait both shows each thread what the others have copied
// and tells it that they no longer read the slot before, which is filled next.
#include "backend/llvm/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "backend/llvm/access.h"
#include "backend/llvm/ptx_asm.h"

namespace kiln::cg {
namespace {

using llvm::Value;

class SlotRing {
 public:
  SlotRing(Emitter& e, ir::Value ring)
      : e_(e), b_(e.b), ring_(ring), slots_(ir::fetch_slots(e.f, ring)), slot_bytes_(ir::fetch_slot_bytes(e.f, ring)) {
    FetchPosition& at = e.fetched[ring.id];
    if (at.fill != nullptr) return;
    llvm::IRBuilder<>& entry = e.geometry.entry();
    for (llvm::AllocaInst** a : {&at.fill, &at.take}) {
      *a = entry.CreateAlloca(entry.getInt32Ty());
      entry.CreateStore(entry.getInt32(0), *a);
    }
  }

  ir::SharedRange range() const { return ir::scratch_range(e_.f, e_.f.inst(e_.f.def(ring_))); }
  Value* base() { return b_.CreateTrunc(b_.CreatePtrToInt(e_.scalar(ring_), b_.getInt64Ty()), b_.getInt32Ty()); }
  std::int64_t slots() const { return slots_; }

  /// i32: bytes from the start of the ring to the slot that is filled; `position`: as in the attribute.
  Value* to_fill(std::int64_t position) {
    const FetchPosition& at = e_.fetched.at(ring_.id);
    if (position == 0) return b_.CreateLoad(b_.getInt32Ty(), at.fill);
    if (position == 1) b_.CreateStore(b_.getInt32(0), at.take);
    b_.CreateStore(bytes(position), at.fill);
    return bytes(position - 1);
  }
  Value* to_take() { return b_.CreateLoad(b_.getInt32Ty(), e_.fetched.at(ring_.id).take); }
  /// The slot that was taken is filled next.
  void next() {
    const FetchPosition& at = e_.fetched.at(ring_.id);
    Value *taken = to_take(), *after = b_.CreateAdd(taken, bytes(1));
    b_.CreateStore(taken, at.fill);
    b_.CreateStore(b_.CreateSelect(b_.CreateICmpEQ(after, bytes(slots_)), b_.getInt32(0), after), at.take);
  }

 private:
  Value* bytes(std::int64_t slots) { return b_.getInt32(std::uint32_t(slots * slot_bytes_)); }

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::Value ring_;
  const std::int64_t slots_, slot_bytes_;
};

void copy_block(Emitter& e, const ir::Inst& fetch, std::size_t number, const ir::FetchBlock& block, Value* slot) {
  llvm::IRBuilder<>& b = e.b;
  const std::size_t first = ir::kFetchFirst + number * ir::kFetchOperands;
  const ir::Value pointer = fetch.operands[first];
  const Geometry& g = e.geometry_of(pointer);
  const SharedPlace place = place_in_slot(block);
  Access access(e, fetch, g, pointer);
  access.order(/*store=*/false);
  access.add_extents();
  access.add_mask(e.as_plain(fetch.operands[first + 1]));
  Value* active = e.scalar(fetch.operands[1]);
  access.add_mask(map_registers(g, {}, [&](Regs) { return active; }));

  Value* thread = b.getInt32(0);
  std::int64_t reach = 0;
  for (int axis = 0; axis < int(g.axes.size()); ++axis)
    if (const Geometry::Axis& x = g.axes[std::size_t(axis)]; x.thread != nullptr) {
      thread = b.CreateXor(thread, place.at(b, axis, x.thread));
      reach |= place.reach(axis, x.thread_known.range.hi);
    }
  Value* tile = b.CreateAdd(slot, b.getInt32(std::uint32_t(block.offset)));
  const auto part = [&](int r) { return place.at(g.parts[std::size_t(r)]); };
  access.copy({tile, thread, reach, part}, g.owner);
}

/// A loop that has run before may have left copies open: of trips that did not come, so only zeros, but they must not
/// come behind what is copied now.
void start(Emitter& e, ir::SharedRange range) {
  PtxAsm text;
  text.line("cp.async.wait_group 0;");
  text.emit(e.b);
  e.hazards.shared_write(e.b, range);
}

}  // namespace

SharedPlace place_in_slot(const ir::FetchBlock& block) {
  std::vector<int> bits;
  for (std::int64_t extent : block.extents) bits.push_back(std::countr_zero(std::uint64_t(extent)));
  return SharedPlace::lines(bytes(block.dtype), block.along, 1 - block.along, bits, block.singly);
}

ir::FetchBlock fetched_block(const ir::Function& f, ir::Value taken) {
  const ir::Inst& take = f.inst(f.def(taken));
  const auto number = std::size_t(std::find(take.results.begin(), take.results.end(), taken) - take.results.begin());
  return ir::fetch_blocks(f, ir::fetch_into(f, take.operands[0]))[number];
}

void emit_Fetch(Emitter& e, const ir::Inst& inst) {
  SlotRing ring(e, inst.operands[0]);
  const std::int64_t position = inst.i64(ir::AttrKey::position);
  if (position == 1) start(e, ring.range());
  Value* slot = e.b.CreateAdd(ring.base(), ring.to_fill(position));
  const std::vector<ir::FetchBlock> blocks = ir::fetch_blocks(e.f, inst);
  for (std::size_t i = 0; i < blocks.size(); ++i) copy_block(e, inst, i, blocks[i], slot);
  PtxAsm text;
  text.line("cp.async.commit_group;");
  text.emit(e.b);
}

void take_fetched(Emitter& e, const ir::Inst& take) {
  SlotRing ring(e, take.operands[0]);
  PtxAsm text;
  text.line(fmt::format("cp.async.wait_group {};", ring.slots() - 2));
  text.emit(e.b);
  e.hazards.barrier(e.b);
  e.hazards.shared_touched(ring.range(), /*store=*/false);
  Value* slot = e.b.CreateAdd(ring.base(), ring.to_take());
  const std::vector<ir::FetchBlock> blocks = ir::fetch_blocks(e.f, ir::fetch_into(e.f, take.operands[0]));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Value* address = e.b.CreateAdd(slot, e.b.getInt32(std::uint32_t(blocks[i].offset)));
    address =
        e.b.CreateIntToPtr(e.b.CreateZExt(address, e.b.getInt64Ty()), llvm::PointerType::get(e.c.context(), kShared));
    e.set(take.results[i], e.pointer_scalar(address, blocks[i].dtype));
  }
}

void release_fetched(Emitter& e, const ir::Inst& release) { SlotRing(e, release.operands[0]).next(); }

}  // namespace kiln::cg
