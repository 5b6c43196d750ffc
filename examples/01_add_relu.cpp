// c = relu(a + b), once as two kernels with a temporary array between them and once as one fused kernel.
//
// Such kernels take as long as their memory traffic. Two kernels move five arrays (read a and b, write the sum; read
// the sum, write c), the fused one moves three. The program runs both on the device found, checks them against the host
// and prints what was counted: launches by the runtime, bytes by the simulator or from the compiler's report of each
// kernel.
//
//   01_add_relu          a table and one sentence
//   01_add_relu --json   one JSON object a row
#include <kiln/kiln.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

using namespace kiln;

constexpr int kBlock = 1024;  // elements one program computes

constinit auto add = kernel("add", [](In<float> a, In<float> b, Out<float> sum, Int n, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
  store(sum + i, load(a + i, mask) + load(b + i, mask), mask);
});

constinit auto relu_only = kernel("relu", [](In<float> x, Out<float> y, Int n, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
  store(y + i, relu(load(x + i, mask)), mask);
});

constinit auto add_relu = kernel("add_relu", [](In<float> a, In<float> b, Out<float> c, Int n, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
  store(c + i, relu(load(a + i, mask) + load(b + i, mask)), mask);
});

struct Row {
  std::string variant, kernels;
  std::size_t n = 0;
  std::uint64_t launches = 0, bytes = 0, sectors = 0;
  double us = -1;  // of the device; -1 on the simulator, which has no clock
  bool ok = false;

  double transfers() const { return static_cast<double>(bytes) / (4.0 * static_cast<double>(n)); }
  double gbs() const { return static_cast<double>(bytes) / us / 1e3; }
};

// The host's inputs and the result they must give.
struct Problem {
  std::vector<float> a, b, expected;

  explicit Problem(std::size_t n) : a(n), b(n), expected(n) {
    std::uint32_t state = 1;
    const auto next = [&] {
      return static_cast<float>(static_cast<std::int32_t>(state = state * 1664525u + 1013904223u)) * 0x1p-31f;
    };
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = next(), b[i] = next();
      expected[i] = std::max(a[i] + b[i], 0.0f);
    }
  }
};

// Bytes one run moves, by the compiler's report of each kernel: of a whole program, so n / kBlock times as many.
std::uint64_t reported_bytes(const std::vector<rt::KernelReport>& reports, std::size_t n) {
  double bytes = 0;
  for (const rt::KernelReport& r : reports)
    bytes += (r.bytes_read_per_program + r.bytes_written_per_program) * static_cast<double>(n) / kBlock;
  return static_cast<std::uint64_t>(bytes + 0.5);
}

// Microseconds of one run: median over replays of a graph of ten, so that the host's launches do not count.
double time_us(const Stream& stream, const std::function<void()>& run) {
  constexpr int kRuns = 10;
  const Graph graph = Graph::capture(stream, [&] {
    for (int i = 0; i < kRuns; ++i) run();
  });
  Event begin(stream.device()), end(stream.device());
  std::vector<double> us;
  for (int i = 0; i < 15; ++i) {
    begin.record(stream);
    graph.replay(stream);
    end.record(stream);
    end.synchronize();
    us.push_back(Event::elapsed_us(begin, end) / kRuns);
  }
  std::nth_element(us.begin(), us.begin() + 7, us.end());
  return us[7];
}

// Runs one variant once under the counters, checks its result, and times it where there is a clock.
void measure(Row& row, const Stream& stream, const std::vector<rt::KernelReport>& reports, const Buffer<float>& c,
             const Problem& problem, const std::function<void()>& run) {
  const Device device = stream.device();
  device.reset_counters();
  run();
  stream.synchronize();
  const Counters counted = device.counters();
  row.launches = counted.launches;
  row.sectors = counted.global_sectors_read + counted.global_sectors_written;
  row.bytes =
      device.is_simulator() ? counted.global_bytes_read + counted.global_bytes_written : reported_bytes(reports, row.n);
  row.ok = c.to_vector() == problem.expected;
  if (!device.is_simulator()) row.us = time_us(stream, run);
}

std::vector<Row> compare(const Stream& stream, std::size_t n) {
  const Device device = stream.device();
  const Problem problem(n);
  Buffer<float> a(device, n), b(device, n), sum(device, n), c(device, n);
  a.upload(problem.a);
  b.upload(problem.b);
  const auto programs = cdiv(n, kBlock);

  Row eager{.variant = "eager", .kernels = "add, relu", .n = n};
  c.fill_bytes(0xff);
  measure(
      eager, stream,
      {add.image(device, a, b, sum, n, Const(kBlock)).report, relu_only.image(device, sum, c, n, Const(kBlock)).report},
      c, problem, [&] {
        add.launch(stream, programs, a, b, sum, n, Const(kBlock));
        relu_only.launch(stream, programs, sum, c, n, Const(kBlock));
      });

  Row fused{.variant = "fused", .kernels = "add_relu", .n = n};
  c.fill_bytes(0xff);
  measure(fused, stream, {add_relu.image(device, a, b, c, n, Const(kBlock)).report}, c, problem,
          [&] { add_relu.launch(stream, programs, a, b, c, n, Const(kBlock)); });
  return {eager, fused};
}

void print_json(const Row& r) {
  std::printf(
      "{\"variant\":\"%s\",\"n\":%zu,\"launches\":%llu,\"transfers\":%g,\"bytes\":%llu,\"us\":", r.variant.c_str(), r.n,
      static_cast<unsigned long long>(r.launches), r.transfers(), static_cast<unsigned long long>(r.bytes));
  if (r.us < 0) std::printf("null");
  else std::printf("%.3f", r.us);
  std::printf(",\"ok\":%s}\n", r.ok ? "true" : "false");
}

void print_table(const Device& device, const std::vector<Row>& rows) {
  std::printf("c = relu(a + b) on %s\n\n", device.name().c_str());
  std::printf("%12s  %-6s %-10s %9s %16s %14s %s\n", "n", "", "kernels", "launches", "array transfers", "bytes",
              rows[0].us < 0 ? "  32-byte sectors" : "  GPU time us     GB/s");
  for (const Row& r : rows) {
    std::printf("%12zu  %-6s %-10s %9llu %16g %14llu ", r.n, r.variant.c_str(), r.kernels.c_str(),
                static_cast<unsigned long long>(r.launches), r.transfers(), static_cast<unsigned long long>(r.bytes));
    if (r.us < 0) std::printf("%17llu", static_cast<unsigned long long>(r.sectors));
    else std::printf("%13.2f %8.0f", r.us, r.gbs());
    std::printf("  %s\n", r.ok ? "ok" : "WRONG RESULT");
  }
}

// What the largest size shows, in one sentence.
void print_sentence(const Row& eager, const Row& fused) {
  if (fused.us < 0)
    std::printf(
        "\nFused into one kernel, the same result needs %g array transfers instead of %g: %.0f %% less memory traffic, "
        "which is what the time of such kernels is made of on a GPU.\n",
        fused.transfers(), eager.transfers(), 100 * (1 - fused.transfers() / eager.transfers()));
  else
    std::printf(
        "\nFor %zu numbers the fused kernel needs %.1f us where the two kernels need %.1f us: it is %.2f times as "
        "fast, because it moves %g arrays through memory instead of %g.\n",
        fused.n, fused.us, eager.us, eager.us / fused.us, fused.transfers(), eager.transfers());
}

int main(int argc, char** argv) try {
  const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) return std::fprintf(stderr, "usage: 01_add_relu [--json]\n"), 2;
  const Device device = Device::best();
  const Stream stream(device);
  std::vector<std::size_t> sizes{100, 1'000'000, 10'000'000};
  if (!device.is_simulator()) sizes.push_back(100'000'000);

  std::vector<Row> rows;
  for (std::size_t n : sizes)
    for (const Row& row : compare(stream, n)) rows.push_back(row);

  if (json) {
    for (const Row& row : rows) print_json(row);
  } else {
    print_table(device, rows);
    print_sentence(rows[rows.size() - 2], rows.back());
  }
  return std::all_of(rows.begin(), rows.end(), [](const Row& r) { return r.ok; }) ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
