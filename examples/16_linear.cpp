// A layer of a network in one kernel: y = relu(x wᵀ + bias) + residual, and what the same costs operator by operator.
//
// The lambda in the middle is the user's own; the chain becomes part of the kernel that multiplies. Beside it the plan
// of a library without fusion: the product, then a kernel for each stage, every one of which moves whole matrices.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace kiln;
namespace epilogue = lib::epilogue;

constexpr std::int64_t kRows = 96, kIn = 64, kOut = 128;

constinit auto add_bias = kernel("add_bias", [](View<float, 2> y, View<const float, 1> bias, Const<int> B) {
  Scalar r = program_id(1) * B, c = program_id(0) * B;
  y.store({r, c}, y.load({r, c}, {B, B}) + bias.load({c}, {B}));
});
constinit auto rectify = kernel("rectify", [](View<float, 2> y, Const<int> B) {
  Scalar r = program_id(1) * B, c = program_id(0) * B;
  y.store({r, c}, relu(y.load({r, c}, {B, B})));
});
constinit auto add = kernel("add", [](View<float, 2> y, View<const float, 2> x, Const<int> B) {
  Scalar r = program_id(1) * B, c = program_id(0) * B;
  y.store({r, c}, y.load({r, c}, {B, B}) + x.load({r, c}, {B, B}));
});

/// Small numbers that repeat after 23 elements.
Buffer<float> numbers(const Device& device, std::int64_t n, int seed) {
  std::vector<float> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(float((i * 7 + seed) % 23 - 11) / 16);
  Buffer<float> b(device, v.size());
  b.upload(v);
  return b;
}

int main() try {
  const Device device = Device::best();
  const Stream stream(device);
  const Buffer<float> x = numbers(device, kRows * kIn, 1), w = numbers(device, kOut * kIn, 2),
                      bias = numbers(device, kOut, 3), residual = numbers(device, kRows * kOut, 4);
  Buffer<float> fused(device, kRows * kOut), y(device, kRows * kOut);
  const auto product = lib::linear<float>({x, {kRows, kIn}}, {w, {kOut, kIn}});

  std::printf("relu(x wᵀ + bias) + residual of [%d, %d] on %s\n\n%-18s %8s\n", int(kRows), int(kOut),
              device.name().c_str(), "", "launches");
  const auto counted = [&](const char* name, auto&& work) {
    device.reset_counters();
    work();
    stream.synchronize();
    std::printf("%-18s %8llu\n", name, static_cast<unsigned long long>(device.counters().launches));
  };
  counted("four kernels", [&] {
    const Grid grid{cdiv(kOut, 32), cdiv(kRows, 32)};
    product.run(stream, {y, {kRows, kOut}});
    add_bias.launch(stream, grid, {y, {kRows, kOut}}, {bias, {kOut}}, 32);
    rectify.launch(stream, grid, {y, {kRows, kOut}}, 32);
    add.launch(stream, grid, {y, {kRows, kOut}}, {residual, {kRows, kOut}}, 32);
  });
  counted("lib::linear", [&] {
    product.then(epilogue::bias<float>({bias, {kOut}}))
        .then(epilogue::relu)
        .then([](Tile t, Tile r) { return t + r; }, lib::per_element<float>({residual, {kRows, kOut}}))
        .run(stream, {fused, {kRows, kOut}});
  });

  const auto xs = x.to_vector(), ws = w.to_vector(), bs = bias.to_vector(), rs = residual.to_vector();
  const auto got = fused.to_vector(), plain = y.to_vector();
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    double sum = double(bs[i % kOut]);
    for (std::size_t k = 0; k < kIn; ++k) sum += double(xs[i / kOut * kIn + k]) * double(ws[i % kOut * kIn + k]);
    worst = std::max(worst, std::abs(double(got[i]) - std::max(sum, 0.0) - double(rs[i])));
  }
  const bool ok = worst < 1e-5 && got == plain;
  std::printf("\n%s: both plans give the same bits, within %.0e of the host's\n", ok ? "ok" : "WRONG RESULT", 1e-5);
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
