#include "bench/launch.h"

#include <algorithm>
#include <functional>
#include <random>

#include "bench/kernels.h"
#include "bench/timer.h"
#include "runtime/cuda/driver.h"
#include "runtime/image/kernel_image.h"

namespace kiln::bench {
namespace {

constexpr std::int64_t kSmall = 100;

struct Arguments {
  Buffer<float> a, b, c;
  explicit Arguments(const Device& device) : a(device, kSmall), b(device, kSmall), c(device, kSmall) {
    a.fill_bytes(0);
    b.fill_bytes(0);
  }
  void launch(const Stream& stream) { add_relu.launch(stream, 1, a, b, c, kSmall, Const(kBlock)); }
};

// The kernel that Kiln launches, loaded once more and launched through the driver alone.
class BareKernel {
 public:
  BareKernel(const Stream& stream, Arguments& args)
      : driver_(cu::Driver::process()), stream_(static_cast<cu::Stream>(stream.native())) {
    const rt::KernelImage image = add_relu.image(stream.device(), args.a, args.b, args.c, kSmall, Const(kBlock));
    recipe_ = image.recipe();
    driver_->call(
        driver_->module_load, [&] { return image.name; }, &module_, image.ptx.c_str(), 0u, nullptr, nullptr);
    driver_->call(
        driver_->module_function, [&] { return image.name; }, &function_, module_, image.name.c_str());
    a_ = args.a.ptr(), b_ = args.b.ptr(), c_ = args.c.ptr();
  }
  ~BareKernel() { driver_->module_unload(module_); }
  BareKernel(const BareKernel&) = delete;
  BareKernel& operator=(const BareKernel&) = delete;

  void launch() {
    void* params[] = {&a_, &b_, &c_, &n_};
    const auto& block = recipe_.block;
    driver_->call(
        driver_->launch, [] { return std::string("add_relu"); }, function_, 1u, 1u, 1u, block[0], block[1], block[2],
        recipe_.smem_bytes, stream_, params, nullptr);
  }

 private:
  std::shared_ptr<const cu::Driver> driver_;
  cu::Stream stream_;
  cu::Module module_ = nullptr;
  cu::Function function_ = nullptr;
  rt::LaunchRecipe recipe_;
  DevicePtr a_ = 0, b_ = 0, c_ = 0;
  std::int64_t n_ = kSmall;
};

}  // namespace

std::vector<Figure> measure_call_overhead(const Stream& stream) {
  constexpr int kRounds = 21, kCalls = 500;
  Arguments args(stream.device());
  args.launch(stream);
  BareKernel bare(stream, args);
  struct Candidate {
    std::string peer;
    std::function<void()> call;
    std::vector<double> us = {};
  };
  std::vector<Candidate> candidates{{"kiln", [&] { args.launch(stream); }},
                                    {"bare cuLaunchKernel", [&] { bare.launch(); }}};
  for (const Candidate& c : candidates) host_us_per_call(stream, 2 * kCalls, c.call);

  std::mt19937 random(1);
  std::vector<std::size_t> order{0, 1};
  for (int round = 0; round < kRounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t i : order) candidates[i].us.push_back(host_us_per_call(stream, kCalls, candidates[i].call));
  }
  std::vector<Figure> out;
  for (const Candidate& c : candidates)
    out.push_back({.what = {"call_overhead", {}, ""}, .peer = c.peer, .us = median(c.us), .samples = kRounds});
  return out;
}

Figure measure_graph_node(const Stream& stream) {
  Arguments args(stream.device());
  args.launch(stream);
  stream.synchronize();
  GraphTimer timer(stream, 200, [&](const Stream& s, int) { args.launch(s); });
  return {.what = {"graph_node", {}, ""}, .peer = "kiln add_relu, graph of 200", .us = timer.us_per_launch()};
}

}  // namespace kiln::bench
