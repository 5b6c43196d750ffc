// The NVPTX back end behind three calls.
//
// LLVM aborts the process on what it cannot select. Three fences stand before that: check_calls() refuses every
// function and intrinsic that has no PTX, the diagnostic handler turns LLVM's messages into InternalError, and as a
// last resort the fatal-error handler throws out of LLVM (which leaks the module: LLVM's frames have no clean-ups to
// run).
//
// State: one TargetMachine per (arch, ISA) and thread, because making one costs more than compiling a small kernel and
// because sharing one between threads is not allowed.
#include "backend/llvm/nvptx.h"

#include <fmt/format.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/Sink.h>

#include <map>
#include <mutex>

#include "runtime/base/error.h"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace kiln::cg {
namespace {

constexpr const char* kTriple = "nvptx64-nvidia-cuda";
// SimplifyCFG and JumpThreading stay off: both may add edges into blocks with convergent operations.
constexpr const char* kPassList = "sroa,early-cse<memssa>,instcombine,sink where late";

void on_fatal_error(void*, const char* reason, bool) { throw InternalError(fmt::format("llvm: {}", reason)); }

void initialise_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    llvm::install_fatal_error_handler(on_fatal_error);
  });
}

int isa_of(const Target& target) {
  const int isa = target.ptx != 0 ? target.ptx : target_named(target.arch).ptx;
  return std::min(isa, kNewestPtx);
}

llvm::TargetMachine& machine(const Target& target) {
  initialise_once();
  thread_local std::map<std::pair<std::string, int>, std::unique_ptr<llvm::TargetMachine>> machines;
  const int isa = isa_of(target);
  std::unique_ptr<llvm::TargetMachine>& tm = machines[{target.arch, isa}];
  if (!tm) {
    const llvm::Triple triple(kTriple);
    std::string error;
    const llvm::Target* t = llvm::TargetRegistry::lookupTarget(triple, error);
    KILN_CHECK(t != nullptr, "llvm: " + error);
    tm.reset(t->createTargetMachine(triple, target.arch, fmt::format("+ptx{}", isa), {}, {}, {},
                                    llvm::CodeGenOptLevel::Default));
    KILN_CHECK(tm != nullptr, fmt::format("llvm: no target machine for {}", target.arch));
  }
  return *tm;
}

/// Functions of the module that have no body and no PTX: their selection would abort.
bool has_ptx(const llvm::CallBase& call, const llvm::Function& callee) {
  using namespace llvm;
  const Intrinsic::ID id = callee.getIntrinsicID();
  if (id == Intrinsic::not_intrinsic) return !callee.isDeclaration();
  if (callee.getName().starts_with("llvm.nvvm.")) return true;  // the emitters ask Target before they use one
  const llvm::Type* type = call.getType()->getScalarType();
  const auto* fp = dyn_cast<FPMathOperator>(&call);
  switch (id) {
    case Intrinsic::sin:
    case Intrinsic::cos:
    case Intrinsic::tanh: return type->isFloatTy() && fp != nullptr && fp->hasApproxFunc();
    case Intrinsic::exp2: return !type->isDoubleTy();
    case Intrinsic::exp:
    case Intrinsic::exp10:
    case Intrinsic::log:
    case Intrinsic::log2:
    case Intrinsic::log10:
    case Intrinsic::pow:
    case Intrinsic::powi:
    case Intrinsic::tan:
    case Intrinsic::asin:
    case Intrinsic::acos:
    case Intrinsic::atan:
    case Intrinsic::atan2:
    case Intrinsic::sinh:
    case Intrinsic::cosh:
    case Intrinsic::sincos:
    case Intrinsic::modf:
    case Intrinsic::lround:
    case Intrinsic::llround:
    case Intrinsic::lrint:
    case Intrinsic::llrint: return false;
    default: return true;
  }
}

void check_calls(const llvm::Module& m) {
  for (const llvm::Function& f : m)
    for (const llvm::Instruction& inst : llvm::instructions(f)) {
      const auto* call = llvm::dyn_cast<llvm::CallBase>(&inst);
      if (call == nullptr || call->isInlineAsm()) continue;
      const llvm::Function* callee = call->getCalledFunction();
      KILN_CHECK(callee != nullptr, "llvm: indirect call");
      KILN_CHECK(has_ptx(*call, *callee), fmt::format("llvm: {} has no PTX", callee->getName().str()));
    }
}

void collect_diagnostic(const llvm::DiagnosticInfo* info, void* text) {
  if (info->getSeverity() != llvm::DS_Error) return;
  llvm::raw_string_ostream os(*static_cast<std::string*>(text));
  llvm::DiagnosticPrinterRawOStream printer(os);
  info->print(printer);
  os << "; ";
}

}  // namespace

void prepare(llvm::Module& m, const Target& target) {
  llvm::TargetMachine& tm = machine(target);
  m.setTargetTriple(tm.getTargetTriple());
  m.setDataLayout(tm.createDataLayout());
}

void optimise(llvm::Module& m, const Target& target, bool late) {
  std::string broken;
  llvm::raw_string_ostream os(broken);
  KILN_CHECK(!llvm::verifyModule(m, &os), "llvm: invalid module: " + broken);

  llvm::PassBuilder builder(&machine(target));
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);

  llvm::FunctionPassManager passes;  // kPassList, in code so that no pass-name parser is linked
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  if (late) passes.addPass(llvm::SinkingPass());
  for (llvm::Function& f : m)
    if (!f.isDeclaration()) passes.run(f, functions);
}

std::string to_ptx(llvm::Module& m, const Target& target) {
  check_calls(m);
  std::string errors;
  m.getContext().setDiagnosticHandlerCallBack(collect_diagnostic, &errors, /*RespectFilters=*/false);
  llvm::SmallString<0> ptx;
  llvm::raw_svector_ostream os(ptx);
  llvm::legacy::PassManager passes;
  const bool refused = machine(target).addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile);
  KILN_CHECK(!refused, "llvm: the target cannot print assembly");
  passes.run(m);
  KILN_CHECK(errors.empty(), "llvm: " + errors);
  return std::string(ptx);
}

std::string text_of(const llvm::Module& m) {
  std::string text;
  llvm::raw_string_ostream os(text);
  m.print(os, nullptr);
  return text;
}

std::string llvm_version() { return fmt::format("llvm {} {}", LLVM_VERSION_STRING, kPassList); }

}  // namespace kiln::cg
