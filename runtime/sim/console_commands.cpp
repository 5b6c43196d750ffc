// What the commands of the debugger's terminal do.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ostream>

#include "runtime/base/error.h"
#include "runtime/sim/console.h"
#include "runtime/sim/debug_text.h"
#include "runtime/sim/debug_value.h"

namespace kiln::rt::sim {

using debug::Resume;

namespace {

std::string text(const debug::Index3& i) { return fmt::format("({}, {}, {})", i[0], i[1], i[2]); }

/// The little-endian number in some of the bytes.
std::uint64_t number_at(const std::vector<std::byte>& bytes, std::size_t at, std::size_t size) {
  std::uint64_t v = 0;
  std::memcpy(&v, bytes.data() + at, std::min(size, sizeof v));
  return v;
}

std::string parameter_text(const debug::Parameter& p) {
  std::string_view type = p.type;
  if (type.ends_with('*')) return fmt::format("0x{:x}", number_at(p.bytes, 0, 8));
  if (const auto d = dtype_named(type)) return value_text(*d, number_at(p.bytes, 0, p.bytes.size()));
  std::string out;
  if (p.bytes.size() <= 8) return fmt::format("0x{:0{}x}", number_at(p.bytes, 0, p.bytes.size()), 2 * p.bytes.size());
  for (std::size_t i = 0; i < p.bytes.size(); ++i) out += fmt::format("{:02x}", std::to_integer<int>(p.bytes[i]));
  return out;
}

}  // namespace

const std::vector<Console::Command>& Console::commands() {
  static const std::vector<Command> all = {
      {"break", "b", "LOCATION [if CONDITION]", "stop there, in each warp that comes by", &Console::do_break},
      {"watch", "wa", "ADDRESS BYTES [if CONDITION]", "stop after a write to these bytes", &Console::do_watch},
      {"rwatch", "rw", "ADDRESS BYTES [if CONDITION]", "stop after a read of them", &Console::do_rwatch},
      {"awatch", "aw", "ADDRESS BYTES [if CONDITION]", "stop after either", &Console::do_awatch},
      {"delete", "d", "[NUMBER]", "remove one breakpoint or watch, or all", &Console::do_delete},
      {"continue", "c", "", "go on to the next stop", &Console::do_continue},
      {"step", "s", "[N]", "to the next source line of this warp", &Console::do_step},
      {"next", "n", "[N]", "the same: calls are expanded in the code", &Console::do_step},
      {"stepi", "si", "[N]", "one PTX instruction of this warp", &Console::do_stepi},
      {"finish", "fin", "", "until this block has exited", &Console::do_finish},
      {"print", "p", "NAME[[I, J…]] | %REGISTER [all]", "a variable, parameter or register; print/TYPE",
       &Console::do_print, true},
      {"x", "x", "ADDRESS", "memory: x/8f32 shows 8 values of a type", &Console::do_examine, true},
      {"where", "bt", "", "kernel, block, warp, lanes, line, instruction, functions", &Console::do_where},
      {"list", "l", "", "the source around the line", &Console::do_list},
      {"ptx", "ptx", "", "the PTX around the instruction", &Console::do_ptx},
      {"focus", "f", "[block X[,Y[,Z]]] [warp N] [lane N]", "look at another block, warp or lane", &Console::do_focus},
      {"warps", "w", "", "the warps that are running, and what each waits for", &Console::do_warps},
      {"info", "i", "breakpoints|names|params|registers", "what there is", &Console::do_info},
      {"help", "h", "", "this table", &Console::do_help},
      {"detach", "det", "", "let the program go on without the debugger", &Console::do_detach},
      {"quit", "q", "", "end the launch; the program gets a DeviceError", &Console::do_quit},
  };
  return all;
}

Console::Result Console::do_help() {
  for (const Command& c : commands())
    out_ << fmt::format("  {:<9} {:<4} {:<36} {}\n", c.name, c.brief, c.arguments, c.help);
  out_ << "LOCATION: file.cpp:12, 12 (of the current file), ptx:80, or a kernel's name.\n"
          "CONDITION: any of block X[,Y[,Z]], warp N, lane N.\n"
          "ADDRESS: [global|shared|local|param] and a number, register, variable or pointer parameter, or a sum with "
          "+.\n"
          "TYPE: f64 f32 f16 bf16 f8e4m3 f8e5m2 i8…i64 u8…u64, x8…x64 (hexadecimal).\n";
  return {};
}

// --- going on --------------------------------------------------------------------------------------------------------

Console::Result Console::do_continue() { return Resume::Continue; }
Console::Result Console::do_finish() { return Resume::FinishBlock; }
Console::Result Console::do_detach() { return Resume::Detach; }
Console::Result Console::do_quit() { return Resume::Abort; }
Console::Result Console::do_step() { return step(Resume::StepLine); }
Console::Result Console::do_stepi() { return step(Resume::StepInstruction); }

Console::Result Console::step(Resume how) {
  const std::uint64_t n = has_word() ? number("the number of steps") : 1;
  if (n == 0) return {};
  repeat_ = n - 1;
  last_step_ = how;
  return how;
}

// --- breakpoints -----------------------------------------------------------------------------------------------------

Console::Result Console::do_break() {
  const std::string place = word("a location");
  const debug::Condition c = condition();
  const std::size_t colon = place.rfind(':');
  const std::string tail = colon == std::string::npos ? place : place.substr(colon + 1);
  const bool numbered = !tail.empty() && tail.find_first_not_of("0123456789") == std::string::npos;
  const unsigned line = numbered ? static_cast<unsigned>(std::stoul(tail.substr(0, 9))) : 0;
  int n = 0;
  if (!numbered) n = debugger_.break_kernel(place, c);
  else if (colon == std::string::npos && stop_->file().empty())
    throw UserError("there is no current file; say ptx:" + tail);
  else if (colon == std::string::npos) n = debugger_.break_line(stop_->file(), line, c);
  else if (place.substr(0, colon) == "ptx") n = debugger_.break_ptx(line, c);
  else n = debugger_.break_line(place.substr(0, colon), line, c);
  for (const std::string& b : debugger_.breakpoints())
    if (b.starts_with(fmt::format("{}: ", n))) out_ << "breakpoint " << b << "\n";
  return {};
}

Console::Result Console::do_delete() {
  if (has_word()) {
    debugger_.remove(static_cast<int>(number("the breakpoint")));
    return {};
  }
  for (const std::string& b : debugger_.breakpoints()) debugger_.remove(std::stoi(b));
  return {};
}

void Console::watch(debug::On on) {
  const auto [space, at] = address();
  const std::uint64_t bytes = has_word() && words_[at_] != "if" ? number("the number of bytes") : 4;
  const int n = debugger_.watch(space, at, bytes, on, condition());
  for (const std::string& b : debugger_.breakpoints())
    if (b.starts_with(fmt::format("{}: ", n))) out_ << b << "\n";
}
Console::Result Console::do_watch() { return watch(debug::On::Write), Result{}; }
Console::Result Console::do_rwatch() { return watch(debug::On::Read), Result{}; }
Console::Result Console::do_awatch() { return watch(debug::On::Access), Result{}; }

// --- where -----------------------------------------------------------------------------------------------------------

Console::Result Console::do_where() {
  show_stop();
  const std::vector<std::string> functions = stop_->functions();
  for (std::size_t i = 0; i + 1 < functions.size(); ++i) out_ << "in function " << functions[i] << "\n";
  out_ << fmt::format("active lanes 0x{:08x}\n", stop_->active());
  return {};
}

Console::Result Console::do_warps() {
  for (const debug::WarpInfo& w : stop_->warps()) {
    const bool here = w.block == stop_->block() && w.warp == stop_->warp();
    out_ << fmt::format("{} block {} warp {} lanes 0x{:08x}: {}{}{}\n", here ? "*" : " ", text(w.block), w.warp,
                        w.active, w.state, w.place.empty() ? "" : ", ", w.place);
  }
  return {};
}

Console::Result Console::do_focus() {
  const debug::Condition c = condition();
  stop_->focus(c.block, c.warp, c.lane);
  out_ << fmt::format("block {}, warp {}, lane {}\n", text(stop_->block()), stop_->warp(), stop_->lane());
  return {};
}

void Console::show_lines(const std::vector<std::string>& lines, unsigned at, unsigned around) {
  const std::size_t first = at > around ? at - around : 1, last = std::min<std::size_t>(lines.size(), at + around);
  for (std::size_t i = first; i <= last; ++i)
    out_ << fmt::format("{} {:>5}  {}\n", i == at ? "->" : "  ", i, lines[i - 1]);
}

Console::Result Console::do_list() {
  if (stop_->file().empty()) throw UserError("the PTX names no source line here; ptx shows the PTX");
  const auto* lines = sources_.lines(stop_->file());
  if (!lines) throw UserError(fmt::format("cannot read {}", stop_->file()));
  show_lines(*lines, stop_->line(), 5);
  return {};
}

Console::Result Console::do_ptx() {
  show_lines(split_lines(stop_->module()), stop_->ptx_line(), 6);
  return {};
}

Console::Result Console::do_info() {
  const std::string what = word("what");
  const auto is = [&](std::string_view name) { return name.starts_with(what); };
  if (is("breakpoints")) {
    for (const std::string& b : debugger_.breakpoints()) out_ << b << "\n";
  } else if (is("params")) {
    for (const debug::Parameter& p : stop_->parameters())
      out_ << fmt::format("{} {} = {}\n", p.type, p.name, parameter_text(p));
  } else if (is("names")) {
    show_names();
  } else if (is("registers")) {
    for (const std::string& r : stop_->register_names()) out_ << r << "\n";
  } else {
    throw UserError(fmt::format("expected breakpoints, names, params or registers, found '{}'", what));
  }
  return {};
}

// --- values ----------------------------------------------------------------------------------------------------------

Console::Result Console::do_print() {
  const std::string name = word("a name");
  if (name[0] == '%') return print_register(name, accept("all")), Result{};
  const std::vector<std::string> names = stop_->value_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return print_value(name), Result{};
  for (const debug::Parameter& p : stop_->parameters()) {
    if (p.name != name) continue;
    out_ << fmt::format("{} {} = {}\n", p.type, p.name, parameter_text(p));
    return {};
  }
  std::string known;
  for (const debug::Parameter& p : stop_->parameters()) known += fmt::format("{}{}", known.empty() ? "" : ", ", p.name);
  throw UserError(fmt::format("there is no '{}' here; variables: {}; parameters: {}", name,
                              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                              known.empty() ? "none" : known));
}

void Console::show_names() {
  for (const std::string& name : stop_->value_names()) {
    try {
      const debug::Value v = stop_->value(name);
      out_ << fmt::format("{}: {}, given at {}\n", name, type_text(v), v.where);
    } catch (const UserError&) {
      out_ << name << ": no value yet\n";
    }
  }
}

/// A scalar, a tile, or one element: x, x[3, 5].
void Console::print_value(const std::string& name) {
  const debug::Value v = stop_->value(name);
  if (accept("[")) {
    std::vector<std::int64_t> index;
    do index.push_back(static_cast<std::int64_t>(number("the index")));
    while (accept(","));
    if (!accept("]")) throw UserError("']' is missing");
    const std::size_t i = v.at(index);
    out_ << fmt::format("{}[{}] = {}\n", name, fmt::join(index, ", "), v.known[i] ? v.text(i) : "not known");
    for (const std::string& a : v.absent)
      if (!v.known[i]) out_ << a << "\n";
    return;
  }
  out_ << value_text(v);
}

void Console::print_register(const std::string& name, bool all) {
  const debug::Register r = stop_->reg(name);
  Format format = format_of_register(r.type);
  if (!suffix_.empty()) {
    const auto given = format_named(suffix_);
    if (!given) throw UserError(fmt::format("'{}' is no type; help lists them", suffix_));
    format = *given;
  }
  const auto shown = [&](std::size_t lane) {
    const std::string value = value_text(format, r.bits[lane]);
    return format.hex ? fmt::format("{} ({})", value, r.s64(static_cast<int>(lane))) : value;
  };
  if (!all) {
    out_ << fmt::format("{} {} = {}\n", r.type, name, shown(stop_->lane()));
    return;
  }
  out_ << fmt::format("{} {}, lanes 0 to 31\n", r.type, name);
  for (std::size_t l = 0; l < 32; ++l)
    out_ << fmt::format("{:>14}{}", value_text(format, r.bits[l]), l % 8 == 7 ? "\n" : "");
}

Console::Result Console::do_examine() {
  const std::size_t digits = std::min(suffix_.find_first_not_of("0123456789"), suffix_.size());
  const std::size_t n = digits ? std::stoul(suffix_.substr(0, std::min<std::size_t>(digits, 9))) : 1;
  const std::string type = digits < suffix_.size() ? suffix_.substr(digits) : "x32";
  const auto format = format_named(type);
  if (!format) throw UserError(fmt::format("'{}' is no type; help lists them", type));
  if (n > 4096) throw UserError(fmt::format("{} values; at most 4096 are shown at once", n));
  const auto [space, at] = address();
  const auto size = static_cast<std::size_t>(format->bits()) / 8;
  const std::vector<std::byte> bytes = stop_->read(space, at, n * size);
  const std::size_t per_line = std::max<std::size_t>(1, 32 / size);
  for (std::size_t i = 0; i < n; ++i) {
    if (i % per_line == 0) out_ << fmt::format("0x{:x}:", at + i * size);
    out_ << " " << value_text(*format, number_at(bytes, i * size, size));
    if (i % per_line == per_line - 1 || i + 1 == n) out_ << "\n";
  }
  return {};
}

}  // namespace kiln::rt::sim
