// Ops that make and convert values: constants, parameters, program coordinates, arange, splat, cast, bitcast, select.
#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>

#include "backend/llvm/emitter.h"
#include "backend/llvm/hidden.h"
#include "backend/llvm/index.h"
#include "backend/llvm/program.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

// CUDA's limits of a grid.
constexpr Range kGridX{0, (std::int64_t(1) << 31) - 2}, kGridYZ{0, 65534};

/// Where a block runs several programs, one a warp: the grid was rounded up to whole blocks, so only the launcher knows
/// how many there are.
llvm::Value* warp_program(Emitter& e, bool count) {
  if (count) return hidden_arg(e, rt::HiddenParam::UserGrid, 0);
  llvm::IRBuilder<>& entry = e.geometry.entry();
  const auto read = [&](llvm::Intrinsic::ID id) {
    return entry.CreateZExt(entry.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{}, {}), entry.getInt64Ty());
  };
  const auto first = entry.CreateMul(read(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x),
                                     entry.getInt64(std::uint64_t(e.exec().programs_per_cta)), "", true, true);
  return entry.CreateAdd(first, entry.CreateLShr(read(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x), 5), "", true, true);
}

/// A program is a block, a cluster of them, or a warp of one.
llvm::Value* program_register(Emitter& e, bool count, std::int64_t axis) {
  using namespace llvm::Intrinsic;
  if (axis == 0 && e.exec().programs_per_cta > 1) return warp_program(e, count);
  constexpr ID kIds[2][2][3] = {
      {{nvvm_read_ptx_sreg_ctaid_x, nvvm_read_ptx_sreg_ctaid_y, nvvm_read_ptx_sreg_ctaid_z},
       {nvvm_read_ptx_sreg_nctaid_x, nvvm_read_ptx_sreg_nctaid_y, nvvm_read_ptx_sreg_nctaid_z}},
      {{nvvm_read_ptx_sreg_clusterid_x, nvvm_read_ptx_sreg_clusterid_y, nvvm_read_ptx_sreg_clusterid_z},
       {nvvm_read_ptx_sreg_nclusterid_x, nvvm_read_ptx_sreg_nclusterid_y, nvvm_read_ptx_sreg_nclusterid_z}}};
  llvm::IRBuilder<>& entry = e.geometry.entry();
  llvm::Value* r = entry.CreateIntrinsic(kIds[e.exec().cluster > 1][count][axis], llvm::ArrayRef<llvm::Type*>{}, {});
  return entry.CreateZExt(r, entry.getInt64Ty());
}

}  // namespace

llvm::Constant* literal(const EmitContext& c, const ir::Literal& l) {
  llvm::Type* type = c.type(l.dtype);
  if (!type->isFloatingPointTy()) return llvm::ConstantInt::get(type, l.bits);
  return llvm::ConstantFP::get(type,
                               llvm::APFloat(type->getFltSemantics(), llvm::APInt(unsigned(bits(l.dtype)), l.bits)));
}

void emit_Constant(Emitter& e, const ir::Inst& inst) {
  const ir::Literal& l = inst.literal();
  if (l.dtype == DType::index) return e.set(inst.results[0], index_constant(l.as_int()));
  e.set_plain(inst.results[0], literal(e.c, l));
}

void emit_Param(Emitter& e, const ir::Inst& inst) {
  const auto number = std::size_t(inst.i64(ir::AttrKey::index));
  const ir::Param& p = e.f.params[number];
  llvm::Value* arg = e.kernel->getArg(unsigned(number));
  if (p.type.ptr) {
    TileValue t = e.pointer_scalar(arg, p.type.dtype);
    t.uniform_known.divisor = std::max<std::int64_t>(p.align, bytes(p.type.dtype));
    e.set(inst.results[0], t);
  } else if (p.type.dtype == DType::index) {
    e.set(inst.results[0], p.is_one ? index_constant(1) : index_scalar(arg, {Range{}, p.align}));
  } else if (p.type.dtype == DType::i1) {
    e.set_plain(inst.results[0], e.b.CreateIsNotNull(arg));
  } else {
    e.set_plain(inst.results[0], arg);
  }
}

llvm::Value* program_number(Emitter& e, std::int64_t axis) { return program_register(e, /*count=*/false, axis); }

void emit_ProgramId(Emitter& e, const ir::Inst& inst) {
  const std::int64_t axis = inst.i64(ir::AttrKey::axis);
  llvm::Value* id = program_number(e, axis);
  e.set(inst.results[0], index_scalar(id, {axis == 0 ? kGridX : kGridYZ, 1}));
}

void emit_NumPrograms(Emitter& e, const ir::Inst& inst) {
  const std::int64_t axis = inst.i64(ir::AttrKey::axis);
  llvm::Value* n = program_register(e, /*count=*/true, axis);
  e.set(inst.results[0], index_scalar(n, {(axis == 0 ? kGridX : kGridYZ) + Range::of(1), 1}));
}

void emit_Arange(Emitter& e, const ir::Inst& inst) {
  const Geometry& g = e.geometry_of(inst.results[0]);
  const std::int64_t start = inst.i64(ir::AttrKey::start);
  TileValue t;
  t.kind = TileValue::Kind::Index;
  t.thread_known = g.axes[0].thread_known;
  if (g.axes[0].swizzled) t.thread_known = {{0, std::int64_t(std::bit_ceil(std::uint64_t(g.axes[0].extent))) - 1}, 1};
  for (int r = 0; r < g.regs(); ++r) {
    TileValue::Reg reg = GeometryCache::coordinate(e.b, g, r, 0);
    reg.c += start;
    t.regs.push_back(reg);
  }
  t.distinct = true;
  e.set(inst.results[0], t);
}

void emit_Splat(Emitter& e, const ir::Inst& inst) {
  TileValue t = e.get(inst.operands[0]);
  const Geometry& g = e.geometry_of(inst.results[0]);
  const TileValue::Reg reg = t.regs[0];
  t.regs.clear();
  for (int r = 0; r < g.regs(); ++r)
    t.regs.push_back(t.kind == TileValue::Kind::Plain && !g.live[std::size_t(r)] ? TileValue::Reg{} : reg);
  t.distinct = false;
  e.set(inst.results[0], t);
}

void emit_Cast(Emitter& e, const ir::Inst& inst) {
  const ir::Value x = inst.operands[0], result = inst.results[0];
  const DType from = e.type(x).dtype, to = e.type(result).dtype;
  const Geometry& g = e.geometry_of(result);
  const bool saturate = inst.flag(ir::AttrKey::saturate);
  if (from == to && !(saturate && is_float(to))) return e.set(result, e.get(x));  // saturate clamps infinity
  if (to == DType::index && !is_float(from)) return e.set(result, index_of_integers(e.b, g, e.get(x), from));
  if (from == DType::index && is_int(to)) {
    const TileValue& index = e.get(x);
    return e.set(result,
                 map_elements(g, index, [&](int r) { return index_low_bits(e.b, index, r, unsigned(bits(to))); }));
  }
  // What is left converts through an integer that holds the index: i64, or i32 where its range allows.
  const TileValue& t = e.get(x);
  const bool narrow = from == DType::index && t.known().range.fits32();
  const DType source = from != DType::index ? from : narrow ? DType::i32 : DType::i64;
  const DType target = to == DType::index ? DType::i64 : to;
  const TileValue plain =
      narrow ? map_elements(g, t, [&](int r) { return index_low_bits(e.b, t, r, 32); }) : e.as_plain(x);
  e.set_plain(result,
              map_registers(g, {plain}, [&](Regs in) { return emit_cast(e.c, in[0], source, target, saturate); }));
}

void emit_Bitcast(Emitter& e, const ir::Inst& inst) {
  const ir::Value result = inst.results[0];
  const DType to = e.type(result).dtype;
  llvm::Type* type = e.c.type(to);
  e.set_plain(result, map_registers(e.geometry_of(result), {e.as_plain(inst.operands[0])},
                                    [&](Regs in) { return e.b.CreateBitCast(in[0], type); }));
}

void emit_Select(Emitter& e, const ir::Inst& inst) {
  const ir::Value result = inst.results[0], a = inst.operands[1], b = inst.operands[2];
  const Geometry& g = e.geometry_of(result);
  const TileValue cond = e.as_plain(inst.operands[0]);
  const auto choose = [&](Regs in) { return e.b.CreateSelect(in[0], in[1], in[2]); };
  const TileValue &x = e.get(a), &y = e.get(b);
  const bool narrow =
      x.kind == TileValue::Kind::Index && e.type(result).tile && x.known().range.fits32() && y.known().range.fits32();
  if (!narrow) return e.set_plain(result, map_registers(g, {cond, e.as_plain(a), e.as_plain(b)}, choose));
  const auto low = [&](const TileValue& t) {
    return map_elements(g, t, [&](int r) { return index_low_bits(e.b, t, r, 32); });
  };
  TileValue t = map_registers(g, {cond, low(x), low(y)}, choose);
  t.kind = TileValue::Kind::Index;
  t.thread_known = {join(x.known().range, y.known().range), std::gcd(x.known().divisor, y.known().divisor)};
  e.set(result, t);
}

}  // namespace kiln::cg
