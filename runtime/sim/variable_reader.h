// Declarations of variables and parameters in a PTX text: space, alignment, type, extents, initial value.
#pragma once
#include "runtime/sim/constant_reader.h"

namespace kiln::rt::sim::ptx {

class VariableReader : protected ConstantReader {
 protected:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;  ///< of a variable; small enough for the host
  static constexpr std::int64_t kLargestAlignment = 1 << 16;

  using ConstantReader::ConstantReader;

  Space peek_space() const {
    static constexpr std::pair<std::string_view, Space> kSpaces[] = {
        {".global", Space::Global}, {".shared", Space::Shared}, {".const", Space::Const},
        {".local", Space::Local},   {".param", Space::Param},   {".reg", Space::Reg}};
    for (const auto& [word, space] : kSpaces)
      if (peek().is(word)) return space;
    return Space::Generic;
  }

  /// Space, alignment and type of a declaration; v.bytes becomes the size of one element.
  Ty declaration_words(Variable& v) {
    v.space = peek_space();
    next();
    std::uint32_t vector = 1;
    Ty type = Ty::none;
    bool pointee = false;  // after .ptr: alignment and space of what the parameter points at
    while (peek().kind == Token::Kind::Ident && peek().text[0] == '.') {
      const std::string_view word = next().text.substr(1);
      if (word == "align" && pointee) integer();
      else if (word == "align") v.align = alignment();
      else if (word == "v2") vector = 2;
      else if (word == "v4") vector = 4;
      else if (word == "attribute") skip_parentheses();
      else if (word == "ptr") pointee = true;
      else if (const Ty t = type_named(word); t != Ty::none) type = t;
      else if (!pointee) fail(fmt::format("unknown word '.{}' in a declaration", word));
    }
    if (type == Ty::none) fail("a declaration without type");
    v.bytes = bytes(type) * vector;
    v.align = std::max(v.align, static_cast<std::uint32_t>(v.bytes));
    return type;
  }

  std::uint32_t alignment() {
    const std::int64_t n = integer();
    if (n < 1 || n > kLargestAlignment || (n & (n - 1)))
      fail(fmt::format("an alignment of {}; must be a power of two up to {}", n, kLargestAlignment));
    return static_cast<std::uint32_t>(n);
  }

  void declarator(Variable& v, Ty type) {
    v.name = ident("a variable name");
    bool open = false;  // x[]: as long as its initial value
    while (accept('[')) {
      const std::int64_t n = peek().is(']') ? 0 : integer();
      open |= peek(0).is(']') && n == 0;
      if (n < 0 || (n > 0 && v.bytes > kMostBytes / static_cast<std::uint64_t>(n)))
        fail(fmt::format("variable {} of {} elements of {} bytes; at most {} bytes", v.name, n, v.bytes, kMostBytes));
      v.bytes *= static_cast<std::uint64_t>(n);
      expect(']');
    }
    if (accept('=')) initialiser(v, type);
    if (v.init.size() > v.bytes && !open)
      fail(fmt::format("the initial value of {} has {} bytes, the variable {}", v.name, v.init.size(), v.bytes));
    v.bytes = std::max<std::uint64_t>(v.bytes, v.init.size());
  }

  void skip_parentheses() {
    expect('(');
    while (!accept(')')) next_of("'('");
  }

  void initialiser(Variable& v, Ty type) {
    if (accept('{')) {
      const Deeper deeper(*this);
      if (!peek().is('}')) do
          initialiser(v, type);
        while (accept(','));
      expect('}');
      return;
    }
    const std::uint32_t size = bytes(type);
    std::uint64_t value = 0;
    if (peek().kind == Token::Kind::Ident && !begins_constant()) {
      std::string_view symbol = next().text;
      if (symbol == "generic") {
        expect('(');
        symbol = ident("a variable");
        expect(')');
      }
      if (size != 8) fail(fmt::format("the address of {} in {} bytes; needs 8", symbol, size));
      v.addresses.push_back({v.init.size(), symbol});
      if (accept('+')) value = static_cast<std::uint64_t>(integer_constant());
    } else {
      const Operand o = constant();
      value = static_cast<std::uint64_t>(o.value);
      if (o.kind == Kind::Float64 && type == Ty::f32)
        value = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(o.value)));
    }
    for (std::uint32_t i = 0; i < size; ++i) v.init.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
};

}  // namespace kiln::rt::sim::ptx
