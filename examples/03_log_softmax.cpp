// Why log_softmax is a function of its own: log(softmax(x)) loses what it should keep.
//
// A class 200 below the best one has probability e^-200 = 1e-87, which f32 cannot hold: it becomes 0 and its logarithm
// -inf, and a loss that holds it is inf. log_softmax never leaves the logarithms: x - max - log Σ e^(x - max). The
// program computes both on the device, the first as two kernels, and prints them beside the exact values.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace kiln;

constinit auto logarithm = kernel("logarithm", [](In<float> x, Out<float> y, Int n, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
  store(y + i, log(load(x + i, mask, 1)), mask);
});

int main() try {
  const Device device = Device::best();
  const Stream stream(device);
  const std::vector<float> scores{0, -1e-3f, -10, -80, -100, -104, -200, -1000};
  const auto n = std::int64_t(scores.size());

  Buffer<float> x(device, scores.size()), p(device, scores.size()), naive(device, scores.size()),
      direct(device, scores.size());
  x.upload(scores);
  lib::softmax<float>(stream, {x, {1, n}}, {p, {1, n}});
  logarithm.launch(stream, 1, p, naive, n, 64);
  lib::log_softmax<float>(stream, {x, {1, n}}, {direct, {1, n}});
  const std::vector<float> in_two_steps = naive.to_vector(), in_one = direct.to_vector();

  double total = 0;
  for (float s : scores) total += std::exp(double(s));
  std::printf("log softmax on %s\n\n%10s %16s %18s %16s\n", device.name().c_str(), "score", "log(softmax(x))",
              "log_softmax(x)", "exact");
  double worst = 0;
  int lost = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double exact = double(scores[i]) - std::log(total);
    const bool wrong = !(std::abs(double(in_two_steps[i]) - exact) < 1e-4 * std::max(1.0, std::abs(exact)));
    std::printf("%10g %16.7g %18.7g %16.7g%s\n", double(scores[i]), double(in_two_steps[i]), double(in_one[i]), exact,
                wrong ? "   <- lost" : "");
    lost += wrong;
    worst = std::max(worst, std::abs(double(in_one[i]) - exact) / std::max(1.0, std::abs(exact)));
  }
  const bool ok = worst < 1e-6 && lost > 0;
  std::printf("\n%s: log_softmax is within %.0e everywhere; log(softmax(x)) lost %d of %zu values\n",
              ok ? "ok" : "WRONG RESULT", worst, lost, scores.size());
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
