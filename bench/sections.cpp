#include "bench/sections.h"

#include <fmt/format.h>

#include "bench/cases.h"
#include "bench/compile_latency.h"
#include "bench/launch.h"
#include "bench/prepared.h"
#include "bench/simulator.h"

namespace kiln::bench {
namespace {

// The copy ceiling of this run, then each case of the section.
void run_cases(const std::string& section, const Device& device, const Sink& sink) {
  const Stream stream(device);
  for (const CaseRow& row : case_rows())
    if (row.section == std::string() || row.section == section)
      for (const Shape& shape : row.shapes) sink(Prepared(stream, {row.name, shape, row.dtype}).measure());
}

void run_pointwise(const Device& device, const Sink& sink) { run_cases("pointwise", device, sink); }
void run_rows(const Device& device, const Sink& sink) { run_cases("rows", device, sink); }
void run_library(const Device& device, const Sink& sink) { run_cases("library", device, sink); }

void run_gemm(const Device& device, const Sink& sink) { run_cases("gemm", device, sink); }

void run_overhead(const Device& device, const Sink& sink) {
  const Stream stream(device);
  for (const Figure& f : measure_call_overhead(stream)) sink(f);
  sink(measure_graph_node(stream));
}

void run_latency(const std::vector<LatencyCase>& cases, const Sink& sink) {
  for (const LatencyCase& c : cases)
    for (const Figure& f : measure_compile_latency(c)) sink(f);
}
void run_compile_latency(const Device&, const Sink& sink) { run_latency(add_relu_latency(), sink); }
void run_library_latency(const Device& device, const Sink& sink) { run_latency(library_latency(device), sink); }

void run_simulator(const Device&, const Sink& sink) { measure_simulator(sink); }

}  // namespace

const std::vector<Section>& sections() {
  static const std::vector<Section> table{
      {"pointwise", "GPU time and bandwidth of add_relu, and the copy ceiling", true, run_pointwise},
      {"rows", "the same of the library's row operators, from 1024 to 131072 elements a row", true, run_rows},
      {"library", "the same of its other operators: pointwise chains, transpose, sum_all, cross_entropy", true,
       run_library},
      {"gemm", "products: linear with bias and relu, and alone, in bf16, f16, tf32 and fp8; TFLOP/s", true, run_gemm},
      {"overhead", "host cost of a launch, of 4 and 16 arguments and of tensor maps, against a bare cuLaunchKernel; a kernel's cost in a graph", true,
       run_overhead},
      {"compile_latency", "first launch in a new process: nothing cached, disk cache, memory cache; by stage", false,
       run_compile_latency},
      {"library_latency", "the same of the library's operators, and of linear with bias and relu", false, run_library_latency},
      {"simulator", "host time of the PTX simulator: pointwise code and products, with and without checks", false,
       run_simulator},
  };
  return table;
}

std::string needs_gpu_message(const std::string& name, const Device& device) {
  return fmt::format("{} measures GPU time, and {} has no clock: it needs an NVIDIA GPU", name, device.name());
}

}  // namespace kiln::bench
