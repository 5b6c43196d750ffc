// Softmax turns scores into probabilities: y[i] = e^x[i] / Σ e^x. Dividing the scores by a temperature first makes the
// distribution sharper (below 1) or flatter (above).
//
// The program draws one row of scores at four temperatures. They are four rows of one matrix, so that one launch does
// all: lib::softmax reads each row once and subtracts its largest score before it takes powers, which is why scores of
// 3000 (last column) do no harm.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace kiln;

constexpr int kClasses = 6;
constexpr std::array<const char*, kClasses> kNames{"cat", "dog", "fox", "owl", "elk", "yak"};
constexpr std::array<float, kClasses> kScores{3.0f, 2.5f, 1.0f, 0.5f, -1.0f, -2.0f};
constexpr std::array<float, 4> kTemperatures{0.25f, 1.0f, 4.0f, 0.001f};

// The same in double precision.
double softmax_on_host(int row, int i) {
  double largest = -INFINITY, total = 0;
  for (float s : kScores) largest = std::max(largest, double(s / kTemperatures[std::size_t(row)]));
  for (float s : kScores) total += std::exp(double(s / kTemperatures[std::size_t(row)]) - largest);
  return std::exp(double(kScores[std::size_t(i)] / kTemperatures[std::size_t(row)]) - largest) / total;
}

int main() try {
  const Device device = Device::best();
  const Stream stream(device);
  constexpr int kRows = int(kTemperatures.size());

  std::vector<float> scores;
  for (float t : kTemperatures)
    for (float s : kScores) scores.push_back(s / t);
  Buffer<float> x(device, scores.size()), y(device, scores.size());
  x.upload(scores);
  lib::softmax<float>(stream, {x, {kRows, kClasses}}, {y, {kRows, kClasses}});
  const std::vector<float> p = y.to_vector();

  std::printf("softmax of six scores on %s\n\n%11s", device.name().c_str(), "score");
  for (float t : kTemperatures) std::printf("   temperature %-12g", double(t));
  std::printf("\n");
  double worst = 0;
  for (int i = 0; i < kClasses; ++i) {
    std::printf("%s %7.1f", kNames[std::size_t(i)], double(kScores[std::size_t(i)]));
    for (int row = 0; row < kRows; ++row) {
      const double share = double(p[std::size_t(row * kClasses + i)]);
      std::printf("   %.3f %-18s", share, std::string(std::size_t(std::lround(18 * share)), '#').c_str());
      worst = std::max(worst, std::abs(share - softmax_on_host(row, i)));
    }
    std::printf("\n");
  }

  const bool ok = worst < 1e-6;
  std::printf("\n%s: probabilities are within %.0e of the host's; the highest score wins at every temperature\n",
              ok ? "ok" : "WRONG RESULT", std::max(worst, 1e-9));
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
