#include "runtime/sim/checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace kiln::rt::sim {

Checks Checks::parse(std::string_view text) {
  if (text.empty() || text == "all") return {};
  Checks c{false, false, false};
  if (text == "none") return c;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    if (name == "races") c.races = true;
    else if (name == "uninit") c.uninit = true;
    else if (name == "registers") c.registers = true;
    else
      throw UserError(
          fmt::format("KILN_SIM_CHECK names '{}'; the checks are races, uninit, registers, or all, or none", name));
  }
  return c;
}

}  // namespace kiln::rt::sim
