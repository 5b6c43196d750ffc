#include "runtime/tools/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/profile/source.h"

namespace kiln::rt::tools {
namespace {

std::string triple(const std::array<std::uint32_t, 3>& v) { return fmt::format("({}, {}, {})", v[0], v[1], v[2]); }

/// "   12 |   store(a, x);" and a mark under the words.
std::string quoted(const std::string& line, std::uint32_t number) {
  const std::size_t from = std::min(line.find_first_not_of(" \t"), line.size());
  std::size_t to = line.find_last_not_of(" \t");
  to = to == line.npos ? from : to + 1;
  std::string under = line.substr(0, from);
  for (char& c : under)
    if (c != '\t') c = ' ';
  return fmt::format("{:>6} | {}\n       | {}^{}\n", number, line, under,
                     std::string(to > from + 1 ? to - from - 1 : 0, '~'));
}

/// "race: ", unless the sentence says it itself.
std::string kind_prefix(const Finding& f) {
  if (f.kind == FindingKind::Invalid || what(f).starts_with(name(f.kind))) return {};
  return std::string(name(f.kind)) + ": ";
}

std::string one(const Finding& f, std::size_t count, const std::filesystem::path& ptx, SourceFiles& files) {
  const std::size_t colon = f.where.rfind(':');
  const bool placed = colon != f.where.npos;
  const std::string file = placed ? f.where.substr(0, colon) : ptx.string();
  const auto number =
      placed ? static_cast<std::uint32_t>(std::strtoul(f.where.c_str() + colon + 1, nullptr, 10)) : f.ptx_line;
  std::string out = fmt::format("{}:{}: error: {}{}\n", file, number, kind_prefix(f), what(f));
  const std::string* line = files.line(file, number);
  if (line) out += quoted(*line, number);
  const std::string* instruction = placed ? files.line(ptx.string(), f.ptx_line) : nullptr;
  if (placed) out += fmt::format("{}:{}: note: the instruction is '{}'\n", ptx.string(), f.ptx_line, f.ptx);
  if (instruction && !line) out += quoted(*instruction, f.ptx_line);
  out += fmt::format("       in kernel {}, block {}, warp {}{}", f.kernel, triple(f.block), f.warp,
                     f.lane < 0 ? std::string() : fmt::format(", lane {}, thread {}", f.lane, triple(f.thread)));
  if (count > 1) out += fmt::format("; and {} more there", count - 1);
  return out + "\n";
}

}  // namespace

std::string what(const Finding& f) {
  std::string s = f.message;
  const std::string before = fmt::format("{}: kernel {}: ", f.where, f.kernel);
  if (s.starts_with(before)) s.erase(0, before.size());
  const std::string behind = fmt::format(" (block {}, ", triple(f.block));
  if (const std::size_t at = s.rfind(behind); at != s.npos) s.erase(at);
  return s;
}

std::string diagnostics(const std::vector<Finding>& findings, const std::filesystem::path& ptx) {
  SourceFiles files;
  std::vector<std::pair<const Finding*, std::size_t>> groups;
  for (const Finding& f : findings) {
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
      return g.first->kind == f.kind && g.first->ptx_line == f.ptx_line && g.first->kernel == f.kernel &&
             g.first->ptx == f.ptx;
    });
    if (known == groups.end()) groups.emplace_back(&f, 1);
    else ++known->second;
  }
  std::string out;
  for (const auto& [f, count] : groups) out += one(*f, count, ptx, files);
  return out;
}

}  // namespace kiln::rt::tools
