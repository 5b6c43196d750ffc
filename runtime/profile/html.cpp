// A profile as one HTML file: per kernel its facts, then the user's lines (or the PTX) beside their counts.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/profile/html_assets.h"
#include "runtime/profile/source.h"
#include "runtime/profile/text.h"

namespace kiln {
namespace {

using rt::grouped;
using rt::percent;

/// Lines shown around those that have counts.
constexpr std::uint32_t kAround = 8;

std::string escaped(const std::string& s) {
  std::string out;
  for (const char c : s) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\0': out += "\xEF\xBF\xBD"; break;
      default: out += c;
    }
  return out;
}

/// What lines can be coloured by: the attribute data-NAME of a row, and its name for a reader.
struct Metric {
  const char *name, *shown;
  std::uint64_t Counters::*value;
};
constexpr Metric kMetrics[] = {
    {"instructions", "instructions", &Counters::instructions},
    {"lanes", "lane instructions", &Counters::executing_lanes},
    {"read", "sectors read", &Counters::global_sectors_read},
    {"written", "sectors written", &Counters::global_sectors_written},
    {"excess", "uncoalesced sectors", &Counters::global_sectors_excess},
    {"wavefronts", "shared-memory wavefronts", &Counters::shared_wavefronts},
    {"conflicts", "bank conflicts", &Counters::bank_conflicts},
    {"parted", "divergent branches", &Counters::divergent_branches},
    {"local", "local memory", &Counters::local_bytes},
    {"async", "bytes of asynchronous copies", &Counters::async_bytes},
    {"flop", "matrix operations", &Counters::matrix_flop},
};

struct Column {
  const char* head;
  std::uint64_t Counters::*shown_with;  ///< the column is there if the kernel has any of these
  std::string (*text)(const Counters&);
};
constexpr Column kColumns[] = {
    {"instructions", &Counters::instructions, [](const Counters& c) { return grouped(c.instructions); }},
    {"lanes", &Counters::instructions,
     [](const Counters& c) { return c.instructions ? fmt::format("{:.1f}", average_executing_lanes(c)) : ""; }},
    {"parted", &Counters::divergent_branches, [](const Counters& c) { return grouped(c.divergent_branches); }},
    {"sectors<br>read", &Counters::global_sectors_read,
     [](const Counters& c) { return grouped(c.global_sectors_read); }},
    {"used", &Counters::global_sectors_read,
     [](const Counters& c) { return percent(coalescing_read(c), c.global_sectors_read); }},
    {"sectors<br>written", &Counters::global_sectors_written,
     [](const Counters& c) { return grouped(c.global_sectors_written); }},
    {"used", &Counters::global_sectors_written,
     [](const Counters& c) { return percent(coalescing_written(c), c.global_sectors_written); }},
    {"shared<br>wavefronts", &Counters::shared_wavefronts,
     [](const Counters& c) { return grouped(c.shared_wavefronts); }},
    {"bank<br>conflicts", &Counters::bank_conflicts, [](const Counters& c) { return grouped(c.bank_conflicts); }},
    {"local<br>bytes", &Counters::local_bytes, [](const Counters& c) { return grouped(c.local_bytes); }},
    {"async<br>bytes", &Counters::async_bytes, [](const Counters& c) { return grouped(c.async_bytes); }},
    {"matrix<br>operations", &Counters::matrix_flop, [](const Counters& c) { return grouped(c.matrix_flop); }},
};

std::string mark(const char* kind, const std::string& text) {
  return fmt::format("<span class=\"mark {}\">{}</span>", kind, text);
}

std::string marks(const Counters& c) {
  std::string out;
  const std::uint64_t sectors = c.global_sectors_read + c.global_sectors_written;
  if (c.bank_conflicts)
    out += mark("conflict", fmt::format("bank conflicts: {:.1f} wavefronts for each needed",
                                        static_cast<double>(c.shared_wavefronts) /
                                            static_cast<double>(c.shared_wavefronts - c.bank_conflicts)));
  if (10 * c.global_sectors_excess >= sectors && sectors)
    out += mark("sectors",
                fmt::format("uncoalesced: {:.0f} % of the sectors too many",
                            100.0 * static_cast<double>(c.global_sectors_excess) / static_cast<double>(sectors)));
  if (c.local_bytes) out += mark("other", "local memory");
  return out;
}

/// Writes the listings of one kernel.
class Listing {
 public:
  Listing(const Profile::Kernel& k, std::size_t number, rt::SourceFiles& files)
      : k_(k), number_(number), files_(files) {
    for (const Column& c : kColumns)
      if (k.counters.*c.shown_with) columns_.push_back(&c);
    for (const Profile::Line& l : k.lines) most_ = std::max(most_, l.counters.instructions);
  }

  std::string text() {
    std::map<std::string, std::map<std::uint32_t, const Profile::Line*>> by_file;
    bool any_source = false;
    for (const Profile::Line& l : k_.lines) {
      by_file[l.file][l.line] = &l;
      any_source |= files_.lines(l.file) != nullptr;
    }
    if (!any_source) return ptx_listing();
    std::string out;
    for (const auto& [file, lines] : by_file) {
      if (file.empty()) continue;
      out += table(file, files_.lines(file) ? "" : "the file is not at hand", source_rows(file, lines));
    }
    if (const auto none = by_file.find(""); none != by_file.end())
      out += table("no line of the program", "", group("", "", *none->second.begin()->second, "—"));
    return out;
  }

 private:
  std::string table(const std::string& title, const std::string& note, const std::string& rows) {
    std::string out = fmt::format("<h3>{}</h3>\n", escaped(title));
    if (!note.empty()) out += fmt::format("<p class=\"note\">{}</p>\n", note);
    out += "<div class=\"wide\"><table class=\"listing\"><thead><tr><th>line</th>";
    for (const Column* c : columns_) out += fmt::format("<th>{}</th>", c->head);
    return out + "<th></th></tr></thead>\n" + rows + "</table></div>\n";
  }

  std::string cells(const Counters& c) const {
    std::string out;
    for (const Column* column : columns_) out += fmt::format("<td>{}</td>", column->text(c));
    return out;
  }
  std::string blank_row(const std::string& number, const std::string& text) const {
    return fmt::format("<tr><td class=\"no\">{}</td><td colspan=\"{}\"></td><td class=\"text\">{}</td></tr>\n", number,
                       columns_.size(), escaped(text));
  }
  std::string gap_row(std::size_t n) const {
    return fmt::format("<tbody><tr class=\"gap\"><td colspan=\"{}\">⋯ {} lines ⋯</td></tr></tbody>\n",
                       columns_.size() + 2, n);
  }
  /// A line with counts: the values it may be coloured by are its attributes.
  std::string row(const Counters& c, const std::string& number, const std::string& place, const std::string& text) {
    std::string out =
        fmt::format("<tr class=\"row\" id=\"k{}r{}\" data-place=\"{}\" style=\"--heat:{:.3f}\"", number_, rows_++,
                    escaped(place), most_ ? static_cast<double>(c.instructions) / static_cast<double>(most_) : 0);
    for (const Metric& m : kMetrics)
      if (c.*m.value) out += fmt::format(" data-{}=\"{}\"", m.name, c.*m.value);
    return out + fmt::format("><td class=\"no\">{}</td>{}<td class=\"text\">{}{}</td></tr>\n", number, cells(c),
                             escaped(text), marks(c));
  }
  /// A line and the PTX behind it.
  std::string group(const std::string& place, const std::string& text, const Profile::Line& l,
                    const std::string& number) {
    std::string out =
        fmt::format("<tbody class=\"has{}\">{}", text.empty() ? " open" : "", row(l.counters, number, place, text));
    for (const Profile::Instruction& i : l.instructions)
      out += fmt::format("<tr class=\"ptx\"><td class=\"no\">{}</td>{}<td class=\"text\">{}{}</td></tr>\n", i.ptx_line,
                         cells(i.counters), escaped(i.text), marks(i.counters));
    return out + "</tbody>\n";
  }

  /// Numbers of the lines to show, of `n`.
  template <class Map>
  static std::set<std::uint32_t> shown(const Map& used, std::size_t n) {
    std::set<std::uint32_t> out;
    for (const auto& entry : used)
      for (std::uint32_t i = entry.first > kAround ? entry.first - kAround : 1; i <= entry.first + kAround; ++i)
        if (i <= n) out.insert(i);
    return out;
  }

  std::string source_rows(const std::string& file, const std::map<std::uint32_t, const Profile::Line*>& lines) {
    const std::vector<std::string>* text = files_.lines(file);
    const std::string name = file.substr(file.rfind('/') + 1);
    const auto line_row = [&](std::uint32_t n, const Profile::Line& l, const std::string& shown_text) {
      return group(fmt::format("{}:{}", name, n), shown_text, l, std::to_string(n));
    };
    std::string out;
    std::uint32_t last = 0;
    if (!text) {
      for (const auto& [n, line] : lines) out += line_row(n, *line, "");
      return out;
    }
    for (const std::uint32_t n : shown(lines, text->size())) {
      if (n != last + 1) out += gap_row(n - last - 1);
      last = n;
      const auto counted = lines.find(n);
      const std::string& words = (*text)[n - 1];
      if (counted == lines.end()) out += "<tbody>" + blank_row(std::to_string(n), words) + "</tbody>\n";
      else out += line_row(n, *counted->second, words.empty() ? " " : words);
    }
    if (last < text->size()) out += gap_row(text->size() - last);
    for (const auto& [n, line] : lines)
      if (n > text->size()) out += line_row(n, *line, "");  // the file has changed since
    return out;
  }

  /// The kernel's PTX, where the user's program is not at hand.
  std::string ptx_listing() {
    std::map<std::uint32_t, std::vector<std::pair<const Profile::Line*, const Profile::Instruction*>>> by_line;
    most_ = 0;
    for (const Profile::Line& l : k_.lines)
      for (const Profile::Instruction& i : l.instructions) {
        by_line[i.ptx_line].push_back({&l, &i});
        most_ = std::max(most_, i.counters.instructions);
      }
    const std::vector<std::string> text = rt::split_lines(k_.ptx);
    std::string out;
    std::uint32_t last = 0;
    for (const std::uint32_t n : shown(by_line, text.size())) {
      if (n != last + 1) out += gap_row(n - last - 1);
      last = n;
      out += "<tbody>";
      const auto counted = by_line.find(n);
      const std::string indent = text[n - 1].substr(0, text[n - 1].find_first_not_of(" \t"));
      if (counted == by_line.end()) out += blank_row(std::to_string(n), text[n - 1]);
      // Several instructions may share a line, and one may be of several places.
      else
        for (const auto& [line, i] : counted->second)
          out +=
              row(i->counters, std::to_string(n), fmt::format("ptx {}", n),
                  indent + i->text + (line->file.empty() ? "" : fmt::format("    // {}:{}", line->file, line->line)));
      out += "</tbody>\n";
    }
    const bool placed = std::any_of(k_.lines.begin(), k_.lines.end(), [](const auto& l) { return !l.file.empty(); });
    return table("PTX", placed ? "none of the program's files is at hand" : "the PTX names no lines of a program", out);
  }

  const Profile::Kernel& k_;
  std::size_t number_;
  rt::SourceFiles& files_;
  std::vector<const Column*> columns_;
  std::uint64_t most_ = 0;
  std::size_t rows_ = 0;
};

std::string mix_bar(const InstMix& mix) {
  constexpr std::array kColours{"#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2",
                                "#b279a2", "#eeca3b", "#9d755d", "#bab0ac"};
  const auto classes = rt::sorted_mix(mix);
  std::uint64_t all = 0;
  for (const auto& [name, n] : classes) all += n;
  std::string bar, key;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const char* colour = kColours[std::min(i, kColours.size() - 1)];
    const auto& [name, n] = classes[i];
    const double share = 100.0 * static_cast<double>(n) / static_cast<double>(all);
    bar += fmt::format("<div style=\"width:{:.2f}%;background:{}\" title=\"{} {}\"></div>", share, colour, name,
                       grouped(n));
    key += fmt::format("<span><i style=\"background:{}\"></i>{} {:.1f} %</span>", colour, name, share);
  }
  return fmt::format("<div class=\"mix\">{}</div><div class=\"key\">{}</div>\n", bar, key);
}

std::string kernel_html(const Profile::Kernel& k, std::size_t number, rt::SourceFiles& files) {
  std::string out = fmt::format("<section id=\"k{}\"><h2>{} <small>on {}</small></h2>\n<table class=\"facts\">", number,
                                escaped(k.name), escaped(k.device));
  for (const auto& [name, value] : rt::kernel_facts(k))
    out += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", name, escaped(value));
  return out + "</table>\n" + mix_bar(k.mix) + "<p class=\"hottest\"></p>\n" + Listing(k, number, files).text() +
         "</section>\n";
}

std::string head_html(const Profile& p) {
  std::string out = "<header><h1>Kiln profile</h1><nav>";
  for (std::size_t i = 0; i < p.kernels.size(); ++i)
    out += fmt::format("<a href=\"#k{}\">{}</a>", i, escaped(p.kernels[i].name));
  out += "</nav><label>colour lines by <select id=\"metric\">";
  for (const Metric& m : kMetrics)
    if (std::any_of(p.kernels.begin(), p.kernels.end(), [&](const auto& k) { return k.counters.*m.value != 0; }))
      out += fmt::format("<option value=\"{}\">{}</option>", m.name, m.shown);
  return out + "</select></label></header>\n";
}

}  // namespace

std::string to_html(const Profile& p) {
  rt::SourceFiles files;
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Kiln "
      "profile</title><style>{}</style></head><body>\n",
      rt::kStyle);
  out += head_html(p);
  for (std::size_t i = 0; i < p.kernels.size(); ++i) out += kernel_html(p.kernels[i], i, files);
  return out + fmt::format("<script>{}</script></body></html>\n", rt::kScript);
}

}  // namespace kiln
