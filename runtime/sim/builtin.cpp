// Functions that CUDA's device library supplies and a module only declares: vprintf and __assertfail. Calls of them
// leave one instruction, whose operands are the places of the result and the arguments in the thread's local memory.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <optional>

#include "runtime/sim/decode.h"
#include "runtime/sim/memory.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr std::size_t kLongestText = 1 << 16;  // of a string argument or a format
constexpr std::size_t kMostPrinted = 1 << 20;  // by a block, as the hardware's buffer
constexpr int kWidestField = 4096;             // a width or precision beyond is a mistake
constexpr U64 kInWindow = (U64{1} << 56) - 1;

/// One call by one lane.
struct Call {
  Warp& warp;
  const Inst& inst;
  int lane;

  [[noreturn]] void fail(const std::string& what) const { fault(warp, inst, lane, what); }

  std::byte* local(U64 at, std::size_t bytes) const {
    const Block& b = *warp.block;
    const U64 size = b.launch->program.local_bytes;
    if (at > size || bytes > size - at)
      fail(fmt::format("out-of-bounds local load of {} bytes at 0x{:x}; it has {} bytes", bytes, at, size));
    const U64 thread = warp.index * U64{kLanes} + static_cast<U64>(lane);
    return warp.block->local_bytes() + thread * size + at;
  }
  /// Host memory behind a generic address.
  const std::byte* generic(U64 address, std::size_t bytes) const {
    switch (address & ~kInWindow) {
      case kLocalWindow: return local(address & kInWindow, bytes);
      case kSharedWindow: {
        const U64 at = address & kInBlock, end = warp.block->shared_end();
        if (at < kSharedBase || at > end || bytes > end - at)
          fail(fmt::format("out-of-bounds shared load of {} bytes at 0x{:x}", bytes, at));
        return warp.block->shared_bytes() + at;
      }
      case kParamWindow: fail("an argument of the library points at a kernel parameter");
      default: check_global_range(warp, inst, lane, address, bytes, 1, "global load");
    }
    return reinterpret_cast<const std::byte*>(address);
  }
  std::string text(U64 address) const {
    std::string out;
    for (char c; std::memcpy(&c, generic(address + out.size(), 1), 1), c != 0; out += c)
      if (out.size() == kLongestText) fail(fmt::format("a text longer than {} bytes at 0x{:x}", kLongestText, address));
    return out;
  }
  /// The i-th operand: the place of an argument.
  U64 place(std::size_t i) const { return warp.in<U64>(inst.ops[i])[0]; }
  template <class T>
  T argument(std::size_t i) const {
    T v;
    std::memcpy(&v, local(place(i), sizeof v), sizeof v);
    return v;
  }
};

/// Writes printf's text: the arguments follow one another at `at`, each aligned to its size.
class Printer {
 public:
  Printer(const Call& call, U64 at) : call_(call), at_(at) {}

  std::string run(const std::string& format) {
    for (std::size_t i = 0; i < format.size();) {
      const std::size_t percent = std::min(format.find('%', i), format.size());
      out_.append(format, i, percent - i);
      i = percent;
      if (i < format.size()) conversion(format, i);
    }
    return std::move(out_);
  }
  int arguments() const { return arguments_; }

 private:
  template <class T>
  T next() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T v;
    std::memcpy(&v, call_.generic(at_, sizeof v), sizeof v);
    at_ += sizeof v;
    ++arguments_;
    return v;
  }

  /// A width or precision: digits, or * for an argument.
  void field(const std::string& format, std::size_t& i, std::string& spec) {
    if (i < format.size() && format[i] == '*') {
      ++i;
      spec += std::to_string(checked(next<std::int32_t>()));
      return;
    }
    int n = 0;
    for (; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i) {
      n = checked(n * 10 + (format[i] - '0'));
      spec += format[i];
    }
  }
  int checked(int n) const {
    if (n > kWidestField || n < -kWidestField)
      call_.fail(fmt::format("printf: a field of {} characters; at most {}", n, kWidestField));
    return n;
  }

  void conversion(const std::string& format, std::size_t& i) {
    const std::size_t begin = i++;
    std::string spec = "%";
    while (i < format.size() && std::strchr("-+ #0", format[i])) spec += format[i++];
    field(format, i, spec);
    if (i < format.size() && format[i] == '.') {
      spec += format[i++];
      field(format, i, spec);
    }
    bool wide = false;
    for (; i < format.size() && std::strchr("hlLqjzt", format[i]); ++i) {
      wide |= format[i] != 'h';
      spec += format[i];
    }
    const char c = i < format.size() ? format[i++] : '\0';
    // Text from the format itself: what follows '%' is known to be one conversion of the type given here.
    while (std::strchr("hlLqjzt", spec.back())) spec.pop_back();
    switch (c) {
      case '%': out_ += '%'; return;
      case 'd':
      case 'i': return integer<std::int64_t, std::int32_t>(spec, 'd', format.substr(begin, i - begin), wide);
      case 'u':
      case 'o':
      case 'x':
      case 'X': return integer<U64, U32>(spec, c, format.substr(begin, i - begin), wide);
      case 'c': return append(spec + c, next<std::int32_t>());
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A': return append(spec + c, next<double>());
      case 'p': return append(spec + c, reinterpret_cast<const void*>(next<U64>()));
      case 's': {
        const U64 at = next<U64>();
        return append(spec + c, at ? call_.text(at).c_str() : "(null)");
      }
      default: call_.fail(fmt::format("printf: '{}' is no conversion", format.substr(begin, i - begin)));
    }
  }
  /// hh and h narrow an int; l, ll and the like take 64 bits.
  template <class Wide, class Narrow>
  void integer(const std::string& spec, char c, const std::string& written, bool wide) {
    if (wide) return append(spec + "ll" + c, next<Wide>());
    const std::size_t h = static_cast<std::size_t>(std::count(written.begin(), written.end(), 'h'));
    append(spec + std::string(h, 'h') + c, next<Narrow>());
  }
  template <class T>
  void append(const std::string& spec, T value) {
    const int n = std::snprintf(nullptr, 0, spec.c_str(), value);
    if (n < 0) call_.fail(fmt::format("printf: '{}' cannot be written", spec));
    std::string text(static_cast<std::size_t>(n) + 1, '\0');
    std::snprintf(text.data(), text.size(), spec.c_str(), value);
    text.pop_back();
    out_ += text;
  }

  const Call& call_;
  U64 at_;
  std::string out_;
  int arguments_ = 0;
};

void print(const Warp& w, const std::string& text) {
  Block& b = *w.block;
  ++*b.changes;
  std::string& out = b.tally->printed[b.linear];
  static constexpr std::string_view kLost = "(more was printed than a block's buffer holds)\n";
  if (out.size() < kMostPrinted) out += text;
  else if (!out.ends_with(kLost)) out += kLost;
}

/// ops: result, format, arguments.
void vprintf_handler(Warp& w, const Inst& in) {
  for (U32 m = w.mask; m; m &= m - 1) {
    const Call call{w, in, std::countr_zero(m)};
    std::int32_t result = -1;
    if (const U64 format = call.argument<U64>(1)) {
      Printer printer(call, call.argument<U64>(2));
      print(w, printer.run(call.text(format)));
      result = printer.arguments();
    }
    std::memcpy(call.local(call.place(0), sizeof result), &result, sizeof result);
  }
}

/// ops: message, file, line, function, bytes of a character.
void assertfail_handler(Warp& w, const Inst& in) {
  const Call call{w, in, std::countr_zero(w.mask)};
  const auto text = [&](std::size_t i) {
    const U64 at = call.argument<U64>(i);
    return at ? call.text(at) : std::string("?");
  };
  call.fail(fmt::format("assertion failed: {} ({}:{}, {})", text(0), text(1), call.argument<U32>(2), text(3)));
}

struct Known {
  std::string_view name;
  std::size_t results;
  std::vector<std::uint32_t> argument_bytes;
  Handler run;
};

std::optional<Known> known(std::string_view name) {
  if (name == "vprintf") return Known{name, 1, {8, 8}, vprintf_handler};
  if (name == "__assertfail") return Known{name, 0, {8, 8, 4, 8, 8}, assertfail_handler};
  return std::nullopt;
}

}  // namespace

Handler builtin_function(Form& f, std::string_view name, const std::vector<ptx::Operand>& results,
                         const std::vector<ptx::Operand>& arguments) {
  const auto callee = known(name);
  if (!callee)
    f.fail(fmt::format("the function {} is not defined in this module, and is none the simulator has", name));
  if (results.size() != callee->results || arguments.size() != callee->argument_bytes.size())
    f.fail(fmt::format("{} has {} results and {} arguments, needs {} and {}", name, results.size(), arguments.size(),
                       callee->results, callee->argument_bytes.size()));
  for (const auto* list : {&results, &arguments}) {
    for (const ptx::Operand& o : *list) {
      if (o.kind != ptx::Operand::Kind::Symbol) f.fail("an argument that is not a .param variable");
      const Place p = f.decoder.find(o, f.stmt);
      if (p.space != Space::Local) f.fail("an argument that is not a .param variable");
      f.decoder.add_reference(f.decoder.constant(p.at, true));
    }
  }
  return callee->run;
}

}  // namespace kiln::rt::sim
