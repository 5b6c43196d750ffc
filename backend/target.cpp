// The table of targets.
#include "backend/target.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace kiln {
namespace {

constexpr int kNewestPtx = 90;  // of LLVM 22's NVPTX printer, and what the simulator takes

struct Row {
  const char* arch;
  int compute, min_ptx, sms, max_threads_per_sm;
  std::size_t max_shared_bytes;
};
// sms is that of the chip the architecture is best known for; a device overrules it with its own count.
constexpr Row kRows[] = {
    {"sm_80", 80, 70, 108, 2048, 166912},    {"sm_86", 86, 71, 82, 1536, 101376},
    {"sm_89", 89, 78, 128, 1536, 101376},    {"sm_90a", 90, 80, 132, 2048, 232448},
    {"sm_100a", 100, 86, 148, 2048, 232448}, {"sm_120a", 120, 87, 170, 1536, 101376},
};

const Row* row_of(const std::string& arch) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return arch == r.arch; });
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

int Target::compute() const {
  const Row* row = row_of(arch);
  KILN_CHECK(row != nullptr, "unknown target " + arch);
  return row->compute;
}

Target target_named(const std::string& arch, int driver_ptx) {
  const Row* row = row_of(arch);
  if (row == nullptr)
    throw UserError(fmt::format("target {} is not known; known targets: {}", arch, fmt::join(known_targets(), ", ")));
  if (driver_ptx != 0 && driver_ptx < row->min_ptx)
    throw UserError(fmt::format("target {} needs PTX ISA {}.{}, the driver takes at most {}.{}; update the driver",
                                arch, row->min_ptx / 10, row->min_ptx % 10, driver_ptx / 10, driver_ptx % 10));
  const int ptx = driver_ptx == 0 ? row->min_ptx : std::min(driver_ptx, kNewestPtx);
  return {arch, ptx, row->sms, row->max_threads_per_sm, row->max_shared_bytes};
}

std::vector<std::string> known_targets() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.arch);
  return names;
}

}  // namespace kiln
