#include "backend/llvm/hidden.h"

#include <fmt/format.h>

#include "backend/ir/op/report.h"
#include "backend/ir/op/store_block.h"
#include "backend/llvm/ptx_asm.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

/// 64-bit words that the launcher passes for one (runtime/image/kernel_image.h).
unsigned words_of(rt::HiddenParam h) {
  switch (h) {
    case rt::HiddenParam::UserGrid: return 3;
    case rt::HiddenParam::ReportBuffer: return 2;
    case rt::HiddenParam::TensorMaps: return 1;  // an array by value
    case rt::HiddenParam::TileCounter:
    case rt::HiddenParam::Workspace: break;
  }
  throw InternalError("a hidden parameter that no one provides");
}

}  // namespace

std::vector<rt::HiddenParam> hidden_params(const ir::Function& f) {
  std::vector<rt::HiddenParam> hidden;
  if ((f.exec && f.exec->programs_per_cta > 1) || ir::walk_of(f) != ir::kNone)
    hidden.push_back(rt::HiddenParam::UserGrid);
  if (!ir::report_sites(f).empty()) hidden.push_back(rt::HiddenParam::ReportBuffer);
  if (ir::fill_of(f) != ir::kNone) hidden.push_back(rt::HiddenParam::TensorMaps);
  return hidden;
}

std::vector<llvm::Type*> hidden_types(const ir::Function& f, llvm::LLVMContext& context) {
  std::vector<llvm::Type*> types;
  for (const rt::HiddenParam h : hidden_params(f)) {
    if (h == rt::HiddenParam::TensorMaps) types.push_back(llvm::PointerType::get(context, 0));
    else types.insert(types.end(), words_of(h), llvm::Type::getInt64Ty(context));
  }
  return types;
}

void declare_tensor_maps(const ir::Function& f, llvm::Function& kernel) {
  if (ir::fill_of(f) == ir::kNone) return;
  llvm::LLVMContext& context = kernel.getContext();
  const std::uint64_t bytes = kTensorMapBytes * ir::kernel_maps(f).size();
  const unsigned last = unsigned(kernel.arg_size()) - 1;
  kernel.addParamAttr(
      last, llvm::Attribute::getWithByValType(context, llvm::ArrayType::get(llvm::Type::getInt8Ty(context), bytes)));
  kernel.addParamAttr(last, llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
}

llvm::Value* tensor_map(const Emitter& e, llvm::IRBuilder<>& b, std::size_t number) {
  PtxAsm text;  // by the parameter's name: LLVM would copy what its address escapes of to local memory
  const std::string to = text.out(b.getInt64Ty());
  text.line(fmt::format("mov.b64 {}, {}_param_{};", to, e.kernel->getName().str(), e.kernel->arg_size() - 1));
  text.line(fmt::format("cvta.param.u64 {0}, {0};", to));
  text.emit(b);
  return b.CreateAdd(text.result(b, 0), b.getInt64(kTensorMapBytes * number));
}

llvm::Value* hidden_arg(const Emitter& e, rt::HiddenParam which, unsigned part) {
  unsigned at = unsigned(e.f.params.size());
  for (const rt::HiddenParam h : hidden_params(e.f)) {
    if (h == which) return e.kernel->getArg(at + part);
    at += words_of(h);
  }
  throw InternalError("a hidden parameter that the kernel does not take");
}

}  // namespace kiln::cg
