// Why a transpose wants tiles: memory moves sectors of 32 bytes, and one side of y[c, r] = x[r, c] runs across them.
//
// Two naive kernels, one that reads along rows and writes along columns, one the other way round, touch a whole sector
// for each element on one side. lib::transpose moves squares through shared memory: whole sectors on both sides, and no
// two threads in the same bank at once. The simulator counts; the results are checked on the device found as well.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <cstdio>
#include <functional>
#include <vector>

using namespace kiln;

constexpr std::int64_t kRows = 256, kCols = 512, kBlock = 1024;

// Element i of x, in its order.
constinit auto rows_to_columns = kernel("rows_to_columns", [](In<float> x, Out<float> y, Int rows, Int cols) {
  Tile i = program_id(0) * kBlock + arange(kBlock);
  store(y + (i % cols * rows + i / cols), load(x + i));
});
// Element i of y, in its order.
constinit auto columns_to_rows = kernel("columns_to_rows", [](In<float> x, Out<float> y, Int rows, Int cols) {
  Tile i = program_id(0) * kBlock + arange(kBlock);
  store(y + i, load(x + (i % rows * cols + i / rows)));
});

using Launch = std::function<void(const Stream&, Buffer<float>&, Buffer<float>&)>;
const std::vector<std::pair<const char*, Launch>>& plans() {
  static const std::vector<std::pair<const char*, Launch>> all{
      {"reads along rows",
       [](const Stream& s, Buffer<float>& x, Buffer<float>& y) {
         rows_to_columns.launch(s, kRows * kCols / kBlock, x, y, kRows, kCols);
       }},
      {"writes along rows",
       [](const Stream& s, Buffer<float>& x, Buffer<float>& y) {
         columns_to_rows.launch(s, kRows * kCols / kBlock, x, y, kRows, kCols);
       }},
      {"lib::transpose",
       [](const Stream& s, Buffer<float>& x, Buffer<float>& y) {
         lib::transpose<float>(s, {x, {kRows, kCols}}, {y, {kCols, kRows}});
       }},
  };
  return all;
}

// Runs a plan, says whether y is right, and gives what was counted.
Counters run(const Device& device, const Launch& launch, bool& right) {
  const Stream stream(device);
  std::vector<float> host(kRows * kCols);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = float(i);
  Buffer<float> x(device, host.size()), y(device, host.size());
  x.upload(host);
  device.reset_counters();
  launch(stream, x, y);
  const std::vector<float> got = y.to_vector();
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t c = 0; c < kCols; ++c)
      right = right && got[std::size_t(c * kRows + r)] == host[std::size_t(r * kCols + c)];
  return device.counters();
}

int main() try {
  const Device device = Device::best(), simulator = Device::simulator();
  std::printf("transpose of %lld x %lld f32 on %s\n\n", static_cast<long long>(kRows), static_cast<long long>(kCols),
              device.name().c_str());
  std::printf("%-18s %18s %18s %15s %15s\n", "", "sectors read", "sectors written", "shared accesses",
              "bank conflicts");
  bool ok = true;
  const double least = 4.0 * kRows * kCols / 32;
  for (const auto& [name, launch] : plans()) {
    run(device, launch, ok);
    const Counters c = run(simulator, launch, ok);
    std::printf("%-18s %8llu = %.2f x %10llu = %.2f x %15llu %15llu\n", name,
                static_cast<unsigned long long>(c.global_sectors_read), double(c.global_sectors_read) / least,
                static_cast<unsigned long long>(c.global_sectors_written), double(c.global_sectors_written) / least,
                static_cast<unsigned long long>(c.shared_accesses), static_cast<unsigned long long>(c.bank_conflicts));
  }
  std::printf("\n%s: all three give the same matrix; 1.00 x is one touch of each sector\n", ok ? "ok" : "WRONG RESULT");
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
