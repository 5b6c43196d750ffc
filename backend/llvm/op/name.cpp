// name: a comment in the PTX that says which registers hold a variable of the user's program, for the simulator's
// debugger (runtime/sim/named_value.h reads it):
//
//     // kiln.value "x f32 16x32 warps=4 blocks=1 register=0,1;0,2 lane=0,4;1,0;… warp=… block=", {%f1, %f2, _, %f3};
//
// The shape is - for a scalar. Of each bit of a place the coordinate that it moves by, axis by axis: an element's
// coordinate is the exclusive or over the bits that are 1. A register without elements is _. To LLVM the comment is a
// statement that reads the registers, so they hold the value there; to an assembler it is nothing.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>

#include "backend/llvm/emitter.h"
#include "backend/llvm/ptx_asm.h"

namespace kiln::cg {
namespace {

std::string shape_text(const ir::Type& t) {
  if (!t.tile) return "-";
  return fmt::format("{}", fmt::join(t.shape, "x"));
}

std::string bases(const ir::LinearLayout& l, ir::Hw place) {
  std::string text = fmt::format(" {}=", ir::name(place));
  for (int bit = 0; bit < l.in_bits(place); ++bit)
    text += fmt::format("{}{}", bit ? ";" : "", fmt::join(l.basis(place, bit), ","));
  return text;
}

std::string description(const Emitter& e, const ir::Inst& inst) {
  const ir::Type& t = e.type(inst.operands[0]);
  std::string text = fmt::format("{} {} {} warps={} blocks={}", inst.text(), t.ptr ? "ptr" : name(t.dtype),
                                 shape_text(t), e.exec().warps, e.exec().cluster);
  if (!t.tile) return text;
  const ir::LinearLayout& l = e.f.layout(t.layout);
  for (ir::Hw place : {ir::Hw::Register, ir::Hw::Lane, ir::Hw::Warp, ir::Hw::Block}) text += bases(l, place);
  return text;
}

/// In a class of registers that PTX has.
llvm::Value* in_register(llvm::IRBuilder<>& b, llvm::Value* v) {
  return v->getType()->isIntegerTy(8) ? b.CreateZExt(v, b.getInt16Ty()) : v;
}

}  // namespace

void emit_Name(Emitter& e, const ir::Inst& inst) {
  const TileValue t = e.as_plain(inst.operands[0]);
  PtxAsm text;
  std::string registers;
  std::vector<std::pair<llvm::Value*, std::string>> known;  // equal elements are one operand
  for (const TileValue::Reg& r : t.regs) {
    std::string operand = r.v == nullptr ? "_" : "";
    for (const auto& [value, named] : known)
      if (value == r.v) operand = named;
    if (operand.empty()) {
      operand = text.in_register(in_register(e.b, r.v));
      known.emplace_back(r.v, operand);
    }
    registers += fmt::format("{}{}", registers.empty() ? "" : ", ", operand);
  }
  text.line(fmt::format("// kiln.value \"{}\", {{{}}};", description(e, inst), registers));
  text.emit_comment(e.b);
}

}  // namespace kiln::cg
