#include "backend/llvm/staged_operand.h"

#include <algorithm>
#include <bit>
#include <map>

#include "backend/ir/op/dot.h"

namespace kiln::cg {
namespace {

using ir::Hw;
using llvm::Value;
using Coord = ir::LinearLayout::Coord;
constexpr int kVectorBytes = 16;

int log2_of(std::int64_t n) { return std::countr_zero(std::uint64_t(n)); }

class Staging {
 public:
  Staging(Emitter& e, const StagedOperand& side, const TileValue& elements, Value* shared)
      : e_(e), code_(e.b), side_(side), elements_(elements), shared_(shared), g_(e.geometry_of(side.value)) {}

  void slice(std::int64_t number);

 private:
  bool is_written(int r) const;
  Value* in_slice(std::int64_t part, std::int64_t number);
  Value* element(int r);
  void registers(const std::vector<int>& registers);
  void clear_rest();

  Emitter& e_;
  llvm::IRBuilder<>& code_;
  const StagedOperand& side_;
  const TileValue& elements_;
  Value* shared_;
  const Geometry& g_;
};

/// Registers of elements, and, where zeros are wanted, those beyond k's extent of rows that exist.
bool Staging::is_written(int r) const {
  if (g_.first[std::size_t(r)] != r) return false;
  if (g_.live[std::size_t(r)] || !side_.zero_beyond) return g_.live[std::size_t(r)];
  for (int axis = 0; axis < int(g_.axes.size()); ++axis)
    if (axis != side_.depth && g_.parts[std::size_t(r)][std::size_t(axis)] >= g_.axes[std::size_t(axis)].extent)
      return false;
  return true;
}

/// Whether registers whose position along k has register part `part` hold elements of the slice: null for always.
Value* Staging::in_slice(std::int64_t part, std::int64_t number) {
  const Geometry::Axis& axis = g_.axes[std::size_t(side_.depth)];
  const int shift = log2_of(side_.slice);
  if (axis.thread == nullptr || axis.thread_known.range.hi >> shift == 0)
    return part >> shift == number ? nullptr : code_.getFalse();
  Value* of_thread = code_.CreateXor(code_.CreateLShr(axis.thread, std::uint64_t(shift)),
                                     code_.getInt32(std::uint32_t(part >> shift)));
  return code_.CreateICmpEQ(of_thread, code_.getInt32(std::uint32_t(number)));
}

void Staging::slice(std::int64_t number) {
  std::map<std::int64_t, std::vector<int>> by_slice;  // registers by the part of k that chooses the slice
  for (int r = 0; r < g_.regs(); ++r)
    if (is_written(r)) by_slice[g_.parts[std::size_t(r)][std::size_t(side_.depth)] & -side_.slice].push_back(r);
  for (const auto& [part, list] : by_slice) {
    Value* active = in_slice(part, number);
    if (auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(active); known != nullptr && known->isZero()) continue;
    if (g_.owner != nullptr) active = active == nullptr ? g_.owner : code_.CreateAnd(active, g_.owner);
    if (active == nullptr) {
      registers(list);
      continue;
    }
    auto* yes = llvm::BasicBlock::Create(e_.c.context(), "dot.store", e_.kernel);
    auto* exit = llvm::BasicBlock::Create(e_.c.context(), "dot.stored", e_.kernel);
    code_.CreateCondBr(active, yes, exit);
    code_.SetInsertPoint(yes);
    registers(list);
    code_.CreateBr(exit);
    code_.SetInsertPoint(exit);
  }
  if (side_.zero_beyond) clear_rest();
}

/// The element of register r, or zero beyond k's extent.
Value* Staging::element(int r) {
  Value* v = elements_.regs[std::size_t(r)].v;
  const Geometry::Axis& axis = g_.axes[std::size_t(side_.depth)];
  const std::int64_t part = g_.parts[std::size_t(r)][std::size_t(side_.depth)];
  const std::int64_t last = axis.thread == nullptr ? part : part + axis.thread_known.range.hi;
  if (!side_.zero_beyond || last < axis.extent) return v;
  const TileValue::Reg at = GeometryCache::coordinate(code_, g_, r, side_.depth);
  Value* k = code_.getInt32(std::uint32_t(at.c));
  if (at.v != nullptr) k = code_.CreateAdd(at.v, k);
  Value* inside = code_.CreateICmpULT(k, code_.getInt32(std::uint32_t(axis.extent)));
  return code_.CreateSelect(inside, v, llvm::Constant::getNullValue(v->getType()));
}

/// Vectors are found by coordinate: the first element is aligned, its neighbours are in other registers of the thread.
void Staging::registers(const std::vector<int>& list) {
  const int rank = int(g_.axes.size());
  Value* thread = code_.getInt32(0);
  std::int64_t reach = 0;
  for (int axis = 0; axis < rank; ++axis)
    if (const Geometry::Axis& x = g_.axes[std::size_t(axis)]; x.thread != nullptr) {
      thread = code_.CreateXor(thread, side_.place.at(code_, axis, x.thread));
      reach |= side_.place.reach(axis, x.thread_known.range.hi);
    }
  std::map<Coord, int> by_part;
  for (int r : list) by_part.emplace(g_.parts[std::size_t(r)], r);
  auto* vector = llvm::FixedVectorType::get(e_.c.type(side_.dtype), unsigned(side_.store_vector));
  for (const auto& [part, r] : by_part) {
    if (part[std::size_t(side_.fast())] & (side_.store_vector - 1)) continue;
    Value* v = llvm::Constant::getNullValue(vector);
    for (int i = 0; i < side_.store_vector; ++i) {
      Coord at = part;
      at[std::size_t(side_.fast())] += i;
      const auto found = by_part.find(at);
      if (found == by_part.end() || !g_.live[std::size_t(found->second)]) continue;
      v = code_.CreateInsertElement(v, element(found->second), std::uint64_t(i));
    }
    code_.CreateAlignedStore(v, shared_address(code_, shared_, thread, reach, side_.place.at(part)),
                             llvm::Align(std::uint64_t(side_.store_vector * bytes(side_.dtype))));
  }
}

/// Zeros where the slice is deeper than the padded tile: a step of the unit may be longer than k.
void Staging::clear_rest() {
  const ir::LinearLayout& l = e_.f.layout(e_.type(side_.value).layout);
  std::vector<std::int64_t> bases;  // offsets of the region's bits: rows and batches, then k from the tile's extent on
  const std::int64_t held = l.out_shape()[std::size_t(side_.depth)];
  if (held >= side_.slice) return;
  for (int axis = 0; axis < l.rank(); ++axis)
    for (std::int64_t step = 1; axis != side_.depth && step < l.out_shape()[std::size_t(axis)]; step *= 2) {
      Coord c(std::size_t(l.rank()), 0);
      c[std::size_t(axis)] = step;
      bases.push_back(side_.place.at(c));
    }
  const int threads = e_.geometry.thread_bits();
  std::vector<std::int64_t> of_thread(std::size_t(threads), 0);
  std::int64_t reach = 0, idle = 0;
  for (int bit = 0; bit < threads; ++bit) {
    if (bit < int(bases.size())) reach |= of_thread[std::size_t(bit)] = bases[std::size_t(bit)];
    else idle |= std::int64_t(1) << bit;
  }
  Value* thread = e_.geometry.linear(of_thread).thread;
  if (thread == nullptr) thread = code_.getInt32(0);
  llvm::BasicBlock* exit = nullptr;
  if (Value* owner = e_.geometry.owner_where_zero(idle)) {
    auto* yes = llvm::BasicBlock::Create(e_.c.context(), "dot.clear", e_.kernel);
    exit = llvm::BasicBlock::Create(e_.c.context(), "dot.cleared", e_.kernel);
    code_.CreateCondBr(owner, yes, exit);
    code_.SetInsertPoint(yes);
  }
  llvm::Value* zero = llvm::Constant::getNullValue(e_.c.type(side_.dtype));
  const std::size_t more = bases.size() > std::size_t(threads) ? bases.size() - std::size_t(threads) : 0;
  for (std::int64_t k = held; k < side_.slice; ++k)
    for (std::uint64_t i = 0; i < std::uint64_t(1) << more; ++i) {
      Coord c(std::size_t(l.rank()), 0);
      c[std::size_t(side_.depth)] = k;
      std::int64_t offset = side_.place.at(c);
      for (std::size_t bit = 0; bit < more; ++bit)
        if (i >> bit & 1) offset ^= bases[std::size_t(threads) + bit];
      code_.CreateAlignedStore(zero, shared_address(code_, shared_, thread, reach, offset),
                               llvm::Align(std::uint64_t(bytes(side_.dtype))));
    }
  if (exit != nullptr) {
    code_.CreateBr(exit);
    code_.SetInsertPoint(exit);
  }
}

}  // namespace

int register_run(const ir::LinearLayout& l, int axis) {
  int run = 1;
  for (;; run *= 2) {
    int holders = 0;
    for (Hw h : {Hw::Register, Hw::Lane, Hw::Warp, Hw::Block})
      for (int bit = 0; bit < l.in_bits(h); ++bit) {
        Coord basis = l.basis(h, bit);
        if (!(basis[std::size_t(axis)] & run)) continue;
        basis[std::size_t(axis)] ^= run;
        const bool alone = std::all_of(basis.begin(), basis.end(), [](std::int64_t x) { return x == 0; });
        holders += h == Hw::Register && alone ? 1 : 2;
      }
    if (holders != 1) return run;
  }
}

StagedOperand staged_operand(const Emitter& e, const ir::Inst& dot, std::size_t operand) {
  StagedOperand side;
  side.value = dot.operands[operand];
  const ir::LinearLayout& from = e.f.layout(e.type(side.value).layout);
  side.row = from.rank() - (operand == 0 ? 2 : 1);
  side.depth = from.rank() - (operand == 0 ? 1 : 2);
  side.dtype = ir::staged_dtype(e.f, dot, operand);
  side.slice = ir::dot_slice(e.f, dot);
  const int depth_run = register_run(from, side.depth), row_run = register_run(from, side.row);
  side.along_depth = row_run == depth_run ? operand == 0 : depth_run > row_run;
  const std::int64_t longest =
      std::min<std::int64_t>(kVectorBytes / bytes(side.dtype),
                             side.along_depth ? std::min(side.slice, from.out_shape()[std::size_t(side.depth)])
                                              : from.out_shape()[std::size_t(side.row)]);
  side.store_vector = int(std::min<std::int64_t>(longest, side.along_depth ? depth_run : row_run));
  return side;
}

void stage(Emitter& e, const StagedOperand& side, const TileValue& elements, Value* shared, std::int64_t number) {
  Staging(e, side, elements, shared).slice(number);
}

}  // namespace kiln::cg
