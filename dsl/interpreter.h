// The interpreter device's way to load: it takes tile IR where other devices take an image.
#pragma once
#include <memory>

#include "backend/ir/function.h"
#include "runtime/device_impl.h"

namespace kiln::detail {

/// `function` as a kernel of the interpreter. It goes through rt::launch like every other, so arguments are checked
/// alike.
std::shared_ptr<rt::LoadedKernel> interpreted_kernel(std::shared_ptr<const ir::Function> function,
                                                     const Device& device);

}  // namespace kiln::detail
