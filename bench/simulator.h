// Speed of the PTX simulator on this host. Needs neither LLVM nor a GPU.
#pragma once
#include <functional>

#include "bench/figure.h"

namespace kiln::bench {

/// Pointwise code and 1024³ products in bf16, by mma.sync and by wgmma; each with the checks of bounds only and with
/// all. Changes KILN_SIM_CHECK while it runs; no other thread may. The PTX lies beside the program, in `simulator/`.
/// Throws DeviceError if a kernel fails, UserError if a product is wrong.
void measure_simulator(const std::function<void(const Figure&)>& sink);

}  // namespace kiln::bench
