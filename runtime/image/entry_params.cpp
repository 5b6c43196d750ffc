#include "runtime/image/entry_params.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace kiln::rt {
namespace {

constexpr std::uint64_t kMostAlignment = 128;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; }

/// Words of PTX text, without comments and strings. A directive is a word with its dot, ".param.u64" are two.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  /// The next one, or one other character; empty at the end.
  std::string_view next() {
    skip();
    if (rest_.empty()) return {};
    std::size_t n = 1;
    if (rest_[0] == '.' || is_word(rest_[0]))
      while (n < rest_.size() && is_word(rest_[n])) ++n;
    return take(n);
  }
  std::string_view peek() const { return Words(*this).next(); }
  bool accept(std::string_view word) {
    if (peek() != word) return false;
    next();
    return true;
  }

 private:
  std::string_view take(std::size_t n) {
    const std::string_view word = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return word;
  }
  void skip_past(std::string_view end, std::size_t from) {
    const std::size_t at = rest_.find(end, from);
    rest_.remove_prefix(at == rest_.npos ? rest_.size() : at + end.size());
  }
  void skip() {
    while (!rest_.empty()) {
      if (std::isspace(static_cast<unsigned char>(rest_[0])) || rest_[0] == '\0') rest_.remove_prefix(1);
      else if (rest_.starts_with("//")) skip_past("\n", 2);
      else if (rest_.starts_with("/*")) skip_past("*/", 2);
      else if (rest_[0] == '"') skip_past("\"", 1);
      else return;
    }
  }

  std::string_view rest_;
};

/// Of a hexadecimal digit; 16 for any other character.
unsigned digit_value(char c) {
  if (c >= '0' && c <= '9') return unsigned(c - '0');
  if (c >= 'a' && c <= 'f') return unsigned(c - 'a') + 10;
  return c >= 'A' && c <= 'F' ? unsigned(c - 'A') + 10 : 16;
}

/// Bytes of a fundamental or opaque type; 0 for any other word.
std::uint32_t type_bytes(std::string_view word) {
  static constexpr std::pair<std::string_view, std::uint32_t> kTypes[] = {
      {".b8", 1},    {".s8", 1},     {".u8", 1},         {".b16", 2},    {".s16", 2}, {".u16", 2},
      {".f16", 2},   {".bf16", 2},   {".b32", 4},        {".s32", 4},    {".u32", 4}, {".f32", 4},
      {".f16x2", 4}, {".bf16x2", 4}, {".b64", 8},        {".s64", 8},    {".u64", 8}, {".f64", 8},
      {".b128", 16}, {".texref", 8}, {".samplerref", 8}, {".surfref", 8}};
  for (const auto& [name, n] : kTypes)
    if (word == name) return n;
  return 0;
}

/// Reads the parameter list behind an entry's name.
class Header {
 public:
  Header(Words words, std::string_view entry) : words_(words), entry_(entry) {}

  std::vector<ParamSlot> run() {
    std::vector<ParamSlot> slots;
    if (!words_.accept("(") || words_.accept(")")) return slots;
    do slots.push_back(parameter());
    while (words_.accept(","));
    expect(")");
    return slots;
  }

 private:
  /// `.param [.align n] .type [.ptr [.space] [.align n]] name[count]…`
  ParamSlot parameter() {
    expect(".param");
    std::uint64_t align = 1, element = 0, vector = 1;
    bool pointee = false;  // behind .ptr: what the parameter points at
    while (words_.peek().starts_with('.')) {
      const std::string_view word = words_.next();
      if (word == ".align") {
        const std::uint64_t n = alignment();
        if (!pointee) align = n;
      } else if (word == ".ptr") pointee = true;
      else if (word == ".v2") vector = 2;
      else if (word == ".v4") vector = 4;
      else if (const std::uint32_t n = type_bytes(word)) element = n;
      else if (!pointee) fail(fmt::format("'{}' in a parameter", word));
    }
    if (element == 0) fail("a parameter without a type");
    if (const std::string_view name = words_.next(); name.empty() || !is_word(name[0]))
      fail(fmt::format("expected the name of a parameter, found '{}'", name));
    element *= vector;
    std::uint64_t size = element;
    while (words_.accept("[")) {
      size = std::min<std::uint64_t>(size * number(), kMostParamBytes + 1);
      expect("]");
    }
    return place(size, std::max(align, element));
  }

  ParamSlot place(std::uint64_t size, std::uint64_t align) {
    const std::uint64_t at = (used_ + align - 1) / align * align;
    used_ = at + size;
    if (used_ > kMostParamBytes) fail(fmt::format("its parameters take more than {} bytes", kMostParamBytes));
    return {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(align)};
  }

  std::uint64_t alignment() {
    const std::uint64_t n = number();
    if (!std::has_single_bit(n) || n > kMostAlignment)
      fail(fmt::format("an alignment of {}; must be a power of two up to {}", n, kMostAlignment));
    return n;
  }

  /// Decimal, 0x hexadecimal, 0b binary or 0 octal, with an optional U; whatever is larger counts as 2^32.
  std::uint64_t number() {
    const std::string_view word = words_.next();
    std::string_view digits = word;
    unsigned base = 10;
    if (digits.ends_with('U')) digits.remove_suffix(1);
    if (digits.starts_with("0x") || digits.starts_with("0X")) base = 16, digits.remove_prefix(2);
    else if (digits.starts_with("0b") || digits.starts_with("0B")) base = 2, digits.remove_prefix(2);
    else if (digits.starts_with('0') && digits.size() > 1) base = 8, digits.remove_prefix(1);
    std::uint64_t value = 0;
    bool good = !digits.empty();
    for (const char c : digits) {
      const unsigned digit = digit_value(c);
      good = good && digit < base;
      value = std::min<std::uint64_t>(value * base + digit, std::uint64_t{1} << 32);
    }
    if (!good) fail(fmt::format("expected a number, found '{}'", word));
    return value;
  }

  void expect(std::string_view word) {
    if (const std::string_view found = words_.next(); found != word)
      fail(fmt::format("expected '{}', found '{}'", word, found.empty() ? "the end" : found));
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(fmt::format("the header of entry {} cannot be read: {}", entry_, why));
  }

  Words words_;
  std::string_view entry_;
  std::uint64_t used_ = 0;
};

}  // namespace

std::vector<ParamSlot> entry_params(std::string_view ptx, std::string_view entry) {
  Words words(ptx);
  for (std::string_view word = words.next(); !word.empty(); word = words.next())
    if (word == ".entry" && words.next() == entry) return Header(words, entry).run();
  return {};
}

std::vector<ParamSlot> wide_entry_params(std::string_view ptx, std::string_view entry) {
  std::vector<ParamSlot> slots = entry_params(ptx, entry);
  const bool wide =
      std::any_of(slots.begin(), slots.end(), [](const ParamSlot& s) { return s.align > kPackedAlignment; });
  return wide ? slots : std::vector<ParamSlot>{};
}

}  // namespace kiln::rt
