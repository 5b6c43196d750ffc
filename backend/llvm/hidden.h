// Hidden parameters: what a kernel takes besides the user's arguments, appended by the launcher.
#pragma once
#include "backend/llvm/emit.h"
#include "backend/llvm/emitter.h"
#include "runtime/image/kernel_image.h"

namespace kiln::cg {

// Which ones a function needs, in order: hidden_params of emit.h.

/// Their LLVM types, in order; one hidden parameter may be several.
std::vector<llvm::Type*> hidden_types(const ir::Function& f, llvm::LLVMContext& context);
inline constexpr std::uint64_t kTensorMapBytes = 128;
/// Makes the last parameter the array of tensor maps, where the function has a ring.
void declare_tensor_maps(const ir::Function& f, llvm::Function& kernel);
/// i64: generic address of map `number`.
llvm::Value* tensor_map(const Emitter& e, llvm::IRBuilder<>& b, std::size_t number);
/// Part `part` of a hidden parameter of the kernel being emitted.
llvm::Value* hidden_arg(const Emitter& e, rt::HiddenParam which, unsigned part);

}  // namespace kiln::cg
