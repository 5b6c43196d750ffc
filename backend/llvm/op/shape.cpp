// Ops that rearrange tiles. Where each element of the result stands is known from the layouts
// (backend/ir/op/movement.h):
//
//   in a register of its own thread   the register is renamed; no instruction
//   in a lane at a fixed distance     one shuffle a register (flip along an axis that lies in lanes)
//   anywhere else                     through shared memory: each element is written once, by its owner, at a place
//   that
//                                     depends on its coordinate, and read from there by whoever needs it
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

#include <algorithm>

#include "backend/ir/op/movement.h"
#include "backend/llvm/emitter.h"
#include "backend/llvm/index.h"
#include "backend/llvm/ptx_asm.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using llvm::Value;

// --- elements as integers of a register's width ----------------------------------------------------------------------

int element_bytes(const ir::Type& t) { return t.ptr || t.dtype == DType::index ? 8 : bytes(t.dtype); }

/// The bits of a plain element as i16, i32 or i64 (i1 and 8-bit elements: i16), what PTX moves.
Value* to_bits(llvm::IRBuilder<>& b, Value* v) {
  llvm::Type* type = v->getType();
  if (type->isPointerTy()) return b.CreatePtrToInt(v, b.getInt64Ty());
  const unsigned width = unsigned(type->getPrimitiveSizeInBits().getFixedValue());
  if (width < 16) return b.CreateZExt(v, b.getInt16Ty());
  return b.CreateBitCast(v, b.getIntNTy(width));
}

Value* from_bits(llvm::IRBuilder<>& b, Value* v, llvm::Type* type) {
  if (type->isPointerTy()) return b.CreateIntToPtr(v, type);
  if (type->isIntegerTy()) return type->isIntegerTy(1) ? b.CreateIsNotNull(v) : b.CreateTrunc(v, type);
  return b.CreateBitCast(v, type);
}

llvm::Type* register_type(Emitter& e, const ir::Type& t) {
  return t.ptr ? llvm::PointerType::get(e.c.context(), t.shared ? kShared : kGlobal) : e.c.type(t.dtype);
}

// --- within a warp ---------------------------------------------------------------------------------------------------

Value* shuffle32(llvm::IRBuilder<>& b, Value* v, int lane_xor) {
  return b.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, llvm::ArrayRef<llvm::Type*>{},
                           {b.getInt32(~0u), v, b.getInt32(std::uint32_t(lane_xor)), b.getInt32(31)});
}

Value* shuffled(llvm::IRBuilder<>& b, Value* v, int lane_xor) {
  llvm::Type* type = v->getType();
  Value* bits = to_bits(b, v);
  if (!bits->getType()->isIntegerTy(64)) {
    Value* moved = shuffle32(b, b.CreateZExt(bits, b.getInt32Ty()), lane_xor);
    return from_bits(b, b.CreateTrunc(moved, bits->getType()), type);
  }
  Value* low = shuffle32(b, b.CreateTrunc(bits, b.getInt32Ty()), lane_xor);
  Value* high = shuffle32(b, b.CreateTrunc(b.CreateLShr(bits, 32), b.getInt32Ty()), lane_xor);
  Value* both = b.CreateOr(b.CreateShl(b.CreateZExt(high, b.getInt64Ty()), 32), b.CreateZExt(low, b.getInt64Ty()));
  return from_bits(b, both, type);
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
  std::vector<TileValue> operands;
  for (ir::Value v : inst.operands) operands.push_back(e.as_plain(v));
  TileValue t;
  for (int r = 0; r < int(m.regs.size()); ++r) {
    Value* v = nullptr;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const ir::Movement::Place place = m.regs[std::size_t(r)][k];
      if (place.reg < 0) continue;
      Value* x = operands[k].regs[std::size_t(place.reg)].v;
      if (place.lane_xor != 0) x = shuffled(e.b, x, place.lane_xor);
      v = v == nullptr ? x : e.b.CreateSelect(from_second(e, inst, g, r), x, v);
    }
    t.regs.push_back({v, 0});
  }
  return t;
}

// --- through shared memory -------------------------------------------------------------------------------------------

// [exchange begin]
struct Slot {
  Value* v = nullptr;
  std::int64_t c = 0;
  Value* active = nullptr;
};

Value* both(llvm::IRBuilder<>& b, Value* x, Value* y) {
  return x == nullptr ? y : y == nullptr ? x : b.CreateAnd(x, y);
}

Value* inside_tile(llvm::IRBuilder<>& b, const Geometry& g, int r) {
  Value* all = nullptr;
  for (int a = 0; a < int(g.axes.size()); ++a) {
    const Geometry::Axis& axis = g.axes[std::size_t(a)];
    if ((g.parts[std::size_t(r)][std::size_t(a)] | axis.thread_known.range.hi) < axis.extent) continue;
    const TileValue::Reg at = GeometryCache::coordinate(b, g, r, a);
    all = both(b, all, b.CreateICmpSLT(at.v, b.getInt32(std::uint32_t(axis.extent - at.c))));
  }
  return all;
}

Slot strided(Emitter& e, const Geometry& g, int reg, const std::vector<std::int64_t>& strides) {
  Slot slot;
  for (int a = 0; a < int(strides.size()); ++a) {
    const TileValue::Reg at = GeometryCache::coordinate(e.b, g, reg, a);
    const std::int64_t stride = strides[std::size_t(a)];
    slot.c += at.c * stride;
    if (at.v == nullptr || stride == 0) continue;
    Value* part = e.b.CreateMul(at.v, e.b.getInt32(std::uint32_t(stride)));
    slot.v = slot.v == nullptr ? part : e.b.CreateAdd(slot.v, part);
  }
  return slot;
}

Value* slot_address(Emitter& e, const Scratch& scratch, const Slot& slot, int size) {
  if (slot.v == nullptr) return scratch.address;
  return e.b.CreateAdd(scratch.address, e.b.CreateMul(slot.v, e.b.getInt32(std::uint32_t(size))));
}

void scatter(Emitter& e, const TileValue& x, const ir::Type& type, const Scratch& scratch,
             llvm::function_ref<Slot(int)> slot) {
  const Geometry& g = e.geometry.of(type);
  const int size = element_bytes(type);
  e.hazards.shared_write(e.b, scratch.range);
  for (int r = 0; r < g.regs(); ++r) {
    if (!g.live[std::size_t(r)] || g.first[std::size_t(r)] != r) continue;
    const Slot to = slot(r);
    Value* active = both(e.b, both(e.b, g.owner, inside_tile(e.b, g, r)), to.active);
    PtxAsm text;
    const std::string v = text.in(to_bits(e.b, x.regs[std::size_t(r)].v)),
                      p = text.in(slot_address(e, scratch, to, size));
    const std::string when = active == nullptr ? "" : "@" + text.in(active, 'b') + " ";
    text.line(fmt::format("{}st.shared.b{} [{}+{}], {};", when, 8 * size, p, to.c * size, v));
    text.emit(e.b);
  }
}

TileValue gather(Emitter& e, const ir::Type& type, const Scratch& scratch, llvm::function_ref<Slot(int)> slot) {
  const Geometry& g = e.geometry.of(type);
  const int size = element_bytes(type);
  e.hazards.shared_read(e.b, scratch.range);
  TileValue t;
  for (int r = 0; r < g.regs(); ++r) {
    t.regs.push_back({});
    if (!g.live[std::size_t(r)]) continue;
    const Slot from = slot(r);
    Value* active = both(e.b, inside_tile(e.b, g, r), from.active);
    llvm::Type* word = size == 1 ? e.b.getInt16Ty() : e.b.getIntNTy(unsigned(8 * size));
    PtxAsm text;
    const std::string out = text.out(word), p = text.in(slot_address(e, scratch, from, size));
    const std::string when = active == nullptr ? "" : "@" + text.in(active, 'b') + " ";
    if (active != nullptr) text.line(fmt::format("mov.b{} {}, 0;", word->getIntegerBitWidth(), out));
    text.line(fmt::format("{}ld.shared.b{} {}, [{}+{}];", when, 8 * size, out, p, from.c * size));
    text.emit(e.b);
    t.regs.back().v = from_bits(e.b, text.result(e.b, 0), register_type(e, type));
  }
  return t;
}
// [exchange end]

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
    const bool down = std::any_of(stride.begin(), stride.end(), [](std::int64_t x) { return x < 0; });
    if (!down || s.v == nullptr) return s;
    return {e.b.CreateAdd(s.v, e.b.getInt32(std::uint32_t(s.c))), 0, s.active};  // a register may not be negative
  }
};

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
    scatter(e, e.as_plain(x), e.type(x), scratch, [&](int r) { return at.slot(e, e.geometry_of(x), r); });
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
      e.set_plain(result,
                  gather(e, e.type(result), scratch, [&](int r) { return at.slot(e, e.geometry_of(result), r); }));
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

void emit_Gather(Emitter& e, const ir::Inst& inst) {
  refuse_clusters(e, inst);
  const ir::Value x = inst.operands[0], indices = inst.operands[1], result = inst.results[0];
  const auto axis = std::size_t(inst.i64(ir::AttrKey::axis));
  const ir::Shape& shape = e.type(x).shape;
  KILN_CHECK(e.type(indices).layout == e.type(result).layout, "indices and result of a gather differ in layout");
  const DType d = e.type(indices).dtype;
  const Geometry& g = e.geometry_of(result);
  const TileValue wide = map_registers(g, {e.as_plain(indices)}, [&](Regs in) {
    return is_signed(d) ? e.b.CreateSExt(in[0], e.b.getInt64Ty()) : e.b.CreateZExt(in[0], e.b.getInt64Ty());
  });
  const Scratch scratch = e.scratch(inst);
  const Address all = Address::row_major(shape);
  scatter(e, e.as_plain(x), e.type(x), scratch, [&](int r) { return all.slot(e, e.geometry_of(x), r); });
  Address others = all;
  others.stride[axis] = 0;
  e.set_plain(result, gather(e, e.type(result), scratch, [&](int r) {
                Value* index = wide.regs[std::size_t(r)].v;
                Slot s = others.slot(e, g, r);
                s.active =
                    e.b.CreateICmpULT(index, e.b.getInt64(std::uint64_t(shape[axis])));  // a negative one is large
                Value* along = e.b.CreateMul(e.b.CreateTrunc(index, e.b.getInt32Ty()),
                                             e.b.getInt32(std::uint32_t(all.stride[axis])));
                s.v = s.v == nullptr ? along : e.b.CreateAdd(s.v, along);
                return s;
              }));
}

}  // namespace kiln::cg
