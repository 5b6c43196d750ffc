// bench-simulator: the section `simulator` of `kiln bench`, where the compiler is not built. With a file name: also as
// JSON. --small takes sizes that tell whether it works, not how fast.
#include <fmt/format.h>

#include <exception>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "bench/simulator.h"

namespace {

/// What /proc/cpuinfo calls the processor.
std::string host_cpu() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name") && line.find(": ") != line.npos) return line.substr(line.find(": ") + 2);
  return "unknown processor";
}

}  // namespace

int main(int argc, char** argv) try {
  kiln::bench::SimulatorSizes sizes;
  int next = 1;
  if (next < argc && std::string_view(argv[next]) == "--small") sizes = {4096, 128}, ++next;
  std::ofstream file;
  const bool named = next < argc;
  if (named) file.open(argv[next++]);
  if (next < argc || (named && !file)) {
    fmt::print(stderr, "usage: bench-simulator [--small] [FILE.jsonl]\n");
    return 1;
  }
  const std::string host = fmt::format("{}, {} threads", host_cpu(), std::thread::hardware_concurrency());
  fmt::print("simulator on {}\n", host);
  if (file.is_open()) file << fmt::format("{{\"case\":\"env\",\"host\":\"{}\"}}", host) << std::endl;
  const auto sink = [&](const kiln::bench::Figure& f) {
    fmt::print("{}\n", to_text(f));
    std::fflush(stdout);
    if (file.is_open()) file << to_json(f) << std::endl;
  };
  kiln::bench::measure_simulator(sink, sizes);
} catch (const std::exception& e) {
  fmt::print(stderr, "bench-simulator: {}\n", e.what());
  return 1;
}
