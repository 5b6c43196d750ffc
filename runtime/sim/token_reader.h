// The tokens of a PTX text, read one after another: words, numbers and brackets, for recursive descent.
#pragma once
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/sim/lex.h"
#include "runtime/sim/ptx.h"

namespace kiln::rt::sim::ptx {

class TokenReader {
 protected:
  using Kind = Operand::Kind;
  /// { } in one another, of statements, operands and initial values; far beyond what any compiler writes.
  static constexpr std::size_t kDeepest = 64;

  explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool accept(char c) { return peek().is(c) && (next(), true); }
  bool accept(std::string_view word) { return peek().is(word) && (next(), true); }

  [[noreturn]] void fail(const std::string& what) const { fail_at(peek().line, what); }
  [[noreturn]] static void fail_at(std::uint32_t line, const std::string& what) {
    throw DeviceError("ptx:" + std::to_string(line) + ": " + what);
  }
  static std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }
  std::string shown() const { return peek().kind == Token::Kind::End ? "the end of the text" : quoted(peek().text); }

  /// Counts how deep the caller is nested while it lives.
  class Deeper {
   public:
    explicit Deeper(TokenReader& p) : p_(p) {
      if (++p_.depth_ > kDeepest)
        p_.fail("more than " + std::to_string(kDeepest) + " pairs of brackets in one another");
    }
    ~Deeper() { --p_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    TokenReader& p_;
  };

  void expect(char c) {
    if (!accept(c)) fail("expected " + quoted({&c, 1}) + ", found " + shown());
  }
  std::string_view ident(const char* what) {
    if (peek().kind != Token::Kind::Ident) fail(std::string("expected ") + what + ", found " + shown());
    return next().text;
  }
  /// The next token of something that must go on.
  void next_of(const char* what) {
    if (peek().kind == Token::Kind::End) fail(std::string(what) + " is never closed");
    next();
  }
  void skip_braces() {
    expect('{');
    for (int depth = 1; depth > 0;) {
      if (peek().kind == Token::Kind::End) fail("'{' is never closed");
      depth += peek().is('{') - peek().is('}');
      next();
    }
  }

  // --- numbers ---
  std::int64_t integer() {
    const bool minus = accept('-');
    if (peek().kind != Token::Kind::Number) fail("expected a number, found " + shown());
    std::string_view text = next().text;
    while (!text.empty() && (text.back() == 'U' || text.back() == 'u')) text.remove_suffix(1);
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) base = 16, text.remove_prefix(2);
    else if (text.starts_with("0b") || text.starts_with("0B")) base = 2, text.remove_prefix(2);
    else if (text.size() > 1 && text[0] == '0') base = 8, text.remove_prefix(1);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size()) {
      --at_;
      fail(quoted(peek().text) + " is not an integer");
    }
    return static_cast<std::int64_t>(minus ? 0 - value : value);
  }

  /// Integers, 0fXXXXXXXX, 0dXXXXXXXXXXXXXXXX and decimal floating numbers (which PTX reads as f64).
  Operand number() {
    Operand o;
    const std::size_t sign = peek().is('-');
    const std::string_view text = peek(sign).text;
    if (text.size() == 10 && (text.starts_with("0f") || text.starts_with("0F")))
      return hex_float(Kind::Float32, sign != 0);
    if (text.size() == 18 && (text.starts_with("0d") || text.starts_with("0D")))
      return hex_float(Kind::Float64, sign != 0);
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    if (text.find('.') != std::string_view::npos || (!hex && text.find_first_of("eE") != std::string_view::npos)) {
      at_ += sign;
      const std::string digits(text);
      char* end = nullptr;
      const double v = std::strtod(digits.c_str(), &end);
      if (*end != 0) fail(quoted(text) + " is not a number");
      next();
      o.kind = Kind::Float64;
      o.value = std::bit_cast<std::int64_t>(sign ? -v : v);
      return o;
    }
    o.kind = Kind::Int;
    o.value = integer();
    return o;
  }
  Operand hex_float(Kind kind, bool minus) {
    at_ += minus;
    const std::string_view text = next().text.substr(2);
    std::uint64_t v = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v, 16);
    if (error != std::errc() || end != text.data() + text.size()) fail(quoted(text) + " is not a number");
    if (minus) v ^= kind == Kind::Float32 ? 0x80000000u : 0x8000000000000000u;
    Operand o;
    o.kind = kind;
    o.value = static_cast<std::int64_t>(v);
    return o;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0, depth_ = 0;
};

}  // namespace kiln::rt::sim::ptx
