// Dropout without a stored mask: what is dropped is a function of seed and position.
//
// Each line shows the first 48 elements of 10000 ones under another seed: '.' was dropped, '#' kept (and divided by
// 1 - p, so that the mean stays 1). The backward pass calls lib::dropout with the gradient and the same seed, and drops
// the same elements: a mask of one byte an element is neither written nor read.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace kiln;

int main() try {
  const Device device = Device::best();
  const Stream stream(device);
  constexpr std::int64_t n = 10'000;
  constexpr double p = 0.3;
  std::vector<float> gradient(n);
  for (std::size_t i = 0; i < n; ++i) gradient[i] = float(i + 1);
  Buffer<float> ones(device, n), y(device, n), dy(device, n), dx(device, n);
  ones.upload(std::vector<float>(n, 1));
  dy.upload(gradient);

  std::printf("dropout with p = %g on %s\n\n%4s  %-48s %9s %7s\n", p, device.name().c_str(), "seed", "first elements",
              "kept", "mean");
  bool same = true;
  double farthest = 0;
  const float scale = float(1 / (1 - p));
  for (std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 1}) {
    lib::dropout<float>(stream, {ones, {n}}, {y, {n}}, p, seed);
    lib::dropout<float>(stream, {dy, {n}}, {dx, {n}}, p, seed);
    const std::vector<float> forward = y.to_vector(), backward = dx.to_vector();
    std::string picture;
    double kept = 0, mean = 0;
    for (std::size_t i = 0; i < n; ++i) {
      kept += forward[i] != 0 ? 1.0 / n : 0;
      mean += double(forward[i]) / n;
      if (i < 48) picture += forward[i] != 0 ? '#' : '.';
      same = same && (forward[i] == 0 || forward[i] == scale) && backward[i] == gradient[i] * forward[i];
    }
    std::printf("%4llu  %s %8.2f%% %7.3f\n", static_cast<unsigned long long>(seed), picture.c_str(), 100 * kept, mean);
    farthest = std::max(farthest, std::abs(kept - (1 - p)));
  }
  const bool ok = same && farthest < 5 * std::sqrt(p * (1 - p) / n);
  std::printf("\n%s: the gradient lost the same elements as its input, every time\n", ok ? "ok" : "WRONG RESULT");
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
