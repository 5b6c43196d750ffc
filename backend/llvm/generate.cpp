// The way of one function through LLVM, with what a person may want to see or to time on it.
#include "backend/llvm/generate.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <chrono>
#include <memory>
#include <optional>

#include "backend/ir/op/store_block.h"
#include "backend/llvm/emit.h"
#include "backend/llvm/nvptx.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

/// Time since construction, added to the stats when asked.
class Stopwatch {
 public:
  explicit Stopwatch(CompileStats* stats) : stats_(stats) {}
  void lap(const char* stage) {
    const auto now = std::chrono::steady_clock::now();
    if (stats_ != nullptr)
      stats_->times.push_back({stage, std::chrono::duration<double, std::micro>(now - last_).count()});
    last_ = now;
  }

 private:
  CompileStats* stats_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

std::string generate(const ir::Function& f, const Target& target, bool line_info, CompileStats* stats,
                     ir::Artefacts& artefacts) {
  Stopwatch watch(stats);
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = emit(f, target, line_info, context);
  watch.lap("emit");
  // Where results leave piece by piece, what makes a piece of the sums stands beside its store.
  optimise(*module, target, /*late=*/ir::staging_bytes(f) > 0);
  watch.lap("llvm");
  if (artefacts.publish("llvm", "ll", [&] { return text_of(*module); }))
    throw UserError("KILN_OVERRIDE: LLVM IR cannot be replaced; replace the PTX or a .kir");
  std::string ptx = to_ptx(*module, target);
  watch.lap("ptx");
  if (std::optional<std::string> other = artefacts.publish("ptx", "ptx", [&] { return ptx; })) ptx = std::move(*other);
  return ptx;
}

}  // namespace kiln::cg
