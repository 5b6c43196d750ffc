// Recursive descent over the tokens of lex(). Debug sections are skipped; .file and .loc are kept for messages.
#include <fmt/format.h>

#include <charconv>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/sim/lex.h"
#include "runtime/sim/ptx.h"
#include "runtime/sim/register_names.h"
#include "runtime/sim/variable_reader.h"

namespace kiln::rt::sim::ptx {
namespace {

using Kind = Operand::Kind;

// What a text may ask for; far beyond what any compiler writes, and small enough that no text makes the host suffer.
constexpr std::uint64_t kMostRegisters = 1 << 20;  // that a function declares

bool is_register_name(std::string_view s) { return !s.empty() && s[0] == '%'; }

class Parser : VariableReader {
 public:
  Parser(Module& module, std::vector<Token> tokens)
      : VariableReader(std::move(tokens)), module_(module), names_(module) {}

  void run() {
    while (peek().kind != Token::Kind::End) toplevel();
    if (module_.version == 0) fail("the text has no .version");
    if (module_.target.empty()) fail("the text has no .target");
  }

 private:
  // --- module ---
  void toplevel() {
    if (peek().is(".version")) return version();
    if (accept(".target")) {
      module_.target = ident("a target");
      while (accept(',')) ident("a target option");
      return;
    }
    if (const std::uint32_t line = peek().line; accept(".address_size")) {
      if (const std::int64_t n = integer(); n != 64) fail_at(line, fmt::format(".address_size is {}, must be 64", n));
      return;
    }
    if (directive()) return;
    linkage();
  }

  void version() {
    next();
    const std::string_view text = next().text;
    const std::size_t dot = text.find('.');
    int major = 0, minor = 0;
    if (dot == std::string_view::npos || !digits(text.substr(0, dot), major) || !digits(text.substr(dot + 1), minor) ||
        major > 99 || minor > 9)
      fail(fmt::format("expected a version as 8.0, found '{}'", text));
    module_.version = major * 10 + minor;
  }
  /// The whole text as a number.
  template <class T>
  static bool digits(std::string_view text, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return !text.empty() && error == std::errc() && end == text.data() + text.size();
  }

  /// Directives that may stand anywhere; true if one was read.
  bool directive() {
    if (accept(".file")) {
      const auto index = static_cast<std::uint32_t>(integer());
      module_.files[index] = std::string(peek().text);
      next();
      while (accept(',')) integer();
      return true;
    }
    if (peek().is(".loc")) return loc(), true;
    if (accept(".section")) {
      ident("a section name");
      skip_braces();
      return true;
    }
    if (accept(".pragma")) {
      while (!accept(';')) next_of(".pragma");
      return true;
    }
    return false;
  }

  void loc() {
    const std::uint32_t line = next().line;
    loc_.file = static_cast<std::uint32_t>(integer());
    loc_.line = static_cast<std::uint32_t>(integer());
    loc_.column = static_cast<std::uint32_t>(integer());
    while (peek().kind != Token::Kind::End && peek().line == line) next();  // function_name, inlined_at
  }

  void linkage() {
    bool external = false;
    for (;; next()) {
      if (peek().is(".extern")) external = true;
      else if (!peek().is(".visible") && !peek().is(".weak") && !peek().is(".common")) break;
    }
    if (peek().is(".entry") || peek().is(".func")) return function(external);
    if (const Space s = peek_space(); s == Space::Global || s == Space::Const || s == Space::Shared) {
      return variables(module_.variables, external, nullptr);
    }
    fail(fmt::format("expected a directive, function or variable, found {}", shown()));
  }

  // --- variables ---
  /// `.space [.align N] [.vN] .type name[dims] [= init] {, name…};` With `scope`, the names become visible there.
  void variables(std::vector<Variable>& into, bool external, Scope* scope) {
    Variable v;
    v.external = external;
    const Ty type = declaration_words(v);
    const Variable words = v;
    do {
      v = words;
      declarator(v, type);
      const bool fresh = scope ? scope->variables.insert({v.name, static_cast<std::int32_t>(into.size())}).second
                               : external || variables_.insert(v.name).second;
      if (!fresh) fail(fmt::format("variable {} is declared twice", v.name));
      into.push_back(v);
    } while (accept(','));
    expect(';');
  }

  // --- functions ---
  void function(bool external) {
    Function f;
    f.entry = next().text == ".entry";
    f.line = peek().line;
    if (peek().is('(')) parameters(f.results);
    f.name = ident("a function name");
    if (peek().is('(')) parameters(f.params);
    while (peek().kind == Token::Kind::Ident) performance_directive(f);
    loc_ = {};
    if (accept(';')) return;  // a declaration: the definition follows, or a call of it is refused when it is decoded
    if (external) fail(fmt::format("function {} is .extern but has a body", f.name));
    f_ = &f;
    names_.clear();
    block(0);
    f_ = nullptr;
    if (!functions_.insert(f.name).second) fail_at(f.line, fmt::format("{} is defined twice", f.name));
    module_.functions.push_back(std::move(f));
  }

  void parameters(std::vector<Variable>& into) {
    expect('(');
    if (accept(')')) return;
    do {
      if (peek_space() != Space::Param) fail(fmt::format("expected .param, found {}", shown()));
      Variable v;
      const Ty type = declaration_words(v);
      declarator(v, type);
      into.push_back(v);
    } while (accept(','));
    expect(')');
  }

  void performance_directive(Function& f) {
    const std::string_view word = ident("a directive");
    if (word == ".reqntid") triple(f.reqntid);
    else if (word == ".maxntid") triple(f.maxntid);
    else if (word == ".reqnctapercluster") triple(f.cluster);
    else if (word == ".minnctapersm") f.minnctapersm = static_cast<std::uint32_t>(integer());
    else if (word == ".maxnreg") f.maxnreg = static_cast<std::uint32_t>(integer());
    else if (word == ".maxclusterrank") integer();
    else if (word == ".explicitcluster" || word == ".blocksareclusters" || word == ".noreturn") return;
    else if (word == ".pragma") {
      while (!accept(';')) next_of(".pragma");
    } else fail(fmt::format("unknown directive '{}'", word));
  }
  void triple(std::array<std::uint32_t, 3>& out) {
    out = {1, 1, 1};
    for (std::size_t i = 0; i < 3; ++i) {
      out[i] = static_cast<std::uint32_t>(integer());
      if (!accept(',')) break;
    }
  }

  // --- bodies ---
  void block(std::uint32_t parent) {
    expect('{');
    const Deeper deeper(*this);
    names_.open(static_cast<std::uint32_t>(f_->scope_parents.size()));
    f_->scope_parents.push_back(parent);
    while (!accept('}')) statement();
    names_.close();
  }

  void statement() {
    if (peek().kind == Token::Kind::End) fail(fmt::format("the body of {} is never closed", f_->name));
    if (peek().is('{')) return block(names_.innermost().id);
    if (accept(';')) return;
    if (peek().is('@')) return instruction();
    if (peek().kind != Token::Kind::Ident) fail(fmt::format("expected an instruction, found {}", shown()));
    if (peek(1).is(':')) return label();
    if (directive()) return;
    if (peek().is(".reg")) return registers();
    if (peek_space() != Space::Generic) return variables(f_->locals, false, &names_.innermost());
    if (peek().is(".branchtargets")) fail(".branchtargets without a label");
    if (peek().text[0] == '.') fail(fmt::format("unknown directive '{}'", peek().text));
    instruction();
  }

  void label() {
    const auto [kind, name, line] = next();
    next();
    if (accept(".branchtargets")) {
      auto& table = f_->branch_tables[{names_.innermost().id, name}];
      do table.push_back(ident("a label"));
      while (accept(','));
      expect(';');
      return;
    }
    if (accept(".callprototype") || accept(".calltargets")) {  // of indirect calls, which are refused where they are
      while (!peek().is(';')) next_of("a call's prototype");
      next();
      return;
    }
    const auto [it, fresh] =
        f_->labels.insert({{names_.innermost().id, name}, static_cast<std::uint32_t>(f_->body.size())});
    if (!fresh) fail_at(line, fmt::format("label {} is defined twice", name));
  }

  void registers() {
    next();
    std::uint32_t width = 1;
    if (accept(".v2")) width = 2;
    else if (accept(".v4")) width = 4;
    const std::string_view word = ident("a register type");
    const Ty type = type_named(word.substr(1));
    if (type == Ty::none) fail(fmt::format("unknown register type '{}'", word));
    if (width > 1 && (type == Ty::pred || bits(type) * static_cast<int>(width) > 128))
      fail(fmt::format("a register of {} times .{}", width, name(type)));
    do {
      const std::string_view name = ident("a register name");
      const bool numbered = accept('<');
      std::int64_t n = 1;
      if (numbered) {
        n = integer();
        expect('>');
      }
      const std::uint64_t room = (kMostRegisters - std::min(kMostRegisters, f_->regs.size())) / width;
      if (n < 0 || static_cast<std::uint64_t>(n) > room)
        fail(fmt::format("{} more registers after {}; a function may declare {}", n, f_->regs.size(), kMostRegisters));
      const auto count = static_cast<std::uint32_t>(n);
      if (!names_.declare(*f_, name, numbered, count, width)) fail(fmt::format("register {} is declared twice", name));
      f_->regs.insert(f_->regs.end(), std::size_t{count} * width, type);
    } while (accept(','));
    expect(';');
  }

  void instruction() {
    Stmt s;
    s.scope = names_.innermost().id;
    s.loc = loc_;
    const std::size_t first = at_;
    if (accept('@')) {
      s.guard_negated = accept('!');
      const auto reg = names_.find(peek().text);
      if (!reg) fail(fmt::format("unknown predicate {}", shown()));
      if (f_->regs[*reg] != Ty::pred) fail(fmt::format("guard {} is not a predicate", shown()));
      next();
      s.guard = static_cast<std::int32_t>(*reg);
    }
    s.line = peek().line;
    s.opcode = ident("an instruction");
    in_call_ = s.opcode == "call" || s.opcode == "call.uni";
    if (!peek().is(';')) do
        s.operands.push_back(operand());
      while (accept(','));
    const Token& last = peek();
    if (!last.is(';')) fail(fmt::format("expected ';' after {}, found {}", s.opcode, shown()));
    s.text = std::string_view(tokens_[first].text.data(),
                              static_cast<std::size_t>(last.text.data() - tokens_[first].text.data()));
    next();
    f_->body.push_back(std::move(s));
  }

  Operand operand() {
    Operand o = simple_operand();
    if (accept('|')) o.parts = {simple_operand()};
    return o;
  }

  Operand simple_operand() {
    const Deeper deeper(*this);
    if (!in_call_ && begins_constant()) return constant();
    if (accept('!')) {
      Operand o = simple_operand();
      o.negated = true;
      return o;
    }
    if (peek().is('[')) return address();
    if (peek().is('{')) return list('{', '}');
    if (peek().is('(')) return list('(', ')');
    if (peek().kind == Token::Kind::Number || peek().is('-')) return constant();
    if (peek().kind == Token::Kind::String) {
      Operand o;
      o.kind = Kind::Text;
      o.name = next().text;
      return o;
    }
    return named(ident("an operand"));
  }

  Operand list(char open, char close) {
    Operand o;
    o.kind = Kind::Vector;
    expect(open);
    if (!peek().is(close)) do
        o.parts.push_back(simple_operand());
      while (accept(','));
    expect(close);
    return o;
  }

  Operand named(std::string_view name) {
    Operand o;
    if (name == "_") return o;
    o.name = name;
    if (const auto reg = names_.find(name)) {
      o.reg = *reg;
      o.kind = Kind::Reg;
    } else if (const auto [first, elements] = names_.find_vector(name); elements != 0) {
      o.kind = Kind::Vector;
      for (std::uint32_t i = 0; i < elements; ++i) {
        Operand& part = o.parts.emplace_back();
        part.kind = Kind::Reg;
        part.reg = first + i;
        part.name = name;
      }
    } else if (is_register_name(name)) {
      o.kind = Kind::Special;
    } else {
      o.kind = Kind::Symbol;
      o.local = names_.find_variable(name);
      if (accept('+')) o.value = integer_constant();
    }
    return o;
  }

  /// [reg], [reg+4], [reg+-4], [name], [name+4], [1024]; a second part as in [map, {x, y}] becomes `parts`.
  Operand address() {
    Operand o;
    expect('[');
    if (begins_constant()) {
      o.value = integer_constant();
    } else {
      const Operand base = named(ident("an address"));
      if (base.kind == Kind::Vector) fail("a vector in an address");
      if (base.kind == Kind::Special) fail(fmt::format("unknown register '{}' in an address", base.name));
      o = base;
      o.has_base = base.kind == Kind::Reg;
      if (o.has_base) o.name = {};
      if (accept('+')) o.value = offset();
      else if (peek().is('-')) fail("an address takes no '-'; a negative offset is written [reg+-4]");
    }
    o.kind = Kind::Address;
    while (accept(',')) o.parts.push_back(simple_operand());
    expect(']');
    return o;
  }

  /// Assemblers may take more bits, but the ISA gives an offset 32, signed.
  std::int64_t offset() {
    const std::int64_t v = integer_constant();
    if (v != std::int32_t(v)) fail(fmt::format("the offset {} of an address needs more than 32 bits", v));
    return v;
  }

  Module& module_;
  Loc loc_;
  Function* f_ = nullptr;
  std::set<std::string_view> functions_;
  std::set<std::string_view> variables_;  ///< of the module, defined
  RegisterNames names_;
  bool in_call_ = false;  ///< its parentheses are lists
};

}  // namespace

void parse(std::string text, Module& out) {
  out.text = std::move(text);
  Parser(out, lex(out.text)).run();
}

}  // namespace kiln::rt::sim::ptx
