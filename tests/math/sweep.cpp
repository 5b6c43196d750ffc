// kiln_math_sweep [stride] [name…]: the largest error of every math function over every stride-th of all 2^32 floats,
// and of pow and division over 2^32 pairs that cover the plane evenly and all pairs of special values, on all cores.
// One line a function: its bound, the largest error and where; exit status 1 if a bound is broken. About 2 CPU hours in
// all.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tests/math/functions.h"

using namespace kiln::test;

namespace {

constexpr std::uint64_t kAll = std::uint64_t{1} << 32, kPart = std::uint64_t{1} << 22;

/// The sweep in parts, each taken by the next free thread.
template <class Function>
Worst sweep_on_all_cores(const Function& f, std::uint64_t stride) {
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  Worst worst;
  auto work = [&] {
    for (std::uint64_t first; (first = next.fetch_add(kPart * stride)) < kAll;) {
      const Worst w = sweep(f, {first, std::min(kAll, first + kPart * stride), stride});
      const std::lock_guard lock(mutex);
      if (w.error > worst.error) worst = w;
    }
  };
  std::vector<std::thread> threads(std::max(1u, std::thread::hardware_concurrency()));
  for (std::thread& t : threads) t = std::thread(work);
  for (std::thread& t : threads) t.join();
  return worst;
}

/// Whether every wanted row keeps its bound.
template <class Function>
bool report(const std::vector<Function>& rows, std::uint64_t stride, const std::vector<std::string>& wanted) {
  bool kept = true;
  for (const Function& f : rows) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), f.name) == wanted.end()) continue;
    const Worst w = sweep_on_all_cores(f, stride);
    const char* unit = f.metric == Metric::Ulp ? "ulp" : f.metric == Metric::Rel ? "rel" : "abs";
    std::printf("%-16s %s bound %-9.4g worst %-9.4g at %a", f.name.c_str(), unit, f.bound, w.error, double{w.x});
    if constexpr (std::is_same_v<Function, PairFunction>) std::printf(", %a", double{w.y});
    std::printf(", approximations %+.0f%s\n", w.bias, w.error > f.bound ? "  BROKEN" : "");
    std::fflush(stdout);
    kept &= w.error <= f.bound;
  }
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t stride = std::max(1ull, argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1ull);
  const std::vector<std::string> wanted(argv + std::min(argc, 2), argv + argc);
  bool kept = report(accurate_functions(), stride, wanted);
  kept &= report(fast_functions(), stride, wanted);
  kept &= report(pair_functions(), stride, wanted);
  return kept ? 0 : 1;
}
