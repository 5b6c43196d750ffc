#include "bench/simulator.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/base/env.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/device_impl.h"

namespace kiln::bench {
namespace {

constexpr int kSamples = 3;
constexpr std::uint32_t kThreads = 256;

/// Sets the checks of devices that are opened in its lifetime.
class Checks {
 public:
  explicit Checks(const char* which) : before_(env::KILN_SIM_CHECK()) { set(which); }
  ~Checks() { set(before_.c_str()); }
  Checks(const Checks&) = delete;
  Checks& operator=(const Checks&) = delete;

 private:
  static void set(const char* which) {
    setenv("KILN_SIM_CHECK", which, 1);
    env::reload();
  }
  std::string before_;
};
constexpr std::pair<const char*, const char*> kChecks[] = {{"none", "checks: bounds"}, {"all", "checks: all"}};

/// A kernel of bench/simulator.
struct Kernel {
  std::shared_ptr<rt::LoadedKernel> loaded;
  rt::LaunchDims dims;

  Kernel(const Device& device, const std::string& name, std::array<std::uint32_t, 3> grid) : dims{grid} {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "simulator";
    rt::KernelImage image;
    image.name = name;
    image.ptx = rt::read_whole(folder / (name + ".ptx"));
    rt::LaunchRecipe recipe;
    recipe.block = {kThreads, 1, 1};
    image.candidates.push_back(recipe);
    loaded = device.load(image);
  }

  /// Median seconds and lane instructions of a launch; the first is not counted.
  Figure measure(const Device& device, const Case& what, const char* state, const void* params, std::size_t bytes) {
    const Stream stream(device);
    std::vector<double> us;
    std::uint64_t lanes = 0;
    for (int i = 0; i <= kSamples; ++i) {
      const std::uint64_t before = device.counters().executing_lanes;
      const auto begin = std::chrono::steady_clock::now();
      loaded->launch(stream.impl(), dims, params, bytes);
      stream.synchronize();
      const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
      if (i) us.push_back(time.count());
      lanes = device.counters().executing_lanes - before;
    }
    Figure f{.what = what, .peer = "kiln simulator", .us = median(us), .state = state, .samples = kSamples};
    f.glanes = static_cast<double>(lanes) / f.us * 1e-3;
    return f;
  }
};

void pointwise(std::int32_t n, const std::function<void(const Figure&)>& sink) {
  std::vector<float> host(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i % 1000) * 0.002f - 1;
  for (const auto& [checks, state] : kChecks) {
    const Checks set(checks);
    const Device device = Device::simulator("sm_80");
    Buffer<float> x(device, host.size()), y(device, host.size()), out(device, host.size());
    x.upload(host);
    y.upload(host);
    struct {
      DevicePtr x, y, out;
      float a;
      std::int32_t n;
    } const params{x.ptr(), y.ptr(), out.ptr(), 1.5f, n};
    Kernel kernel(device, "pointwise", {264, 1, 1});
    sink(kernel.measure(device, {"simulator_pointwise", {n}, "f32"}, state, &params, sizeof params));
  }
}

/// Some elements of out = a · bᵀ against sums in f64; a wrong product fast is none.
void check_product(const std::vector<bf16>& a, const std::vector<bf16>& b, const std::vector<bf16>& out,
                   std::size_t n) {
  for (std::size_t i = 0; i < n; i += 37)
    for (std::size_t j = i % 11; j < n; j += 101) {
      double want = 0;
      for (std::size_t k = 0; k < n; ++k)
        want += static_cast<double>(static_cast<float>(a[i * n + k])) *
                static_cast<double>(static_cast<float>(b[j * n + k]));
      const double got = static_cast<float>(out[i * n + j]);
      if (!(std::fabs(got - want) <= 1e-2 * (std::fabs(want) + 1)))
        throw UserError(fmt::format("simulator bench: product [{}, {}] is {}, must be {}", i, j, got, want));
    }
}

void product(std::int32_t n, const char* name, const char* target, const std::function<void(const Figure&)>& sink) {
  const auto elements = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  std::vector<bf16> a(elements), b(elements);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = bf16(static_cast<float>(i * 7 % 31) * 0.0625f - 1);
    b[i] = bf16(static_cast<float>(i * 5 % 29) * 0.0625f - 1);
  }
  for (const auto& [checks, state] : kChecks) {
    const Checks set(checks);
    const Device device = Device::simulator(target);
    Buffer<bf16> da(device, a.size()), db(device, b.size()), out(device, a.size());
    da.upload(a);
    db.upload(b);
    struct {
      DevicePtr a, b, out;
      std::int32_t n, k;
    } const params{da.ptr(), db.ptr(), out.ptr(), n, n};
    const auto blocks = static_cast<std::uint32_t>(n) / 128;
    Kernel kernel(device, name, {blocks, blocks, 1});
    sink(kernel.measure(device, {fmt::format("simulator_{}", name), {n, n, n}, "bf16"}, state, &params, sizeof params));
    check_product(a, b, out.to_vector(), static_cast<std::size_t>(n));
  }
}

}  // namespace

void measure_simulator(const std::function<void(const Figure&)>& sink, const SimulatorSizes& sizes) {
  pointwise(sizes.elements, sink);
  product(sizes.product, "gemm_mma", "sm_80", sink);
  product(sizes.product, "gemm_wgmma", "sm_90a", sink);
}

}  // namespace kiln::bench
