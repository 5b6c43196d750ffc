// In-text checks of printed IR, in the manner of LLVM's FileCheck: a test writes what a pass must print as comments
// inside the very text it gives to the pass.
//
//     // CHECK: pattern        a line after the last match contains it
//     // CHECK-NEXT: pattern   the line right after the last match contains it
//     // CHECK-NOT: pattern    no line between the matches before and after it (or the end) contains it
//     // CHECK-DAG: pattern    a run of these matches lines after the last match in any order, each its own line
//
// A pattern is literal text, runs of blanks count as one, with {{regex}} for what varies, [[NAME:regex]] to match and
// remember, and [[NAME]] for what was remembered. A later definition replaces an earlier one. Regexes are ECMAScript's.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>
#include <vector>

namespace kiln::test {

class IrChecks {
 public:
  /// Reads the checks of `text`. A malformed one, or none at all, makes every match fail.
  explicit IrChecks(const std::string& text) {
    for (const std::string& line : lines_of(text)) read(line);
    if (checks_.empty() && error_.empty()) error_ = "the text has no CHECK line";
  }

  /// Empty when `output` passes; otherwise which check failed and where the search began.
  std::string match(const std::string& output) const {
    if (!error_.empty()) return error_;
    State s{lines_of(output), {}, 0};
    std::vector<const Check*> nots;
    for (std::size_t i = 0; i < checks_.size();) {
      if (checks_[i].kind == Kind::Not) {
        nots.push_back(&checks_[i++]);
        continue;
      }
      const std::size_t from = s.next;
      std::size_t first = 0;
      const std::size_t count = checks_[i].kind == Kind::Dag ? run_of_dags(i) : 1;
      const std::string failure =
          checks_[i].kind == Kind::Dag ? match_dags(s, i, count, first) : match_one(s, checks_[i], first);
      if (!failure.empty()) return failure;
      if (const std::string bad = match_nots(s, nots, from, first); !bad.empty()) return bad;
      nots.clear();
      i += count;
    }
    return match_nots(s, nots, s.next, s.lines.size());
  }

  /// `text` without its check lines, for a parser.
  static std::string strip(const std::string& text) {
    std::string out;
    for (const std::string& line : lines_of(text))
      if (directive(line).empty()) out += line + "\n";
    return out;
  }

 private:
  enum class Kind { Plain, Next, Not, Dag };
  struct Check {
    Kind kind;
    std::string pattern;
  };
  struct State {
    std::vector<std::string> lines;
    std::map<std::string, std::string> variables;
    std::size_t next;  // first line not yet behind a match
  };

  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::size_t from = 0;
    while (from < text.size()) {
      const std::size_t end = std::min(text.find('\n', from), text.size());
      lines.push_back(squeeze(text.substr(from, end - from)));
      from = end + 1;
    }
    return lines;
  }

  static std::string squeeze(const std::string& line) {
    std::string out;
    for (char c : line) {
      if (c == '\t') c = ' ';
      if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    return out;
  }

  /// "CHECK-NEXT: pattern" of a check line, otherwise empty.
  static std::string directive(const std::string& line) {
    return line.starts_with("// CHECK") ? line.substr(3) : std::string{};
  }

  void read(const std::string& line) {
    const std::string text = directive(line);
    if (text.empty()) return;
    static const std::map<std::string, Kind> kinds{
        {"CHECK", Kind::Plain}, {"CHECK-NEXT", Kind::Next}, {"CHECK-NOT", Kind::Not}, {"CHECK-DAG", Kind::Dag}};
    const std::size_t colon = text.find(':');
    const auto kind = kinds.find(text.substr(0, colon));
    const std::string pattern = colon == std::string::npos ? "" : squeeze(text.substr(colon + 1));
    if (kind == kinds.end() || pattern.empty()) {
      error_ = "malformed check: " + line;
      return;
    }
    checks_.push_back({kind->second, pattern});
  }

  /// The pattern as a regex; `names` receives the variable of each capturing group to be remembered, by group number.
  static std::regex compile(const std::string& pattern, const std::map<std::string, std::string>& variables,
                            std::map<std::size_t, std::string>& names) {
    std::string regex;
    std::size_t groups = 0;
    for (std::size_t i = 0; i < pattern.size();) {
      const bool free = pattern.compare(i, 2, "{{") == 0, bracket = pattern.compare(i, 2, "[[") == 0;
      const std::size_t end = free ? pattern.find("}}", i) : bracket ? pattern.find("]]", i) : std::string::npos;
      if (end == std::string::npos) {
        regex += escape(pattern.substr(i++, 1));
        continue;
      }
      std::string inside = pattern.substr(i + 2, end - i - 2);
      if (bracket && end + 2 < pattern.size() && pattern[end + 2] == ']') inside += ']';  // [[X:[a-z]]]
      i += inside.size() + 4;
      const std::size_t colon = bracket ? inside.find(':') : std::string::npos;
      if (free) {
        regex += "(?:" + inside + ")";
        groups += std::regex(inside).mark_count();
      } else if (colon == std::string::npos) {
        const auto known = variables.find(inside);
        if (known == variables.end()) throw std::regex_error(std::regex_constants::error_backref);
        regex += escape(known->second);
      } else {
        names[++groups] = inside.substr(0, colon);
        regex += "(" + inside.substr(colon + 1) + ")";
        groups += std::regex(inside.substr(colon + 1)).mark_count();
      }
    }
    return std::regex(regex);
  }

  static std::string escape(const std::string& literal) {
    static const std::regex special(R"([.^$|()\[\]{}*+?\\])");
    return std::regex_replace(literal, special, R"(\$&)");
  }

  /// Whether `line` contains the pattern; remembers its variables if so.
  static bool matches(const std::string& line, const Check& c, std::map<std::string, std::string>& variables) {
    std::map<std::size_t, std::string> names;
    std::smatch m;
    if (!std::regex_search(line, m, compile(c.pattern, variables, names))) return false;
    for (const auto& [group, variable] : names) variables[variable] = m[group].str();
    return true;
  }

  static std::string failed(const State& s, const Check& c, const std::string& what) {
    static const char* const kinds[] = {"CHECK", "CHECK-NEXT", "CHECK-NOT", "CHECK-DAG"};
    std::string text = std::string(kinds[int(c.kind)]) + ": " + c.pattern + "\n" + what + "; searching from line " +
                       std::to_string(s.next + 1) + " of:\n";
    for (const std::string& line : s.lines) text += line + "\n";
    return text;
  }

  static std::string match_one(State& s, const Check& c, std::size_t& first) try {
    const std::size_t end = c.kind == Kind::Next ? std::min(s.next + 1, s.lines.size()) : s.lines.size();
    for (std::size_t i = s.next; i < end; ++i)
      if (matches(s.lines[i], c, s.variables)) {
        first = i;
        s.next = i + 1;
        return {};
      }
    return failed(s, c, "no match");
  } catch (const std::regex_error&) {
    return failed(s, c, "malformed pattern or unknown variable");
  }

  std::size_t run_of_dags(std::size_t i) const {
    std::size_t n = 0;
    while (i + n < checks_.size() && checks_[i + n].kind == Kind::Dag) ++n;
    return n;
  }

  std::string match_dags(State& s, std::size_t begin, std::size_t count, std::size_t& first) const try {
    std::vector<bool> used(s.lines.size(), false);
    std::size_t last = s.next;
    first = s.lines.size();
    for (std::size_t d = begin; d < begin + count; ++d) {
      std::size_t i = s.next;
      while (i < s.lines.size() && (used[i] || !matches(s.lines[i], checks_[d], s.variables))) ++i;
      if (i == s.lines.size()) return failed(s, checks_[d], "no match");
      used[i] = true;
      first = std::min(first, i);
      last = std::max(last, i + 1);
    }
    s.next = last;
    return {};
  } catch (const std::regex_error&) {
    return failed(s, checks_[begin], "malformed pattern or unknown variable in this run");
  }

  static std::string match_nots(const State& s, const std::vector<const Check*>& nots, std::size_t from,
                                std::size_t to) try {
    for (const Check* c : nots)
      for (std::size_t i = from; i < to; ++i) {
        auto variables = s.variables;
        if (matches(s.lines[i], *c, variables)) return failed(s, *c, "matches line " + std::to_string(i + 1));
      }
    return {};
  } catch (const std::regex_error&) {
    return failed(s, *nots[0], "malformed pattern or unknown variable in this run");
  }

  std::vector<Check> checks_;
  std::string error_;
};

/// Whether `output` passes the checks inside `text`; the message of a failure is readable.
inline testing::AssertionResult passes_checks(const std::string& output, const std::string& text) {
  const std::string failure = IrChecks(text).match(output);
  return failure.empty() ? testing::AssertionSuccess() : testing::AssertionFailure() << failure;
}

}  // namespace kiln::test

#define EXPECT_IR(output, text) EXPECT_TRUE(::kiln::test::passes_checks(output, text))
