// A running sum turns steps into a path: y[c] = x[0] + … + x[c]. The picture is a random walk of 72 steps.
//
// One after the other that is 72 additions that wait for each other. A scan combines neighbours, then pairs, then
// fours: 7 levels, all threads at work; lib::cumsum scans a row in blocks of up to 2048 and carries the sum from block
// to block. The walk is one row of 3 that go in one launch.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

using namespace kiln;

constexpr std::int64_t kRows = 3, kSteps = 72;

int main() try {
  const Device device = Device::best();
  const Stream stream(device);
  std::vector<float> steps;
  std::uint32_t state = 5;
  for (int i = 0; i < kRows * kSteps; ++i) {
    state = state * 1664525u + 1013904223u;
    steps.push_back(float(int(state >> 30)) - 1.25f);  // -1.25, -0.25, 0.75 or 1.75
  }
  Buffer<float> x(device, steps.size()), y(device, steps.size());
  x.upload(steps);
  lib::cumsum<float>(stream, {x, {kRows, kSteps}}, {y, {kRows, kSteps}});
  const std::vector<float> walk = y.to_vector();

  bool ok = true;
  for (std::int64_t r = 0; r < kRows; ++r) {
    float sum = 0;  // quarters, exact in any order
    for (std::int64_t c = 0; c < kSteps; ++c) {
      sum += steps[std::size_t(r * kSteps + c)];
      ok = ok && walk[std::size_t(r * kSteps + c)] == sum;
    }
  }

  const auto [low, high] = std::minmax_element(walk.begin(), walk.begin() + kSteps);
  constexpr int kLines = 12;
  const float height = (*high - *low) / kLines;
  std::printf("a walk of %lld steps on %s\n\n", static_cast<long long>(kSteps), device.name().c_str());
  for (int line = kLines; line >= 0; --line) {
    std::string drawn(kSteps, ' ');
    for (std::size_t c = 0; c < kSteps; ++c)
      if (int((walk[c] - *low) / height + 0.5f) == line) drawn[c] = '*';
    std::printf("%7.2f |%s\n", double(*low + float(line) * height), drawn.c_str());
  }
  std::printf("        +%s\n", std::string(kSteps, '-').c_str());
  std::printf("\n%s: the walk ends at %.2f, exactly where the host's does\n", ok ? "ok" : "WRONG RESULT",
              double(walk[kSteps - 1]));
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
