// Rings: fills by copies of tensor maps, taking and releasing slots, and products of what was taken on the units of a
// warpgroup; the two roles of such a program.
//
// The role that fills has a warpgroup of its own, behind the team's warps, of which one thread works; where two
// warpgroups compute, it gives them most of its registers.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "backend/ir/op/dot.h"
#include "backend/ir/op/store_block.h"
#include "backend/llvm/fetch.h"
#include "backend/llvm/hidden.h"
#include "backend/llvm/index.h"
#include "backend/llvm/matrix_product.h"
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

// --- products --------------------------------------------------------------------------------------------------------

namespace {

/// One operand of a product as matrix descriptors see it (PTX ISA, "matrix descriptor").
struct Descriptor {
  ir::RingBlock block;
  int row = 0;           ///< the axis that is not k
  Value* low = nullptr;  ///< i32: the low word for position 0
  bool along_depth() const { return block.along != row; }

  /// Bytes from the start of the block to row (or column) `r` and position `k`.
  std::int64_t offset(std::int64_t r, std::int64_t k) const {
    const std::int64_t fast = (along_depth() ? k : r) * bytes(block.dtype), slow = along_depth() ? r : k;
    return fast / ir::kLine * block.lines() * ir::kLine + slow * ir::kLine + fast % ir::kLine;
  }
};

constexpr std::uint32_t kHighWord = 0x40000040;       ///< swizzle of 128 bytes; eight lines are 1024 bytes
constexpr std::uint32_t kDescriptorAddress = 0x3FFF;  ///< the field of the address, in units of 16 bytes

void plain(llvm::IRBuilder<>& b, const char* text) {
  PtxAsm line;
  line.line(text);
  line.emit(b)->setConvergent();
}

/// PTX over registers that are $0, $1, … and change; then the inputs. Whatever moves the registers there stands before
/// it.
void statement(llvm::IRBuilder<>& b, const std::string& text, std::vector<Value*>& sums,
               llvm::ArrayRef<Value*> inputs = {}) {
  std::vector<llvm::Type*> outs(sums.size(), sums[0]->getType()), ins = outs;
  std::vector<Value*> values = sums;
  const char* kind = sums[0]->getType()->isFloatTy() ? "f" : "r";
  std::string constraints;
  for (std::size_t i = 0; i < sums.size(); ++i) constraints += fmt::format("{}={}", i ? "," : "", kind);
  for (std::size_t i = 0; i < sums.size(); ++i) constraints += fmt::format(",{}", i);
  for (Value* v : inputs) {
    constraints += ",r";
    ins.push_back(v->getType());
    values.push_back(v);
  }
  auto* type = llvm::FunctionType::get(llvm::StructType::get(b.getContext(), outs), ins, false);
  llvm::CallInst* call =
      b.CreateCall(llvm::InlineAsm::get(type, text, constraints + ",~{memory}", /*hasSideEffects=*/true), values);
  call->setDoesNotThrow();
  call->setConvergent();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = b.CreateExtractValue(call, unsigned(i));
}

class WarpgroupProduct {
 public:
  WarpgroupProduct(Emitter& e, const ir::Inst& inst);
  TileValue emit();

 private:
  Descriptor descriptor(std::size_t operand);
  void multiply(std::int64_t k, bool starts);
  void wait(int pending);

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::Inst& inst_;
  const std::int64_t m_, n_, k_, step_;
  Descriptor left_, right_;
  std::vector<std::vector<Value*>> sums_;  ///< by block of 64 rows that this warpgroup has, its registers
};

WarpgroupProduct::WarpgroupProduct(Emitter& e, const ir::Inst& inst)
    : e_(e),
      b_(e.b),
      inst_(inst),
      m_(inst.ints(ir::AttrKey::extents)[0]),
      n_(inst.ints(ir::AttrKey::extents)[1]),
      k_(inst.ints(ir::AttrKey::extents)[2]),
      step_(ir::matrix_shape(ir::unit_of(inst)).k),
      left_(descriptor(0)),
      right_(descriptor(1)) {
  const std::int64_t each = left_.offset(64, 0) >> 4;
  if (e.exec().warps > 4)
    left_.low = b_.CreateAdd(left_.low, b_.CreateMul(warpgroup_number(e), b_.getInt32(std::uint32_t(each))));
}

Descriptor WarpgroupProduct::descriptor(std::size_t operand) {
  const std::vector<std::int64_t>& along = inst_.ints(ir::AttrKey::along);
  Descriptor d;
  d.block.dtype = e_.type(inst_.operands[operand]).dtype;
  d.block.extents[0] = operand == 0 ? m_ : k_;
  d.block.extents[1] = operand == 0 ? k_ : n_;
  d.block.along = int(along[operand]);
  d.row = operand == 0 ? 0 : 1;
  Value* address =
      b_.CreateTrunc(b_.CreatePtrToInt(e_.scalar(inst_.operands[operand]), b_.getInt64Ty()), b_.getInt32Ty());
  // From panel to panel, where the operand does not lie along k; else without meaning.
  const std::int64_t leading = d.along_depth() ? 16 : d.block.lines() * ir::kLine;
  // Above bit 24 an address names the block of the cluster that it is in, which is no part of a descriptor's field.
  Value* within = b_.CreateAnd(b_.CreateLShr(address, std::uint64_t(4)), b_.getInt32(kDescriptorAddress));
  d.low = b_.CreateOr(within, b_.getInt32(std::uint32_t(leading >> 4 << 16)));
  return d;
}

/// All blocks at position k; `starts`: sums begin with this product.
void WarpgroupProduct::multiply(std::int64_t k, bool starts) {
  const bool is_int = ir::unit_of(inst_) == ir::DotUnit::I8, is_16_bit = bytes(left_.block.dtype) == 2;
  std::string modifiers = is_int ? "" : ", 1, 1";
  if (is_16_bit) modifiers += fmt::format(", {}, {}", left_.along_depth() ? 0 : 1, right_.along_depth() ? 0 : 1);
  const auto moved = [&](const Descriptor& d, std::int64_t row) {
    return b_.CreateAdd(d.low, b_.getInt32(std::uint32_t(d.offset(row, k) >> 4)));
  };
  for (std::size_t block = 0; block < sums_.size(); ++block) {
    const std::size_t n = sums_[block].size();
    std::string registers;
    for (std::size_t i = 0; i < n; ++i) registers += fmt::format("{}${}", i ? ", " : "", i);
    const std::int64_t row = std::int64_t(block) * 64 * (e_.exec().warps / 4);
    const std::string text = fmt::format(
        "{{\n\t.reg .pred adds;\n\t.reg .b64 left, right;\n\tsetp.ne.b32 adds, {}, 0;\n\tmov.b64 left, {{${}, {}}};\n\t"
        "mov.b64 right, {{${}, {}}};\n\twgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {{{}}}, left, right, "
        "adds{};\n\t}}",
        starts ? 0 : 1, 2 * n, kHighWord, 2 * n + 1, kHighWord, n_, step_, is_int ? "s32" : "f32",
        element_name(left_.block.dtype), element_name(right_.block.dtype), registers, modifiers);
    statement(b_, text, sums_[block], {moved(left_, row), moved(right_, 0)});
  }
}

/// Until no more than `pending` products go on; their registers are redefined here.
void WarpgroupProduct::wait(int pending) {
  plain(b_, "wgmma.commit_group.sync.aligned;");
  const std::string text = fmt::format("wgmma.wait_group.sync.aligned {};", pending);
  for (std::size_t block = 0; block < sums_.size(); ++block) statement(b_, block == 0 ? text : "", sums_[block]);
}

TileValue WarpgroupProduct::emit() {
  const Geometry& g = e_.geometry_of(inst_.results[0]);
  const TileValue start = e_.as_plain(inst_.operands[2]);
  const std::int64_t promote = inst_.i64(ir::AttrKey::promote);
  const auto rows = std::size_t(g.parts.back()[0] / 64 / (e_.exec().warps / 4) + 1);
  const std::size_t padded = g.parts.size() / rows, each = std::size_t(n_ / 2);
  std::vector<std::vector<Value*>> main;
  for (std::size_t block = 0; block < rows; ++block) {
    main.emplace_back();
    for (std::size_t i = 0; i < each; ++i) main.back().push_back(start.regs[block * padded + i].v);
  }
  sums_ = main;
  if (promote > 0)
    for (std::vector<Value*>& block : sums_)
      for (Value*& v : block) v = llvm::Constant::getNullValue(v->getType());
  const std::int64_t group = promote > 0 ? promote : k_;
  for (std::int64_t from = 0; from < k_; from += group) {
    // Ties the registers, so that whatever moves them there stands before it.
    for (std::vector<Value*>& block : sums_) statement(b_, "wgmma.fence.sync.aligned;", block);
    for (std::int64_t k = from; k < std::min(from + group, k_); k += step_) multiply(k, promote > 0 && k == from);
    wait(inst_.flag(ir::AttrKey::behind) ? 1 : 0);
    if (promote == 0) continue;
    for (std::size_t block = 0; block < rows; ++block)
      for (std::size_t i = 0; i < each; ++i) {
        main[block][i] = b_.CreateFAdd(main[block][i], sums_[block][i]);
        sums_[block][i] = llvm::Constant::getNullValue(sums_[block][i]->getType());
      }
  }
  TileValue result;
  result.regs.resize(g.parts.size());
  for (std::size_t block = 0; block < rows; ++block)
    for (std::size_t i = 0; i < each; ++i)
      result.regs[block * padded + i].v = promote > 0 ? main[block][i] : sums_[block][i];
  return result;
}

}  // namespace

// The registers of all blocks at once: what waits for them must not be moved in front of it.
void emit_Settle(Emitter& e, const ir::Inst& inst) {
  const TileValue x = e.as_plain(inst.operands[0]);
  std::vector<Value*> sums;
  for (const TileValue::Reg& r : x.regs)
    if (r.v != nullptr) sums.push_back(r.v);
  statement(e.b, "wgmma.wait_group.sync.aligned 0;", sums);
  Ring(e).release_behind(/*then=*/false);
  TileValue result;
  std::size_t next = 0;
  for (const TileValue::Reg& r : x.regs) result.regs.push_back({r.v == nullptr ? nullptr : sums[next++], 0});
  e.set(inst.results[0], std::move(result));
}

void emit_RingDot(Emitter& e, const ir::Inst& inst) {
  const bool warpgroups = ir::fill_of(e.f) != ir::kNone;
  e.set(inst.results[0], warpgroups ? WarpgroupProduct(e, inst).emit() : emit_matrix_product(e, inst));
}

}  // namespace kiln::cg
