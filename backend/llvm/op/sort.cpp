// Sort and histogram.
//
// Sort packs each key with its position into one unsigned number whose order is the wanted one:
//
//     [ key as an unsigned number, complemented for descending | position | 1: the key was -0 ]
//
// No two are equal, so that any sorting network is stable. NaN, and what is padding, has a key of all ones; padding has
// the higher positions. The network is bitonic with a mirrored first step, in which every comparison puts the smaller
// number at the lower position:
//
//     for each k:  compare positions that differ in all of bits 0…k      (mirror)
//                  then in bit k-1, k-2, …, 0
//
// Padding is therefore never moved, and dead registers take no part. Positions whose bits are registers are compared
// within a thread, lanes by shuffles, others through shared memory. At the end keys are unpacked, and the tiles that
// follow the key are fetched from shared memory, each element from the position that came along.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>

#include "backend/ir/op/sort.h"
#include "backend/llvm/emitter.h"
#include "backend/llvm/ptx_asm.h"
#include "backend/llvm/shared_place.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using ir::Hw;
using llvm::Value;

/// Coordinate of register r along an axis, in this thread.
Value* coordinate(llvm::IRBuilder<>& b, const Geometry& g, int r, int axis) {
  const TileValue::Reg at = GeometryCache::coordinate(b, g, r, axis);
  Value* part = b.getInt32(std::uint32_t(at.c));
  return at.v == nullptr ? part : b.CreateAdd(at.v, part);
}

/// Whether register r is inside the tile along an axis; null: always.
Value* inside(llvm::IRBuilder<>& b, const Geometry& g, int r, int axis) {
  const Geometry::Axis& a = g.axes[std::size_t(axis)];
  if ((g.parts[std::size_t(r)][std::size_t(axis)] | a.thread_known.range.hi) < a.extent) return nullptr;
  return b.CreateICmpULT(coordinate(b, g, r, axis), b.getInt32(std::uint32_t(a.extent)));
}

/// A thread's part of the offsets of a tile's elements, and the bits it may have.
struct ThreadPlace {
  Value* offset;
  std::int64_t reach = 0;

  /// `without`: an axis to leave at 0.
  ThreadPlace(llvm::IRBuilder<>& b, const Geometry& g, const SharedPlace& place, int without = -1)
      : offset(b.getInt32(0)) {
    for (int axis = 0; axis < int(g.axes.size()); ++axis) {
      const Geometry::Axis& a = g.axes[std::size_t(axis)];
      if (axis == without || a.thread == nullptr) continue;
      offset = b.CreateXor(offset, place.at(b, axis, a.thread));
      reach |= place.reach(axis, a.thread_known.range.hi);
    }
  }
};

// --- keys ------------------------------------------------------------------------------------------------------------

/// The order of a dtype as the order of unsigned numbers, and back.
class KeyCode {
 public:
  KeyCode(EmitContext& c, DType d, bool descending)
      : c_(c), b_(c.b), d_(d), type_(b_.getIntNTy(unsigned(std::max(bits(d), 8)))), descending_(descending) {}

  llvm::IntegerType* type() const { return type_; }
  Value* encode(Value* key);
  /// Whether the key is -0.
  Value* negative_zero(Value* key) { return b_.CreateICmpEQ(plain(key), sign()); }
  Value* decode(Value* code, Value* negative_zero);

 private:
  Value* all_ones() const { return llvm::Constant::getAllOnesValue(type_); }
  Value* sign() const { return llvm::ConstantInt::get(type_, llvm::APInt::getSignMask(type_->getBitWidth())); }
  Value* plain(Value* key) { return d_ == DType::i1 ? b_.CreateZExt(key, type_) : b_.CreateBitCast(key, type_); }
  std::uint64_t infinity() const;

  EmitContext& c_;
  llvm::IRBuilder<>& b_;
  DType d_;
  llvm::IntegerType* type_;
  bool descending_;
};

/// The largest bit pattern of a positive float that is no NaN.
std::uint64_t KeyCode::infinity() const {
  switch (d_) {
    case DType::f64: return 0x7ff0000000000000;
    case DType::f32: return 0x7f800000;
    case DType::f16: return 0x7c00;
    case DType::bf16: return 0x7f80;
    case DType::f8e4m3: return 0x7e;
    case DType::f8e5m2: return 0x7c;
    default: break;
  }
  throw InternalError(std::string(name(d_)) + " has no NaN");
}

Value* KeyCode::encode(Value* key) {
  Value* x = plain(key);
  Value* nan = nullptr;
  if (is_float(d_)) {
    Value* magnitude = b_.CreateAnd(x, b_.CreateNot(sign()));
    nan = b_.CreateICmpUGT(magnitude, llvm::ConstantInt::get(type_, infinity()));
    x = b_.CreateSelect(b_.CreateICmpEQ(x, sign()), llvm::Constant::getNullValue(type_), x);
    x = b_.CreateXor(x, b_.CreateOr(b_.CreateAShr(x, type_->getBitWidth() - 1), sign()));
  } else if (is_signed(d_)) {
    x = b_.CreateXor(x, sign());
  }
  if (descending_) x = b_.CreateNot(x);
  return nan == nullptr ? x : b_.CreateSelect(nan, all_ones(), x);
}

/// All ones, a NaN, becomes some NaN either way.
Value* KeyCode::decode(Value* x, Value* negative_zero) {
  if (descending_) x = b_.CreateNot(x);
  if (is_float(d_)) {
    x = b_.CreateXor(x, b_.CreateOr(b_.CreateNot(b_.CreateAShr(x, type_->getBitWidth() - 1)), sign()));
    x = b_.CreateSelect(negative_zero, sign(), x);
  } else if (is_signed(d_)) {
    x = b_.CreateXor(x, sign());
  }
  return d_ == DType::i1 ? b_.CreateTrunc(x, b_.getInt1Ty()) : b_.CreateBitCast(x, c_.type(d_));
}

// --- sort ------------------------------------------------------------------------------------------------------------

class Sorter {
 public:
  Sorter(Emitter& e, const ir::Inst& inst);
  void emit();

 private:
  bool used(int r) const { return g_.live[std::size_t(r)] && g_.first[std::size_t(r)] == r; }
  llvm::IntegerType* packed() const { return b_.getIntNTy(unsigned(8 * packed_bytes_)); }
  void pack();
  void compare(std::int64_t mask);
  Value* upper(int r, std::int64_t top);
  std::vector<Value*> partners(std::int64_t mask);
  std::vector<Value*> shared_partners(std::int64_t mask);
  Value* shuffle(Value* x, std::int64_t lanes);
  Value* position(int r) { return b_.CreateTrunc(b_.CreateLShr(packed_[std::size_t(r)], tag_bits_), b_.getInt32Ty()); }
  TileValue keys();
  TileValue follow(ir::Value tile);

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::Inst& inst_;
  const Geometry& g_;
  const ir::LinearLayout& layout_;
  const int axis_, position_bits_, packed_bytes_;
  const unsigned tag_bits_;
  const Scratch scratch_;
  KeyCode code_;
  std::vector<Value*> packed_;  ///< by register; null where used() is false
};

Sorter::Sorter(Emitter& e, const ir::Inst& inst)
    : e_(e),
      b_(e.b),
      inst_(inst),
      g_(e.geometry_of(inst.results[0])),
      layout_(e.f.layout(e.type(inst.results[0]).layout)),
      axis_(int(inst.i64(ir::AttrKey::axis))),
      position_bits_(ir::sort_position_bits(e.f, inst)),
      packed_bytes_(ir::sort_packed_bytes(e.f, inst)),
      tag_bits_(is_float(e.type(inst.operands[0]).dtype) ? 1 : 0),
      scratch_(e.scratch(inst)),
      code_(e.c, e.type(inst.operands[0]).dtype, inst.flag(ir::AttrKey::descending)) {}

void Sorter::pack() {
  const TileValue keys = e_.as_plain(inst_.operands[0]);
  packed_.assign(std::size_t(g_.regs()), nullptr);
  for (int r = 0; r < g_.regs(); ++r) {
    if (!used(r)) continue;
    Value* key = keys.regs[std::size_t(r)].v;
    Value* code = code_.encode(key);
    if (Value* real = inside(b_, g_, r, axis_))
      code = b_.CreateSelect(real, code, llvm::Constant::getAllOnesValue(code_.type()));
    Value* x = b_.CreateShl(b_.CreateZExt(code, packed()), std::uint64_t(position_bits_));
    x = b_.CreateOr(x, b_.CreateZExt(coordinate(b_, g_, r, axis_), packed()));
    if (tag_bits_ != 0) x = b_.CreateOr(b_.CreateShl(x, 1), b_.CreateZExt(code_.negative_zero(key), packed()));
    packed_[std::size_t(r)] = x;
  }
}

/// Whether register r stands at the upper position of its pair; a constant where the thread has no say.
Value* Sorter::upper(int r, std::int64_t top) {
  const Geometry::Axis& a = g_.axes[std::size_t(axis_)];
  const bool part = (g_.parts[std::size_t(r)][std::size_t(axis_)] & top) != 0;
  if (a.thread == nullptr || (a.thread_known.range.hi & top) == 0) return b_.getInt1(part);
  Value* bit = b_.CreateICmpNE(b_.CreateAnd(a.thread, b_.getInt32(std::uint32_t(top))), b_.getInt32(0));
  return part ? b_.CreateNot(bit) : bit;
}

Value* Sorter::shuffle(Value* x, std::int64_t lanes) {
  Value* out = llvm::Constant::getNullValue(packed());
  for (std::uint64_t at = 0; at < std::uint64_t(8 * packed_bytes_); at += 32) {
    Value* word = b_.CreateTrunc(b_.CreateLShr(x, at), b_.getInt32Ty());
    word = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
                              {b_.getInt32(~0u), word, b_.getInt32(std::uint32_t(lanes)), b_.getInt32(31)});
    out = b_.CreateOr(out, b_.CreateShl(b_.CreateZExt(word, packed()), at));
  }
  return out;
}

/// For each register, the number at the position that differs in the bits of `mask`; null where that is padding.
std::vector<Value*> Sorter::partners(std::int64_t mask) {
  std::int64_t registers = 0, lanes = 0;
  for (int bit = 0; bit < position_bits_; ++bit) {
    if (!(mask >> bit & 1)) continue;
    const auto place = ir::sort_place(layout_, axis_, bit);
    if (!place) return shared_partners(mask);
    (place->where == Hw::Register ? registers : lanes) ^= std::int64_t(1) << place->bit;
  }
  std::vector<Value*> out(packed_.size(), nullptr);
  for (int r = 0; r < g_.regs(); ++r) {
    if (!used(r)) continue;
    const int other = int(r ^ registers);
    if (!g_.live[std::size_t(other)]) continue;
    Value* x = packed_[std::size_t(g_.first[std::size_t(other)])];
    out[std::size_t(r)] = lanes == 0 ? x : shuffle(x, lanes);
  }
  return out;
}

std::vector<Value*> Sorter::shared_partners(std::int64_t mask) {
  const SharedPlace place(packed_bytes_, layout_);
  const ThreadPlace thread(b_, g_, place);
  const llvm::Align align{std::uint64_t(packed_bytes_)};
  ir::LinearLayout::Coord moved(g_.axes.size(), 0);
  moved[std::size_t(axis_)] = mask;
  const auto address = [&](int r, std::int64_t by) {
    return shared_address(b_, scratch_.address, thread.offset, thread.reach, place.at(g_.parts[std::size_t(r)]) ^ by);
  };
  e_.hazards.shared_write(b_, scratch_.range);
  for (int r = 0; r < g_.regs(); ++r)
    if (used(r)) b_.CreateAlignedStore(packed_[std::size_t(r)], address(r, 0), align);
  e_.hazards.shared_read(b_, scratch_.range);
  std::vector<Value*> out(packed_.size(), nullptr);
  const std::int64_t extent = g_.axes[std::size_t(axis_)].extent;
  for (int r = 0; r < g_.regs(); ++r) {
    if (!used(r)) continue;
    Value* x = b_.CreateAlignedLoad(packed(), address(r, place.at(moved)), align);
    if (extent != layout_.out_shape()[std::size_t(axis_)]) {  // what is padding may not have been written
      Value* there = b_.CreateXor(coordinate(b_, g_, r, axis_), b_.getInt32(std::uint32_t(mask)));
      Value* real = b_.CreateICmpULT(there, b_.getInt32(std::uint32_t(extent)));
      x = b_.CreateSelect(real, x, llvm::Constant::getAllOnesValue(packed()));
    }
    out[std::size_t(r)] = x;
  }
  return out;
}

/// One step: positions that differ in the bits of `mask`, the smaller number to the one where the highest is 0.
void Sorter::compare(std::int64_t mask) {
  const auto top = std::int64_t(std::bit_floor(std::uint64_t(mask)));
  const std::vector<Value*> others = partners(mask);
  for (int r = 0; r < g_.regs(); ++r) {
    Value *mine = packed_[std::size_t(r)], *other = others[std::size_t(r)];
    if (mine == nullptr || other == nullptr) continue;
    Value* smaller = b_.CreateICmpULT(other, mine);
    packed_[std::size_t(r)] = b_.CreateSelect(b_.CreateXor(smaller, upper(r, top)), other, mine);
  }
}

TileValue Sorter::keys() {
  TileValue t;
  t.regs.resize(packed_.size());
  for (int r = 0; r < g_.regs(); ++r) {
    if (!used(r)) continue;
    Value* x = packed_[std::size_t(r)];
    Value* code = b_.CreateTrunc(b_.CreateLShr(x, std::uint64_t(position_bits_) + tag_bits_), code_.type());
    t.regs[std::size_t(r)].v = code_.decode(code, b_.CreateTrunc(x, b_.getInt1Ty()));
  }
  return t;
}

/// A tile in the order of the positions.
TileValue Sorter::follow(ir::Value tile) {
  const DType d = e_.type(tile).dtype;
  llvm::Type* memory = e_.c.memory_type(d);
  const TileValue in = e_.as_plain(tile);
  const SharedPlace place(bytes(d), layout_);
  const ThreadPlace thread(b_, g_, place), line(b_, g_, place, axis_);
  const llvm::Align align{std::uint64_t(bytes(d))};
  e_.hazards.shared_write(b_, scratch_.range);
  for (int r = 0; r < g_.regs(); ++r) {
    if (!used(r)) continue;
    Value* x = in.regs[std::size_t(r)].v;
    if (d == DType::i1) x = b_.CreateZExt(x, memory);
    b_.CreateAlignedStore(
        x, shared_address(b_, scratch_.address, thread.offset, thread.reach, place.at(g_.parts[std::size_t(r)])),
        align);
  }
  e_.hazards.shared_read(b_, scratch_.range);
  TileValue out;
  out.regs.resize(packed_.size());
  for (int r = 0; r < g_.regs(); ++r) {
    if (!used(r)) continue;
    ir::LinearLayout::Coord part = g_.parts[std::size_t(r)];
    part[std::size_t(axis_)] = 0;
    Value* offset = b_.CreateXor(line.offset, place.at(b_, axis_, position(r)));
    const std::int64_t all = place.bytes() - 1;
    Value* x = b_.CreateAlignedLoad(memory, shared_address(b_, scratch_.address, offset, all, place.at(part)), align);
    out.regs[std::size_t(r)].v = d == DType::i1 ? b_.CreateIsNotNull(x) : x;
  }
  return out;
}

void Sorter::emit() {
  pack();
  for (int k = 0; k < position_bits_; ++k) {
    compare((std::int64_t(2) << k) - 1);
    for (int bit = k - 1; bit >= 0; --bit) compare(std::int64_t(1) << bit);
  }
  std::vector<TileValue> results{keys()};
  for (std::size_t t = 1; t < inst_.operands.size(); ++t) results.push_back(follow(inst_.operands[t]));
  for (std::size_t t = 0; t < results.size(); ++t) {
    for (int r = 0; r < g_.regs(); ++r)
      if (g_.live[std::size_t(r)])
        results[t].regs[std::size_t(r)] = results[t].regs[std::size_t(g_.first[std::size_t(r)])];
    e_.set_plain(inst_.results[t], std::move(results[t]));
  }
}

// --- histogram -------------------------------------------------------------------------------------------------------

/// Adds 1 to the counter of register r's element, unless something is against it.
void count(Emitter& e, const ir::Inst& inst, int r, Value* counters, Value* element, Value* mask) {
  const ir::Value x = inst.operands[0];
  const Geometry& g = e.geometry_of(x);
  llvm::IRBuilder<>& b = e.b;
  const DType d = e.type(x).dtype;
  llvm::Type* wide = bits(d) == 64 ? b.getInt64Ty() : b.getInt32Ty();
  Value* bin = is_signed(d) ? b.CreateSExt(element, wide) : b.CreateZExt(element, wide);
  const std::int64_t bins = e.type(inst.results[0]).shape[0];
  Value* active = b.CreateICmpULT(bin, llvm::ConstantInt::get(wide, std::uint64_t(bins)));
  for (int axis = 0; axis < int(g.axes.size()); ++axis)
    if (Value* real = inside(b, g, r, axis)) active = b.CreateAnd(active, real);
  if (g.owner != nullptr) active = b.CreateAnd(active, g.owner);
  if (mask != nullptr) active = b.CreateAnd(active, mask);
  Value* at = b.CreateAdd(counters, b.CreateShl(b.CreateTrunc(bin, b.getInt32Ty()), 2));
  PtxAsm text;
  const std::string p = text.in(active, 'b'), address = text.in(at);
  text.line("@" + p + " red.shared.add.u32 [" + address + "], 1;");
  text.emit(b);
}

}  // namespace

void emit_Sort(Emitter& e, const ir::Inst& inst) {
  if (e.exec().cluster > 1) throw UserError(inst.loc, "sort: a program that runs on a cluster of blocks has none yet");
  Sorter(e, inst).emit();
}

// Counters are set to zero and read by the threads that hold the result.
void emit_Histogram(Emitter& e, const ir::Inst& inst) {
  if (e.exec().cluster > 1)
    throw UserError(inst.loc, "histogram: a program that runs on a cluster of blocks has none yet");
  llvm::IRBuilder<>& b = e.b;
  const ir::Value x = inst.operands[0], result = inst.results[0];
  const Geometry &g = e.geometry_of(result), &from = e.geometry_of(x);
  const Scratch scratch = e.scratch(inst);
  const SharedPlace place(bytes(DType::i32), {0}, {std::countr_zero(std::uint64_t(scratch.range.bytes() / 4))});
  const ThreadPlace thread(b, g, place);
  const auto address = [&](int r) {
    return shared_address(b, scratch.address, thread.offset, thread.reach, place.at(g.parts[std::size_t(r)]));
  };
  const auto used = [](const Geometry& of, int r) { return of.live[std::size_t(r)] && of.first[std::size_t(r)] == r; };
  e.hazards.shared_write(b, scratch.range);
  for (int r = 0; r < g.regs(); ++r)
    if (used(g, r)) b.CreateAlignedStore(b.getInt32(0), address(r), llvm::Align(4));

  const TileValue elements = e.as_plain(x);
  const TileValue mask = inst.operands.size() > 1 ? e.as_plain(inst.operands[1]) : TileValue{};
  e.hazards.shared_write(b, scratch.range);
  for (int r = 0; r < from.regs(); ++r)
    if (used(from, r))
      count(e, inst, r, scratch.address, elements.regs[std::size_t(r)].v,
            mask.regs.empty() ? nullptr : mask.regs[std::size_t(r)].v);

  e.hazards.shared_read(b, scratch.range);
  TileValue counts;
  counts.regs.resize(std::size_t(g.regs()));
  for (int r = 0; r < g.regs(); ++r)
    if (used(g, r)) counts.regs[std::size_t(r)].v = b.CreateAlignedLoad(b.getInt32Ty(), address(r), llvm::Align(4));
  for (int r = 0; r < g.regs(); ++r)
    if (g.live[std::size_t(r)]) counts.regs[std::size_t(r)] = counts.regs[std::size_t(g.first[std::size_t(r)])];
  e.set_plain(result, std::move(counts));
}

}  // namespace kiln::cg
