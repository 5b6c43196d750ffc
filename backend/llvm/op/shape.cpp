// Ops that rearrange tiles. From the layouts it is known where each element of the result stands
// (backend/ir/op/movement.h):
//
//     in a register of its own thread   the register is renamed; no instruction
//     in a lane at a fixed distance     a shuffle (flip along an axis that lies in lanes)
//     in a lane that an index says      a shuffle for each register that the index may say (gather along lanes)
//     anywhere else                     through shared memory: each element is written once, by its owner, at a place
//                                       that its coordinate says, and read by whoever needs it
//
// Both addresses of the last way are sums over the coordinates of the element, with constant factors:
//
//              written at (element of operand k)            read at (element of the result)
//     reshape  row-major number in the operand              row-major number in the result: the same
//     slice    row-major number                             of the coordinate + start along the axis
//     flip     row-major number                             of the coordinate extent-1-i along the axis
//     cat      row-major number in the result, the          row-major number
//              second part behind the first
//     join     twice the row-major number, + k              row-major number
//     split    row-major number                             twice the row-major number, + which half
//     gather   row-major number                             with the index instead of the coordinate along the axis
#include <fmt/format.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/movement.h"
#include "backend/llvm/emitter.h"
#include "backend/llvm/exchange.h"
#include "backend/llvm/words.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using llvm::Value;

// --- within a warp ---------------------------------------------------------------------------------------------------

/// `v`, an element of `size` bytes, of another lane: `shfl` is the 32-bit shuffle.
Value* shuffled(llvm::IRBuilder<>& b, Value* v, int size, llvm::function_ref<Value*(Value*)> shfl) {
  Words words(b, v->getType(), size);
  Value* word = words.pack({v})[0];
  llvm::Type* type = word->getType();
  Value* moved = shfl(b.CreateZExtOrTrunc(word, b.getInt32Ty()));
  if (!type->isIntegerTy(64)) return words.unpack({b.CreateTrunc(moved, type)}, 1)[0];
  Value* high = shfl(b.CreateTrunc(b.CreateLShr(word, 32), b.getInt32Ty()));
  return words.unpack({b.CreateOr(b.CreateShl(b.CreateZExt(high, type), 32), b.CreateZExt(moved, type))}, 1)[0];
}

Value* shuffle32(llvm::IRBuilder<>& b, llvm::Intrinsic::ID how, Value* v, Value* lane) {
  return b.CreateIntrinsic(how, llvm::ArrayRef<llvm::Type*>{}, {b.getInt32(~0u), v, lane, b.getInt32(31)});
}

Value* from_lane_xor(llvm::IRBuilder<>& b, Value* v, int size, int lane_xor) {
  Value* mask = b.getInt32(std::uint32_t(lane_xor));
  return shuffled(b, v, size,
                  [&](Value* x) { return shuffle32(b, llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, x, mask); });
}

Value* from_lane(llvm::IRBuilder<>& b, Value* v, int size, Value* lane) {
  return shuffled(b, v, size, [&](Value* x) { return shuffle32(b, llvm::Intrinsic::nvvm_shfl_sync_idx_i32, x, lane); });
}

/// Whether the element of register r comes from the second operand: the one coordinate that says so, and from where on.
Value* from_second(Emitter& e, const ir::Inst& inst, const Geometry& g, int r) {
  const bool join = inst.op == ir::Op::Join;
  const int axis = join ? int(g.axes.size()) - 1 : int(inst.i64(ir::AttrKey::axis));
  const std::int64_t boundary = join ? 1 : e.type(inst.operands[0]).shape[std::size_t(axis)];
  const TileValue::Reg at = GeometryCache::coordinate(e.b, g, r, axis);
  return e.b.CreateICmpSGE(at.v, e.b.getInt32(std::uint32_t(boundary - at.c)));
}

/// Registers are renamed and nothing else: the value keeps its form.
bool renames(const ir::Movement& m) {
  for (const auto& places : m.regs)
    if (places[0].lane_xor != 0 || places[1].reg >= 0) return false;
  return true;
}

TileValue renamed(const TileValue& x, const ir::Movement& m) {
  TileValue t = x;
  t.regs.clear();
  for (const auto& places : m.regs)
    t.regs.push_back(places[0].reg < 0 ? TileValue::Reg{} : x.regs[std::size_t(places[0].reg)]);
  return t;
}

TileValue picked(Emitter& e, const ir::Inst& inst, const Geometry& g, const ir::Movement& m) {
  const auto size = int(ir::element_bytes(e.type(inst.operands[0])));
  std::vector<TileValue> operands;
  for (ir::Value v : inst.operands) operands.push_back(e.as_plain(v));
  TileValue t;
  for (int r = 0; r < int(m.regs.size()); ++r) {
    Value* v = nullptr;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const ir::Movement::Place place = m.regs[std::size_t(r)][k];
      if (place.reg < 0) continue;
      Value* x = operands[k].regs[std::size_t(place.reg)].v;
      if (place.lane_xor != 0) x = from_lane_xor(e.b, x, size, place.lane_xor);
      v = v == nullptr ? x : e.b.CreateSelect(from_second(e, inst, g, r), x, v);
    }
    t.regs.push_back({v, 0});
  }
  return t;
}

// --- through shared memory -------------------------------------------------------------------------------------------

/// Where an element is: constant + sum of stride[a] * coordinate a, in elements.
struct Address {
  std::vector<std::int64_t> stride;
  std::int64_t constant = 0;

  static Address row_major(const ir::Shape& shape) {
    Address at{std::vector<std::int64_t>(shape.size(), 1), 0};
    for (std::size_t a = shape.size(); a-- > 1;) at.stride[a - 1] = at.stride[a] * shape[a];
    return at;
  }
  Slot slot(Emitter& e, const Geometry& g, int reg) const {
    Slot s = strided(e, g, reg, stride);
    s.c += constant;
    return s;
  }
};

/// The place of element number `s`: behind each 128 bytes 4 are left out, so that lanes whose elements are 16 bytes
/// apart use all banks.
Slot spread(Emitter& e, Slot s, const ir::Type& type) {
  const ir::ScratchRows rows(ir::element_bytes(type));
  if (s.v == nullptr) return {nullptr, s.c + s.c / rows.elements * rows.gap, s.active};
  Value* n = e.b.CreateAdd(s.v, e.b.getInt32(std::uint32_t(s.c)));
  Value* row = e.b.CreateUDiv(n, e.b.getInt32(std::uint32_t(rows.elements)));
  return {e.b.CreateAdd(n, e.b.CreateMul(row, e.b.getInt32(std::uint32_t(rows.gap)))), 0, s.active};
}

/// Where elements of operand k are written, and result number `result` reads its own.
Address written_at(Emitter& e, const ir::Inst& inst, std::size_t k) {
  const ir::Shape& x = e.type(inst.operands[k]).shape;
  Address at = Address::row_major(x);
  if (inst.op == ir::Op::Join) {
    for (std::int64_t& stride : at.stride) stride *= 2;
    at.constant = std::int64_t(k);
  }
  if (inst.op == ir::Op::Cat) {
    const auto axis = std::size_t(inst.i64(ir::AttrKey::axis));
    at = Address::row_major(e.type(inst.results[0]).shape);
    at.constant = k == 0 ? 0 : at.stride[axis] * e.type(inst.operands[0]).shape[axis];
  }
  return at;
}

Address read_at(Emitter& e, const ir::Inst& inst, std::size_t result) {
  const ir::Shape &x = e.type(inst.operands[0]).shape, &to = e.type(inst.results[result]).shape;
  const auto axis = std::size_t(inst.i64(ir::AttrKey::axis));
  Address at = Address::row_major(x);
  switch (inst.op) {
    case ir::Op::Split:
      at.stride.pop_back();
      at.constant = std::int64_t(result);
      return at;
    case ir::Op::Slice: at.constant = at.stride[axis] * inst.i64(ir::AttrKey::start); return at;
    case ir::Op::Flip:
      at.constant = at.stride[axis] * (x[axis] - 1);
      at.stride[axis] *= -1;
      return at;
    case ir::Op::Permute: {
      Address turned = at;
      const std::vector<std::int64_t>& order = inst.ints(ir::AttrKey::order);
      for (std::size_t a = 0; a < to.size(); ++a) turned.stride[a] = at.stride[std::size_t(order[a])];
      return turned;
    }
    default: return Address::row_major(to);  // reshape, join, cat
  }
}

void refuse_clusters(Emitter& e, const ir::Inst& inst) {
  if (e.exec().cluster > 1)
    throw UserError(inst.loc, fmt::format("{}: elements do not move between the {} blocks of a cluster",
                                          ir::mnemonic(inst.op), e.exec().cluster));
}

void write_operands(Emitter& e, const ir::Inst& inst, Scratch scratch) {
  for (std::size_t k = 0; k < inst.operands.size(); ++k) {
    const ir::Value x = inst.operands[k];
    const Address at = written_at(e, inst, k);
    scatter(e, e.as_plain(x), e.type(x), scratch,
            [&](int r) { return spread(e, at.slot(e, e.geometry_of(x), r), e.type(x)); });
    scratch.range.hi = scratch.range.lo;  // the second operand goes to other places: nothing to wait for
  }
}

void rearrange(Emitter& e, const ir::Inst& inst) {
  bool written = false;
  for (std::size_t i = 0; i < inst.results.size(); ++i) {
    const ir::Value result = inst.results[i];
    const ir::Movement m = ir::movement(e.f, inst, i);
    if (m.shared) {
      refuse_clusters(e, inst);
      const Scratch scratch = e.scratch(inst);
      if (!written) write_operands(e, inst, scratch);
      written = true;
      const Address at = read_at(e, inst, i);
      e.set_plain(result, gather(e, e.type(result), scratch, [&](int r) {
                    return spread(e, at.slot(e, e.geometry_of(result), r), e.type(result));
                  }));
    } else if (renames(m)) {
      e.set(result, renamed(e.get(inst.operands[0]), m));
    } else {
      e.set_plain(result, picked(e, inst, e.geometry_of(result), m));
    }
  }
}

}  // namespace

void emit_Reshape(Emitter& e, const ir::Inst& inst) { rearrange(e, inst); }
void emit_Permute(Emitter& e, const ir::Inst& inst) { rearrange(e, inst); }
void emit_Join(Emitter& e, const ir::Inst& inst) { rearrange(e, inst); }
void emit_Split(Emitter& e, const ir::Inst& inst) { rearrange(e, inst); }
void emit_Slice(Emitter& e, const ir::Inst& inst) { rearrange(e, inst); }
void emit_Cat(Emitter& e, const ir::Inst& inst) { rearrange(e, inst); }
void emit_Flip(Emitter& e, const ir::Inst& inst) { rearrange(e, inst); }

namespace {

/// Indices as i64, so that a negative one is large when compared without sign.
TileValue wide_indices(Emitter& e, ir::Value indices) {
  const DType d = e.type(indices).dtype;
  return map_registers(e.geometry_of(indices), {e.as_plain(indices)}, [&](Regs in) {
    return is_signed(d) ? e.b.CreateSExt(in[0], e.b.getInt64Ty()) : e.b.CreateZExt(in[0], e.b.getInt64Ty());
  });
}

/// The lane that has position `index` of what this lane would have: some of its bits are the index's.
Value* lane_of(Emitter& e, const ir::WarpGather& how, Value* index) {
  llvm::IRBuilder<>& b = e.b;
  Value* lane = b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, llvm::ArrayRef<llvm::Type*>{}, {});
  std::uint32_t kept = 31;
  for (int bit : how.lane_bit)
    if (bit >= 0) kept &= ~(1u << bit);
  lane = b.CreateAnd(lane, b.getInt32(kept));
  for (int shift = -31; shift < 32; ++shift) {  // index bits that become lane bits by one shift
    std::uint32_t mask = 0;
    for (int i = 0; i < int(how.lane_bit.size()); ++i)
      if (const int bit = how.lane_bit[std::size_t(i)]; bit >= 0 && bit - i == shift) mask |= 1u << i;
    if (mask == 0) continue;
    Value* part = b.CreateAnd(index, b.getInt32(mask));
    lane = b.CreateOr(lane,
                      shift < 0 ? b.CreateLShr(part, std::uint64_t(-shift)) : b.CreateShl(part, std::uint64_t(shift)));
  }
  return lane;
}

TileValue gather_in_warp(Emitter& e, const ir::Inst& inst, const ir::WarpGather& how) {
  llvm::IRBuilder<>& b = e.b;
  const ir::Value x = inst.operands[0], result = inst.results[0];
  const auto size = int(ir::element_bytes(e.type(x)));
  const std::int64_t extent = e.type(x).shape[std::size_t(inst.i64(ir::AttrKey::axis))];
  const Geometry& g = e.geometry_of(result);
  const TileValue from = e.as_plain(x), wide = wide_indices(e, inst.operands[1]);
  TileValue t;
  for (int r = 0; r < g.regs(); ++r) {
    t.regs.push_back({});
    if (!g.live[std::size_t(r)]) continue;
    Value* index = wide.regs[std::size_t(r)].v;
    Value* low = b.CreateTrunc(index, b.getInt32Ty());
    Value* lane = lane_of(e, how, low);
    std::vector<Value*> choices;
    for (int q : how.regs[std::size_t(r)]) {
      Value* v = from.regs[std::size_t(q)].v;  // null: all of it is padding
      choices.push_back(v == nullptr ? nullptr : from_lane(b, v, size, lane));
    }
    for (int i = 0; i < int(how.lane_bit.size()); ++i) {  // each register bit of the index halves the choices
      if (how.lane_bit[std::size_t(i)] >= 0) continue;
      Value* odd = b.CreateIsNotNull(b.CreateAnd(low, b.getInt32(1u << i)));
      for (std::size_t c = 0; c < choices.size() / 2; ++c) {
        Value *even_choice = choices[2 * c], *odd_choice = choices[2 * c + 1];
        choices[c] = odd_choice == nullptr    ? even_choice
                     : even_choice == nullptr ? odd_choice
                                              : b.CreateSelect(odd, odd_choice, even_choice);
      }
      choices.resize(choices.size() / 2);
    }
    Value* inside = b.CreateICmpULT(index, b.getInt64(std::uint64_t(extent)));
    t.regs.back().v = b.CreateSelect(inside, choices[0], llvm::Constant::getNullValue(choices[0]->getType()));
  }
  return t;
}

}  // namespace

void emit_Gather(Emitter& e, const ir::Inst& inst) {
  const ir::Value x = inst.operands[0], indices = inst.operands[1], result = inst.results[0];
  KILN_CHECK(e.type(indices).layout == e.type(result).layout, "indices and result of a gather differ in layout");
  if (const auto how = ir::warp_gather(e.f, inst)) return e.set_plain(result, gather_in_warp(e, inst, *how));
  refuse_clusters(e, inst);
  const auto axis = std::size_t(inst.i64(ir::AttrKey::axis));
  const ir::Shape& shape = e.type(x).shape;
  const Geometry& g = e.geometry_of(result);
  const TileValue wide = wide_indices(e, indices);
  const Scratch scratch = e.scratch(inst);
  const Address all = Address::row_major(shape);
  scatter(e, e.as_plain(x), e.type(x), scratch,
          [&](int r) { return spread(e, all.slot(e, e.geometry_of(x), r), e.type(x)); });
  Address others = all;
  others.stride[axis] = 0;
  e.set_plain(result, gather(e, e.type(result), scratch, [&](int r) {
                Value* index = wide.regs[std::size_t(r)].v;
                Slot s = others.slot(e, g, r);
                s.active = e.b.CreateICmpULT(index, e.b.getInt64(std::uint64_t(shape[axis])));
                Value* along = e.b.CreateMul(e.b.CreateTrunc(index, e.b.getInt32Ty()),
                                             e.b.getInt32(std::uint32_t(all.stride[axis])));
                s.v = s.v == nullptr ? along : e.b.CreateAdd(s.v, along);
                return spread(e, s, e.type(x));
              }));
}

}  // namespace kiln::cg
