// Results on their way out: registers of a warpgroup's product, 64 rows of one line in shared memory, a copy or
// vectors.
//
// Lines are swizzled as tensor maps read them: unit u of 16 bytes of row r stands at u ^ (r % 8). Every way to write
// and read them below touches each bank once: stmatrix for elements of 2 bytes; for those of 4 bytes odd rows write two
// groups of columns in turned order; a row of 1-byte elements has a unit of its own.
#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <map>

#include "backend/ir/op/store_block.h"
#include "backend/llvm/hidden.h"
#include "backend/llvm/ptx_asm.h"
#include "backend/llvm/ring.h"
#include "backend/llvm/words.h"

namespace kiln::cg {
namespace {

using llvm::Value;
constexpr int kFirstBarrier = 2;  ///< named barrier of the first warpgroup; 0 is the block's, 1 the team's
constexpr int kGroup = 8;         ///< columns of which a quad of lanes has two each
constexpr std::int64_t kWarpRows = 16;

class BlockStore {
 public:
  BlockStore(Emitter& e, const ir::Inst& inst);
  void run();

 private:
  Value* element(std::int64_t row, std::int64_t column) const;
  void pack();
  Value* pair(std::int64_t row, std::int64_t column) const;
  void write(std::int64_t row, std::int64_t column, std::int64_t buffer);
  void write_halves(std::int64_t row, std::int64_t column, std::int64_t buffer);
  void write_words(std::int64_t row, std::int64_t column, std::int64_t buffer);
  void write_bytes(std::int64_t row, std::int64_t column, std::int64_t buffer);
  Value* swizzled(std::int64_t bytes);
  void copy(std::int64_t row, std::int64_t column, std::int64_t buffer);
  void store_vectors(std::int64_t row, std::int64_t column, std::int64_t buffer);
  void store_vector(Value* shared, std::int64_t offset, Value* row, Value* column);
  void synchronise();
  void when_drained(int pending);
  Value* i64(std::int64_t x) { return b_.getInt64(std::uint64_t(x)); }
  Value* i32(std::int64_t x) { return b_.getInt32(std::uint32_t(x)); }
  Value* array(std::size_t k) { return e_.scalar(inst_.operands[1 + k]); }

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::Inst& inst_;
  const TileValue value_;
  const int size_;              ///< bytes of an element
  const std::int64_t columns_;  ///< of a line
  std::map<std::vector<std::int64_t>, int> register_of_;
  std::map<std::vector<std::int64_t>, Value*> pairs_;
  Value *thread_, *warpgroup_, *lane_;  ///< i32; thread and lane within the warpgroup and the warp
  Value* buffers_;                      ///< i32: the warpgroup's part of the staging memory
  Value* place_ = nullptr;              ///< i32: where this lane writes in buffer 0, for columns 0
};

BlockStore::BlockStore(Emitter& e, const ir::Inst& inst)
    : e_(e),
      b_(e.b),
      inst_(inst),
      value_(e.as_plain(inst.operands[0])),
      size_(bytes(e.type(inst.operands[0]).dtype)),
      columns_(ir::kLine / size_) {
  const Geometry& g = e.geometry_of(inst.operands[0]);
  for (int r = 0; r < g.regs(); ++r) register_of_.emplace(g.parts[std::size_t(r)], r);
  if (size_ < 4) pack();
  thread_ = b_.CreateAnd(thread_number(b_), i32(kWarpgroup - 1));
  lane_ = b_.CreateAnd(thread_, i32(31));
  warpgroup_ = warpgroup_number(e);
  buffers_ =
      b_.CreateAdd(e.scratch(inst).address, b_.CreateMul(warpgroup_, i32(ir::kStagingBuffers * ir::kStagingBytes)));
  Value* warp = b_.CreateLShr(thread_, std::uint64_t(5));
  Value* rows = b_.CreateAdd(buffers_, b_.CreateMul(warp, i32(kWarpRows * ir::kLine)));
  Value *row = b_.CreateLShr(lane_, std::uint64_t(2)), *quad = b_.CreateAnd(lane_, i32(3));
  if (size_ == 2) {  // stmatrix: a lane names the row of one of four matrices
    row = b_.CreateAnd(lane_, i32(15));
    Value* unit = b_.CreateXor(b_.CreateLShr(lane_, std::uint64_t(4)), b_.CreateAnd(lane_, i32(7)));
    place_ =
        b_.CreateAdd(rows, b_.CreateAdd(b_.CreateShl(row, std::uint64_t(7)), b_.CreateShl(unit, std::uint64_t(4))));
    return;
  }
  Value *unit = row, *within = b_.CreateShl(quad, std::uint64_t(1));
  if (size_ == 4) {
    Value* turned = b_.CreateShl(b_.CreateAnd(row, i32(1)), std::uint64_t(2));  // two groups are four units
    unit = b_.CreateXor(b_.CreateXor(row, turned), b_.CreateLShr(quad, std::uint64_t(1)));
    within = b_.CreateShl(b_.CreateAnd(quad, i32(1)), std::uint64_t(3));
  }
  Value* line = b_.CreateAdd(b_.CreateShl(row, std::uint64_t(7)), b_.CreateShl(unit, std::uint64_t(4)));
  place_ = b_.CreateAdd(rows, b_.CreateAdd(line, within));
}

Value* BlockStore::element(std::int64_t row, std::int64_t column) const {
  return value_.regs[std::size_t(register_of_.at({row, column}))].v;
}
/// Two neighbours in one register, before anything branches: that is where LLVM converts two at once, and half as many
/// registers wait for their turn.
void BlockStore::pack() {
  Words words(b_, e_.c.type(e_.type(inst_.operands[0]).dtype), size_);
  const Geometry& g = e_.geometry_of(inst_.operands[0]);
  for (const auto& [at, r] : register_of_)
    if (g.live[std::size_t(r)] && at[1] % 2 == 0)
      pairs_[at] = words.pack({element(at[0], at[1]), element(at[0], at[1] + 1)})[0];
}
Value* BlockStore::pair(std::int64_t row, std::int64_t column) const { return pairs_.at({row, column}); }

/// This lane's place, `bytes` further along an unswizzled line, of which units are whole.
Value* BlockStore::swizzled(std::int64_t bytes) { return bytes == 0 ? place_ : b_.CreateXor(place_, i32(bytes)); }

void BlockStore::write(std::int64_t row, std::int64_t column, std::int64_t buffer) {
  if (size_ == 2) write_halves(row, column, buffer);
  else if (size_ == 4) write_words(row, column, buffer);
  else write_bytes(row, column, buffer);
}

void BlockStore::write_halves(std::int64_t row, std::int64_t column, std::int64_t buffer) {
  for (std::int64_t c = 0; c < columns_; c += 2 * kGroup) {
    PtxAsm text;
    const std::string at = text.in_register(swizzled(c * size_));
    std::string names;
    for (std::int64_t group : {0, 1})
      for (std::int64_t half : {0, 8})
        names += (names.empty() ? "" : ", ") + text.in_register(pair(row + half, column + c + group * kGroup));
    text.line(fmt::format("stmatrix.sync.aligned.m8n8.x4.shared.b16 [{}+{}], {{{}}};", at, buffer, names));
    text.emit(b_)->setConvergent();
  }
}

void BlockStore::write_words(std::int64_t row, std::int64_t column, std::int64_t buffer) {
  Value* odd = b_.CreateIsNotNull(b_.CreateAnd(lane_, i32(4)));
  for (std::int64_t half : {0, 8})
    for (std::int64_t c = 0; c < columns_; c += kGroup) {
      PtxAsm text;
      const std::string at = text.in_register(swizzled(c * size_));
      std::string names;
      for (std::int64_t k : {0, 1}) {
        Value* x = b_.CreateSelect(odd, element(row + half, column + (c ^ 2 * kGroup) + k),
                                   element(row + half, column + c + k));
        names += (names.empty() ? "" : ", ") + text.in_register(b_.CreateBitCast(x, b_.getInt32Ty()));
      }
      text.line(fmt::format("st.shared.v2.b32 [{}+{}], {{{}}};", at, buffer + half * ir::kLine, names));
      text.emit(b_);
    }
}

void BlockStore::write_bytes(std::int64_t row, std::int64_t column, std::int64_t buffer) {
  for (std::int64_t half : {0, 8})
    for (std::int64_t c = 0; c < columns_; c += kGroup) {
      PtxAsm text;
      const std::string at = text.in_register(swizzled(c & ~std::int64_t(15))),
                        x = text.in_register(pair(row + half, column + c));
      text.line(fmt::format("st.shared.b16 [{}+{}], {};", at, buffer + half * ir::kLine + (c & 15), x));
      text.emit(b_);
    }
}

/// All threads of the warpgroup.
void BlockStore::synchronise() {
  PtxAsm text;
  text.line(
      fmt::format("bar.sync {}, {};", text.in_register(b_.CreateAdd(warpgroup_, i32(kFirstBarrier))), kWarpgroup));
  text.emit(b_)->setConvergent();
}

/// Until copies but the last `pending` have read their buffers.
void BlockStore::when_drained(int pending) {
  PtxAsm text;
  const std::string first = text.in(b_.CreateICmpEQ(thread_, i32(0)), 'b');
  text.line(fmt::format("@{} cp.async.bulk.wait_group.read {};", first, pending));
  text.emit(b_)->setConvergent();
  synchronise();
}

void BlockStore::copy(std::int64_t row, std::int64_t column, std::int64_t buffer) {
  PtxAsm fence;
  fence.line("fence.proxy.async.shared::cta;");
  fence.emit(b_);
  synchronise();
  Value *first = b_.CreateAdd(b_.CreateShl(warpgroup_, std::uint64_t(6)), i32(row)),
        *y = b_.CreateAdd(array(5), b_.CreateZExt(first, b_.getInt64Ty())), *x = b_.CreateAdd(array(6), i64(column)),
        *map = tensor_map(e_, b_, ir::map_of(e_.f, inst_)), *from = b_.CreateAdd(buffers_, i32(buffer));
  // Both are at least 0 (stage-results). What begins outside is not copied, but counts as a group: those are waited for
  // by their number.
  Value* begins_inside = b_.CreateAnd(b_.CreateICmpSLT(y, array(1)), b_.CreateICmpSLT(x, array(2)));
  auto *send = llvm::BasicBlock::Create(e_.c.context(), "send", e_.kernel),
       *sent = llvm::BasicBlock::Create(e_.c.context(), "sent", e_.kernel);
  b_.CreateCondBr(b_.CreateICmpEQ(thread_, i32(0)), send, sent);
  b_.SetInsertPoint(send);
  PtxAsm text;
  const std::string inside = text.in(begins_inside, 'b'), of = text.in_register(map),
                    i = text.in_register(b_.CreateTrunc(x, b_.getInt32Ty())),
                    j = text.in_register(b_.CreateTrunc(y, b_.getInt32Ty())), at = text.in_register(from);
  text.line(fmt::format("@{} cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [{}, {{{}, {}}}], [{}];", inside, of,
                        i, j, at));
  text.line("cp.async.bulk.commit_group;");
  text.emit(b_)->setConvergent();
  b_.CreateBr(sent);
  b_.SetInsertPoint(sent);
}

/// Eight threads a row, 16 bytes each.
void BlockStore::store_vectors(std::int64_t row, std::int64_t column, std::int64_t buffer) {
  synchronise();
  Value *first = b_.CreateLShr(thread_, std::uint64_t(3)), *unit = b_.CreateAnd(thread_, i32(7));
  Value* shared = b_.CreateAdd(b_.CreateAdd(buffers_, b_.CreateShl(first, std::uint64_t(7))),
                               b_.CreateShl(b_.CreateXor(unit, b_.CreateAnd(first, i32(7))), std::uint64_t(4)));
  Value* of_thread = b_.CreateAdd(b_.CreateShl(warpgroup_, std::uint64_t(6)), first);
  Value* y = b_.CreateAdd(array(5), b_.CreateZExt(of_thread, b_.getInt64Ty()));
  Value* x = b_.CreateAdd(array(6), b_.CreateZExt(b_.CreateMul(unit, i32(16 / size_)), b_.getInt64Ty()));
  x = b_.CreateAdd(x, i64(column));
  for (std::int64_t r = 0; r < ir::kStagedRows; r += kWarpgroup / 8)
    store_vector(shared, buffer + r * ir::kLine, b_.CreateAdd(y, i64(row + r)), x);
}

/// 16 bytes at once where they lie inside and are aligned; else the elements that lie inside.
void BlockStore::store_vector(Value* shared, std::int64_t offset, Value* row, Value* column) {
  const std::int64_t count = 16 / size_;
  PtxAsm load;
  std::vector<std::string> names;
  for (int i = 0; i < 4; ++i) names.push_back(load.out(b_.getInt32Ty()));
  load.line(fmt::format("ld.shared.v4.b32 {}, [{}+{}];", braces(names), load.in_register(shared), offset));
  load.emit(b_);
  std::vector<Value*> words;
  for (unsigned i = 0; i < 4; ++i) words.push_back(load.result(b_, i));
  Value *base = b_.CreatePtrToInt(array(0), b_.getInt64Ty()), *rows = array(1), *columns = array(2);
  Value* element = b_.CreateAdd(b_.CreateMul(row, array(3)), column);
  Value* address = b_.CreateAdd(base, b_.CreateMul(element, i64(size_)));
  Value* in_row = b_.CreateAnd(b_.CreateICmpSGE(row, i64(0)), b_.CreateICmpSLT(row, rows));
  const auto inside = [&](std::int64_t k) {
    Value* at = b_.CreateAdd(column, i64(k));
    return b_.CreateAnd(b_.CreateICmpSGE(at, i64(0)), b_.CreateICmpSLT(at, columns));
  };
  Value* aligned = b_.CreateICmpEQ(b_.CreateAnd(address, i64(15)), i64(0));
  Value* whole = b_.CreateAnd(b_.CreateAnd(in_row, aligned), b_.CreateAnd(inside(0), inside(count - 1)));
  PtxAsm text;
  const std::string when = text.in(whole, 'b'), at = text.in_register(address);
  std::vector<std::string> parts;
  for (Value* w : words) parts.push_back(text.in_register(w));
  text.line(fmt::format("@{} st.global.v4.b32 [{}], {};", when, at, braces(parts)));
  text.emit(b_);
  auto *edge = llvm::BasicBlock::Create(e_.c.context(), "edge", e_.kernel),
       *stored = llvm::BasicBlock::Create(e_.c.context(), "stored", e_.kernel);
  b_.CreateCondBr(b_.CreateAnd(in_row, b_.CreateNot(whole)), edge, stored);
  b_.SetInsertPoint(edge);
  for (std::int64_t k = 0; k < count; ++k) {
    Value* word = b_.CreateLShr(words[std::size_t(k * size_ / 4)], std::uint64_t(k * size_ % 4 * 8));
    if (size_ < 4) word = b_.CreateTrunc(word, b_.getInt16Ty());
    PtxAsm one;
    const std::string active = one.in(inside(k), 'b'), to = one.in_register(address), x = one.in_register(word);
    one.line(fmt::format("@{} st.global.b{} [{}+{}], {};", active, 8 * size_, to, k * size_, x));
    one.emit(b_);
  }
  b_.CreateBr(stored);
  b_.SetInsertPoint(stored);
}

void BlockStore::run() {
  const ir::Shape& shape = e_.type(inst_.operands[0]).shape;
  const bool copies = inst_.flag(ir::AttrKey::mapped), drains = ir::copies_results(e_.f);
  std::int64_t number = 0;
  for (std::int64_t row = 0; row < shape[0]; row += ir::kStagedRows * (e_.exec().warps / 4))
    for (std::int64_t column = 0; column < shape[1]; column += columns_, ++number) {
      const std::int64_t buffer = number % ir::kStagingBuffers * ir::kStagingBytes;
      // The first may meet any buffer of the results before.
      if (number == 0) drains ? when_drained(ir::pending_copies(e_.f)) : synchronise();
      else if (copies) when_drained(ir::kStagingBuffers - 1);
      write(row, column, buffer);
      copies ? copy(row, column, buffer) : store_vectors(row, column, buffer);
    }
}

}  // namespace

void emit_StoreBlock(Emitter& e, const ir::Inst& inst) {
  MemoryAccess access;
  access.store = true;
  access.base = e.scalar(inst.operands[1]);
  e.hazards.before(e.b, access);
  BlockStore(e, inst).run();
}

}  // namespace kiln::cg
