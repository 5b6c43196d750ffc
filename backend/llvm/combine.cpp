#include "backend/llvm/combine.h"

#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "backend/llvm/ptx_asm.h"

namespace kiln::cg {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;
constexpr unsigned kAllLanes = 0xffffffff;

/// An element as i32 or i64.
Value* to_word(llvm::IRBuilder<>& b, Value* v) {
  llvm::Type* type = v->getType();
  const unsigned width = unsigned(type->getPrimitiveSizeInBits().getFixedValue());
  if (!type->isIntegerTy()) v = b.CreateBitCast(v, b.getIntNTy(width));
  return width < 32 ? b.CreateZExt(v, b.getInt32Ty()) : v;
}

Value* from_word(llvm::IRBuilder<>& b, Value* word, llvm::Type* type) {
  const unsigned width = unsigned(type->getPrimitiveSizeInBits().getFixedValue());
  if (width < 32) word = b.CreateTrunc(word, b.getIntNTy(width));
  return type->isIntegerTy() ? word : b.CreateBitCast(word, type);
}

Value* exchange_word(llvm::IRBuilder<>& b, Value* word, unsigned bits) {
  const auto shuffle = [&](Value* half) -> Value* {
    return b.CreateIntrinsic(Intrinsic::nvvm_shfl_sync_bfly_i32, llvm::ArrayRef<llvm::Type*>{},
                             {b.getInt32(kAllLanes), half, b.getInt32(bits), b.getInt32(31)});
  };
  if (word->getType()->isIntegerTy(32)) return shuffle(word);
  Value* low = shuffle(b.CreateTrunc(word, b.getInt32Ty()));
  Value* high = shuffle(b.CreateTrunc(b.CreateLShr(word, 32), b.getInt32Ty()));
  return b.CreateOr(b.CreateZExt(low, b.getInt64Ty()), b.CreateShl(b.CreateZExt(high, b.getInt64Ty()), 32));
}

Intrinsic::ID warp_reduction(ir::Op op, bool has_sign) {
  switch (op) {
    case ir::Op::Add: return Intrinsic::nvvm_redux_sync_add;
    case ir::Op::Min: return has_sign ? Intrinsic::nvvm_redux_sync_min : Intrinsic::nvvm_redux_sync_umin;
    case ir::Op::Max: return has_sign ? Intrinsic::nvvm_redux_sync_max : Intrinsic::nvvm_redux_sync_umax;
    case ir::Op::And: return Intrinsic::nvvm_redux_sync_and;
    case ir::Op::Or: return Intrinsic::nvvm_redux_sync_or;
    case ir::Op::Xor: return Intrinsic::nvvm_redux_sync_xor;
    default: return Intrinsic::not_intrinsic;
  }
}

Value* thread_number(Emitter& e) {
  return e.geometry.entry().CreateIntrinsic(Intrinsic::nvvm_read_ptx_sreg_tid_x, llvm::ArrayRef<llvm::Type*>{}, {});
}

/// i32: number of this block in its cluster.
Value* block_number(Emitter& e) {
  return e.geometry.entry().CreateIntrinsic(Intrinsic::nvvm_read_ptx_sreg_cluster_ctarank,
                                            llvm::ArrayRef<llvm::Type*>{}, {});
}

/// The bits of `x` at `from`, in order, as the lowest ones.
Value* gather_bits(llvm::IRBuilder<>& b, Value* x, const std::vector<int>& from) {
  Value* all = b.getInt32(0);
  for (std::size_t i = 0; i < from.size();) {
    std::size_t n = 1;
    while (i + n < from.size() && from[i + n] == from[i] + int(n)) ++n;
    Value* run = b.CreateAnd(b.CreateLShr(x, std::uint64_t(from[i])), b.getInt32((1u << n) - 1));
    all = b.CreateOr(all, b.CreateShl(run, std::uint64_t(i)));
    i += n;
  }
  return all;
}

}  // namespace

bool never(Condition c) {
  const auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(c);
  return known != nullptr && known->isZero();
}

Value* lane_number(Emitter& e) {
  return e.geometry.entry().CreateAnd(thread_number(e), e.geometry.entry().getInt32(31));
}
Value* warp_number(Emitter& e) { return e.geometry.entry().CreateLShr(thread_number(e), 5); }
Value* bit_of(llvm::IRBuilder<>& b, Value* x, int bit) {
  return b.CreateICmpNE(b.CreateAnd(x, b.getInt32(1u << bit)), b.getInt32(0));
}

// --- combinations ----------------------------------------------------------------------------------------------------

Combine::Combine(Emitter& e, const ir::Inst& inst)
    : commutes(ir::commutes(e.f, inst.regions[0])), e_(e), region_(inst.regions[0]) {
  for (ir::Value v : inst.results) types.push_back(e.type(v).dtype);
  if (const auto known = ir::identity_of(e.f, region_))
    for (const ir::Literal& l : *known) identity.push_back(literal(e.c, l));
}

Group Combine::operator()(const Group& left, const Group& right) {
  const std::vector<ir::Value>& params = e_.f.region(region_).params;
  for (std::size_t i = 0; i < types.size(); ++i) {
    e_.set_plain(params[i], left[i]);
    e_.set_plain(params[i + types.size()], right[i]);
  }
  e_.region(region_);
  const std::vector<ir::Value> yielded = e_.yielded;
  Group out;
  for (ir::Value v : yielded) out.push_back(e_.scalar(v));
  return out;
}

Group Combine::select(Condition condition, const Group& yes, const Group& no) {
  if (always(condition)) return yes;
  if (never(condition)) return no;
  Group out;
  for (std::size_t i = 0; i < yes.size(); ++i)
    out.push_back(yes[i] == no[i] ? yes[i] : e_.b.CreateSelect(condition, yes[i], no[i]));
  return out;
}

Group Combine::append(const Group& left, const Group& right, Condition exists) {
  return never(exists) ? left : select(exists, (*this)(left, right), left);
}
Group Combine::prepend(const Group& left, const Group& right, Condition exists) {
  return never(exists) ? right : select(exists, (*this)(left, right), right);
}

Group Combine::exchange_lanes(const Group& mine, unsigned bits) {
  Group out;
  for (Value* v : mine) out.push_back(from_word(e_.b, exchange_word(e_.b, to_word(e_.b, v), bits), v->getType()));
  return out;
}

// Integers of at most 32 bits: one instruction instead of five shuffles and five operations.
Group Combine::reduce_warp(const Group& mine) {
  if (identity.empty() || types.size() != 1 || is_float(types[0]) || bits(types[0]) > 32) return {};
  const ir::Inst& yield = e_.f.inst(e_.f.region(region_).insts.back());
  const Intrinsic::ID id = warp_reduction(e_.f.inst(e_.f.def(yield.operands[0])).op, is_signed(types[0]));
  if (id == Intrinsic::not_intrinsic) return {};
  llvm::Type* type = mine[0]->getType();
  Value* word =
      is_signed(types[0]) ? e_.b.CreateSExt(mine[0], e_.b.getInt32Ty()) : e_.b.CreateZExt(mine[0], e_.b.getInt32Ty());
  Value* all = e_.b.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{}, {word, e_.b.getInt32(kAllLanes)});
  return {e_.b.CreateTrunc(all, type)};
}

// --- numbers along the axis ------------------------------------------------------------------------------------------

AxisNumbers::AxisNumbers(Emitter& e, const ir::Type& tile, const Geometry& g, int axis)
    : e_(e), g_(g), axis_(std::size_t(axis)) {
  for (const ir::AxisBit& b : ir::reduce_order(e.f.layout(tile.layout), axis, /*commutes=*/false))
    if (b.hw != ir::Hw::Register) thread_bits_ |= std::int64_t(1) << b.position;
}

Condition AxisNumbers::exists(std::int64_t reg, std::int64_t set, std::int64_t cleared) const {
  const Geometry::Axis& a = g_.axes[axis_];
  const std::int64_t first = g_.parts[std::size_t(reg)][axis_] + set, varying = thread_bits_ & ~cleared;
  if (first + varying < a.extent) return nullptr;
  if (first >= a.extent) return e_.b.getFalse();
  Value* number = e_.b.CreateAnd(a.thread, e_.b.getInt32(std::uint32_t(varying)));
  return e_.b.CreateICmpULT(number, e_.b.getInt32(std::uint32_t(a.extent - first)));
}

// --- warps -----------------------------------------------------------------------------------------------------------

WarpSlots::WarpSlots(Emitter& e, const ir::Inst& inst, ir::WarpExchange x, std::vector<DType> types,
                     std::int64_t offset)
    : e_(e), x_(std::move(x)), types_(std::move(types)), offsets_(ir::slot_offsets(x_, types_)) {
  scratch_ = e.scratch(inst).part(e.b, offset, bytes());
  std::vector<int> along, across, lanes;
  for (const ir::AxisBit& b : x_.bits) along.push_back(b.bit);
  for (int k = 0; std::int64_t(1) << k < x_.warps; ++k)
    if (std::find(along.begin(), along.end(), k) == along.end()) across.push_back(k);
  for (int k = 0; k < 5; ++k)
    if (x_.lane_mask >> k & 1) lanes.push_back(k);
  place_bits_ = int(along.size());
  llvm::IRBuilder<>& entry = e.geometry.entry();
  place_ = gather_bits(entry, warp_number(e), along);
  others_ = entry.CreateShl(gather_bits(entry, warp_number(e), across), std::uint64_t(place_bits_));
  if (!lanes.empty()) lane_slot_ = gather_bits(entry, lane_number(e), lanes);
}

// Slot of a group: (register · warps + warp) · lanes + lane: 32 lanes touch 32 neighbours, or one that all share.
std::vector<std::vector<Group>> WarpSlots::exchange(llvm::ArrayRef<Group> mine) {
  e_.hazards.shared_write(e_.b, scratch_.range);
  write(mine);
  e_.hazards.shared_read(e_.b, scratch_.range);
  std::vector<std::vector<Group>> all(mine.size(), std::vector<Group>(std::size_t(1) << place_bits_));
  for (std::size_t r = 0; r < mine.size(); ++r)
    for (std::vector<Group>::iterator g = all[r].begin(); g != all[r].end(); ++g) g->resize(types_.size());
  for (std::size_t k = 0; k < types_.size(); ++k) {
    Value* from = e_.b.CreateMul(others_, e_.b.getInt32(std::uint32_t(x_.lanes())));
    if (lane_slot_ != nullptr) from = e_.b.CreateAdd(from, lane_slot_);
    from =
        e_.b.CreateAdd(scratch_.address, e_.b.CreateMul(from, e_.b.getInt32(std::uint32_t(ir::slot_bytes(types_[k])))));
    for (std::size_t r = 0; r < mine.size(); ++r) read(all, r, k, from);
  }
  return all;
}

void WarpSlots::write(llvm::ArrayRef<Group> mine) {
  llvm::IRBuilder<>& b = e_.b;
  Value* slot = b.CreateMul(b.CreateOr(others_, place_), b.getInt32(std::uint32_t(x_.lanes())));
  if (lane_slot_ != nullptr) slot = b.CreateAdd(slot, lane_slot_);
  Value* writer = nullptr;
  if (const auto rest = std::uint32_t(~x_.lane_mask & 31); rest != 0)
    writer = b.CreateICmpEQ(b.CreateAnd(lane_number(e_), b.getInt32(rest)), b.getInt32(0));
  for (std::size_t k = 0; k < types_.size(); ++k) {
    const std::int64_t size = ir::slot_bytes(types_[k]);
    Value* at = b.CreateAdd(scratch_.address, b.CreateMul(slot, b.getInt32(std::uint32_t(size))));
    for (std::size_t r = 0; r < mine.size(); ++r) {
      PtxAsm store;
      const std::string when = writer == nullptr ? "" : "@" + store.in(writer, 'b') + " ";
      const std::int64_t place = offsets_[k] + std::int64_t(r) * x_.warps * x_.lanes() * size;
      const std::string address = store.in(at);
      store.line(fmt::format("{}st.shared.b{} [{}+{}], {};", when, 8 * size, address, place,
                             store.in(to_word(b, mine[r][k]))));
      store.emit(b);
    }
  }
}

/// The slots of the warps along the axis; neighbours in one access where each lane reads the same ones.
void WarpSlots::read(std::vector<std::vector<Group>>& all, std::size_t reg, std::size_t component, Value* from) {
  llvm::IRBuilder<>& b = e_.b;
  const std::int64_t size = ir::slot_bytes(types_[component]);
  const std::size_t warps = all[reg].size();
  const std::size_t vector = x_.lanes() > 1 ? 1 : std::min<std::size_t>(warps, std::size_t(16 / size));
  llvm::Type* word = b.getIntNTy(unsigned(8 * size));
  for (std::size_t w = 0; w < warps; w += vector) {
    PtxAsm load;
    std::string out;
    for (std::size_t i = 0; i < vector; ++i) out += (i ? ", " : "") + load.out(word);
    const std::int64_t place =
        offsets_[component] + (std::int64_t(reg) * x_.warps + std::int64_t(w)) * x_.lanes() * size;
    load.line(fmt::format("ld.shared{}.b{} {}, [{}+{}];", vector == 1 ? "" : fmt::format(".v{}", vector), 8 * size,
                          vector == 1 ? out : "{" + out + "}", load.in(from), place));
    load.emit(b);
    for (std::size_t i = 0; i < vector; ++i)
      all[reg][w + i][component] = from_word(b, load.result(b, unsigned(i)), e_.c.type(types_[component]));
  }
}

// --- between the blocks of a cluster ---------------------------------------------------------------------------------

BlockSlots::BlockSlots(Emitter& e, const ir::Inst& inst, ir::WarpExchange x, std::vector<DType> types,
                       std::int64_t offset)
    : e_(e),
      x_(std::move(x)),
      types_(std::move(types)),
      offsets_(ir::slot_offsets(x_, types_)),
      scratch_(e.scratch(inst).part(e.b, offset, bytes())) {}

Value* BlockSlots::place() {
  std::vector<int> along;
  for (const ir::AxisBit& b : x_.bits) along.push_back(b.bit);
  return gather_bits(e_.geometry.entry(), block_number(e_), along);
}

Value* BlockSlots::rank(std::size_t number) {
  llvm::IRBuilder<>& b = e_.b;
  std::uint32_t along = 0, wanted = 0;
  for (std::size_t i = 0; i < x_.bits.size(); ++i) {
    along |= 1u << x_.bits[i].bit;
    wanted |= std::uint32_t(number >> i & 1) << x_.bits[i].bit;
  }
  return b.CreateOr(b.CreateAnd(block_number(e_), b.getInt32(~along)), b.getInt32(wanted));
}

// Slot of a group: register · threads + thread.
std::vector<std::vector<Group>> BlockSlots::exchange(llvm::ArrayRef<Group> mine) {
  llvm::IRBuilder<>& b = e_.b;
  const std::int64_t threads = 32 * x_.warps;
  const std::size_t blocks = std::size_t(1) << x_.bits.size();
  const auto address_of = [&](std::size_t k) {
    return b.CreateAdd(scratch_.address,
                       b.CreateMul(thread_number(e_), b.getInt32(std::uint32_t(ir::slot_bytes(types_[k])))));
  };
  const auto place = [&](std::size_t k, std::size_t r) {
    return offsets_[k] + std::int64_t(r) * threads * ir::slot_bytes(types_[k]);
  };
  e_.hazards.shared_write(b, scratch_.range);
  for (std::size_t k = 0; k < types_.size(); ++k) {
    Value* at = address_of(k);
    for (std::size_t r = 0; r < mine.size(); ++r) {
      PtxAsm store;
      const std::string address = store.in(at);
      store.line(fmt::format("st.shared.b{} [{}+{}], {};", 8 * ir::slot_bytes(types_[k]), address, place(k, r),
                             store.in(to_word(b, mine[r][k]))));
      store.emit(b);
    }
  }
  e_.hazards.shared_read(b, scratch_.range);
  std::vector<std::vector<Group>> all(mine.size(), std::vector<Group>(blocks, Group(types_.size())));
  for (std::size_t w = 0; w < blocks; ++w)
    for (std::size_t k = 0; k < types_.size(); ++k) {
      PtxAsm map;
      const std::string there = map.out(b.getInt32Ty()), address = map.in(address_of(k));
      map.line(fmt::format("mapa.shared::cluster.u32 {}, {}, {};", there, address, map.in(rank(w))));
      map.emit(b);
      Value* from = map.result(b, 0);
      for (std::size_t r = 0; r < mine.size(); ++r) {
        PtxAsm load;
        const std::string out = load.out(b.getIntNTy(unsigned(8 * ir::slot_bytes(types_[k]))));
        load.line(fmt::format("ld.shared::cluster.b{} {}, [{}+{}];", 8 * ir::slot_bytes(types_[k]), out, load.in(from),
                              place(k, r)));
        load.emit(b);
        all[r][w][k] = from_word(b, load.result(b, 0), e_.c.type(types_[k]));
      }
    }
  return all;
}

}  // namespace kiln::cg
