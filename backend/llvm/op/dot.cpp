// Products of matrices on the CUDA cores, for every shape and type.
//
//     for each slice of k                                    (ir::dot_slice; usually one)
//       a, b  ->  shared memory, as elements of the accumulator's type
//       for k in the slice, some at a time                   (an LLVM loop)
//         load the rows of a and the columns of b that this thread's part of the result needs
//         result[m, n] = fma(a[m, k], b[k, n], result[m, n])   in k order
//
// Each operand keeps the direction in which its layout is vectorised: vectors of 16 bytes run along k or along the
// rows, so that it is written to shared memory with vector stores, and read with vector loads either way. Positions
// beyond k's extent are never read; rows and columns beyond theirs only reach elements of the result that are padding.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>
#include <map>

#include "backend/ir/op/dot.h"
#include "backend/llvm/emitter.h"
#include "backend/llvm/matrix_product.h"
#include "backend/llvm/staged_operand.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using ir::Hw;
using llvm::Value;
using Coord = ir::LinearLayout::Coord;
constexpr int kVectorBytes = 16;

int log2_of(std::int64_t n) { return std::countr_zero(std::uint64_t(n)); }

/// One operand: its slice in shared memory, and the rows of it that a thread needs.
struct Side : StagedOperand {
  int load_vector = 1;       ///< elements
  Value* shared = nullptr;   ///< i32: shared address of the slice
  TileValue elements;        ///< of the accumulator's type
  std::vector<Coord> parts;  ///< distinct register parts of rows that the result needs: (batches…, row, 0)
  std::vector<int> part_of;  ///< by register of the result
  Value* thread = nullptr;   ///< i32: the thread's part of the row's offset
  std::int64_t thread_reach = 0;
};

class Product {
 public:
  Product(Emitter& e, const ir::Inst& inst);
  TileValue emit();

 private:
  const ir::LinearLayout& layout(ir::Value v) const { return e_.f.layout(e_.type(v).layout); }
  void set_up(Side& side, std::size_t operand);
  std::vector<Coord> wavefront(const ir::LinearLayout& l, int vector) const;
  void find_parts(Side& side);

  void accumulate(std::int64_t depth);
  void steps(Value* k, int count);
  std::vector<std::vector<Value*>> load(const Side& side, Value* k, int count);
  Value* multiply_add(Value* a, Value* b, Value* sum);

  Emitter& e_;
  llvm::IRBuilder<>& code_;
  const ir::Inst& inst_;
  const Geometry& g_;
  const DType dtype_;
  const int size_;             ///< bytes of the accumulator's type
  const std::int64_t slice_;   ///< positions along k in shared memory
  const std::int64_t extent_;  ///< of k
  const int step_;             ///< positions along k that are loaded at a time
  const Scratch scratch_;
  Side a_, b_;
  std::vector<Value*> sums_;  ///< by register of the result
};

Product::Product(Emitter& e, const ir::Inst& inst)
    : e_(e),
      code_(e.b),
      inst_(inst),
      g_(e.geometry_of(inst.results[0])),
      dtype_(e.type(inst.results[0]).dtype),
      size_(bytes(dtype_)),
      slice_(ir::dot_slice(e.f, inst)),
      extent_(e.type(inst.operands[0]).shape.back()),
      step_(int(std::min<std::int64_t>(kVectorBytes / size_, slice_))),
      scratch_(e.scratch(inst)) {
  const std::int64_t of_a = ir::dot_slice_bytes(e.f, inst, 0), of_b = ir::dot_slice_bytes(e.f, inst, 1);
  a_.shared = scratch_.part(code_, 0, of_a).address;
  b_.shared = scratch_.part(code_, of_a, of_b).address;
  set_up(a_, 0);
  set_up(b_, 1);
}

/// The coordinates by which the lanes of one access of 128 bytes differ.
std::vector<Coord> Product::wavefront(const ir::LinearLayout& l, int vector) const {
  std::vector<Coord> lanes;
  const int bits = std::min(7 - log2_of(vector * size_), l.in_bits(Hw::Lane));
  for (int bit = 0; bit < bits; ++bit) lanes.push_back(l.basis(Hw::Lane, bit));
  return lanes;
}

void Product::set_up(Side& side, std::size_t operand) {
  static_cast<StagedOperand&>(side) = staged_operand(e_, inst_, operand);
  const ir::LinearLayout &from = layout(side.value), &to = layout(inst_.results[0]);
  const int rank = from.rank(), widest = kVectorBytes / size_;

  std::vector<int> bits, order{side.fast(), side.slow()};
  for (std::int64_t extent : from.out_shape()) bits.push_back(log2_of(extent));
  bits[std::size_t(side.depth)] = log2_of(slice_);
  for (int axis = rank - 3; axis >= 0; --axis) order.push_back(axis);
  side.place = SharedPlace(size_, order, bits);
  const int longest = std::min(widest, 1 << bits[std::size_t(side.fast())]);
  side.load_vector = side.along_depth ? step_ : std::min(longest, register_run(to, side.row));

  std::vector<Coord> readers = wavefront(to, side.load_vector);
  for (Coord& c : readers) c[std::size_t(side.depth)] = 0;
  side.place.swizzle(readers, wavefront(from, side.store_vector));
  find_parts(side);
}

/// Which rows of the operand this thread's part of the result needs.
void Product::find_parts(Side& side) {
  std::map<Coord, int> known;
  const int rank = int(g_.axes.size());
  for (int r = 0; r < g_.regs(); ++r) {
    Coord part(g_.parts[std::size_t(r)].begin(), g_.parts[std::size_t(r)].end());
    part[std::size_t(side.depth)] = 0;
    int number = -1;
    if (g_.live[std::size_t(r)]) {
      const auto [at, is_new] = known.emplace(part, int(side.parts.size()));
      if (is_new) side.parts.push_back(part);
      number = at->second;
    }
    side.part_of.push_back(number);
  }
  side.thread = code_.getInt32(0);
  for (int axis = 0; axis < rank; ++axis) {
    const Geometry::Axis& from = g_.axes[std::size_t(axis)];
    if (axis == side.depth || from.thread == nullptr) continue;
    side.thread = code_.CreateXor(side.thread, side.place.at(code_, axis, from.thread));
    side.thread_reach |= side.place.reach(axis, from.thread_known.range.hi);
  }
}

// --- the sums --------------------------------------------------------------------------------------------------------

/// Elements [part][i] at positions k, …, k + count - 1.
std::vector<std::vector<Value*>> Product::load(const Side& side, Value* k, int count) {
  std::vector<std::vector<Value*>> out(side.parts.size(), std::vector<Value*>(std::size_t(count)));
  Value* thread = code_.CreateXor(side.thread, side.place.at(code_, side.depth, k));
  const std::int64_t reach = side.thread_reach | side.place.reach(side.depth, (slice_ - 1) & -std::int64_t(step_));
  auto* type = llvm::FixedVectorType::get(e_.c.type(dtype_), unsigned(side.load_vector));
  std::map<Coord, Value*> vectors;
  for (std::size_t p = 0; p < side.parts.size(); ++p)
    for (int i = 0; i < count; ++i) {
      Coord at = side.parts[p];
      at[std::size_t(side.depth)] = i;
      const std::int64_t position = at[std::size_t(side.fast())] & (side.load_vector - 1);
      at[std::size_t(side.fast())] -= position;
      Value*& vector = vectors[at];
      if (vector == nullptr)
        vector = code_.CreateAlignedLoad(type, shared_address(code_, side.shared, thread, reach, side.place.at(at)),
                                         llvm::Align(std::uint64_t(side.load_vector * size_)));
      out[p][std::size_t(i)] = code_.CreateExtractElement(vector, std::uint64_t(position));
    }
  return out;
}

Value* Product::multiply_add(Value* a, Value* b, Value* sum) {
  if (!is_float(dtype_)) return code_.CreateAdd(code_.CreateMul(a, b), sum);
  return code_.CreateIntrinsic(llvm::Intrinsic::fma, sum->getType(), {a, b, sum});
}

/// Positions k to k + count - 1 of the slice; k is a multiple of step_.
void Product::steps(Value* k, int count) {
  const auto rows = load(a_, k, count), columns = load(b_, k, count);
  for (int i = 0; i < count; ++i)
    for (int r = 0; r < g_.regs(); ++r) {
      if (!g_.live[std::size_t(r)] || g_.first[std::size_t(r)] != r) continue;
      Value*& sum = sums_[std::size_t(r)];
      sum = multiply_add(rows[std::size_t(a_.part_of[std::size_t(r)])][std::size_t(i)],
                         columns[std::size_t(b_.part_of[std::size_t(r)])][std::size_t(i)], sum);
    }
}

/// The first `depth` positions of the slice: whole steps in a loop, then the rest.
void Product::accumulate(std::int64_t depth) {
  const std::int64_t whole = depth / step_ * step_;
  if (whole > step_) {
    auto *before = code_.GetInsertBlock(), *body = llvm::BasicBlock::Create(e_.c.context(), "dot", e_.kernel);
    code_.CreateBr(body);
    code_.SetInsertPoint(body);
    llvm::PHINode* k = code_.CreatePHI(code_.getInt32Ty(), 2);
    k->addIncoming(code_.getInt32(0), before);
    std::vector<llvm::PHINode*> carried;
    for (Value*& sum : sums_)
      if (sum != nullptr) {
        carried.push_back(code_.CreatePHI(sum->getType(), 2));
        carried.back()->addIncoming(sum, before);
        sum = carried.back();
      }
    steps(k, step_);
    std::size_t next = 0;
    for (Value* sum : sums_)
      if (sum != nullptr) carried[next++]->addIncoming(sum, body);
    Value* after = code_.CreateAdd(k, code_.getInt32(std::uint32_t(step_)));
    k->addIncoming(after, body);
    auto* exit = llvm::BasicBlock::Create(e_.c.context(), "dot.exit", e_.kernel);
    code_.CreateCondBr(code_.CreateICmpULT(after, code_.getInt32(std::uint32_t(whole))), body, exit);
    code_.SetInsertPoint(exit);
  } else if (whole == step_) {
    steps(code_.getInt32(0), step_);
  }
  if (depth > whole) steps(code_.getInt32(std::uint32_t(whole)), int(depth - whole));
}

TileValue Product::emit() {
  for (Side* side : {&a_, &b_}) {
    const DType from = e_.type(side->value).dtype;
    side->elements = map_registers(e_.geometry_of(side->value), {e_.as_plain(side->value)},
                                   [&](Regs x) { return emit_cast(e_.c, x[0], from, dtype_, false); });
  }
  const TileValue start = e_.as_plain(inst_.operands[2]);
  for (int r = 0; r < g_.regs(); ++r)
    sums_.push_back(g_.live[std::size_t(r)] && g_.first[std::size_t(r)] == r ? start.regs[std::size_t(r)].v : nullptr);
  for (std::int64_t first = 0; first < extent_; first += slice_) {
    e_.hazards.shared_write(code_, scratch_.range);
    for (const Side* side : {&a_, &b_}) stage(e_, *side, side->elements, side->shared, first / slice_);
    e_.hazards.shared_read(code_, scratch_.range);
    accumulate(std::min(slice_, extent_ - first));
  }
  TileValue result;
  for (int r = 0; r < g_.regs(); ++r) result.regs.push_back({sums_[std::size_t(g_.first[std::size_t(r)])], 0});
  return result;
}

}  // namespace

void emit_Dot(Emitter& e, const ir::Inst& inst) {
  if (e.exec().cluster > 1) throw UserError(inst.loc, "dot: a program that runs on a cluster of blocks has none yet");
  const bool fma = ir::unit_of(inst) == ir::DotUnit::Fma;
  e.set(inst.results[0], fma ? Product(e, inst).emit() : emit_matrix_product(e, inst));
}

}  // namespace kiln::cg
