// What rmsnorm ignores, beside layernorm: the same row, shifted and scaled.
//
// Layernorm subtracts the mean and divides by the deviation, so neither a shift nor a scale of its input shows. Rmsnorm
// divides by the root of the mean square alone: cheaper by one reduction, blind to scale, but not to a shift. Both are
// one launch over the four rows of one matrix.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace kiln;

constexpr int kCols = 5, kRows = 4;
constexpr float kEps = 1e-6f;
constexpr const char* kRowNames[kRows] = {"x", "x + 10", "1000 x", "-x"};

void print_row(const float* row) {
  for (int c = 0; c < kCols; ++c) std::printf(" %9.4f", double(row[c]));
}

// The largest distance of `got` from what the host computes.
double error_of(const std::vector<float>& got, const std::vector<float>& x, bool subtract_mean) {
  double worst = 0;
  for (std::size_t r = 0; r < kRows; ++r) {
    double mean = 0, squares = 0;
    for (std::size_t c = 0; subtract_mean && c < kCols; ++c) mean += double(x[r * kCols + c]) / kCols;
    for (std::size_t c = 0; c < kCols; ++c) squares += std::pow(double(x[r * kCols + c]) - mean, 2) / kCols;
    for (std::size_t c = 0; c < kCols; ++c) {
      const double want = (double(x[r * kCols + c]) - mean) / std::sqrt(squares + double(kEps));
      worst = std::max(worst, std::abs(double(got[r * kCols + c]) - want));
    }
  }
  return worst;
}

int main() try {
  const Device device = Device::best();
  const Stream stream(device);
  const std::vector<float> x{-2, -1, 0.5f, 1, 3};
  std::vector<float> rows;
  for (float v : x) rows.push_back(v);
  for (float v : x) rows.push_back(v + 10);
  for (float v : x) rows.push_back(1000 * v);
  for (float v : x) rows.push_back(-v);

  Buffer<float> in(device, rows.size()), layer(device, rows.size()), rms(device, rows.size()), ones(device, kCols),
      zeros(device, kCols);
  in.upload(rows);
  ones.upload(std::vector<float>(kCols, 1));
  zeros.upload(std::vector<float>(kCols, 0));
  lib::layernorm<float>(stream, {in, {kRows, kCols}}, {ones, {kCols}}, {zeros, {kCols}}, {layer, {kRows, kCols}}, kEps);
  lib::rmsnorm<float>(stream, {in, {kRows, kCols}}, {ones, {kCols}}, {rms, {kRows, kCols}}, kEps);
  const std::vector<float> a = layer.to_vector(), b = rms.to_vector();

  std::printf("two normalisations on %s\n\n%-8s  %-50s   %s\n", device.name().c_str(), "row", "layernorm", "rmsnorm");
  for (int r = 0; r < kRows; ++r) {
    std::printf("%-8s", kRowNames[r]);
    print_row(a.data() + r * kCols);
    std::printf("   |");
    print_row(b.data() + r * kCols);
    std::printf("\n");
  }
  const double worst = std::max(error_of(a, rows, true), error_of(b, rows, false));
  const bool shift_shows = std::abs(b[0] - b[kCols]) > 0.1f, shift_hidden = std::abs(a[0] - a[kCols]) < 1e-5f;
  const bool ok = worst < 1e-5 && shift_shows && shift_hidden;
  std::printf("\n%s: x + 10 gives layernorm's row of x, and another one of rmsnorm (host: within %.0e)\n",
              ok ? "ok" : "WRONG RESULT", worst);
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
