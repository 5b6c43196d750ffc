// SwiGLU: one half of a layer's output gates the other, y = silu(a) · b with silu(a) = a / (1 + e^-a).
//
// The picture is silu beside relu: smooth, a little below 0, hence with a gradient where relu has none. The layer
// before it writes rows [a, b] as one matrix; the halves are given as they lie there, as views with the stride of the
// whole rows: nothing is cut apart first.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace kiln;

constexpr std::int64_t kRows = 15, kCols = 2;  // b is 1 in the first column, -0.5 in the second

int main() try {
  const Device device = Device::best();
  const Stream stream(device);
  std::vector<float> layer;
  for (int r = 0; r < kRows; ++r) {
    const float a = float(r - 8) * 0.75f;
    layer.insert(layer.end(), {a, a, 1.f, -0.5f});  // a row [a, b]
  }
  Buffer<float> ab(device, layer.size()), y(device, kRows * kCols);
  ab.upload(layer);
  const auto b = device_ptr<float>(ab.ptr() + kCols * sizeof(float), ab.size() - kCols);
  lib::swiglu<float>(stream, {ab, {kRows, kCols}, {2 * kCols, 1}}, {b, {kRows, kCols}, {2 * kCols, 1}},
                     {y, {kRows, kCols}});
  const std::vector<float> got = y.to_vector();

  std::printf("silu(a) on %s, a '*'; relu(a), an 'o'\n\n%6s %9s %13s\n", device.name().c_str(), "a", "silu · 1",
              "silu · -0.5");
  double worst = 0;
  for (std::size_t r = 0; r < kRows; ++r) {
    const double a = double(layer[4 * r]), silu = a / (1 + std::exp(-a));
    worst = std::max({worst, std::abs(double(got[2 * r]) - silu), std::abs(double(got[2 * r + 1]) + silu / 2)});
    std::string line(60, ' ');
    const auto place = [](double v) { return std::size_t(std::lround(8 + 10 * v)); };
    line[8] = '|';
    line[place(std::max(a, 0.0))] = 'o';
    line[place(double(got[2 * r]))] = '*';
    std::printf("%6.2f %9.4f %13.4f   %s\n", a, double(got[2 * r]), double(got[2 * r + 1]), line.c_str());
  }
  const bool ok = worst < 1e-6;
  std::printf("\n%s: within %.0e of the host's\n", ok ? "ok" : "WRONG RESULT", worst);
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
