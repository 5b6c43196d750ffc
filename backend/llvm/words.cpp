#include "backend/llvm/words.h"

namespace kiln::cg {

using llvm::Value;

Value* Words::to_bits(Value* element) {
  if (type_->isPointerTy()) return b_.CreatePtrToInt(element, bits_type());
  if (type_->isIntegerTy(1)) return b_.CreateZExt(element, bits_type());
  return b_.CreateBitCast(element, bits_type());
}

Value* Words::from_bits(Value* bits) {
  if (type_->isPointerTy()) return b_.CreateIntToPtr(bits, type_);
  if (type_->isIntegerTy(1)) return b_.CreateIsNotNull(bits);
  return b_.CreateBitCast(bits, type_);
}

std::vector<Value*> Words::pack(llvm::ArrayRef<Value*> elements) {
  const int total = int(elements.size()) * size_;
  const int n = units(total), per_unit = int(elements.size()) / n;
  std::vector<Value*> words;
  for (int u = 0; u < n; ++u) {
    if (per_unit == 1) {
      words.push_back(b_.CreateZExt(to_bits(elements[std::size_t(u)]), unit_type(total)));
      continue;
    }
    Value* vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(bits_type(), unsigned(per_unit)));
    for (int k = 0; k < per_unit; ++k)
      vector = b_.CreateInsertElement(vector, to_bits(elements[std::size_t(u * per_unit + k)]), std::uint64_t(k));
    words.push_back(b_.CreateBitCast(vector, unit_type(total)));
  }
  return words;
}

std::vector<Value*> Words::unpack(llvm::ArrayRef<Value*> words, int width) {
  const int per_unit = width / int(words.size());
  std::vector<Value*> elements;
  for (Value* word : words) {
    if (per_unit == 1) {
      elements.push_back(from_bits(b_.CreateTrunc(word, bits_type())));
      continue;
    }
    Value* vector = b_.CreateBitCast(word, llvm::FixedVectorType::get(bits_type(), unsigned(per_unit)));
    for (int k = 0; k < per_unit; ++k) elements.push_back(from_bits(b_.CreateExtractElement(vector, std::uint64_t(k))));
  }
  return elements;
}

std::string braces(const std::vector<std::string>& names) {
  if (names.size() == 1) return names[0];
  std::string s = "{";
  for (std::size_t i = 0; i < names.size(); ++i) s += (i ? ", " : "") + names[i];
  return s + "}";
}

}  // namespace kiln::cg
