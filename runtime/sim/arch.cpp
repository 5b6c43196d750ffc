#include "runtime/sim/arch.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace kiln::rt::sim {
namespace {

struct Known {
  int number;
  int ptx;                 // the first version that has it, 10·major + minor
  std::size_t shared_kib;  // of a multiprocessor; one KiB a block belongs to the system
};
constexpr Known kKnown[] = {{80, 70, 164},  {86, 71, 100},  {87, 74, 164},  {89, 78, 100},
                            {90, 78, 228},  {100, 86, 228}, {101, 86, 228}, {103, 88, 228},
                            {110, 90, 228}, {120, 87, 100}, {121, 88, 100}};

}  // namespace

Arch Arch::parse(std::string_view text) {
  for (const Known& k : kKnown)
    for (const char suffix : {'\0', 'a', 'f'}) {
      const Arch a{k.number, suffix};
      if (a.name() == text) return a;
    }
  std::string known;
  for (const Known& k : kKnown) known += fmt::format("{}sm_{}", known.empty() ? "" : ", ", k.number);
  throw DeviceError(fmt::format("unknown target '{}': the simulator knows {}, with 'a' or 'f' behind", text, known));
}

std::string Arch::name() const { return fmt::format("sm_{}{}", number, suffix ? std::string(1, suffix) : ""); }

bool Arch::runs(const Arch& code) const {
  if (code.suffix == 'a') return suffix == 'a' && number == code.number;
  if (code.suffix == 'f') return suffix != 0 && number / 10 == code.number / 10 && number >= code.number;
  return number >= code.number;
}

int Arch::least_ptx() const {
  for (const Known& k : kKnown)
    if (k.number == number) return number == 90 && suffix ? 80 : suffix == 'f' ? std::max(k.ptx, 88) : k.ptx;
  return 0;
}

std::size_t Arch::max_shared_bytes() const {
  for (const Known& k : kKnown)
    if (k.number == number) return (k.shared_kib - 1) << 10;
  return 0;
}

}  // namespace kiln::rt::sim
