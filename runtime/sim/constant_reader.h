// Constant expressions of a PTX text: numbers, WARP_SZ, and the operators of C on them. Integers have 64 bits, signed
// or not as in C; floats are of double precision.
#pragma once
#include "runtime/sim/token_reader.h"

namespace kiln::rt::sim::ptx {

class ConstantReader : protected TokenReader {
 protected:
  using TokenReader::TokenReader;

  /// The next token begins an expression that is no list in parentheses.
  bool begins_constant() const {
    const Token& t = peek();
    if (t.kind == Token::Kind::Number || t.is("WARP_SZ") || t.is('-') || t.is('~') || t.is('+')) return true;
    if (!t.is('(') && !t.is('!')) return false;
    const Token& u = peek(1);
    return u.kind == Token::Kind::Number || u.is("WARP_SZ") || u.is('-') || u.is('~') || u.is('+') || u.is('(') ||
           u.is('!') || is_cast(u);
  }

  /// Int, or Float64, or Float32 for a single 0f… .
  Operand constant() {
    if (const std::size_t sign = peek().is('-'); is_hex_float(peek(sign).text) && !continues(peek(sign + 1)))
      return number();
    const Value v = ternary();
    Operand o;
    o.kind = v.real ? Kind::Float64 : Kind::Int;
    o.value = v.real ? std::bit_cast<std::int64_t>(v.d) : static_cast<std::int64_t>(v.bits);
    return o;
  }
  std::int64_t integer_constant() {
    const Operand o = constant();
    if (o.kind != Kind::Int) fail("a float where an integer belongs");
    return o.value;
  }

 private:
  struct Value {
    std::uint64_t bits = 0;
    double d = 0;
    bool real = false, is_unsigned = false;
  };
  struct Operator {
    std::string_view text;
    int level;  ///< of C: the higher binds first
  };

  static Value of(std::uint64_t v, bool is_unsigned = false) { return {v, 0, false, is_unsigned}; }
  static double real(const Value& v) {
    return v.real          ? v.d
           : v.is_unsigned ? static_cast<double>(v.bits)
                           : static_cast<double>(static_cast<std::int64_t>(v.bits));
  }
  static bool truth(const Value& v) { return v.real ? v.d != 0 : v.bits != 0; }
  static bool is_cast(const Token& t) { return t.is(".s64") || t.is(".u64"); }
  static bool is_hex_float(std::string_view text) {
    return (text.size() == 10 && (text.starts_with("0f") || text.starts_with("0F"))) ||
           (text.size() == 18 && (text.starts_with("0d") || text.starts_with("0D")));
  }
  /// Whether an operator follows a number.
  static bool continues(const Token& t) {
    return t.kind == Token::Kind::Punct && std::string_view("+-*/<>=!&|^?").find(t.text[0]) != std::string_view::npos;
  }

  /// The binary operator that comes next; level 0: none.
  Operator next_operator() const {
    static constexpr Operator kTwo[] = {{"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6},
                                        {"<=", 7}, {">=", 7}, {"<<", 8}, {">>", 8}};
    static constexpr Operator kOne[] = {{"|", 3}, {"^", 4}, {"&", 5},  {"<", 7}, {">", 7},
                                        {"+", 9}, {"-", 9}, {"*", 10}, {"/", 10}};
    const Token &a = peek(), &b = peek(1);
    if (a.is("%")) return {"%", 10};
    if (a.kind != Token::Kind::Punct) return {"", 0};
    for (const Operator& o : kTwo)
      if (a.text[0] == o.text[0] && b.is(o.text[1])) return o;
    for (const Operator& o : kOne)
      if (a.text[0] == o.text[0]) return o;
    return {"", 0};
  }

  Value ternary() {
    const Deeper deeper(*this);
    const Value condition = binary(1);
    if (!accept('?')) return condition;
    const Value yes = ternary();
    expect(':');
    const Value no = ternary();
    return truth(condition) ? yes : no;
  }

  Value binary(int least) {
    Value left = unary();
    for (Operator o = next_operator(); o.level >= least; o = next_operator()) {
      for (std::size_t i = 0; i < o.text.size(); ++i) next();
      const Value right = binary(o.level + 1);
      left = left.real || right.real ? of_reals(o.text, real(left), real(right)) : of_integers(o.text, left, right);
    }
    return left;
  }

  Value of_reals(std::string_view op, double a, double b) {
    switch (op[0]) {
      case '+': return {0, a + b, true, false};
      case '-': return {0, a - b, true, false};
      case '*': return {0, a * b, true, false};
      case '/': return {0, a / b, true, false};
      case '=': return of(a == b);
      case '!': return of(a != b);
      case '<':
        if (op != "<<") return of(op == "<" ? a < b : a <= b);
        break;
      case '>':
        if (op != ">>") return of(op == ">" ? a > b : a >= b);
        break;
      default:
        if (op == "&&") return of(a != 0 && b != 0);
        if (op == "||") return of(a != 0 || b != 0);
    }
    fail(quoted(op) + " of floats");
  }

  Value of_integers(std::string_view op, const Value& x, const Value& y) {
    const std::uint64_t a = x.bits, b = y.bits;
    const bool u = x.is_unsigned || y.is_unsigned;
    const auto sa = static_cast<std::int64_t>(a), sb = static_cast<std::int64_t>(b);
    if (op == "||") return of(a != 0 || b != 0);
    if (op == "&&") return of(a != 0 && b != 0);
    if (op == "==") return of(a == b);
    if (op == "!=") return of(a != b);
    if (op == "<=") return of(u ? a <= b : sa <= sb);
    if (op == ">=") return of(u ? a >= b : sa >= sb);
    if (op == "<<") return of(b < 64 ? a << b : 0, x.is_unsigned);
    if (op == ">>")
      return of(x.is_unsigned ? (b < 64 ? a >> b : 0) : static_cast<std::uint64_t>(sa >> (b < 63 ? b : 63)),
                x.is_unsigned);
    switch (op[0]) {
      case '<': return of(u ? a < b : sa < sb);
      case '>': return of(u ? a > b : sa > sb);
      case '|': return of(a | b, u);
      case '^': return of(a ^ b, u);
      case '&': return of(a & b, u);
      case '+': return of(a + b, u);
      case '-': return of(a - b, u);
      case '*': return of(a * b, u);
      default: return quotient(op[0] == '/', a, b, u);
    }
  }

  Value quotient(bool divides, std::uint64_t a, std::uint64_t b, bool u) {
    if (b == 0) fail("a division by zero");
    if (u) return of(divides ? a / b : a % b, true);
    if (b == ~std::uint64_t{0}) return of(divides ? 0 - a : 0);  // the least integer has no negative
    const auto sa = static_cast<std::int64_t>(a), sb = static_cast<std::int64_t>(b);
    return of(static_cast<std::uint64_t>(divides ? sa / sb : sa % sb));
  }

  Value unary() {
    const Deeper deeper(*this);
    if (accept('+')) return unary();
    if (accept('!')) return of(!truth(unary()));
    if (accept('-')) {
      Value v = unary();
      v.bits = 0 - v.bits;
      v.d = -v.d;
      return v;
    }
    if (accept('~')) {
      Value v = unary();
      if (v.real) fail("'~' of a float");
      v.bits = ~v.bits;
      return v;
    }
    if (peek().is('(') && is_cast(peek(1))) {
      next();
      const bool to_unsigned = next().is(".u64");
      expect(')');
      Value v = unary();
      if (v.real) fail("a cast of a float");
      v.is_unsigned = to_unsigned;
      return v;
    }
    return primary();
  }

  Value primary() {
    if (accept("WARP_SZ")) return of(32);
    if (accept('(')) {
      const Value v = ternary();
      expect(')');
      return v;
    }
    if (peek().kind != Token::Kind::Number) fail("expected a number, found " + shown());
    const bool marked = peek().text.back() == 'U';
    const Operand o = number();
    if (o.kind == Kind::Float32)
      return {0, static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(o.value))), true, false};
    if (o.kind == Kind::Float64) return {0, std::bit_cast<double>(o.value), true, false};
    return of(static_cast<std::uint64_t>(o.value), marked || o.value < 0);
  }
};

}  // namespace kiln::rt::sim::ptx
