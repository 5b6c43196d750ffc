// Training, all on the device: a cubic is fitted to a sine, two launches a step.
//
// The kernel `loss_and_gradient` evaluates the polynomial at 64 points and reduces four derivatives and the loss;
// lib::adam_step then moves the four coefficients. The host does nothing but launch, and looks at the loss every now
// and then: the curve is drawn on a logarithmic scale.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace kiln;

constexpr int kPoints = 64, kSteps = 400, kSeen = 25;

// coefficients[4], gradient[4] of the mean square error, loss[1].
constinit auto loss_and_gradient = kernel("loss_and_gradient", [](In<float> x, In<float> target, In<float> coefficients,
                                                                  Out<float> gradient, Out<float> loss) {
  Tile i = arange(kPoints), t = load(x + i), value = load(coefficients + 3) + zeros(f32, {kPoints});
  for (int k = 2; k >= 0; --k) value = value * t + load(coefficients + k);  // a C++ loop: unrolled while tracing
  Tile error = value - load(target + i), power = full(f32, {kPoints}, 2.f / kPoints);
  store(loss, mean(error * error));
  for (int k = 0; k < 4; ++k) {
    store(gradient + k, sum(error * power));
    power = power * t;
  }
});

// The same in double precision: the loss before each step.
std::vector<double> train_on_host(const std::vector<float>& x, const std::vector<float>& target,
                                  const lib::AdamW& how) {
  std::array<double, 4> w{}, m{}, v{};
  std::vector<double> losses;
  for (int step = 1; step <= kSteps; ++step) {
    std::array<double, 4> g{};
    double loss = 0;
    for (std::size_t i = 0; i < kPoints; ++i) {
      const double t = double(x[i]), error = ((w[3] * t + w[2]) * t + w[1]) * t + w[0] - double(target[i]);
      loss += error * error / kPoints;
      for (std::size_t k = 0; k < 4; ++k) g[k] += 2 * error * std::pow(t, double(k)) / kPoints;
    }
    losses.push_back(loss);
    for (std::size_t k = 0; k < 4; ++k) {
      m[k] = how.beta1 * m[k] + (1 - how.beta1) * g[k];
      v[k] = how.beta2 * v[k] + (1 - how.beta2) * g[k] * g[k];
      w[k] *= 1 - how.lr * how.weight_decay;
      w[k] -= how.lr * m[k] / (1 - std::pow(how.beta1, step)) /
              (std::sqrt(v[k] / (1 - std::pow(how.beta2, step))) + how.eps);
    }
  }
  return losses;
}

int main() try {
  const Device device = Device::best();
  const Stream stream(device);
  std::vector<float> points, sine;
  for (int i = 0; i < kPoints; ++i) points.push_back(float(i) / 16 - 2), sine.push_back(std::sin(points.back()));
  Buffer<float> x(device, kPoints), target(device, kPoints), w(device, 4), g(device, 4), m(device, 4), v(device, 4),
      loss(device, 1);
  x.upload(points);
  target.upload(sine);
  for (Buffer<float>* b : {&w, &m, &v}) b->fill_bytes(0);
  const lib::AdamW how{.lr = 0.02, .weight_decay = 0};
  const std::vector<double> expected = train_on_host(points, sine, how);

  std::printf("a cubic learns sin(x) on %s\n\n%5s %10s\n", device.name().c_str(), "step", "loss");
  double worst = 0, last = 0;
  for (int step = 1; step <= kSteps; ++step) {
    loss_and_gradient.launch(stream, 1, x, target, w, g, loss);
    lib::adam_step<float>(stream, {w, {4}}, {g, {4}}, {m, {4}}, {v, {4}}, how, step);
    if ((step - 1) % kSeen != 0 && step != kSteps) continue;
    last = double(loss.to_vector()[0]);
    worst = std::max(worst, std::abs(last / expected[std::size_t(step - 1)] - 1));
    std::printf("%5d %10.2e  %s\n", step, last,
                std::string(std::size_t(std::max(0.0, 12 * std::log10(last) + 60)), '#').c_str());
  }
  const std::vector<float> c = w.to_vector();
  const bool ok = worst < 1e-2 && last < 1e-3;
  std::printf("\n%s: %.3f x %+.3f x^3 is the host's fit too (losses within %.0e)\n", ok ? "ok" : "WRONG RESULT",
              double(c[1]), double(c[3]), worst);
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
