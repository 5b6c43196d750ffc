#include "backend/llvm/depth_first.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace kiln::cg {
namespace {

class Block {
 public:
  explicit Block(llvm::BasicBlock& block) : block_(block) {}

  void run() {
    std::vector<llvm::Instruction*> order;
    for (llvm::Instruction& i : block_) order.push_back(&i);
    for (llvm::Instruction* i : order)
      if (stays(*i)) place(i);
  }

 private:
  bool stays(const llvm::Instruction& i) const {
    if (llvm::isa<llvm::PHINode>(i) || i.isTerminator() || i.mayHaveSideEffects() || i.mayReadFromMemory()) return true;
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i); call != nullptr && call->isConvergent()) return true;
    for (const llvm::User* user : i.users()) {
      const auto* at = llvm::cast<llvm::Instruction>(user);
      if (at->getParent() != &block_ || llvm::isa<llvm::PHINode>(at)) return true;
    }
    return false;
  }

  /// Puts what `i` needs of this block, and has not been placed, right before it. A stack of its own: chains are long.
  void place(llvm::Instruction* i) {
    placed_.insert(i);
    if (llvm::isa<llvm::PHINode>(i)) return;
    std::vector<std::pair<llvm::Instruction*, unsigned>> stack{{i, 0}};
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      if (next == at->getNumOperands()) {
        if (at != i) at->moveBefore(i->getIterator());
        stack.pop_back();
        continue;
      }
      auto* operand = llvm::dyn_cast<llvm::Instruction>(at->getOperand(next++));
      if (operand == nullptr || operand->getParent() != &block_ || stays(*operand)) continue;
      if (placed_.insert(operand).second) stack.emplace_back(operand, 0);
    }
  }

  llvm::BasicBlock& block_;
  llvm::SmallPtrSet<llvm::Instruction*, 32> placed_;
};

}  // namespace

void depth_first(llvm::Function& f) {
  for (llvm::BasicBlock& block : f) Block(block).run();
}

}  // namespace kiln::cg
