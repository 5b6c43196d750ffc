// Cross-entropy: the loss of a row of scores is -log of the probability that softmax gives to the right class.
//
// Rows of 1000 classes in which the model knows nothing, is sure and right, is sure and wrong. The gradient with
// respect to a score is its probability (minus 1 at the right class), so it pushes up what was right in proportion to
// what was missing. lib::cross_entropy_gradient reads the scores twice and writes the gradient over them: no second
// matrix.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace kiln;

constexpr int kClasses = 1000;
constexpr std::int64_t kRight = 7, kWrong = 400, kIgnored = -100;
struct Row {
  const char* what;
  float right, wrong;  // scores of these two classes; all others have 0
  std::int64_t target;
};
constexpr Row kRows[] = {{"knows nothing", 0, 0, kRight},
                         {"unsure, right", 5, 0, kRight},
                         {"sure, right", 15, 0, kRight},
                         {"sure, wrong", 0, 15, kRight},
                         {"ignored", 0, 15, kIgnored}};
constexpr int kCount = int(std::size(kRows));

int main() try {
  const Device device = Device::best();
  const Stream stream(device);
  std::vector<float> scores(kCount * kClasses, 0);
  std::vector<std::int64_t> targets;
  for (int r = 0; r < kCount; ++r) {
    scores[std::size_t(r * kClasses + kRight)] = kRows[r].right;
    scores[std::size_t(r * kClasses + kWrong)] = kRows[r].wrong;
    targets.push_back(kRows[r].target);
  }
  Buffer<float> logits(device, scores.size()), loss(device, kCount);
  Buffer<std::int64_t> target(device, kCount);
  logits.upload(scores);
  target.upload(targets);
  lib::cross_entropy_gradient<float>(stream, {logits, {kCount, kClasses}}, {target, {kCount}}, {loss, {kCount}}, 1.f,
                                     kIgnored);
  const std::vector<float> gradient = logits.to_vector(), losses = loss.to_vector();

  std::printf("cross-entropy of %d classes on %s\n\n%-15s %9s %22s %22s\n", kClasses, device.name().c_str(),
              "the model", "loss", "gradient at the right", "at the wrong class");
  double worst = 0;
  for (int r = 0; r < kCount; ++r) {
    const auto at = [&](std::int64_t c) { return double(gradient[std::size_t(r * kClasses + c)]); };
    std::printf("%-15s %9.4f %22.5f %22.5f\n", kRows[r].what, double(losses[std::size_t(r)]), at(kRight), at(kWrong));
    const bool counted = kRows[r].target != kIgnored;
    const double total = std::exp(double(kRows[r].right)) + std::exp(double(kRows[r].wrong)) + kClasses - 2;
    const double right = std::exp(double(kRows[r].right)) / total, wrong = std::exp(double(kRows[r].wrong)) / total;
    worst = std::max({worst, std::abs(double(losses[std::size_t(r)]) + (counted ? std::log(right) : 0)),
                      std::abs(at(kRight) - (counted ? right - 1 : 0)), std::abs(at(kWrong) - (counted ? wrong : 0))});
  }
  std::printf("\nIn place the gradient of 8192 tokens and 128256 classes in bf16 saves %.1f GB of memory.\n",
              8192.0 * 128256 * 2 / 1e9);
  const bool ok = worst < 2e-5;
  std::printf("\n%s: losses and gradients are within %.0e of the host's; log(%d) = %.4f\n", ok ? "ok" : "WRONG RESULT",
              worst, kClasses, std::log(double(kClasses)));
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
