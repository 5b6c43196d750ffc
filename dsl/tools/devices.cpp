// kiln devices: what kernels can run on here, and if there is no GPU, why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "dsl/tools/verbs.h"
#include "runtime/device.h"

namespace kiln::tools {

static void show(const Device& device) {
  fmt::print("{}\n  target {}, PTX ISA {}.{}, {} multiprocessors, {} KiB shared memory a block, {:.1f} GiB memory\n",
             device.name(), device.target(), device.ptx_version() / 10, device.ptx_version() % 10, device.sm_count(),
             device.max_shared_bytes() >> 10, static_cast<double>(device.total_memory()) / (1 << 30));
}

void add_devices(CLI::App& app, int&) {
  app.add_subcommand("devices", "list the devices that kernels can run on")->callback([] {
    const int gpus = Device::cuda_count();
    for (int i = 0; i < gpus; ++i) show(Device::cuda(i));
    if (gpus == 0) try {
        Device::cuda(0, {});
      } catch (const DeviceError& e) {
        fmt::print("no GPU: {}\n", e.what());
      }
    show(Device::simulator());
  });
}

}  // namespace kiln::tools
