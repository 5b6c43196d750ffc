#include "backend/llvm/replicate.h"

#include <bit>

#include "backend/llvm/ptx_asm.h"

namespace kiln::cg {
namespace {

using llvm::Value;

/// Plain elements as integers of their width, and back.
struct Bits {
  Emitter& e;
  DType dtype;
  llvm::IntegerType* type() const { return e.b.getIntNTy(unsigned(8 * bytes(dtype))); }
  Value* of(Value* v) const { return dtype == DType::i1 ? e.b.CreateZExt(v, type()) : e.b.CreateBitCast(v, type()); }
  Value* back(Value* v) const {
    return dtype == DType::i1 ? e.b.CreateIsNotNull(v) : e.b.CreateBitCast(v, e.c.type(dtype));
  }
};

/// The value of the lane whose bits in `free_lanes` are zero.
Value* shuffled(llvm::IRBuilder<>& b, Value* bits, std::int64_t free_lanes) {
  const unsigned width = bits->getType()->getIntegerBitWidth();
  const auto word = [&](Value* w) {
    PtxAsm text;
    const std::string out = text.out(b.getInt32Ty()), in = text.in(w);
    text.line("{ .reg .b32 from; mov.u32 from, %laneid; and.b32 from, from, " + std::to_string(31 & ~free_lanes) + ";");
    text.line("shfl.sync.idx.b32 " + out + ", " + in + ", from, 31, 0xffffffff; }");
    text.emit(b)->setConvergent();
    return text.result(b, 0);
  };
  if (width <= 32) return b.CreateTrunc(word(b.CreateZExt(bits, b.getInt32Ty())), bits->getType());
  Value* low = b.CreateZExt(word(b.CreateTrunc(bits, b.getInt32Ty())), bits->getType());
  Value* high = b.CreateZExt(word(b.CreateTrunc(b.CreateLShr(bits, 32), b.getInt32Ty())), bits->getType());
  return b.CreateOr(low, b.CreateShl(high, 32));
}

/// Shared address of the element in register r: row-major over the padded shape.
Value* place(Emitter& e, const Geometry& g, int r, Value* base, int size) {
  llvm::IRBuilder<>& b = e.b;
  Value* at = base;
  std::int64_t stride = size, constant = 0;
  for (int a = int(g.axes.size()) - 1; a >= 0; --a) {
    const TileValue::Reg c = GeometryCache::coordinate(b, g, r, a);
    if (c.v != nullptr) at = b.CreateAdd(at, b.CreateMul(c.v, b.getInt32(std::uint32_t(stride))));
    constant += c.c * stride;
    stride *= std::int64_t(std::bit_ceil(std::uint64_t(g.axes[std::size_t(a)].extent)));
  }
  return constant == 0 ? at : b.CreateAdd(at, b.getInt32(std::uint32_t(constant)));
}

void write(Emitter& e, Value* bits, Value* at, Value* owner, int size) {
  PtxAsm text;
  const std::string width = std::to_string(8 * size);
  const std::string v = text.in(bits), to = text.in(at), when = "@" + text.in(owner, 'b') + " ";
  if (e.exec().cluster == 1) {
    text.line(when + "st.shared.b" + width + " [" + to + "], " + v + ";");
  } else {
    text.line("{ .reg .b32 there;");
    for (int rank = 0; rank < e.exec().cluster; ++rank) {
      text.line("mapa.shared::cluster.u32 there, " + to + ", " + std::to_string(rank) + ";");
      text.line(when + "st.shared::cluster.b" + width + " [there], " + v + ";");
    }
    text.line("}");
  }
  text.emit(e.b);
}

Value* read(Emitter& e, llvm::IntegerType* type, Value* at) {
  PtxAsm text;
  const std::string out = text.out(type);
  text.line("ld.shared.b" + std::to_string(type->getBitWidth()) + " " + out + ", [" + text.in(at) + "];");
  text.emit(e.b);
  return text.result(e.b, 0);
}

}  // namespace

TileValue from_owner(Emitter& e, const ir::Inst& inst, const Geometry& g, TileValue own, DType dtype) {
  const Bits bits{e, dtype};
  const auto each = [&](auto&& fn) {
    for (int r = 0; r < g.regs(); ++r)
      if (g.live[std::size_t(r)] && g.first[std::size_t(r)] == r) fn(r, own.regs[std::size_t(r)].v);
  };
  if (const std::int64_t threads = g.replicated_threads; threads != 0 && threads < 32) {
    each([&](int, Value*& v) { v = bits.back(shuffled(e.b, bits.of(v), threads)); });
  } else if (threads != 0) {
    const Scratch slot = e.scratch(inst);
    const int size = bytes(dtype);
    e.hazards.shared_write(e.b, slot.range);
    each([&](int r, Value*& v) { write(e, bits.of(v), place(e, g, r, slot.address, size), g.owner, size); });
    e.hazards.shared_read(e.b, slot.range);
    each([&](int r, Value*& v) { v = bits.back(read(e, bits.type(), place(e, g, r, slot.address, size))); });
  }
  for (int r = 0; r < g.regs(); ++r)
    if (g.live[std::size_t(r)]) own.regs[std::size_t(r)] = own.regs[std::size_t(g.first[std::size_t(r)])];
  return own;
}

}  // namespace kiln::cg
