#include "bench/sections.h"

#include <fmt/format.h>

#include "bench/compile_latency.h"
#include "bench/launch.h"
#include "bench/pointwise.h"

namespace kiln::bench {
namespace {

void run_pointwise(const Device& device, const Sink& sink) {
  const Stream stream(device);
  sink(prepare_pointwise(stream, {"copy_ceiling", {std::int64_t{1} << 29}, "bf16"}).measure());
  for (std::int64_t n : {100, 1'000'000, 10'000'000, 100'000'000})
    sink(prepare_pointwise(stream, {"add_relu", {n}, "f32"}).measure());
}

void run_overhead(const Device& device, const Sink& sink) {
  const Stream stream(device);
  for (const Figure& f : measure_call_overhead(stream)) sink(f);
  sink(measure_graph_node(stream));
}

void run_compile_latency(const Device&, const Sink& sink) {
  for (const Figure& f : measure_compile_latency()) sink(f);
}

}  // namespace

const std::vector<Section>& sections() {
  static const std::vector<Section> table{
      {"pointwise", "GPU time and bandwidth of add_relu, and the copy ceiling", true, run_pointwise},
      {"overhead", "host cost of a launch against a bare cuLaunchKernel; a kernel's cost in a graph", true,
       run_overhead},
      {"compile_latency", "first launch in a new process: nothing cached, disk cache, memory cache; by stage", false,
       run_compile_latency},
  };
  return table;
}

std::string needs_gpu_message(const std::string& name, const Device& device) {
  return fmt::format("{} measures GPU time, and {} has no clock: it needs an NVIDIA GPU", name, device.name());
}

}  // namespace kiln::bench
