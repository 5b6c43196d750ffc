// Order matters: the sum of n times 0.1, added in three ways.
//
// A running sum in f16 stops where an addend is less than half the distance of neighbouring numbers: at 256, whatever
// follows. In f32 it drifts, because every addition rounds at the size of the whole sum. A tree adds numbers of like
// size, so that its error grows with the number of levels only: that is how lib::sum_all, like every sum of a tile,
// adds.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace kiln;

int main() try {
  const Device device = Device::best();
  const Stream stream(device);
  const float addend = 0.1f;

  std::printf("n times %.8f on %s\n\n%9s %14s %14s %14s %14s %24s\n", double(addend), device.name().c_str(), "n",
              "running, f16", "running, f32", "lib::sum_all", "exact", "relative error of f32s");
  double worst = 0, drift = 0;
  for (std::int64_t n : {100, 10'000, 1'000'000, 4'000'000}) {
    Buffer<float> x(device, std::size_t(n));
    Buffer<float> out(device, 1);
    x.upload(std::vector<float>(std::size_t(n), addend));
    lib::sum_all<float>(stream, {x, {n}}, {out, {1}});
    const float tree = out.to_vector()[0];

    f16 narrow(0.f);
    float running = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      narrow = f16(float(narrow) + addend);
      running += addend;
    }
    const double exact = double(addend) * double(n);
    const double running_error = std::abs(double(running) / exact - 1), error = std::abs(double(tree) / exact - 1);
    std::printf("%9lld %14.2f %14.2f %14.2f %14.2f %11.0e and %.0e\n", static_cast<long long>(n), double(float(narrow)),
                double(running), double(tree), exact, running_error, error);
    worst = std::max(worst, error);
    drift = std::max(drift, running_error);
  }
  const bool ok = worst < 1e-6;
  std::printf("\n%s: the tree is never more than %.0e off, the running sum up to %.0e\n", ok ? "ok" : "WRONG RESULT",
              worst, drift);
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
