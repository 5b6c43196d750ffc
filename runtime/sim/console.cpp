#include "runtime/sim/console.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <istream>
#include <ostream>
#include <sstream>

#include "runtime/base/env.h"
#include "runtime/base/error.h"

namespace kiln::rt::sim {
namespace {

using debug::Resume;

std::string text(const debug::Index3& i) { return fmt::format("({}, {}, {})", i[0], i[1], i[2]); }

/// The words of a line; + , and [ ] stand alone.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) out.push_back(std::exchange(word, {}));
  };
  for (char c : line) {
    const bool alone = c == '+' || c == ',' || c == '[' || c == ']';
    if (c == ' ' || c == '\t' || c == '\r' || alone) flush();
    else word += c;
    if (alone) out.emplace_back(1, c);
  }
  flush();
  return out;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

debug::Resume Console::stopped(debug::Stop& stop) {
  stop_ = &stop;
  if (repeat_ > 0 && stop.reason() == debug::Reason::Step) {
    --repeat_;
    return last_step_;
  }
  repeat_ = 0;
  show_stop();
  for (std::string line;;) {
    if (prompt_) out_ << "(kiln) " << std::flush;
    if (!std::getline(in_, line)) {
      if (prompt_) out_ << "\n";
      out_ << "end of input: the kernel goes on without the debugger\n" << std::flush;
      return Resume::Detach;
    }
    if (line.empty() && prompt_) line = last_;
    last_ = line;
    if (!prompt_ && !line.empty()) out_ << "(kiln) " << line << "\n";
    try {
      if (const Result how = execute(line)) return out_ << std::flush, *how;
    } catch (const UserError& e) {
      out_ << "error: " << e.what() << "\n";
    }
  }
}

void Console::show_stop() {
  const debug::Stop& s = *stop_;
  const std::string lanes =
      s.active() == 0xFFFFFFFFu ? "" : fmt::format(", {} lanes active", std::popcount(s.active()));
  out_ << fmt::format("{}\n{}, block {}, warp {}, lane {}{}\n", s.what(), s.kernel(), text(s.block()), s.warp(),
                      s.lane(), lanes);
  if (s.line()) {
    const std::string* text = sources_.line(s.file(), s.line());
    out_ << fmt::format("{}:{}{}\n", last_part(s.file()), s.line(), text ? ":  " + *text : "");
  }
  out_ << fmt::format("ptx:{}: {}\n", s.ptx_line(), s.ptx());
}

// --- words -----------------------------------------------------------------------------------------------------------

std::string Console::word(const char* what) {
  if (!has_word()) throw UserError(fmt::format("{} is missing", what));
  return words_[at_++];
}
bool Console::accept(std::string_view w) {
  if (!has_word() || words_[at_] != w) return false;
  ++at_;
  return true;
}

namespace {
std::optional<std::uint64_t> to_number(std::string_view s) {
  const bool hex = s.starts_with("0x") || s.starts_with("0X");
  if (hex) s.remove_prefix(2);
  std::uint64_t v = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v, hex ? 16 : 10);
  if (error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return v;
}
std::uint32_t to_u32(std::uint64_t v) {
  if (v > UINT32_MAX) throw UserError(fmt::format("{} is too large", v));
  return static_cast<std::uint32_t>(v);
}
}  // namespace

std::uint64_t Console::number(const char* what) {
  const std::string w = word(what);
  const auto v = to_number(w);
  if (!v) throw UserError(fmt::format("{}: expected a number, found '{}'", what, w));
  return *v;
}

debug::Index3 Console::index3() {
  debug::Index3 out{};
  out[0] = to_u32(number("the block"));
  for (std::size_t i = 1; i < 3 && accept(","); ++i) out[i] = to_u32(number("the block"));
  return out;
}

debug::Condition Console::condition() {
  debug::Condition c;
  accept("if");
  while (has_word()) {
    const std::string w = word("a condition");
    if (w == "block") c.block = index3();
    else if (w == "warp") c.warp = to_u32(number("the warp"));
    else if (w == "lane") c.lane = to_u32(number("the lane"));
    else throw UserError(fmt::format("expected block, warp or lane, found '{}'", w));
  }
  if (c.lane && *c.lane >= 32) throw UserError(fmt::format("lane {}: a warp has 32 lanes", *c.lane));
  return c;
}

std::uint64_t Console::term(std::optional<debug::Space>& space) {
  const std::string w = word("an address");
  if (const auto v = to_number(w)) return *v;
  if (w[0] == '%') return stop_->reg(w).bits[stop_->lane()];
  const auto [where, at] = stop_->address_of(w);
  if (!space) space = where;
  return at;
}

std::pair<debug::Space, std::uint64_t> Console::address() {
  std::optional<debug::Space> space;
  if (accept("global")) space = debug::Space::Global;
  else if (accept("shared")) space = debug::Space::Shared;
  else if (accept("local")) space = debug::Space::Local;
  else if (accept("param")) space = debug::Space::Param;
  std::uint64_t at = term(space);
  while (accept("+")) at += term(space);
  return {space.value_or(debug::Space::Global), at};
}

// --- commands --------------------------------------------------------------------------------------------------------

Console::Result Console::execute(const std::string& line) {
  words_ = words_of(line);
  at_ = 0;
  if (words_.empty() || words_[0][0] == '#') return {};
  std::string name = words_[at_++];
  suffix_.clear();
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) {
    suffix_ = name.substr(slash + 1);
    name.resize(slash);
  }
  // A short form, a name, or the beginning of one.
  const Command* found = nullptr;
  for (const Command& c : commands())
    if (name == c.brief || name == c.name) found = &c;
  for (const Command& c : commands())
    if (!found && std::string_view(c.name).starts_with(name)) found = &c;
  if (!found) throw UserError(fmt::format("there is no command '{}'; help lists them", name));
  if (!suffix_.empty() && !found->takes_suffix) throw UserError(fmt::format("{} takes no /{}", found->name, suffix_));
  const Result how = (this->*found->run)();
  if (has_word()) throw UserError(fmt::format("{}: '{}' is one word too many", found->name, words_[at_]));
  return how;
}

}  // namespace kiln::rt::sim

namespace kiln::debug {

bool asked_for() { return !env::KILN_SIM_DEBUG().empty() && env::KILN_SIM_DEBUG() != "0"; }

Debugger::Handler console(Debugger& debugger, std::istream& in, std::ostream& out, bool prompt) {
  return [c = std::make_shared<rt::sim::Console>(debugger, in, out, prompt)](Stop& s) { return c->stopped(s); };
}

}  // namespace kiln::debug
