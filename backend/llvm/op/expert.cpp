// What experts ask for by name: shared memory, barriers, PTX, values hidden from the optimiser.
#include <fmt/format.h>

#include <cctype>

#include "backend/llvm/emitter.h"
#include "backend/llvm/index.h"
#include "backend/llvm/ptx_asm.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using llvm::Value;

/// The user's text with names for $0, $1, …; other characters that inline assembly gives a meaning are escaped.
std::string with_names(const ir::Inst& inst, const std::vector<std::string>& names) {
  const std::string& text = inst.text();
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    std::size_t end = i + 1, number = 0;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) && number < 1000)
      number = 10 * number + std::size_t(text[end++] - '0');
    if (end == i + 1) {  // a name of PTX may hold a dollar
      out += "$$";
      continue;
    }
    if (number >= names.size())
      throw UserError(inst.loc, fmt::format("inline_ptx: ${} in \"{}\": there are {} results and operands", number,
                                            text, names.size()));
    out += names[number];
    i = end - 1;
  }
  return out;
}

/// Elements as PTX registers hold them: 16 bits at least, floats of 32 and 64 bits as such.
llvm::Type* register_type(Emitter& e, DType d) {
  if (d == DType::i1 || d == DType::f32 || d == DType::f64) return e.c.type(d);
  return e.b.getIntNTy(unsigned(std::max(16, bits(d))));
}
Value* to_register(Emitter& e, Value* v, DType d) {
  if (v->getType()->isPointerTy()) return e.b.CreatePtrToInt(v, e.b.getInt64Ty());
  if (d == DType::i1 || d == DType::f32 || d == DType::f64) return v;
  Value* whole = e.b.CreateBitCast(v, e.b.getIntNTy(unsigned(bits(d))));
  return is_signed(d) ? e.b.CreateSExt(whole, register_type(e, d)) : e.b.CreateZExt(whole, register_type(e, d));
}
Value* from_register(Emitter& e, Value* v, DType d) {
  if (d == DType::i1 || d == DType::f32 || d == DType::f64) return v;
  return e.b.CreateBitCast(e.b.CreateTrunc(v, e.b.getIntNTy(unsigned(bits(d)))), e.c.type(d));
}

}  // namespace

// Shared addresses are kept in 64 bits like global ones, so that pointer arithmetic is the same for both; ld.shared
// takes them as they are.
void emit_Alloc(Emitter& e, const ir::Inst& inst) {
  if (e.exec().cluster > 1)
    throw UserError(
        inst.loc,
        fmt::format("alloc: shared memory belongs to one block, the program has {}; use cluster 1", e.exec().cluster));
  Value* address = e.b.CreateZExt(e.scratch(inst).address, e.b.getInt64Ty());
  address = e.b.CreateIntToPtr(address, llvm::PointerType::get(e.c.context(), kShared));
  TileValue pointer = e.pointer_scalar(address, e.type(inst.results[0]).dtype);
  pointer.uniform_known.divisor = 16;  // allocate-shared places them so
  e.set(inst.results[0], std::move(pointer));
}

void emit_Barrier(Emitter& e, const ir::Inst& inst) {
  const std::int64_t id = inst.i64(ir::AttrKey::id), threads = inst.i64(ir::AttrKey::threads),
                     all = 32 * e.exec().warps;
  if (threads > all) throw UserError(inst.loc, fmt::format("barrier: {} threads, the program has {}", threads, all));
  if (id == 0) {
    if (threads != 0 && threads != all)
      throw UserError(inst.loc,
                      fmt::format("barrier: {} of {} threads at barrier 0, which waits for all", threads, all));
    return e.hazards.barrier(e.b);
  }
  if (e.exec().team != ir::Team::Cta)
    throw UserError(inst.loc,
                    fmt::format("barrier: a named barrier needs a program that is one block; its team is a {}",
                                ir::name(e.exec().team)));
  if (threads == 0 || threads == all) e.hazards.reached();
  PtxAsm text;
  text.line(fmt::format("bar.sync {}{};", id, threads == 0 ? "" : fmt::format(", {}", threads)));
  text.emit(e.b)->setConvergent();
}

void emit_InlinePtx(Emitter& e, const ir::Inst& inst) {
  const bool nothing = inst.results.empty() && inst.operands.empty();
  const Geometry& g = nothing                ? e.geometry.of(ir::Type::scalar(DType::i1))
                      : inst.results.empty() ? e.geometry_of(inst.operands[0])
                                             : e.geometry_of(inst.results[0]);
  std::vector<TileValue> operands, results(inst.results.size());
  for (ir::Value v : inst.operands) operands.push_back(e.as_plain(v));
  for (TileValue& t : results) t.regs.resize(std::size_t(g.regs()));
  for (int r = 0; r < g.regs(); ++r) {
    if (!g.live[std::size_t(r)]) continue;
    PtxAsm text;
    std::vector<std::string> names;
    for (ir::Value v : inst.results) names.push_back(text.out(register_type(e, e.type(v).dtype)));
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const DType d = e.type(inst.operands[k]).dtype;
      names.push_back(text.in_register(to_register(e, operands[k].regs[std::size_t(r)].v, d)));
    }
    text.line(fmt::format("// {}", inst.loc.str()));  // runtime/image/ptx_line.h looks for it
    text.line("{");                                   // names that it declares are its own
    text.line(with_names(inst, names));
    text.line("}");
    text.emit(e.b)->setConvergent();
    for (std::size_t k = 0; k < results.size(); ++k)
      results[k].regs[std::size_t(r)].v =
          from_register(e, text.result(e.b, unsigned(k)), e.type(inst.results[k]).dtype);
  }
  for (std::size_t k = 0; k < results.size(); ++k) e.set_plain(inst.results[k], std::move(results[k]));
}

}  // namespace kiln::cg
