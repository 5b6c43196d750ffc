// bench-simulator: the section `simulator` of `kiln bench`, where the compiler is not built. With a file name: also as
// JSON.
#include <fmt/format.h>

#include <exception>
#include <fstream>
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
  std::ofstream file;
  if (argc > 1) file.open(argv[1]);
  if (argc > 2 || (argc > 1 && !file)) {
    fmt::print(stderr, "usage: bench-simulator [FILE.jsonl]\n");
    return 1;
  }
  const std::string host = fmt::format("{}, {} threads", host_cpu(), std::thread::hardware_concurrency());
  fmt::print("simulator on {}\n", host);
  if (file.is_open()) file << fmt::format("{{\"case\":\"env\",\"host\":\"{}\"}}", host) << std::endl;
  kiln::bench::measure_simulator([&](const kiln::bench::Figure& f) {
    fmt::print("{}\n", to_text(f));
    std::fflush(stdout);
    if (file.is_open()) file << to_json(f) << std::endl;
  });
} catch (const std::exception& e) {
  fmt::print(stderr, "bench-simulator: {}\n", e.what());
  return 1;
}
