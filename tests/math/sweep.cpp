// kiln_math_sweep [stride] [name…]: the largest error of every math function over every stride-th float (default: all
// 2^32, some minutes a function), with exact approximations and, where it uses one, with the worst in either direction.
#include <cstdio>
#include <cstdlib>

#include "tests/math/functions.h"

using namespace kiln::test;

namespace {

void report(const MathFunction& f, std::uint64_t stride) {
  const char* unit = f.metric == Metric::Ulp ? "ulp" : f.metric == Metric::Rel ? "rel" : "abs";
  std::printf("%-16s %s bound %-9.4g", f.name.c_str(), unit, f.bound);
  for (double bias : {0.0, -1.0, 1.0}) {
    Worst w = sweep(f, stride, bias);
    std::printf("  %.4g at %a", w.error, static_cast<double>(w.at));
    if (!w.approximated) break;
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t stride = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1;
  for (const auto* rows : {&accurate_functions(), &fast_functions()})
    for (const MathFunction& f : *rows) {
      bool wanted = argc <= 2;
      for (int i = 2; i < argc; ++i) wanted |= f.name == argv[i];
      if (wanted) report(f, stride);
    }
}
