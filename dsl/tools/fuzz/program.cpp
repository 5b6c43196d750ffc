#include "dsl/tools/fuzz/program.h"

#include <fmt/format.h>

#include <sstream>

#include "backend/ir/text.h"
#include "runtime/base/error.h"

namespace kiln::fuzz {

std::string Program::text() const {
  std::string s = fmt::format("// seed {}\n// programs {} {} {}\n// warps {}\n// arguments", seed, programs[0],
                              programs[1], programs[2], options.num_warps);
  for (std::uint64_t a : args) s += fmt::format(" {}", a);
  if (options.cluster > 1) s += fmt::format("\n// cluster {}", options.cluster);
  for (const Slot& slot : slots)
    s += fmt::format("\n// slot {} {} {}", name(slot.dtype), int(slot.accuracy.bound), slot.accuracy.n);
  return s + "\n" + ir::print(function, {.locations = false});
}

Program parse(const std::string& text, const std::string& origin) {
  Program p;
  bool arguments = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string slashes, key;
    words >> slashes >> key;
    if (slashes != "//") continue;
    if (key == "seed") {
      words >> p.seed;
    } else if (key == "programs") {
      words >> p.programs[0] >> p.programs[1] >> p.programs[2];
    } else if (key == "warps") {
      words >> p.options.num_warps;
    } else if (key == "cluster") {
      words >> p.options.cluster;
    } else if (key == "arguments") {
      arguments = true;
      for (std::uint64_t a; words >> a;) p.args.push_back(a);
      words.clear();
    } else if (key == "slot") {
      std::string dtype;
      int bound = 0;
      Slot slot;
      words >> dtype >> bound >> slot.accuracy.n;
      slot.accuracy.bound = ir::Bound(bound);
      slot.dtype = dtype == "f16" ? DType::f16 : dtype == "bf16" ? DType::bf16 : DType::f32;
      p.slots.push_back(slot);
    } else {
      continue;
    }
    if (words.fail()) throw UserError(fmt::format("{}: cannot read '{}'", origin, line));
  }
  p.function = ir::parse(text, origin);
  if (!arguments || p.args.size() != p.function.params.size())
    throw UserError(
        fmt::format("{}: {} arguments for {} parameters; a program of kiln fuzz has a line '// arguments …'", origin,
                    p.args.size(), p.function.params.size()));
  return p;
}

}  // namespace kiln::fuzz
