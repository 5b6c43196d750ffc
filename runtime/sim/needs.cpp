#include "runtime/sim/needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/sim/arch.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/form.h"

namespace kiln::rt::sim {
namespace {

struct Need {
  std::string_view names, words, alternatives;
};
constexpr Need kNeeds[] = {
#define KILN_NEEDS(names, words, alternatives) {names, words, alternatives},
#include "runtime/sim/needs.def"
};

/// f(part) for the parts of a text between separators, until one gives false; true if none did.
template <class F>
bool each_part(std::string_view text, char separator, F f) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0 && !f(text.substr(0, end))) return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

/// The rows of each name; "*" has those of every instruction.
const std::vector<const Need*>& rows_of(std::string_view name) {
  using Rows = std::unordered_map<std::string_view, std::vector<const Need*>>;
  static const Rows rows = [] {
    Rows out;
    for (const Need& n : kNeeds)
      each_part(n.names, ' ', [&](std::string_view word) { return out[word].push_back(&n), true; });
    return out;
  }();
  static const std::vector<const Need*> none;
  const auto found = rows.find(name);
  return found == rows.end() ? none : found->second;
}

/// ".a.b" behind the name holds the word, or the words next to each other.
bool holds(std::string_view behind, std::string_view word) {
  for (std::size_t at = 0; (at = behind.find(word, at)) != std::string_view::npos; ++at) {
    const std::size_t end = at + word.size();
    if (at > 0 && behind[at - 1] == '.' && (end == behind.size() || behind[end] == '.')) return true;
  }
  return false;
}

bool fits(const Form& f, std::string_view behind, std::string_view words) {
  return each_part(words, ' ', [&](std::string_view word) {
    if (word == "_") return f.count() > 0 && f.operand(0).kind == ptx::Operand::Kind::Sink;
    if (word[0] == '#') return f.count() == static_cast<std::size_t>(word[1] - '0');
    const bool absent = word[0] == '!';
    const bool none = each_part(word.substr(absent), '/', [&](std::string_view w) { return !holds(behind, w); });
    return none == absent;
  });
}

/// One alternative: TARGET@PTX.
struct Module {
  int number = 0, version = 0;
  bool lettered = false;

  explicit Module(std::string_view text) {
    const std::size_t at = text.find('@'), dot = text.find('.');
    const std::string_view target = text.substr(0, at);
    std::from_chars(target.data(), target.data() + target.size(), number);
    lettered = target.ends_with('a');
    version = (text[dot - 1] - '0') * 10 + (text[dot + 1] - '0');
  }
  bool runs_on(const Arch& a) const {
    if (!lettered) return a.number >= number;
    return a.suffix != 0 && (number >= 100 ? a.number >= number : a.number == number);
  }
  /// Every target that runs the other's code runs this one's.
  bool holds(const Module& other) const { return !lettered && (number <= other.number); }
  std::string target() const {
    return fmt::format("sm_{}{}{}", number, lettered ? "a" : "", lettered && number < 100 ? "" : " or later");
  }
};

}  // namespace

namespace {

/// What a module misses: a target, or (target 0) a version.
struct Missing {
  int target = 0, version = 0;
  std::string text;
};

std::optional<Missing> missing_of(std::string_view alternatives, std::string_view target, int version) {
  const Arch arch = Arch::parse(target);
  std::vector<Module> targets;
  int least = 0;
  const bool all_fail = each_part(alternatives, ' ', [&](std::string_view text) {
    const Module m(text);
    if (std::none_of(targets.begin(), targets.end(), [&](const Module& t) { return t.holds(m); })) targets.push_back(m);
    if (!m.runs_on(arch)) return true;
    if (version >= m.version) return false;
    if (least == 0 || m.version < least) least = m.version;
    return true;
  });
  if (!all_fail || alternatives.empty()) return std::nullopt;
  if (least != 0)
    return Missing{0, least,
                   fmt::format("needs PTX {}.{} or later, the module is of {}.{}", least / 10, least % 10, version / 10,
                               version % 10)};
  std::string names;
  for (const Module& m : targets) names += fmt::format("{}{}", names.empty() ? "" : " or ", m.target());
  return Missing{targets[0].number, 0, fmt::format("needs {}, the module is for {}", names, arch.name())};
}

}  // namespace

std::string missing(std::string_view alternatives, std::string_view target, int version) {
  const auto m = missing_of(alternatives, target, version);
  return m ? m->text : std::string();
}

void check_needs(const Form& f) {
  const std::string_view behind = f.stmt.opcode.substr(f.name.size());
  Missing most;
  for (const std::string_view name : {f.name, std::string_view("*")})
    for (const Need* n : rows_of(name)) {
      if (!fits(f, behind, n->words)) continue;
      const auto m = missing_of(n->alternatives, f.decoder.target(), f.decoder.version());
      if (m && std::pair(m->target, m->version) > std::pair(most.target, most.version)) most = *m;
    }
  if (!most.text.empty()) f.fail(most.text);
}

}  // namespace kiln::rt::sim
