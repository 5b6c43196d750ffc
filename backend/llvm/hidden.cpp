#include "backend/llvm/hidden.h"

#include "backend/ir/op/report.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

/// 64-bit words that the launcher passes for one (runtime/image/kernel_image.h).
unsigned words_of(rt::HiddenParam h) {
  switch (h) {
    case rt::HiddenParam::UserGrid: return 3;
    case rt::HiddenParam::ReportBuffer: return 2;
    case rt::HiddenParam::TileCounter:
    case rt::HiddenParam::Workspace:
    case rt::HiddenParam::TensorMaps: break;
  }
  throw InternalError("a hidden parameter that no one provides");
}

}  // namespace

std::vector<rt::HiddenParam> hidden_params(const ir::Function& f) {
  std::vector<rt::HiddenParam> hidden;
  if (f.exec && f.exec->programs_per_cta > 1) hidden.push_back(rt::HiddenParam::UserGrid);
  if (!ir::report_sites(f).empty()) hidden.push_back(rt::HiddenParam::ReportBuffer);
  return hidden;
}

std::vector<llvm::Type*> hidden_types(const ir::Function& f, llvm::LLVMContext& context) {
  std::vector<llvm::Type*> types;
  for (const rt::HiddenParam h : hidden_params(f))
    types.insert(types.end(), words_of(h), llvm::Type::getInt64Ty(context));
  return types;
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
