#include "backend/llvm/emit.h"

#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include <cctype>

#include "backend/ir/op/ring.h"
#include "backend/ir/op/scratch.h"
#include "backend/llvm/emitter.h"
#include "backend/llvm/hidden.h"
#include "backend/llvm/index.h"
#include "backend/llvm/nvptx.h"
#include "backend/llvm/program.h"
#include "backend/llvm/ptx_asm.h"
#include "runtime/base/error.h"

namespace kiln::cg {

llvm::Type* EmitContext::type(DType d) const {
  llvm::LLVMContext& c = context();
  switch (d) {
    case DType::i1: return llvm::Type::getInt1Ty(c);
    case DType::f16: return llvm::Type::getHalfTy(c);
    case DType::bf16: return llvm::Type::getBFloatTy(c);
    case DType::f32: return llvm::Type::getFloatTy(c);
    case DType::f64: return llvm::Type::getDoubleTy(c);
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
    case DType::index:
    case DType::f8e4m3:
    case DType::f8e5m2: break;
  }
  return llvm::Type::getIntNTy(c, unsigned(bits(d)));
}

llvm::Type* EmitContext::memory_type(DType d) const {
  return d == DType::i1 ? llvm::Type::getInt8Ty(context()) : type(d);
}

namespace {

llvm::Function* declare_kernel(const ir::Function& f, llvm::Module& m, const EmitContext& c) {
  std::vector<llvm::Type*> params;
  for (const ir::Param& p : f.params)
    params.push_back(p.type.ptr ? llvm::PointerType::get(m.getContext(), kGlobal) : c.memory_type(p.type.dtype));
  const std::size_t own = params.size();
  for (llvm::Type* type : hidden_types(f, m.getContext())) params.push_back(type);
  auto* signature = llvm::FunctionType::get(llvm::Type::getVoidTy(m.getContext()), params, false);
  auto* kernel = llvm::Function::Create(signature, llvm::Function::ExternalLinkage, entry_name(f.name), m);
  kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
  kernel->setDoesNotThrow();
  for (unsigned i = 0; i < own; ++i) {
    const ir::Param& p = f.params[i];
    if (!p.name.empty()) kernel->getArg(i)->setName(p.name);
    if (!p.type.ptr) continue;
    const auto align = std::uint64_t(std::max(p.align, bytes(p.type.dtype)));
    kernel->addParamAttr(i, llvm::Attribute::getWithAlignment(m.getContext(), llvm::Align(align)));
    if (p.disjoint) kernel->addParamAttr(i, llvm::Attribute::NoAlias);
  }
  declare_tensor_maps(f, *kernel);
  return kernel;
}

void set_launch_bounds(llvm::Function& kernel, const ir::Function& f) {
  const ir::Exec& exec = *f.exec;
  kernel.addFnAttr("nvvm.reqntid", fmt::format("{}", 32 * (exec.warps * exec.programs_per_cta + exec.producer)));
  // setmaxnreg needs to know how many registers a thread starts with, which follows from the blocks that run at once.
  if (exec.producer > 0) kernel.addFnAttr("nvvm.minctasm", "1");
  const ir::InstId walk = ir::walk_of(f);
  const bool pairs = walk != ir::kNone && f.inst(walk).i64(ir::AttrKey::pair) != 0;
  if (const int blocks = pairs ? 2 : exec.cluster; blocks > 1)
    kernel.addFnAttr("nvvm.cluster_dim", fmt::format("{},1,1", blocks));
}

}  // namespace

Emitter::Emitter(const ir::Function& function, const Target& target, llvm::Function* k, llvm::IRBuilder<>& entry,
                 llvm::IRBuilder<>& body, DebugInfo& debug)
    : f(function),
      c{body, target, function.loc},
      b(body),
      kernel(k),
      geometry(entry, function),
      hazards(*function.exec),
      debug_(debug),
      values_(function.value_count()) {}

void Emitter::region(ir::RegionId r) {
  for (ir::InstId i : f.region(r).insts) instruction(f.inst(i));
}

void Emitter::at(SourceLoc loc) {
  c.loc = loc;
  b.SetCurrentDebugLocation(debug_.at(loc));
}

void Emitter::instruction(const ir::Inst& inst) {
  at(inst.loc);
  // clang-format off
  switch (inst.op) {
#define KILN_EW(Enum, ...) case ir::Op::Enum: return elementwise(inst);
#define KILN_OP(Enum, ...) case ir::Op::Enum: return emit_##Enum(*this, inst);
#include "backend/ir/ops.def"
  }
  // clang-format on
}

void Emitter::elementwise(const ir::Inst& inst) {
  const ir::Value result = inst.results[0];
  const Geometry& g = geometry_of(result);
  const DType dtype = type(inst.operands[0]).dtype;
  std::vector<TileValue> operands;
  for (ir::Value v : inst.operands) operands.push_back(get(v));
  if (dtype == DType::index) return set(result, index_elementwise(c, g, inst.op, operands));
  const bool fast = inst.flag(ir::AttrKey::fast);
  set(result, map_registers(g, operands, [&](Regs in) { return emit_elementwise(c, inst.op, dtype, in, fast); }));
}

// One array of the launch's dynamic shared memory; the programs of a block have equal parts of it.
llvm::Value* Emitter::shared_base() {
  if (shared_base_ != nullptr) return shared_base_;
  llvm::Module& m = c.module();
  auto* array =
      new llvm::GlobalVariable(m, llvm::ArrayType::get(b.getInt8Ty(), 0), false, llvm::GlobalValue::ExternalLinkage,
                               nullptr, "kiln_shared", nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
  array->setAlignment(llvm::Align(1024));
  llvm::IRBuilder<>& entry = geometry.entry();
  PtxAsm low;  // opaque, so that the address is made once and not at each use
  const std::string out = low.out(entry.getInt32Ty());
  low.line("cvt.u32.u64 " + out + ", " + low.in(entry.CreatePtrToInt(array, entry.getInt64Ty())) + ";");
  low.emit(entry);
  shared_base_ = low.result(entry, 0);
  if (exec().programs_per_cta > 1) {
    llvm::Value* tid =
        entry.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, llvm::ArrayRef<llvm::Type*>{}, {});
    llvm::Value* program = entry.CreateUDiv(tid, entry.getInt32(std::uint32_t(32 * exec().warps)));
    shared_base_ =
        entry.CreateAdd(shared_base_, entry.CreateMul(program, entry.getInt32(std::uint32_t(ir::shared_bytes(f)))));
  }
  return shared_base_;
}

Scratch Emitter::scratch(const ir::Inst& inst) {
  const ir::SharedRange range = ir::scratch_range(f, inst);
  if (range.bytes() == 0) return {};
  return {b.CreateAdd(shared_base(), b.getInt32(std::uint32_t(range.lo)), "", true, true), range};
}

const ir::AxisAnalysis& Emitter::facts() {
  if (!facts_) facts_.emplace(f);
  return *facts_;
}

const TileValue& Emitter::get(ir::Value v) const {
  KILN_CHECK(!values_[v.id].regs.empty(), fmt::format("value {} has no code yet", v.id));
  return values_[v.id];
}

TileValue Emitter::pointer_scalar(llvm::Value* pointer, DType element) const {
  TileValue t;
  t.kind = TileValue::Kind::Pointer;
  t.regs.push_back({});
  t.uniform = pointer;
  t.uniform_known = {Range{}, bytes(element)};
  return t;
}

void Emitter::set_plain(ir::Value v, llvm::Value* scalar) {
  TileValue t;
  t.regs.push_back({scalar, 0});
  set_plain(v, std::move(t));
}

// Elements of a tile differ between threads, so they stand in the registers; a scalar is uniform.
void Emitter::set_plain(ir::Value v, TileValue plain) {
  const ir::Type& t = type(v);
  if (!t.ptr && t.dtype != DType::index) return set(v, std::move(plain));
  if (!t.tile) {
    llvm::Value* scalar = plain.regs[0].v;
    return set(v, t.ptr ? pointer_scalar(scalar, t.dtype) : index_scalar(scalar, Known{}));
  }
  plain.kind = t.ptr ? TileValue::Kind::Pointer : TileValue::Kind::Index;
  plain.thread_known = Known{};
  if (t.ptr) {
    plain.uniform = llvm::ConstantPointerNull::get(llvm::PointerType::get(c.context(), t.shared ? kShared : kGlobal));
    plain.uniform_known = Known::constant(0);
    plain.thread_known.divisor = bytes(t.dtype);
    plain.scale = 1;
    for (TileValue::Reg& r : plain.regs)
      if (r.v != nullptr) r.v = b.CreatePtrToInt(r.v, b.getInt64Ty());
  }
  set(v, std::move(plain));
}

TileValue Emitter::as_plain(ir::Value v) {
  const TileValue& t = get(v);
  if (t.kind == TileValue::Kind::Plain) return t;
  const bool pointer = t.kind == TileValue::Kind::Pointer;
  return map_elements(geometry_of(v), t,
                      [&](int r) { return pointer ? pointer_value(b, t, r) : index_value(b, t, r); });
}

std::string entry_name(const std::string& name) {
  std::string symbol;
  for (char x : name) symbol += std::isalnum(static_cast<unsigned char>(x)) || x == '_' || x == '$' ? x : '_';
  if (symbol.empty() || std::isdigit(static_cast<unsigned char>(symbol[0]))) symbol.insert(0, "kernel_");
  return symbol;
}

namespace {

/// Where a block runs several programs, warps beyond the last program have nothing to do. To be called when all of the
/// kernel stands: `start` leads from its entry to its body.
void leave_idle_warps(Emitter& e, llvm::BranchInst* start) {
  llvm::BasicBlock* idle = llvm::BasicBlock::Create(e.c.context(), "idle", e.kernel);
  llvm::IRBuilder<>(idle).CreateRetVoid();
  llvm::IRBuilder<>& entry = e.geometry.entry();
  llvm::Value* runs = entry.CreateICmpSLT(program_number(e, 0), hidden_arg(e, rt::HiddenParam::UserGrid, 0));
  entry.CreateCondBr(runs, start->getSuccessor(0), idle);
  start->eraseFromParent();
}

/// The next launch may start its blocks as soon as all of this one's have; this one waits here until the launches before
/// are done and their memory is visible. Every block waits, so that the end of one launch is the end of all before it.
/// `waits`: not so where a ring is set up first.
void meet_other_launches(llvm::IRBuilder<>& body, bool waits) {
  PtxAsm meet;
  meet.line("griddepcontrol.launch_dependents;");
  if (waits) meet.line("griddepcontrol.wait;");
  meet.emit(body);
}

}  // namespace

std::unique_ptr<llvm::Module> emit(const ir::Function& f, const Target& target, bool line_info,
                                   llvm::LLVMContext& context) {
  KILN_CHECK(f.stage >= ir::Stage::Allocated && f.exec.has_value(), "emission needs a function at stage allocated");
  auto module = std::make_unique<llvm::Module>("kiln", context);
  prepare(*module, target);
  llvm::IRBuilder<> entry(context), body(context);
  llvm::Function* kernel = declare_kernel(f, *module, {body, target, f.loc});
  set_launch_bounds(*kernel, f);
  DebugInfo debug(*module, *kernel, f.loc, line_info);
  entry.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", kernel));
  body.SetInsertPoint(llvm::BasicBlock::Create(context, "body", kernel));
  entry.SetCurrentDebugLocation(debug.at(f.loc));

  // What depends on nothing but the thread goes before this branch, so that it dominates all of the kernel.
  llvm::BranchInst* start = entry.CreateBr(body.GetInsertBlock());
  entry.SetInsertPoint(start);
  Emitter e(f, target, kernel, entry, body, debug);
  if (target.has_dependent_launch()) meet_other_launches(body, ir::fill_of(f) == ir::kNone);
  // Blocks of a cluster that reach each other's shared memory: each has started before, and none leaves early.
  const bool meets = f.exec->cluster > 1 && ir::shared_bytes(f) > 0;
  if (meets) e.hazards.barrier(body);
  e.region(f.body());
  body.SetCurrentDebugLocation(debug.at(f.loc));
  if (meets) e.hazards.barrier(body);
  body.CreateRetVoid();
  if (f.exec->programs_per_cta > 1) leave_idle_warps(e, start);
  debug.finish();
  return module;
}

}  // namespace kiln::cg
