// Speed of the PTX simulator on this host. Needs neither LLVM nor a GPU.
#pragma once
#include <cstdint>
#include <functional>

#include "bench/figure.h"

namespace kiln::bench {

struct SimulatorSizes {
  std::int32_t elements = 1 << 22;  ///< of pointwise code; a multiple of 4
  std::int32_t product = 1024;      ///< rows, columns and depth; a multiple of 128
};

/// Pointwise code and products in bf16, by mma.sync and by wgmma; each with the checks of bounds only and with all.
/// Changes KILN_SIM_CHECK while it runs; no other thread may. The PTX lies beside the program, in `simulator/`. Throws
/// DeviceError if a kernel fails, UserError if a product is wrong.
void measure_simulator(const std::function<void(const Figure&)>& sink, const SimulatorSizes& sizes = {});

}  // namespace kiln::bench
