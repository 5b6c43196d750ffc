#include "runtime/sim/lex.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace kiln::rt::sim::ptx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$'; }
constexpr std::string_view kOwn = "// kiln.";

bool starts_ident(char c) { return is_word(c) || c == '.' || c == '%'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    std::vector<Token> out;
    out.reserve(text_.size() / 5);
    for (skip(); at_ < text_.size(); skip()) out.push_back(next());
    out.push_back({Token::Kind::End, {}, line_});
    return out;
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip() {
    while (at_ < text_.size()) {
      if (peek() == '\n') {
        ++line_;
        ++at_;
      } else if (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\0') {
        ++at_;
      } else if (text_.substr(at_, kOwn.size()) == kOwn) {
        at_ += 3;
        return;
      } else if (peek() == '/' && peek(1) == '/') {
        while (at_ < text_.size() && peek() != '\n') ++at_;
      } else if (peek() == '/' && peek(1) == '*') {
        skip_block_comment();
      } else {
        return;
      }
    }
  }

  void skip_block_comment() {
    const std::size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) throw DeviceError(fmt::format("ptx:{}: comment is never closed", line_));
    for (; at_ < end + 2; ++at_) line_ += peek() == '\n';
  }

  Token next() {
    const std::size_t begin = at_;
    const char c = peek();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      const bool decimal = c != '0' || std::string_view("xXfFdDbB").find(peek(1)) == std::string_view::npos;
      for (bool exponent = false; is_word(peek()) || peek() == '.' || (exponent && (peek() == '-' || peek() == '+'));) {
        exponent = decimal && (peek() == 'e' || peek() == 'E');
        ++at_;
      }
      return {Token::Kind::Number, text_.substr(begin, at_ - begin), line_};
    }
    if (starts_ident(c)) {
      // An opcode has its modifiers in one token; directives may stand together (".reg.b16") and are one each.
      for (++at_; is_word(peek()) || (peek() == '.' && c != '.') || (peek() == ':' && peek(1) == ':'); ++at_)
        if (peek() == ':') ++at_;
      return {Token::Kind::Ident, text_.substr(begin, at_ - begin), line_};
    }
    if (c == '"') {
      const std::size_t end = text_.find('"', at_ + 1);
      if (end == std::string_view::npos) throw DeviceError(fmt::format("ptx:{}: string is never closed", line_));
      at_ = end + 1;
      return {Token::Kind::String, text_.substr(begin + 1, end - begin - 1), line_};
    }
    static constexpr std::string_view kPunct = "{}()[]<>,;:@!|+-*/=~&^?";
    if (kPunct.find(c) == std::string_view::npos)
      throw DeviceError(
          fmt::format("ptx:{}: unexpected character '{}' (0x{:02x})", line_, c, static_cast<unsigned char>(c)));
    ++at_;
    return {Token::Kind::Punct, text_.substr(begin, 1), line_};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace

std::vector<Token> lex(std::string_view text) { return Lexer(text).run(); }

}  // namespace kiln::rt::sim::ptx
