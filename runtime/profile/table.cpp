// A profile as aligned text.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/profile/source.h"
#include "runtime/profile/text.h"

namespace kiln {
namespace {

using rt::grouped;
using rt::percent;

constexpr std::size_t kQuoted = 72;  // columns of a quoted line

struct Row {
  const Counters* counters;
  std::string place, quote;
};

struct Column {
  const char* name;
  std::string (*text)(const Counters&, const Counters& kernel);
};
constexpr Column kColumns[] = {
    {"instructions", [](const Counters& c, const Counters&) { return grouped(c.instructions); }},
    {"share",
     [](const Counters& c, const Counters& k) {
       return k.instructions ? fmt::format("{:.1f} %", 100.0 * static_cast<double>(c.instructions) /
                                                           static_cast<double>(k.instructions))
                             : "";
     }},
    {"lanes", [](const Counters& c,
                 const Counters&) { return c.instructions ? fmt::format("{:.1f}", average_executing_lanes(c)) : ""; }},
    {"parted", [](const Counters& c, const Counters&) { return grouped(c.divergent_branches); }},
    {"sectors read", [](const Counters& c, const Counters&) { return grouped(c.global_sectors_read); }},
    {"used", [](const Counters& c, const Counters&) { return percent(coalescing_read(c), c.global_sectors_read); }},
    {"written", [](const Counters& c, const Counters&) { return grouped(c.global_sectors_written); }},
    {"used",
     [](const Counters& c, const Counters&) { return percent(coalescing_written(c), c.global_sectors_written); }},
    {"wavefronts", [](const Counters& c, const Counters&) { return grouped(c.shared_wavefronts); }},
    {"conflicts", [](const Counters& c, const Counters&) { return grouped(c.bank_conflicts); }},
    {"local bytes", [](const Counters& c, const Counters&) { return grouped(c.local_bytes); }},
    {"async bytes", [](const Counters& c, const Counters&) { return grouped(c.async_bytes); }},
    {"matrix flop", [](const Counters& c, const Counters&) { return grouped(c.matrix_flop); }},
};

std::string quoted(const std::string& text) {
  const std::size_t from = std::min(text.find_first_not_of(" \t"), text.size());
  std::string out = text.substr(from, kQuoted);
  if (text.size() > from + kQuoted) out += "…";
  return out;
}

std::vector<Row> line_rows(const Profile::Kernel& k, rt::SourceFiles& files) {
  std::vector<Row> rows;
  for (const Profile::Line& l : k.lines) {
    const std::string* text = files.line(l.file, l.line);
    rows.push_back(
        {&l.counters, l.file.empty() ? "(no line)" : fmt::format("{}:{}", l.file, l.line), text ? quoted(*text) : ""});
  }
  return rows;
}

std::vector<Row> ptx_rows(const Profile::Kernel& k) {
  std::vector<Row> rows;
  for (const Profile::Line& l : k.lines)
    for (const Profile::Instruction& i : l.instructions)
      if (i.counters.instructions)
        rows.push_back({&i.counters, fmt::format("ptx line {}", i.ptx_line), quoted(i.text)});
  return rows;
}

/// Columns right-aligned, empty ones left out; place and quote behind them.
std::string table_text(std::vector<Row> rows, const Counters& kernel, std::size_t most) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.counters->instructions > b.counters->instructions; });
  const std::size_t left_out = most && rows.size() > most ? rows.size() - most : 0;
  rows.resize(rows.size() - left_out);
  std::vector<std::string> text(rows.size() + 1);
  for (const Column& column : kColumns) {
    std::vector<std::string> cells{column.name};
    bool any = false;
    for (const Row& r : rows) {
      cells.push_back(column.text(*r.counters, kernel));
      any |= !cells.back().empty();
    }
    if (!any) continue;
    std::size_t width = 0;
    for (const std::string& c : cells) width = std::max(width, c.size());
    for (std::size_t i = 0; i < cells.size(); ++i) text[i] += fmt::format("  {:>{}}", cells[i], width);
  }
  std::size_t width = 0;
  for (const Row& r : rows) width = std::max(width, r.place.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    text[i + 1] += rows[i].quote.empty() ? fmt::format("  {}", rows[i].place)
                                         : fmt::format("  {:<{}}  {}", rows[i].place, width, rows[i].quote);
  std::string out;
  for (const std::string& line : text) out += line + "\n";
  if (left_out) out += fmt::format("  … {} more rows\n", left_out);
  return out;
}

std::string kernel_text(const Profile::Kernel& k) {
  std::string out = fmt::format("kernel {} on {}\n", k.name, k.device);
  for (const auto& [name, value] : rt::kernel_facts(k)) out += fmt::format("  {:<15} {}\n", name, value);
  std::string mix;
  for (const auto& [name, n] : rt::sorted_mix(k.mix))
    mix += fmt::format("{}{} {}", mix.empty() ? "" : ", ", name, grouped(n));
  return out + fmt::format("  {:<15} {}\n", "by class", mix);
}

}  // namespace

std::string to_table(const Profile& p, ProfileBy by, std::size_t most) {
  rt::SourceFiles files;
  std::string out;
  for (const Profile::Kernel& k : p.kernels) {
    if (!out.empty()) out += "\n";
    out += kernel_text(k);
    if (by == ProfileBy::Kernel) continue;
    const bool placed = std::any_of(k.lines.begin(), k.lines.end(), [](const auto& l) { return !l.file.empty(); });
    const std::vector<Row> rows = by == ProfileBy::Ptx || !placed ? ptx_rows(k) : line_rows(k, files);
    out += "\n" + table_text(rows, k.counters, most);
  }
  return out;
}

}  // namespace kiln
