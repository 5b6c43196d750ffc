// Layernorm: every row gets mean 0 and variance 1, then a weight and a bias for each column. One kernel against four.
//
// A framework without fusion runs one kernel each for mean, variance, normalisation and weights, and each one reads the
// matrix from memory again. lib::layernorm keeps a row in registers: one read, one write. Memory traffic is what the
// simulator counts, in whole 32-byte sectors, so that they are the same on every machine; errors are those of the
// device that was found.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace kiln;

constexpr int kRows = 256, kCols = 1024;
constexpr float kEps = 1e-5f;

// The unfused plan: four kernels, a program each row.
constinit auto row_mean = kernel("row_mean", [](In<float> x, Out<float> mean, Const<int> COLS) {
  store(mean + program_id(0), sum(load(x + program_id(0) * COLS + arange(COLS))) / float(COLS));
});
constinit auto row_variance = kernel("row_variance", [](In<float> x, In<float> mean, Out<float> var, Const<int> COLS) {
  Tile d = load(x + program_id(0) * COLS + arange(COLS)) - load(mean + program_id(0));
  store(var + program_id(0), sum(d * d) / float(COLS));
});
constinit auto normalise =
    kernel("normalise", [](In<float> x, In<float> mean, In<float> var, Out<float> y, Const<int> COLS) {
      Tile c = program_id(0) * COLS + arange(COLS);
      store(y + c, (load(x + c) - load(mean + program_id(0))) * rsqrt(load(var + program_id(0)) + kEps));
    });
constinit auto affine = kernel("affine", [](InOut<float> y, In<float> w, In<float> b, Const<int> COLS) {
  Tile c = arange(COLS), at = program_id(0) * COLS + c;
  store(y + at, fma(load(y + at), load(w + c), load(b + c)));
});

struct Run {
  std::vector<float> fused, unfused;
  Counters fused_counts, unfused_counts;
};

Run run(const Device& device, const std::vector<float>& input, const std::vector<float>& weights) {
  const Stream stream(device);
  Buffer<float> x(device, input.size()), y(device, input.size()), w(device, kCols), b(device, kCols),
      mean(device, kRows), var(device, kRows);
  x.upload(input);
  w.upload(weights);
  b.upload(std::vector<float>(kCols, 0.5f));
  Run r;
  device.reset_counters();
  row_mean.launch(stream, kRows, x, mean, kCols);
  row_variance.launch(stream, kRows, x, mean, var, kCols);
  normalise.launch(stream, kRows, x, mean, var, y, kCols);
  affine.launch(stream, kRows, y, w, b, kCols);
  r.unfused = y.to_vector();
  r.unfused_counts = device.counters();
  device.reset_counters();
  lib::layernorm<float>(stream, {x, {kRows, kCols}}, {w, {kCols}}, {b, {kCols}}, {y, {kRows, kCols}}, kEps);
  r.fused = y.to_vector();
  r.fused_counts = device.counters();
  return r;
}

// The largest distance of `got` from the host's result in double precision.
double error_of(const std::vector<float>& got, const std::vector<float>& x, const std::vector<float>& weights) {
  double worst = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < kCols; ++c) mean += double(x[row * kCols + c]) / kCols;
    for (std::size_t c = 0; c < kCols; ++c) variance += std::pow(double(x[row * kCols + c]) - mean, 2) / kCols;
    for (std::size_t c = 0; c < kCols; ++c) {
      const double distance = double(x[row * kCols + c]) - mean;
      const double want = distance / std::sqrt(variance + double(kEps)) * double(weights[c]) + 0.5;
      worst = std::max(worst, std::abs(double(got[row * kCols + c]) - want));
    }
  }
  return worst;
}

void print(const char* plan, const Counters& c, double error) {
  const double matrix_sectors = 4.0 * kRows * kCols / 32;
  std::printf("%-16s %8llu %12.2f %15.2f %14.0e\n", plan, static_cast<unsigned long long>(c.launches),
              double(c.global_sectors_read) / matrix_sectors, double(c.global_sectors_written) / matrix_sectors, error);
}

int main() try {
  std::vector<float> x(std::size_t(kRows) * kCols), weights(kCols);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 100 + 3 * std::sin(float(i * i % 9973));  // mean 100, variance 4.5
  for (std::size_t c = 0; c < weights.size(); ++c) weights[c] = 1 + float(c % 4) / 4;

  const Device device = Device::best();
  const Run here = run(device, x, weights), counted = run(Device::simulator(), x, weights);
  const double fused = error_of(here.fused, x, weights), unfused = error_of(here.unfused, x, weights);

  std::printf("layernorm of %d x %d f32 on %s\n\n", kRows, kCols, device.name().c_str());
  std::printf("%-16s %8s %12s %15s %14s\n", "", "launches", "arrays read", "arrays written", "largest error");
  print("four kernels", counted.unfused_counts, unfused);
  print("lib::layernorm", counted.fused_counts, fused);
  std::printf(
      "\nTwo of the arrays read are weight and bias, which every row reads: from the L2 cache, not from memory. The\n"
      "library's errors are smaller because it subtracts a row's first element before it takes the mean.\n");
  const bool ok = fused < 1e-5 && unfused < 1e-3;
  std::printf("\n%s: both plans agree with the host\n", ok ? "ok" : "WRONG RESULT");
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
