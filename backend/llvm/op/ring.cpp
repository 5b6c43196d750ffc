// Rings: fills by copies of tensor maps, taking and releasing slots; the two roles of such a program.
//
// The role that fills has a warpgroup of its own, behind the team's warps, of which one thread works; where two
// warpgroups compute, it gives them most of its registers.
#include <fmt/format.h>

#include "backend/ir/op/store_block.h"
#include "backend/llvm/fetch.h"
#include "backend/llvm/hidden.h"
#include "backend/llvm/index.h"
#include "backend/llvm/ptx_asm.h"
#include "backend/llvm/ring.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using llvm::Value;
// Registers of a thread of each role; 168 for each of 384 threads at the start.
constexpr int kOfProducer = 40, kOfConsumer = 232;

/// What is the same for all copies of a block of a slot.
struct Copies {
  Value *map, *slot, *full;  ///< slot: i32, this block's part of it
  Value *fast, *slow;        ///< i32: first coordinates
  const ir::RingBlock& block;
};

/// Some panels, some lines of each, from the first on; `mask`: the blocks of the cluster that they go to, 0: this one.
void copy_part(Emitter& e, const Copies& c, std::int64_t panels, std::int64_t lines, unsigned mask) {
  llvm::IRBuilder<>& b = e.b;
  const std::int64_t line = ir::kLine / bytes(c.block.dtype);
  for (std::int64_t panel = 0; panel < panels; ++panel)
    for (std::int64_t from = 0; from < lines; from += c.block.copy_lines()) {
      PtxAsm text;
      const std::int64_t offset = (panel * c.block.lines() + from) * ir::kLine;
      const std::string to = text.in_register(b.CreateAdd(c.slot, b.getInt32(std::uint32_t(offset)))),
                        of = text.in_register(c.map),
                        x = text.in_register(b.CreateAdd(c.fast, b.getInt32(std::uint32_t(panel * line)))),
                        y = text.in_register(b.CreateAdd(c.slow, b.getInt32(std::uint32_t(from)))),
                        signal = text.in_register(c.full);
      text.line(
          fmt::format("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes{} [{}], [{}, {{{}, "
                      "{}}}], [{}]{};",
                      mask != 0 ? ".multicast::cluster" : "", to, of, x, y, signal,
                      mask != 0 ? ", " + text.in_register(b.getInt16(std::uint16_t(mask))) : ""));
      text.emit(b)->setConvergent();
    }
}

/// Half number `half` (i32) of a block that both blocks of a cluster need.
void copy_half(Emitter& e, const Copies& c, Value* half, unsigned mask) {
  llvm::IRBuilder<>& b = e.b;
  Copies mine = c;
  const std::int64_t panels = c.block.panels(), lines = c.block.lines();
  const bool by_panels = c.block.halved_by_panels();
  const std::int64_t offset = by_panels ? panels / 2 * lines * ir::kLine : lines / 2 * ir::kLine,
                     fast = by_panels ? panels / 2 * (ir::kLine / bytes(c.block.dtype)) : 0,
                     slow = by_panels ? 0 : lines / 2;
  const auto moved = [&](Value* x, std::int64_t by) {
    return b.CreateAdd(x, b.CreateMul(half, b.getInt32(std::uint32_t(by))));
  };
  mine.slot = moved(c.slot, offset);
  mine.fast = moved(c.fast, fast);
  mine.slow = moved(c.slow, slow);
  copy_part(e, mine, by_panels ? panels / 2 : panels, by_panels ? lines : lines / 2, mask);
}

void copy_block(Emitter& e, const ir::Inst& fill, std::size_t number, const ir::RingBlock& block, Ring& ring) {
  llvm::IRBuilder<>& b = e.b;
  const std::size_t first = number * ir::kFillOperands + 5;
  Copies c{tensor_map(e, b, number),
           b.CreateAdd(ring.slot(), b.getInt32(std::uint32_t(block.offset))),
           ring.full(),
           coordinate(e, fill.operands[first + std::size_t(block.along)]),
           coordinate(e, fill.operands[first + std::size_t(1 - block.along)]),
           block};
  if (!block.both) return copy_part(e, c, block.panels(), block.lines(), 0);
  const auto code = [&](const char* name) { return llvm::BasicBlock::Create(e.c.context(), name, e.kernel); };
  llvm::BasicBlock *shared = code("fill.half"), *alone = code("fill.all"), *filled = code("filled");
  b.CreateCondBr(pair_shares(e), shared, alone);
  b.SetInsertPoint(shared);
  copy_half(e, c, cluster_rank(e), 3);
  b.CreateBr(filled);
  b.SetInsertPoint(alone);
  for (std::uint32_t half : {0u, 1u}) copy_half(e, c, b.getInt32(half), 0);
  b.CreateBr(filled);
  b.SetInsertPoint(filled);
}

}  // namespace

void emit_Block(Emitter&, const ir::Inst&) { throw InternalError("a block after expand-blocks"); }

void emit_Fill(Emitter& e, const ir::Inst& inst) {
  Ring ring(e);
  ring.wait_empty();
  std::int64_t total = 0;
  const std::vector<ir::RingBlock> blocks = ir::ring_blocks(e.f, inst);
  for (const ir::RingBlock& block : blocks) total += block.size();
  PtxAsm expect;
  const std::string full = expect.in_register(ring.full());
  expect.line(fmt::format("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};", full, total));
  expect.emit(e.b)->setConvergent();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i < inst.parts.size()) e.at(inst.parts[i]);
    copy_block(e, inst, i, blocks[i], ring);
  }
  e.at(inst.loc);
  ring.next();
}

void emit_Take(Emitter& e, const ir::Inst& inst) {
  if (!inst.operands.empty()) return take_fetched(e, inst);
  Ring ring(e);
  ring.wait_full();
  Value* slot = ring.slot();
  const std::vector<ir::RingBlock> blocks = ir::ring_blocks(e.f, e.f.inst(ir::fill_of(e.f)));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Value* address = e.b.CreateAdd(slot, e.b.getInt32(std::uint32_t(blocks[i].offset)));
    address =
        e.b.CreateIntToPtr(e.b.CreateZExt(address, e.b.getInt64Ty()), llvm::PointerType::get(e.c.context(), kShared));
    e.set(inst.results[i], e.pointer_scalar(address, blocks[i].dtype));
  }
}

void emit_Release(Emitter& e, const ir::Inst& inst) {
  if (!inst.operands.empty()) return release_fetched(e, inst);
  Ring ring(e);
  if (inst.flag(ir::AttrKey::behind)) ring.release_behind(/*then=*/true);
  else ring.release();
  ring.next();
}

// --- roles -----------------------------------------------------------------------------------------------------------

/// Copies of results read shared memory, so it stays until they have.
static void finish_copies(Emitter& e) {
  if (!ir::copies_results(e.f)) return;
  llvm::IRBuilder<>& b = e.b;
  PtxAsm text;
  const std::string first =
      text.in(b.CreateICmpEQ(b.CreateAnd(thread_number(b), b.getInt32(kWarpgroup - 1)), b.getInt32(0)), 'b');
  text.line(fmt::format("@{} cp.async.bulk.wait_group.read 0;", first));
  text.emit(b)->setConvergent();
}

void emit_Partitions(Emitter& e, const ir::Inst& inst) {
  llvm::IRBuilder<>& b = e.b;
  Ring(e).open();
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(e.c.context(), name, e.kernel); };
  llvm::BasicBlock *producer = block("producer"), *elected = block("fill"), *consumer = block("consumer"),
                   *exit = block("exit");
  const bool shifts = e.exec().warps == 2 * kWarpgroup / 32;
  const auto registers = [&](const char* how, int n) {
    if (!shifts) return;
    PtxAsm text;
    text.line(fmt::format("setmaxnreg.{}.sync.aligned.u32 {};", how, n));
    text.emit(b)->setConvergent();
  };
  Value *tid = thread_number(b), *first = b.getInt32(std::uint32_t(32 * e.exec().warps));
  b.CreateCondBr(b.CreateICmpUGE(tid, first), producer, consumer);
  b.SetInsertPoint(producer);
  registers("dec", kOfProducer);
  b.CreateCondBr(b.CreateICmpEQ(tid, first), elected, exit);
  b.SetInsertPoint(elected);
  e.region(inst.regions[0]);
  if (pair_shares(e) != nullptr) Ring(e).drain();  // memory stays until the neighbour's signals have come
  b.CreateBr(exit);
  b.SetInsertPoint(consumer);
  registers("inc", kOfConsumer);
  e.region(inst.regions[1]);
  finish_copies(e);
  b.CreateBr(exit);
  b.SetInsertPoint(exit);
}

}  // namespace kiln::cg
