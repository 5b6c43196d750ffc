// Tokens of PTX text. Dots and "::" belong to identifiers ("ld.shared::cta.b32", "%tid.x"), so an opcode is one token.
// A comment that begins with "// kiln." is a statement of Kiln's own: its text behind the slashes is split like any other.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace kiln::rt::sim::ptx {

struct Token {
  enum class Kind : std::uint8_t { Ident, Number, String, Punct, End };
  Kind kind = Kind::End;
  std::string_view text;
  std::uint32_t line = 0;

  bool is(char c) const { return kind == Kind::Punct && text[0] == c; }
  bool is(std::string_view word) const { return kind == Kind::Ident && text == word; }
};

/// Splits `text`; the last token is End. Throws DeviceError at a character no token starts with.
std::vector<Token> lex(std::string_view text);

}  // namespace kiln::rt::sim::ptx
