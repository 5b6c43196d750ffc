// Products of what was taken from a ring, on the units of a warpgroup: both operands as they lie in shared memory, sums
// in registers.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>

#include <span>

#include "backend/ir/op/dot.h"
#include "backend/llvm/matrix_product.h"
#include "backend/llvm/ptx_asm.h"
#include "backend/llvm/ring.h"

namespace kiln::cg {
namespace {

using llvm::Value;
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

/// Sums of a warpgroup: 64 rows of its own, and a run of columns.
struct Part {
  std::size_t block = 0;
  std::int64_t column = 0, columns = 0;
  std::vector<Value*> sums;

  std::size_t first() const { return std::size_t(column / 2); }  ///< among the block's registers
};

/// What a product is added to: its registers; nothing; or nothing, but the assembler is to think the former, because
/// the registers still hold what others have to read before.
enum class Begin { WithSums, Anew, AnewBehind };

class WarpgroupProduct {
 public:
  WarpgroupProduct(Emitter& e, const ir::Inst& inst);
  TileValue emit();

 private:
  Descriptor descriptor(std::size_t operand);
  std::vector<Part> parts() const;
  void multiply(std::span<Part> parts, std::int64_t from, std::int64_t to, Begin begin);
  void issue(Part& part, std::int64_t k, Begin begin);
  void wait(std::span<Part> parts, int pending);
  void add_parts(std::int64_t group);

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::Inst& inst_;
  const std::int64_t m_, n_, k_, step_;
  Descriptor left_, right_;
  std::vector<std::vector<Value*>> main_;  ///< by block of 64 rows that this warpgroup has, its registers
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

/// One instruction at position k.
void WarpgroupProduct::issue(Part& part, std::int64_t k, Begin begin) {
  const bool is_int = ir::unit_of(inst_) == ir::DotUnit::I8, is_16_bit = bytes(left_.block.dtype) == 2;
  std::string modifiers = is_int ? "" : ", 1, 1";
  if (is_16_bit) modifiers += fmt::format(", {}, {}", left_.along_depth() ? 0 : 1, right_.along_depth() ? 0 : 1);
  const auto moved = [&](const Descriptor& d, std::int64_t row) {
    return b_.CreateAdd(d.low, b_.getInt32(std::uint32_t(d.offset(row, k) >> 4)));
  };
  const std::size_t n = part.sums.size();
  std::string registers;
  for (std::size_t i = 0; i < n; ++i) registers += fmt::format("{}${}", i ? ", " : "", i);
  // The low word of a descriptor is never negative, which the assembler does not know.
  const std::string adds = begin == Begin::AnewBehind
                               ? fmt::format("setp.lt.s32 adds, ${}, 0", 2 * n)
                               : fmt::format("setp.ne.b32 adds, {}, 0", int(begin == Begin::WithSums));
  const std::int64_t row = std::int64_t(part.block) * 64 * (e_.exec().warps / 4);
  const std::string text = fmt::format(
      "{{\n\t.reg .pred adds;\n\t.reg .b64 left, right;\n\t{};\n\tmov.b64 left, {{${}, {}}};\n\t"
      "mov.b64 right, {{${}, {}}};\n\twgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {{{}}}, left, right, "
      "adds{};\n\t}}",
      adds, 2 * n, kHighWord, 2 * n + 1, kHighWord, part.columns, step_, is_int ? "s32" : "f32",
      element_name(left_.block.dtype), element_name(right_.block.dtype), registers, modifiers);
  statement(b_, text, part.sums, {moved(left_, row), moved(right_, part.column)});
}

/// Positions [from, to) of all parts.
void WarpgroupProduct::multiply(std::span<Part> parts, std::int64_t from, std::int64_t to, Begin begin) {
  // Ties the registers, so that whatever moves them there stands before it.
  for (Part& part : parts) statement(b_, "wgmma.fence.sync.aligned;", part.sums);
  for (std::int64_t k = from; k < to; k += step_)
    for (Part& part : parts) issue(part, k, k == from ? begin : Begin::WithSums);
}

/// Until no more than `pending` products go on; their registers are redefined here.
void WarpgroupProduct::wait(std::span<Part> parts, int pending) {
  plain(b_, "wgmma.commit_group.sync.aligned;");
  const std::string text = fmt::format("wgmma.wait_group.sync.aligned {};", pending);
  for (Part& part : parts) statement(b_, &part == &parts[0] ? text : "", part.sums);
}

/// The sums cut so that few registers hold a part beside the whole.
std::vector<Part> WarpgroupProduct::parts() const {
  const std::int64_t most = 2 * ir::part_registers(std::int64_t(main_.size()) * n_ / 2);  // columns
  const std::int64_t panel = right_.along_depth() ? 8 : ir::kLine / bytes(right_.block.dtype);
  const std::int64_t pieces = (n_ + most - 1) / most, each = (n_ / pieces + panel - 1) / panel * panel;
  std::vector<Part> parts;
  for (std::size_t block = 0; block < main_.size(); ++block)
    for (std::int64_t column = 0; column < n_; column += each)
      parts.push_back({block, column, std::min(each, n_ - column), {}});
  return parts;
}

/// Each part by itself, and then added to the whole in f32. A part takes over the registers of the one before, or both
/// would be there at the same time, as the assembler would issue products before it adds those that are done.
void WarpgroupProduct::add_parts(std::int64_t group) {
  std::vector<Value*> last;
  for (std::int64_t from = 0; from < k_; from += group)
    for (Part& part : parts()) {
      part.sums = last;
      part.sums.resize(std::size_t(part.columns / 2), llvm::Constant::getNullValue(main_[0][0]->getType()));
      multiply({&part, 1}, from, std::min(from + group, k_), last.empty() ? Begin::Anew : Begin::AnewBehind);
      wait({&part, 1}, 0);
      for (std::size_t i = 0; i < part.sums.size(); ++i) {
        Value*& sum = main_[part.block][part.first() + i];
        sum = b_.CreateFAdd(sum, part.sums[i]);
      }
      last = part.sums;
    }
}

TileValue WarpgroupProduct::emit() {
  const Geometry& g = e_.geometry_of(inst_.results[0]);
  const TileValue start = e_.as_plain(inst_.operands[2]);
  const auto rows = std::size_t(g.parts.back()[0] / 64 / (e_.exec().warps / 4) + 1);
  const std::size_t padded = g.parts.size() / rows, each = std::size_t(n_ / 2);
  for (std::size_t block = 0; block < rows; ++block) {
    main_.emplace_back();
    for (std::size_t i = 0; i < each; ++i) main_.back().push_back(start.regs[block * padded + i].v);
  }
  if (const std::int64_t promote = inst_.i64(ir::AttrKey::promote); promote > 0) {
    add_parts(promote);
  } else {
    std::vector<Part> all;
    for (std::size_t block = 0; block < rows; ++block) all.push_back({block, 0, n_, main_[block]});
    multiply(all, 0, k_, Begin::WithSums);
    wait(all, inst_.flag(ir::AttrKey::behind) ? 1 : 0);
    for (std::size_t block = 0; block < rows; ++block) main_[block] = all[block].sums;
  }
  TileValue result;
  result.regs.resize(g.parts.size());
  for (std::size_t block = 0; block < rows; ++block)
    for (std::size_t i = 0; i < each; ++i) result.regs[block * padded + i].v = main_[block][i];
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
