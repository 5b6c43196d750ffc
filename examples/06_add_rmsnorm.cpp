// The step between two layers of a transformer: sum = x + residual, y = rmsnorm(sum). Fused, with two outputs.
//
// Added and normalised apart, the sum is written and read back at once: five passes over an array. lib::add_rmsnorm
// normalises the sum while it is in registers, and writes it over the residual: four. Bytes and 32-byte sectors are
// those that the simulator counts; results are checked on the device found as well.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace kiln;

constexpr std::int64_t kRows = 64, kCols = 2048, kElements = kRows * kCols;

constinit auto add_rows = kernel("add_rows", [](In<bf16> x, InOut<bf16> residual, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK);
  store(residual + i, (load(x + i).cast(f32) + load(residual + i).cast(f32)).cast<bf16>());
});

struct Run {
  std::vector<bf16> sum, y;
  Counters counted;
};

Run run(const Device& device, bool fused, const std::vector<bf16>& x, const std::vector<bf16>& r) {
  const Stream stream(device);
  Buffer<bf16> in(device, kElements), residual(device, kElements), y(device, kElements), weight(device, kCols);
  in.upload(x);
  residual.upload(r);
  weight.upload(std::vector<bf16>(kCols, bf16(1.f)));
  device.reset_counters();
  const auto matrix = [](Buffer<bf16>& b) { return lib::Matrix<bf16>(b, {kRows, kCols}); };
  if (fused) {
    lib::add_rmsnorm<bf16>(stream, {in, {kRows, kCols}}, {residual, {kRows, kCols}}, {weight, {kCols}},
                           matrix(residual), matrix(y));
  } else {
    add_rows.launch(stream, kElements / 1024, in, residual, 1024);
    lib::rmsnorm<bf16>(stream, {residual, {kRows, kCols}}, {weight, {kCols}}, matrix(y));
  }
  return {residual.to_vector(), y.to_vector(), device.counters()};
}

void print(const char* plan, const Counters& c) {
  const double bytes = double(c.global_bytes_read + c.global_bytes_written);
  std::printf("%-22s %8llu %12.0f %10.2f %10llu\n", plan, static_cast<unsigned long long>(c.launches), bytes,
              bytes / (2.0 * kElements),
              static_cast<unsigned long long>(c.global_sectors_read + c.global_sectors_written));
}

int main() try {
  std::vector<bf16> x, r;
  for (int i = 0; i < kElements; ++i) {
    x.push_back(bf16(float(i * 7 % 23 - 11) / 4));
    r.push_back(bf16(float(i * 5 % 31 - 15) / 2));
  }
  const Device device = Device::best();
  const Run here = run(device, true, x, r);
  double worst = 0;
  for (std::int64_t row = 0; row < kElements; row += kCols) {
    double squares = 0;
    const auto sum_at = [&](std::int64_t i) {
      return double(float(bf16(float(x[std::size_t(row + i)]) + float(r[std::size_t(row + i)]))));
    };
    for (std::int64_t i = 0; i < kCols; ++i) squares += sum_at(i) * sum_at(i) / double(kCols);
    for (std::int64_t i = 0; i < kCols; ++i) {
      const double want = sum_at(i) / std::sqrt(squares + 1e-6);
      worst =
          std::max(worst, std::abs(double(float(here.y[std::size_t(row + i)])) - want) / std::max(1.0, std::abs(want)));
      if (double(float(here.sum[std::size_t(row + i)])) != sum_at(i)) worst = INFINITY;
    }
  }

  std::printf("add + rmsnorm of %lld x %lld bf16 on %s\n\n", static_cast<long long>(kRows),
              static_cast<long long>(kCols), device.name().c_str());
  const Device simulator = Device::simulator();
  std::printf("%-22s %8s %12s %10s %10s\n", "", "launches", "bytes", "arrays", "sectors");
  print("add, then rmsnorm", run(simulator, false, x, r).counted);
  print("lib::add_rmsnorm", run(simulator, true, x, r).counted);
  std::printf("\nOne of the arrays is the weight, which every row reads: from the L2 cache, not from memory.\n");
  const bool ok = worst < 0x1p-8;
  std::printf("\n%s: the sum is exact, its norm within %.0e of the host's\n", ok ? "ok" : "WRONG RESULT", worst);
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
