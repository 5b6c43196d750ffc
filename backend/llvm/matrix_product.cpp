// Products of matrices by mma.sync, on every target.
//
//     for each slice of k                                    (ir::dot_slice; usually one)
//       a, b  ->  shared memory, as elements of the unit     (twice where they are split: large and small part)
//       for each step of the unit in the slice
//         ldmatrix: the fragments of a and b that this warp's part of the result needs
//         mma: each block of the result += its row of a times its column of b
//
// Operands lie in shared memory in lines of 128 bytes, swizzled (SharedPlace::lines). Those of 16 bits keep the
// direction in which their layout is vectorised, since ldmatrix can transpose them; others run along k. Positions
// beyond k's extent are zeros there; rows and columns beyond theirs only reach elements of the result that are padding.
// A tile smaller than a block of the unit repeats its rows and columns, in the fragments as in the layout of the
// result.
#include "backend/llvm/matrix_product.h"

#include <fmt/format.h>

#include <bit>
#include <map>

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/dot.h"
#include "backend/llvm/fetch.h"
#include "backend/llvm/ptx_asm.h"
#include "backend/llvm/staged_operand.h"

namespace kiln::cg {
namespace {

using ir::DotUnit;
using ir::Hw;
using llvm::Value;
using Coord = ir::LinearLayout::Coord;
constexpr int kUnitBytes = 16;         ///< a row of a matrix that ldmatrix reads
constexpr std::int64_t kUnrolled = 8;  ///< steps along k without a loop

int log2_of(std::int64_t n) { return std::countr_zero(std::uint64_t(n)); }

/// One operand: its slices in shared memory, and where this thread reads them.
struct Side : StagedOperand {
  int number = 0;       ///< 0: a, 1: b
  bool taken = false;   ///< it stands in a slot of a ring
  bool singly = false;  ///< it is read element by element
  ir::Shape shape;
  std::vector<Value*> shared;       ///< by part; i32: shared address of its slice
  std::vector<TileValue> elements;  ///< by part
  Value* thread = nullptr;          ///< i32: the thread's part of the offset
  std::int64_t reach = 0;           ///< all bits it may have
};

/// The fragments of one block at one step: a register or four.
using Fragment = std::vector<Value*>;

class MatrixProduct {
 public:
  MatrixProduct(Emitter& e, const ir::Inst& inst);
  TileValue emit();

 private:
  /// A block of the result: its coordinates, and its registers in the order of the instruction.
  struct Block {
    Coord at;
    std::vector<int> registers;
  };

  void set_up(Side& side, int operand);
  void find_taken(Side& side);
  void find_staged(Side& side);
  void find_thread(Side& side);
  Value* address_behind(ir::Value pointer);
  std::vector<Coord> lanes(const Side& side) const;
  void find_blocks();
  std::vector<TileValue> parts_of(const Side& side);

  void slice(std::int64_t positions);
  void steps(Value* base, std::int64_t first, std::int64_t count);
  void step(Value* base, std::int64_t k);
  std::string place(PtxAsm& text, const Side& side, std::size_t part, const Coord& c, Value* base);
  Fragment load(const Side& side, std::size_t part, const Coord& at, Value* base, std::int64_t k);
  Fragment load_matrices(const Side& side, std::size_t part, const Coord& c, Value* base, int count);
  Fragment load_singly(const Side& side, std::size_t part, const Coord& c, Value* base, int count);
  Fragment fragment(const Side& side, std::size_t part, const Coord& block, Value* base, std::int64_t k);
  void multiply(const Block& block, const Fragment& a, const Fragment& b);
  void promote();
  std::string instruction() const;

  Emitter& e_;
  llvm::IRBuilder<>& code_;
  const ir::Inst& inst_;
  const Geometry& g_;
  const DotUnit unit_;
  const ir::MatrixShape shape_;
  const std::int64_t slice_, extent_;  ///< positions along k in shared memory, and in all
  const std::int64_t promote_;         ///< positions along k that are summed apart; 0: none
  const Scratch scratch_;
  Side a_, b_;
  std::vector<Block> blocks_;
  std::vector<Value*> sums_, main_;  ///< by register of the result; main_: what promoted sums are added to
  /// Fragments of the current step that several blocks use.
  std::map<std::tuple<int, std::size_t, Coord>, Fragment> loaded_;
};

MatrixProduct::MatrixProduct(Emitter& e, const ir::Inst& inst)
    : e_(e),
      code_(e.b),
      inst_(inst),
      g_(e.geometry_of(inst.results[0])),
      unit_(ir::unit_of(inst)),
      shape_(ir::matrix_shape(unit_)),
      slice_(ir::dot_slice(e.f, inst)),
      extent_(ir::operand_shape(e.f, inst, 0).back()),
      promote_(inst.i64(ir::AttrKey::promote)),
      scratch_(e.scratch(inst)) {
  std::int64_t at = 0;
  for (Side* side : {&a_, &b_}) {
    set_up(*side, side == &b_);
    if (side->taken) {
      side->shared.push_back(address_behind(side->value));
      continue;
    }
    const std::int64_t size = ir::dot_slice_bytes(e.f, inst, std::size_t(side->number));
    for (int part = 0; part < ir::dot_parts(e.f, inst); ++part, at += size)
      side->shared.push_back(scratch_.part(code_, at, size).address);
  }
  find_blocks();
}

void MatrixProduct::set_up(Side& side, int operand) {
  side.number = operand;
  side.value = inst_.operands[std::size_t(operand)];
  side.shape = ir::operand_shape(e_.f, inst_, std::size_t(operand));
  side.taken = !e_.type(side.value).tile;
  if (side.taken) find_taken(side);
  else find_staged(side);
  side.singly = unit_ == DotUnit::F64 || (!side.along_depth && shape_.element_bytes > 2);
  find_thread(side);
}

/// As the fetch has put it there.
void MatrixProduct::find_taken(Side& side) {
  side.row = side.number;
  side.depth = 1 - side.row;
  side.along_depth = inst_.ints(ir::AttrKey::along)[std::size_t(side.number)] == side.depth;
  side.dtype = e_.type(side.value).dtype;
  side.slice = slice_;
  side.place = place_in_slot(fetched_block(e_.f, side.value));
}

void MatrixProduct::find_staged(Side& side) {
  static_cast<StagedOperand&>(side) = staged_operand(e_, inst_, std::size_t(side.number));
  side.zero_beyond = true;
  const ir::LinearLayout& from = e_.f.layout(e_.type(side.value).layout);
  const std::int64_t rows = from.out_shape()[std::size_t(side.row)];
  if (!side.along_depth && (shape_.element_bytes != 2 || rows * shape_.element_bytes < kUnitBytes)) {
    side.along_depth = true;
    side.store_vector = std::min(register_run(from, side.depth), kUnitBytes / shape_.element_bytes);
  }
  std::vector<int> bits;
  for (std::int64_t extent : from.out_shape()) bits.push_back(log2_of(extent));
  bits[std::size_t(side.depth)] = log2_of(slice_);
  side.place = SharedPlace::lines(shape_.element_bytes, side.fast(), side.slow(), bits);
}

/// i32: the address behind a pointer to shared memory.
Value* MatrixProduct::address_behind(ir::Value pointer) {
  return code_.CreateTrunc(code_.CreatePtrToInt(e_.scalar(pointer), code_.getInt64Ty()), code_.getInt32Ty());
}

/// This thread's part of the offsets at which it reads.
void MatrixProduct::find_thread(Side& side) {
  const ir::LinearLayout& to = e_.f.layout(e_.type(inst_.results[0]).layout);
  std::vector<std::int64_t> bases;
  for (const Coord& c : lanes(side)) bases.push_back(side.place.at(c));
  for (int bit = 0; bit < to.in_bits(Hw::Warp); ++bit) {
    Coord c = to.basis(Hw::Warp, bit);
    c[std::size_t(side.depth)] = 0;
    bases.push_back(side.place.at(c));
  }
  bases.resize(std::size_t(e_.geometry.thread_bits()), 0);
  side.thread = e_.geometry.linear(bases).thread;
  if (side.thread == nullptr) side.thread = code_.getInt32(0);
  for (std::int64_t base : bases) side.reach |= base;
}

/// What each bit of a lane's number moves the address by that it gives to ldmatrix, or the element it reads.
std::vector<Coord> MatrixProduct::lanes(const Side& side) const {
  std::vector<Coord> out;
  const auto add = [&](int axis, std::int64_t step) {
    Coord c(g_.axes.size(), 0);
    c[std::size_t(axis)] = step;
    out.push_back(std::move(c));
  };
  if (side.singly) {
    for (int step : {1, 2}) add(side.depth, step);
    for (int step : {1, 2, 4}) add(side.row, step);
    return out;
  }
  for (int step : {1, 2, 4}) add(side.slow(), step);  // the eight rows of a matrix
  const int half = kUnitBytes / shape_.element_bytes;
  if (side.number == 0) add(side.row, 8), add(side.depth, half);
  else add(side.depth, half), add(side.row, 8);
  return out;
}

void MatrixProduct::find_blocks() {
  std::map<Coord, int> by_part;
  for (int r = 0; r < g_.regs(); ++r)
    by_part.emplace(Coord(g_.parts[std::size_t(r)].begin(), g_.parts[std::size_t(r)].end()), r);
  const ir::LinearLayout& l = e_.f.layout(e_.type(inst_.results[0]).layout);
  const auto row = std::size_t(l.rank() - 2), column = row + 1;
  for (const auto& [at, r] : by_part) {
    if ((at[column] & 1) != 0 || (shape_.m == 16 && (at[row] & 8) != 0)) continue;
    Block block{at, {}};
    bool live = false;
    for (int below : {0, 8}) {
      if (below >= shape_.m) continue;
      for (int beside : {0, 1}) {
        Coord c = at;
        c[row] |= below & (l.out_shape()[row] - 1);
        c[column] |= beside & (l.out_shape()[column] - 1);
        block.registers.push_back(by_part.at(c));
        live = live || g_.live[std::size_t(block.registers.back())];
      }
    }
    if (live) blocks_.push_back(std::move(block));
  }
}

// --- elements of the unit --------------------------------------------------------------------------------------------

Value* rounded_to_tf32(llvm::IRBuilder<>& b, Value* x) {
  PtxAsm text;
  const std::string to = text.out(b.getInt32Ty()), from = text.in_register(x);
  text.line(fmt::format("cvt.rna.tf32.f32 {}, {};", to, from));
  text.emit(b);
  return b.CreateBitCast(text.result(b, 0), b.getFloatTy());
}

/// The operand in its staged dtype; where it is split, the large parts and then the small ones.
std::vector<TileValue> MatrixProduct::parts_of(const Side& side) {
  const Geometry& g = e_.geometry_of(side.value);
  const DType from = e_.type(side.value).dtype;
  const bool rounds = from == DType::f32 && unit_ == DotUnit::Tf32;
  const auto to_unit = [&](Value* x) {
    return rounds ? rounded_to_tf32(code_, x) : emit_cast(e_.c, x, from, side.dtype, false);
  };
  const TileValue whole = e_.as_plain(side.value);
  std::vector<TileValue> parts{map_registers(g, {whole}, [&](Regs x) { return to_unit(x[0]); })};
  if (side.shared.size() == 2)
    parts.push_back(map_registers(g, {whole, parts[0]}, [&](Regs x) {
      return to_unit(code_.CreateFSub(x[0], emit_cast(e_.c, x[1], side.dtype, from, false)));
    }));
  return parts;
}

// --- fragments -------------------------------------------------------------------------------------------------------

/// Where this thread reads at `c`, which lies in the slice behind `base` (null: 0): "[a+16]".
std::string MatrixProduct::place(PtxAsm& text, const Side& side, std::size_t part, const Coord& c, Value* base) {
  Value* thread = side.thread;
  std::int64_t reach = side.reach;
  if (base != nullptr) {
    thread = code_.CreateXor(thread, side.place.at(code_, side.depth, base));
    reach |= side.place.reach(side.depth, slice_ - 1);
  }
  const std::int64_t offset = side.place.at(c);
  Value* moved = code_.CreateXor(thread, code_.getInt32(std::uint32_t(offset & reach)));
  return fmt::format("[{}+{}]", text.in_register(code_.CreateAdd(side.shared[part], moved)), offset & ~reach);
}

/// The registers that one read of the warp gives, at position k of the slice behind `base` (null: 0).
Fragment MatrixProduct::load(const Side& side, std::size_t part, const Coord& at, Value* base, std::int64_t k) {
  Coord c = at;
  c[std::size_t(side.depth)] = k;
  const bool one_block = side.number == 1 && side.shape.back() <= shape_.n;  // of columns
  const int count = unit_ == DotUnit::F64 ? 1 : one_block ? 2 : 4;
  Fragment out = side.singly ? load_singly(side, part, c, base, count) : load_matrices(side, part, c, base, count);
  if (side.taken && unit_ == DotUnit::Tf32)  // as it lies in memory
    for (Value*& v : out)
      v = code_.CreateBitCast(rounded_to_tf32(code_, code_.CreateBitCast(v, code_.getFloatTy())), code_.getInt32Ty());
  return out;
}

Fragment MatrixProduct::load_matrices(const Side& side, std::size_t part, const Coord& c, Value* base, int count) {
  PtxAsm text;
  std::vector<std::string> to;
  for (int i = 0; i < count; ++i) to.push_back(text.out(code_.getInt32Ty()));
  const std::string from = place(text, side, part, c, base);
  text.line(fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {{{}}}, {};", count,
                        side.along_depth ? "" : ".trans", fmt::join(to, ", "), from));
  text.emit(code_);
  Fragment out;
  for (unsigned i = 0; i < unsigned(count); ++i) out.push_back(text.result(code_, i));
  return out;
}

/// The elements that ldmatrix would give: of eight rows and half of the step each.
Fragment MatrixProduct::load_singly(const Side& side, std::size_t part, const Coord& c, Value* base, int count) {
  const bool is_f64 = unit_ == DotUnit::F64;
  const int half = shape_.k / 2;
  Fragment out;
  for (int i = 0; i < count; ++i) {
    Coord at = c;
    const bool low = (i & 1) != 0, high = (i & 2) != 0;  // rows change first of a, positions along k of b
    if (side.number == 0 ? low : high) at[std::size_t(side.row)] += 8;
    if (side.number == 0 ? high : low) at[std::size_t(side.depth)] += half;
    PtxAsm text;
    const std::string to = text.out(is_f64 ? code_.getDoubleTy() : static_cast<llvm::Type*>(code_.getInt32Ty()));
    text.line(fmt::format("ld.shared.{} {}, {};", is_f64 ? "f64" : "b32", to, place(text, side, part, at, base)));
    text.emit(code_);
    out.push_back(text.result(code_, 0));
  }
  return out;
}

/// The fragment of the block's rows or columns. One read gives those of two blocks beside each other.
Fragment MatrixProduct::fragment(const Side& side, std::size_t part, const Coord& block, Value* base, std::int64_t k) {
  Coord at = block;
  at[std::size_t(side.depth)] = 0;
  const bool paired = side.number == 1 && unit_ != DotUnit::F64;
  const bool second = paired && (at[std::size_t(side.row)] & 8) != 0;
  if (second) at[std::size_t(side.row)] ^= 8;
  const auto [found, is_new] = loaded_.try_emplace({side.number, part, at});
  if (is_new) found->second = load(side, part, at, base, k);
  const Fragment& all = found->second;
  if (!paired) return all;
  return {all[second ? 2 : 0], all[second ? 3 : 1]};
}

// --- the sums --------------------------------------------------------------------------------------------------------

std::string MatrixProduct::instruction() const {
  const char* sum = unit_ == DotUnit::F64 ? "f64" : unit_ == DotUnit::I8 ? "s32" : "f32";
  return fmt::format("mma.sync.aligned.m{}n{}k{}.row.col.{}.{}.{}.{}", shape_.m, shape_.n, shape_.k, sum,
                     element_name(a_.dtype), element_name(b_.dtype), sum);
}

void MatrixProduct::multiply(const Block& block, const Fragment& a, const Fragment& b) {
  PtxAsm text;
  llvm::Type* type = e_.c.type(e_.type(inst_.results[0]).dtype);
  std::vector<std::string> to, left, right, sum;
  for (std::size_t i = 0; i < block.registers.size(); ++i) to.push_back(text.out(type));
  for (Value* v : a) left.push_back(text.in_register(v));
  for (Value* v : b) right.push_back(text.in_register(v));
  for (int r : block.registers) sum.push_back(text.in_register(sums_[std::size_t(r)]));
  text.line(fmt::format("{} {{{}}}, {{{}}}, {{{}}}, {{{}}};", instruction(), fmt::join(to, ", "), fmt::join(left, ", "),
                        fmt::join(right, ", "), fmt::join(sum, ", ")));
  text.emit(code_);
  for (std::size_t i = 0; i < block.registers.size(); ++i)
    sums_[std::size_t(block.registers[i])] = text.result(code_, unsigned(i));
}

/// One step at position k behind `base`: small parts first.
void MatrixProduct::step(Value* base, std::int64_t k) {
  using Parts = std::vector<std::pair<std::size_t, std::size_t>>;
  const Parts parts = a_.shared.size() == 1 ? Parts{{0, 0}} : Parts{{1, 0}, {0, 1}, {0, 0}};
  loaded_.clear();
  for (const auto& [of_a, of_b] : parts)
    for (const Block& block : blocks_)
      multiply(block, fragment(a_, of_a, block.at, base, k), fragment(b_, of_b, block.at, base, k));
}

void MatrixProduct::steps(Value* base, std::int64_t first, std::int64_t count) {
  for (std::int64_t i = first; i < first + count; ++i) {
    step(base, i * shape_.k);
    if (promote_ > 0 && (i + 1) * shape_.k % promote_ == 0) promote();
  }
}

/// Adds the sums so far to what they are parts of.
void MatrixProduct::promote() {
  for (std::size_t r = 0; r < sums_.size(); ++r) {
    if (main_[r] == nullptr) continue;
    main_[r] = code_.CreateFAdd(main_[r], sums_[r]);
    sums_[r] = llvm::Constant::getNullValue(sums_[r]->getType());
  }
}

/// The first `positions` positions of the slice.
void MatrixProduct::slice(std::int64_t positions) {
  const std::int64_t count = (positions + shape_.k - 1) / shape_.k, trips = count / kUnrolled;
  if (count <= kUnrolled || promote_ > 0) return steps(nullptr, 0, count);
  auto *before = code_.GetInsertBlock(), *body = llvm::BasicBlock::Create(e_.c.context(), "dot", e_.kernel);
  code_.CreateBr(body);
  code_.SetInsertPoint(body);
  llvm::PHINode* k = code_.CreatePHI(code_.getInt32Ty(), 2);
  k->addIncoming(code_.getInt32(0), before);
  std::vector<llvm::PHINode*> carried(sums_.size(), nullptr);
  for (std::size_t r = 0; r < sums_.size(); ++r) {
    carried[r] = code_.CreatePHI(sums_[r]->getType(), 2);
    carried[r]->addIncoming(sums_[r], before);
    sums_[r] = carried[r];
  }
  steps(k, 0, kUnrolled);
  Value* after = code_.CreateAdd(k, code_.getInt32(std::uint32_t(kUnrolled * shape_.k)));
  auto* end = code_.GetInsertBlock();
  for (std::size_t r = 0; r < sums_.size(); ++r) carried[r]->addIncoming(sums_[r], end);
  k->addIncoming(after, end);
  auto* exit = llvm::BasicBlock::Create(e_.c.context(), "dot.exit", e_.kernel);
  code_.CreateCondBr(code_.CreateICmpULT(after, code_.getInt32(std::uint32_t(trips * kUnrolled * shape_.k))), body,
                     exit);
  code_.SetInsertPoint(exit);
  steps(nullptr, trips * kUnrolled, count - trips * kUnrolled);
}

TileValue MatrixProduct::emit() {
  for (Side* side : {&a_, &b_})
    if (!side->taken) side->elements = parts_of(*side);
  const TileValue start = e_.as_plain(inst_.operands[2]);
  Value* zero = llvm::Constant::getNullValue(e_.c.type(e_.type(inst_.results[0]).dtype));
  for (int r = 0; r < g_.regs(); ++r) {
    Value* v = g_.live[std::size_t(r)] ? start.regs[std::size_t(r)].v : nullptr;
    main_.push_back(promote_ > 0 ? v : nullptr);
    sums_.push_back(promote_ > 0 || v == nullptr ? zero : v);
  }
  for (std::int64_t first = 0; first < extent_; first += slice_) {
    if (scratch_.range.bytes() > 0) {
      e_.hazards.shared_write(code_, scratch_.range);
      for (Side* side : {&a_, &b_})
        for (std::size_t part = 0; part < side->elements.size(); ++part)
          stage(e_, *side, side->elements[part], side->shared[part], first / slice_);
      e_.hazards.shared_read(code_, scratch_.range);
    }
    slice(std::min(slice_, extent_ - first));
  }
  if (promote_ > 0) promote();
  TileValue result;
  for (int r = 0; r < g_.regs(); ++r)
    result.regs.push_back({promote_ > 0              ? main_[std::size_t(r)]
                           : g_.live[std::size_t(r)] ? sums_[std::size_t(r)]
                                                     : nullptr,
                           0});
  return result;
}

}  // namespace

const char* element_name(DType d) {
  switch (d) {
    case DType::f8e4m3: return "e4m3";
    case DType::f8e5m2: return "e5m2";
    case DType::i8: return "s8";
    case DType::u8: return "u8";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::f64: return "f64";
    default: return "tf32";
  }
}

TileValue emit_matrix_product(Emitter& e, const ir::Inst& dot) { return MatrixProduct(e, dot).emit(); }

}  // namespace kiln::cg
