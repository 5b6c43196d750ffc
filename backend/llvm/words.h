// Words: elements as the 16-, 32- or 64-bit registers that one memory access or shuffle moves.
#pragma once
#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <vector>

namespace kiln::cg {

class Words {
 public:
  /// Elements of LLVM type `type` (i1 and pointers included) that take `size` bytes in memory.
  Words(llvm::IRBuilder<>& b, llvm::Type* type, int size) : b_(b), type_(type), size_(size) {}

  /// An element as an integer of its size in memory, and back.
  llvm::Value* to_bits(llvm::Value* element);
  llvm::Value* from_bits(llvm::Value* bits);

  /// The register that an access of `total` bytes moves, and how many of them.
  llvm::IntegerType* unit_type(int total) {
    return b_.getIntNTy(unsigned(8 * std::max(2, total <= 4 ? total : std::max(4, size_))));
  }
  int units(int total) { return std::max(1, total / int(unit_type(total)->getBitWidth() / 8)); }

  std::vector<llvm::Value*> pack(llvm::ArrayRef<llvm::Value*> elements);
  std::vector<llvm::Value*> unpack(llvm::ArrayRef<llvm::Value*> words, int width);

 private:
  llvm::IntegerType* bits_type() { return b_.getIntNTy(unsigned(8 * size_)); }

  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
  int size_;
};

/// ".v2", ".v4" or nothing.
inline const char* vector_suffix(std::size_t n) { return n == 1 ? "" : n == 2 ? ".v2" : ".v4"; }
/// "{a, b}", or "a" alone.
std::string braces(const std::vector<std::string>& names);

}  // namespace kiln::cg
