#include "runtime/image/ptx_line.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

namespace kiln::rt {
namespace {

std::string_view trimmed(std::string_view s) {
  const auto first = s.find_first_not_of(" \t");
  return first == s.npos ? std::string_view{} : s.substr(first, s.find_last_not_of(" \t\r") - first + 1);
}

/// The first `count` lines.
std::vector<std::string_view> lines_of(std::string_view text, int count) {
  std::vector<std::string_view> lines;
  while (!text.empty() && static_cast<int>(lines.size()) < count) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string inline_ptx_place(const std::string& ptx, int line) {
  const std::vector<std::string_view> lines = lines_of(ptx, line);
  if (static_cast<int>(lines.size()) < line) return {};
  for (std::size_t i = lines.size(); i-- > 1;) {
    if (lines[i] == "// end inline asm" && i + 1 != lines.size()) return {};
    if (lines[i - 1] != "// begin inline asm") continue;
    // A statement of the compiler's own begins with an instruction.
    return lines[i].starts_with("// ") ? std::string(lines[i].substr(3)) : std::string{};
  }
  return {};
}

std::string blamed_place(const std::string& log, const std::string& ptx) {
  // ptxas says "line 12", the simulator "ptx:12".
  for (const std::string_view word : {"line ", "ptx:"})
    for (auto at = log.find(word); at != log.npos; at = log.find(word, at + 1)) {
      int line = 0;
      for (auto i = at + word.size(); i < log.size() && std::isdigit(static_cast<unsigned char>(log[i])); ++i)
        line = std::min(10 * line + (log[i] - '0'), 100000000);
      if (line == 0) continue;
      if (const std::string place = inline_ptx_place(ptx, line); !place.empty()) return place + ": error: inline_ptx: ";
    }
  return {};
}

}  // namespace kiln::rt
