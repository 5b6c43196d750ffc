// Parser of the text form (grammar: head of print.cpp). It reads what print() writes, blank lines and `//` comments,
// and checks the form only: whether the function means something is the verifier's question.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>

#include "backend/ir/text.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

enum class Tok { Word, String, Punct, End };

struct Token {
  Tok kind = Tok::End;
  std::string text;  ///< of a string: unquoted
  unsigned line = 1;
};

bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || c == '+' || c == '%' || c == '#' || c == '?';
}

/// Words (names, numbers, %values, #layouts), strings, and punctuation of one character, or `->`.
class Lexer {
 public:
  Lexer(const std::string& text, const char* origin) : text_(text), origin_(origin) { advance(); }

  const Token& peek() const { return token_; }
  Token take() {
    Token t = token_;
    advance();
    return t;
  }
  bool at(const char* punct_or_word) const {
    return token_.kind != Tok::String && token_.kind != Tok::End && token_.text == punct_or_word;
  }
  bool accept(const char* s) {
    if (!at(s)) return false;
    advance();
    return true;
  }
  void expect(const char* s) {
    if (!accept(s)) fail(fmt::format("'{}'", s));
  }
  std::string word(const char* what) {
    if (token_.kind != Tok::Word) fail(what);
    return take().text;
  }
  std::string string(const char* what) {
    if (token_.kind != Tok::String) fail(what);
    return take().text;
  }
  /// Throws "expected <what>, found …" at the current line.
  [[noreturn]] void fail(const std::string& what) const {
    const std::string found = token_.kind == Tok::End      ? "end of text"
                              : token_.kind == Tok::String ? "\"" + token_.text + "\""
                                                           : "'" + token_.text + "'";
    error("expected " + what + ", found " + found);
  }
  [[noreturn]] void error(const std::string& message) const {
    throw UserError(SourceLoc(origin_, token_.line), message);
  }

 private:
  void skip_blank() {
    while (pos_ < text_.size()) {
      if (text_.compare(pos_, 2, "//") == 0) pos_ = std::min(text_.find('\n', pos_), text_.size());
      else if (text_[pos_] == '\n') ++line_, ++pos_;
      else if (text_[pos_] == ' ' || text_[pos_] == '\t' || text_[pos_] == '\r') ++pos_;
      else break;
    }
  }
  void advance() {
    skip_blank();
    token_ = {Tok::End, "", line_};
    if (pos_ >= text_.size()) return;
    if (text_[pos_] == '"') return read_string();
    if (text_.compare(pos_, 2, "->") == 0) {
      token_ = {Tok::Punct, "->", line_};
      pos_ += 2;
      return;
    }
    std::size_t end = pos_;
    while (end < text_.size() && word_char(text_[end])) ++end;
    token_.kind = end > pos_ ? Tok::Word : Tok::Punct;
    end = std::max(end, pos_ + 1);
    token_.text = text_.substr(pos_, end - pos_);
    pos_ = end;
  }
  void read_string() {
    token_.kind = Tok::String;
    for (++pos_; pos_ < text_.size() && text_[pos_] != '"' && text_[pos_] != '\n'; ++pos_) {
      if (text_[pos_] == '\\' && pos_ + 1 < text_.size()) token_.text += text_[++pos_] == 'n' ? '\n' : text_[pos_];
      else token_.text += text_[pos_];
    }
    if (pos_ >= text_.size() || text_[pos_] != '"') error("expected '\"' that ends the string");
    ++pos_;
  }

  const std::string& text_;
  const char* origin_;
  std::size_t pos_ = 0;
  unsigned line_ = 1;
  Token token_;
};

class Parser {
 public:
  Parser(const std::string& text, const std::string& origin) : lex_(text, intern_file(origin)) {}

  Function function() {
    lex_.expect("kernel");
    f_.name = lex_.string("kernel name in quotes");
    lex_.expect("stage");
    lex_.expect("=");
    f_.stage = one_of<Stage>("stage", Stage::Synced);
    f_.loc = location();
    if (lex_.accept("exec")) exec();
    while (lex_.accept("param")) param();
    while (lex_.accept("layout")) layout();
    lex_.expect("{");
    while (!lex_.accept("}")) instruction(f_.body());
    if (lex_.peek().kind != Tok::End) lex_.fail("end of text after the kernel");
    return std::move(f_);
  }

 private:
  // --- words and numbers
  // ------------------------------------------------------------------------------------------------
  template <class N>
  bool number_from(const std::string& s, N& n, int base = 10) const {
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n, base);
    return error == std::errc{} && end == s.data() + s.size() && !s.empty();
  }
  std::int64_t integer(const char* what) {
    std::int64_t n = 0;
    if (lex_.peek().kind != Tok::Word || !number_from(lex_.peek().text, n)) lex_.fail(what);
    lex_.take();
    return n;
  }
  int small(const char* what) {
    const std::int64_t n = integer(what);
    if (n < INT32_MIN || n > INT32_MAX) lex_.error(fmt::format("{} {} does not fit 32 bits", what, n));
    return int(n);
  }
  /// `key=` integer.
  int setting(const char* key) {
    lex_.expect(key);
    lex_.expect("=");
    return small(key);
  }
  /// A word that name(E) gives for an E from 0 to `last`.
  template <class E>
  E one_of(const char* what, E last) {
    std::string names;
    for (int i = 0; i <= int(last); ++i) {
      if (lex_.accept(name(E(i)))) return E(i);
      names += (i ? ", " : "") + std::string(name(E(i)));
    }
    lex_.fail(fmt::format("{}: one of {}", what, names));
  }

  // --- header
  // -----------------------------------------------------------------------------------------------------------
  SourceLoc location() {
    if (!lex_.accept("loc")) return {};
    lex_.expect("(");
    const char* file = intern_file(lex_.string("file name in quotes"));
    lex_.expect(":");
    const std::int64_t line = integer("line number");
    lex_.expect(":");
    const std::int64_t column = integer("column number");
    lex_.expect(")");
    return {file, unsigned(line), unsigned(column)};
  }

  void exec() {
    Exec e;
    lex_.expect("team");
    lex_.expect("=");
    e.team = one_of<Team>("team", Team::Cluster);
    e.warps = setting("warps");
    e.programs_per_cta = setting("programs_per_cta");
    e.cluster = setting("cluster");
    e.max_registers = setting("max_registers");
    e.register_goal = setting("register_goal");
    if (lex_.at("producer")) e.producer = setting("producer");
    f_.exec = e;
  }

  void param() {
    Param p;
    if (lex_.peek().kind == Tok::String) p.name = lex_.take().text;
    lex_.expect(":");
    p.type = type();
    lex_.expect("access");
    lex_.expect("=");
    if (lex_.accept("read")) p.access = rt::Access::Read;
    else if (lex_.accept("write")) p.access = rt::Access::Write;
    else if (lex_.accept("readwrite")) p.access = rt::Access::ReadWrite;
    else lex_.fail("access: one of read, write, readwrite");
    if (lex_.at("align")) p.align = setting("align");
    p.is_one = lex_.accept("one");
    p.is_extent = lex_.accept("extent");
    p.disjoint = lex_.accept("disjoint");
    f_.params.push_back(std::move(p));
  }

  void layout() {
    const std::string label = fmt::format("#{}", layouts_.size());
    lex_.expect(label.c_str());
    lex_.expect("=");
    lex_.expect("[");
    std::vector<std::pair<Hw, LinearLayout::Coord>> bits;
    while (!lex_.accept("]")) {
      const Hw h = one_of<Hw>("']' or hardware dimension", Hw::Offset);
      lex_.expect("=");
      do bits.emplace_back(h, coordinate());
      while (lex_.at("("));
    }
    lex_.expect("->");
    const Shape shape = lex_.accept("scalar") ? Shape{} : extents(lex_.word("extents of the layout"));
    for (std::int64_t extent : shape)
      if (extent < 1 || !std::has_single_bit(std::uint64_t(extent)))
        lex_.error(fmt::format("extent {} of a layout is no power of two", extent));
    LinearLayout l(shape);
    for (auto& [h, basis] : bits) {
      check_basis(basis, shape);
      l.add_bit(h, std::move(basis));
    }
    layouts_.push_back(f_.intern(l));
  }
  void check_basis(const LinearLayout::Coord& basis, const Shape& shape) const {
    if (basis.size() != shape.size())
      lex_.error(fmt::format("basis of rank {} in a layout of rank {}", basis.size(), shape.size()));
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (basis[i] < 0 || basis[i] >= shape[i])
        lex_.error(fmt::format("basis ({}) is outside of {}", fmt::join(basis, ","), fmt::join(shape, "x")));
  }
  LinearLayout::Coord coordinate() {
    LinearLayout::Coord c;
    lex_.expect("(");
    if (lex_.accept(")")) return c;
    do c.push_back(integer("coordinate"));
    while (lex_.accept(","));
    lex_.expect(")");
    return c;
  }
  Shape extents(const std::string& text) const {
    Shape shape;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('x', at), text.size());
      std::int64_t n = 0;
      if (!number_from(text.substr(at, end - at), n))
        lex_.error(fmt::format("expected extents like 8x128, found '{}'", text));
      shape.push_back(n);
      at = end + 1;
    }
    return shape;
  }

  // --- types
  // ------------------------------------------------------------------------------------------------------------
  DType dtype(const std::string& word) const {
    const auto d = dtype_named(word);
    if (!d) lex_.error(fmt::format("expected a type, found '{}'", word));
    return *d;
  }
  /// dtype, or ptr<[const] dtype>, whose first word is `word`.
  Type element(const std::string& word) {
    if (word != "ptr") return Type::scalar(dtype(word));
    lex_.expect("<");
    const bool shared = lex_.accept("shared"), read_only = lex_.accept("const");
    Type t = Type::pointer(dtype(lex_.word("element type")), read_only);
    t.shared = shared;
    lex_.expect(">");
    return t;
  }
  Type type() {
    const std::string word = lex_.word("type");
    if (word != "tile") return element(word);
    lex_.expect("<");
    const std::string inner = lex_.word("shape and element type");  // 128x64xf32, 8xptr
    std::size_t split = 0;  // after the last "x" that follows a digit-only extent
    while (split < inner.size() && inner[split] >= '0' && inner[split] <= '9') {
      const std::size_t x = inner.find('x', split);
      if (x == std::string::npos)
        lex_.error(fmt::format("expected an element type after the shape, found '{}'", inner));
      split = x + 1;
    }
    Type t = element(inner.substr(split));
    t.tile = true;
    if (split > 0) t.shape = extents(inner.substr(0, split - 1));
    if (lex_.accept(",")) t.layout = layout_ref();
    lex_.expect(">");
    return t;
  }
  LayoutId layout_ref() {
    std::uint32_t id = 0;
    const std::string& s = lex_.peek().text;
    if (s.size() < 2 || s[0] != '#' || !number_from(s.substr(1), id) || id >= layouts_.size())
      lex_.fail(fmt::format("one of the {} layouts, as #n", layouts_.size()));
    lex_.take();
    return layouts_[id];
  }

  // --- instructions
  // -----------------------------------------------------------------------------------------------------
  bool at_value() const { return lex_.peek().kind == Tok::Word && lex_.peek().text[0] == '%'; }
  std::string value_name() {
    if (!at_value()) lex_.fail("value, as %n");
    return lex_.take().text;
  }
  Value value() {
    if (at_value() && !values_.count(lex_.peek().text))
      lex_.error("value " + lex_.peek().text + " is not defined before its use");
    return values_.at(value_name());
  }
  void bind(const std::string& name, Value v) {
    if (!values_.emplace(name, v).second) lex_.error("value " + name + " is defined twice");
  }

  template <class F>
  void list(F&& item) {
    do item();
    while (lex_.accept(","));
  }

  void instruction(RegionId r) {
    std::vector<std::string> results;
    if (at_value()) {
      list([&] { results.push_back(value_name()); });
      lex_.expect("=");
    }
    if (lex_.peek().kind != Tok::Word) lex_.fail("instruction or '}'");
    const auto op = op_named(lex_.peek().text);
    if (!op) lex_.error("expected an op, found '" + lex_.peek().text + "'");
    const unsigned line = lex_.take().line;  // what stands on a later one belongs to the next instruction
    std::vector<Attr> attrs;
    while (lex_.peek().kind == Tok::Word && attr_named(lex_.peek().text)) attrs.push_back(attribute());
    std::vector<Value> operands;
    if (at_value() && lex_.peek().line == line) list([&] { operands.push_back(value()); });
    std::vector<Type> types;
    if (lex_.accept(":")) list([&] { types.push_back(type()); });
    if (types.size() != results.size())
      lex_.error(fmt::format("{}: {} results, {} types", mnemonic(*op), results.size(), types.size()));
    const InstId i = f_.create(*op, std::move(operands), std::move(types), std::move(attrs), location());
    f_.append(r, i);
    for (int k = 0; k < info(*op).regions; ++k) region(i);
    for (std::size_t k = 0; k < results.size(); ++k) bind(results[k], f_.inst(i).results[k]);
  }

  void region(InstId owner) {
    lex_.expect("{");
    const RegionId r = f_.add_region(owner);
    const auto outer = values_;  // names defined inside end with the region
    if (lex_.accept("(")) {
      list([&] {
        const std::string name = value_name();
        lex_.expect(":");
        bind(name, f_.add_region_param(r, type()));
      });
      lex_.expect(")");
    }
    while (!lex_.accept("}")) instruction(r);
    values_ = outer;
  }

  Attr attribute() {
    const AttrKey key = *attr_named(lex_.word("attribute"));
    lex_.expect("=");
    if (lex_.peek().kind == Tok::String) return {key, lex_.take().text};
    switch (info(key).kind) {
      case AttrKind::Literal: return {key, literal()};
      case AttrKind::Cache: return {key, std::int64_t(one_of<CacheHint>("cache hint", CacheHint::EvictLast))};
      case AttrKind::Rmw: return {key, std::int64_t(one_of<Rmw>("way to combine", Rmw::Exchange))};
      case AttrKind::Order: return {key, std::int64_t(one_of<MemoryOrder>("memory order", MemoryOrder::AcqRel))};
      case AttrKind::Scope: return {key, std::int64_t(one_of<MemoryScope>("memory scope", MemoryScope::System))};
      case AttrKind::Precision: return {key, std::int64_t(one_of<Precision>("precision", Precision::Bf16x3))};
      case AttrKind::Unit: return {key, std::int64_t(one_of<DotUnit>("unit", DotUnit::F8))};
      case AttrKind::Ints: return {key, integers()};
      case AttrKind::Text: lex_.fail("text in quotes");
      case AttrKind::Int:
      case AttrKind::Flag: return {key, integer("integer")};
    }
    return {key, std::int64_t(0)};
  }

  std::vector<std::int64_t> integers() {
    std::vector<std::int64_t> list;
    lex_.expect("[");
    if (lex_.accept("]")) return list;
    do list.push_back(integer("integer"));
    while (lex_.accept(","));
    lex_.expect("]");
    return list;
  }

  Literal literal() {
    const DType d = dtype(lex_.word("literal, as f32(1.5)"));
    lex_.expect("(");
    const std::string digits = lex_.word("number");
    std::uint64_t bits = 0;
    std::int64_t integer = 0;
    double real = 0;
    Literal l{d, 0};
    if (digits.starts_with("0x") && number_from(digits.substr(2), bits, 16)) l.bits = bits;
    else if (d == DType::u64 && number_from(digits, bits)) l.bits = bits;
    else if (!is_float(d) && number_from(digits, integer)) l = Literal::of_int(d, integer);
    else if (is_float(d) && real_from(digits, real)) l = Literal::of_float(d, real);
    else lex_.error(fmt::format("'{}' is no value of {}", digits, name(d)));
    if (!is_float(d) && d != DType::u64 && digits[1] != 'x' && l.as_int() != integer)
      lex_.error(fmt::format("{} does not fit {}", digits, name(d)));
    lex_.expect(")");
    return l;
  }
  static bool real_from(const std::string& s, double& v) {
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
    return error == std::errc{} && end == s.data() + s.size() && std::isfinite(v);
  }

  Lexer lex_;
  Function f_;
  std::vector<LayoutId> layouts_;
  std::map<std::string, Value> values_;
};

}  // namespace

Function parse(const std::string& text, const std::string& origin) { return Parser(text, origin).function(); }

}  // namespace kiln::ir
