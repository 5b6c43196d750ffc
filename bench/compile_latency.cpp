#include "bench/compile_latency.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/cases.h"

namespace kiln::bench {
namespace {

constexpr int kRounds = 5;

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

// --- the new process
// --------------------------------------------------------------------------------------------------

double launch_ms(const Workload& w, const Stream& stream) {
  const auto begin = std::chrono::steady_clock::now();
  w.launch(stream, 0);
  stream.synchronize();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

// --- and the one that asks
// --------------------------------------------------------------------------------------------

// All that the process prints.
std::string run_probe(const std::vector<Case>& cases, const std::string& environment) {
  std::string probe;
  for (const Case& c : cases) probe += (probe.empty() ? "[" : ",") + to_json(c);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = fmt::format("{} '{}' bench --probe '{}]' 2>&1", environment, program, probe);
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw UserError("cannot start " + program);
  std::string output;
  for (int c; (c = fgetc(pipe)) != EOF;) output += static_cast<char>(c);
  const int status = pclose(pipe);
  if (status != 0) throw UserError(fmt::format("'{}' ended with status {}: {}", command, status, output));
  return output;
}

/// [{"first": milliseconds, "again": …}, …], one for each case. The driver's own cache of what it assembled begins as
/// empty as Kiln's.
nlohmann::json launches(const std::vector<Case>& cases, const CacheFolder& cache) {
  return nlohmann::json::parse(run_probe(
      cases, fmt::format("KILN_LOG=0 KILN_CACHE_DIR='{0}/kiln' CUDA_CACHE_DISABLE=0 CUDA_CACHE_PATH='{0}/driver'",
                         cache.path())));
}

/// Milliseconds by stage: the tables that KILN_TIME prints, added up.
std::map<std::string, double> stages(const Case& what) {
  static const std::map<std::string, std::string> kParts{
      {"trace", "trace"}, {"emit", "llvm"}, {"llvm", "llvm"}, {"ptx", "llvm"}, {"load", "driver"}};
  std::map<std::string, double> ms;
  std::istringstream output(run_probe({what}, "KILN_LOG=1 KILN_TIME=1 CUDA_CACHE_DISABLE=1"));
  bool inside = false;
  for (std::string line; std::getline(output, line);) {
    std::string stage;
    double us = 0;
    std::istringstream words(line);
    if (line.find("time of kernel '") != line.npos) inside = true;
    else if (!inside || !line.starts_with("  ") || !(words >> stage >> us) || stage == "sum") inside = false;
    else ms[kParts.contains(stage) ? kParts.at(stage) : "passes"] += us / 1e3;
  }
  return ms;
}

/// Samples by the figure's peer, state and stage.
using Samples = std::map<std::array<std::string, 3>, std::vector<double>>;

void sample(const LatencyCase& what, Samples& samples) {
  const std::string first = "kiln " + what.first.name + " first",
                    second = "kiln " + what.first.name + " second variant";
  std::vector<Case> cases{what.first};
  if (!what.variant.name.empty()) cases.push_back(what.variant);
  const CacheFolder cache;
  const auto cold = launches(cases, cache), warm = launches(cases, cache);
  samples[{first, "cold", ""}].push_back(cold[0]["first"]);
  samples[{first, "disk cache", ""}].push_back(warm[0]["first"]);
  samples[{first, "memory cache", ""}].push_back(warm[0]["again"]);
  if (cases.size() > 1) {
    samples[{second, "cold", ""}].push_back(cold[1]["first"]);
    samples[{second, "disk cache", ""}].push_back(warm[1]["first"]);
  }
  for (const auto& [stage, ms] : stages(what.first)) samples[{first, "cold", stage}].push_back(ms);
}

}  // namespace

// The least size that is launched in blocks of 1024, and one in blocks of 128 (kernels.h).
std::vector<LatencyCase> add_relu_latency() { return {{{"add_relu", {16400}, "f32"}, {"add_relu", {4096}, "f32"}}}; }

std::vector<LatencyCase> library_latency(const Device& device) {
  std::vector<LatencyCase> out;
  for (const std::int64_t width : {1024, 4096, 8192, 32768}) out.push_back({{"softmax", {16, width}, "bf16"}});
  for (const char* name : {"layernorm", "rmsnorm", "add_rmsnorm"})
    for (const std::int64_t width : {8192, 32768}) out.push_back({{name, {16, width}, "bf16"}});
  for (const char* name : {"log_softmax", "cumsum"}) out.push_back({{name, {16, 8192}, "bf16"}});
  for (const Case& c :
       {Case{"gelu_bias_scale_residual", {16, 8192}, "bf16"}, Case{"swiglu", {16, 14336}, "bf16"},
        Case{"transpose", {512, 512}, "bf16"}, Case{"sum_all", {1 << 20}, "f32"},
        Case{"cross_entropy", {16, 128256}, "bf16"}, Case{"cross_entropy_gradient", {16, 128256}, "bf16"},
        Case{"dropout", {1 << 20}, "bf16"}, Case{"adam_step", {1 << 20}, "f32"}, Case{"rope", {16, 32, 128}, "bf16"},
        Case{"embedding", {16, 4096}, "bf16"}})
    out.push_back({c});
  const Shape product = device.is_simulator() ? Shape{2048, 2048, 64} : Shape{4096, 4096, 4096};
  out.push_back({{"linear_relu", product, "bf16"}});
  return out;
}

std::vector<Figure> measure_compile_latency(const LatencyCase& what) {
  Samples samples;
  for (int i = 0; i < kRounds; ++i) sample(what, samples);
  std::vector<Figure> out;
  for (const auto& [key, ms] : samples)
    out.push_back({.what = {"compile_latency", what.first.shape, what.first.dtype},
                   .peer = key[0],
                   .ms = median(ms),
                   .state = key[1],
                   .stage = key[2],
                   .samples = static_cast<int>(ms.size())});
  return out;
}

std::string probe_compile_latency(const std::string& probe) {
  const Device device = Device::best();
  const Stream stream(device);
  std::vector<Workload> workloads;
  for (const auto& what : nlohmann::json::parse(probe)) workloads.push_back(prepare(device, parse_case(what.dump())));
  stream.synchronize();
  nlohmann::json answer = nlohmann::json::array();
  for (const Workload& w : workloads) {
    const double first = launch_ms(w, stream), again = launch_ms(w, stream);
    answer.push_back({{"first", first}, {"again", again}});
  }
  return answer.dump();
}

}  // namespace kiln::bench
