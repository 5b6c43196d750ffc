#include "bench/compile_latency.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "backend/compile.h"
#include "backend/target.h"
#include "bench/kernels.h"
#include "runtime/device_impl.h"

namespace kiln::bench {
namespace {

constexpr std::int64_t kElements = 4096;

class Clock {
 public:
  /// Milliseconds since the last call, or since construction.
  double lap_ms() {
    const auto now = std::chrono::steady_clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    return ms;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

struct Arguments {
  Device device = Device::best();
  Stream stream{device};
  Buffer<float> a{device, kElements}, c{device, kElements};
  Arguments() {
    a.fill_bytes(0);
    stream.synchronize();
  }
  void launch(int block) {
    add_relu.launch(stream, cdiv(kElements, block), a, a, c, kElements, Const(block));
    stream.synchronize();
  }
};

// A folder for one cold cache, removed with the object.
class CacheFolder {
 public:
  CacheFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "kiln-bench-XXXXXX").string();
    if (!mkdtemp(path.data())) throw UserError(fmt::format("cannot make a folder like {}", path));
    path_ = path;
  }
  ~CacheFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Runs a probe in a new process; the driver's own cache of assembled PTX is off, so that cold is cold.
std::map<std::string, double> spawn_probe(const char* probe, const std::string& cache_dir) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      fmt::format("CUDA_CACHE_DISABLE=1 KILN_LOG=0 KILN_CACHE_DIR='{}' '{}' bench --probe {}", cache_dir, program, probe);
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw UserError("cannot start " + program);
  std::string output;
  for (int c; (c = fgetc(pipe)) != EOF;) output += static_cast<char>(c);
  const int status = pclose(pipe);
  if (status != 0) throw UserError(fmt::format("'{}' ended with status {}: {}", command, status, output));
  return nlohmann::json::parse(output).get<std::map<std::string, double>>();
}

Figure figure(const char* peer, const char* state, const std::string& stage, const std::vector<double>& ms) {
  return {.what = {"compile_latency", {}, ""},
          .peer = peer,
          .ms = median(ms),
          .state = state,
          .stage = stage,
          .samples = static_cast<int>(ms.size())};
}

nlohmann::json probe_launches() {
  Arguments args;
  Clock clock;
  args.launch(kBlock);
  const double first = clock.lap_ms();
  args.launch(kBlock);
  const double again = clock.lap_ms();
  args.launch(kBlock / 2);
  return {{"first", first}, {"again", again}, {"variant", clock.lap_ms()}};
}

nlohmann::json probe_stages() {
  Arguments args;
  Clock clock;
  const Trace trace = add_relu.trace(args.a, args.a, args.c, kElements, Const(kBlock));
  const double traced = clock.lap_ms();
  CompileStats stats;
  const rt::KernelImage image =
      compile(trace.function(), target_named(args.device.target(), args.device.ptx_version()), {}, &stats);
  const double compiled = clock.lap_ms();
  const auto loaded = args.device.load(image);
  const double driver = clock.lap_ms();
  double llvm = 0;
  for (const StageTime& t : stats.times)
    if (t.stage == "emit" || t.stage == "llvm" || t.stage == "ptx") llvm += t.us / 1e3;
  return {{"trace", traced}, {"passes", compiled - llvm}, {"llvm", llvm}, {"driver", driver}};
}

}  // namespace

std::string probe_compile_latency(const std::string& probe) {
  if (probe == "launches") return probe_launches().dump();
  if (probe == "stages") return probe_stages().dump();
  throw UserError(fmt::format("probe '{}' is not known; known: launches, stages", probe));
}

std::vector<Figure> measure_compile_latency() {
  constexpr int kRounds = 7;
  std::map<std::string, std::vector<double>> cold, warm, stages;
  for (int i = 0; i < kRounds; ++i) {
    const CacheFolder cache;
    for (const auto& [key, ms] : spawn_probe("launches", cache.path())) cold[key].push_back(ms);
    for (const auto& [key, ms] : spawn_probe("launches", cache.path())) warm[key].push_back(ms);
    for (const auto& [key, ms] : spawn_probe("stages", "off")) stages[key].push_back(ms);
  }
  std::vector<Figure> out{figure("kiln add_relu first", "cold", "", cold["first"]),
                          figure("kiln add_relu second variant", "cold", "", cold["variant"]),
                          figure("kiln add_relu first", "disk cache", "", warm["first"]),
                          figure("kiln add_relu second variant", "disk cache", "", warm["variant"]),
                          figure("kiln add_relu first", "memory cache", "", warm["again"])};
  for (const char* stage : {"trace", "passes", "llvm", "driver"})
    out.push_back(figure("kiln add_relu first", "cold", stage, stages[stage]));
  return out;
}

}  // namespace kiln::bench
