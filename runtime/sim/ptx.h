// The text of a PTX module as a tree: what parse() finds, before it has a meaning. Names of registers are resolved to
// declarations, labels to statements; opcodes stay text, since the instruction table (insts.def) gives them their
// meaning.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/sim/types.h"

namespace kiln::rt::sim::ptx {

/// Cluster: shared memory of any block of the cluster; of instructions only, never of a variable.
enum class Space : std::uint8_t { Generic, Global, Shared, Const, Local, Param, Reg, Cluster };

/// Place in the user's program, from .loc; file 0: none.
struct Loc {
  std::uint32_t file = 0, line = 0, column = 0;
};

struct Operand {
  enum class Kind : std::uint8_t { Reg, Special, Int, Float32, Float64, Symbol, Address, Vector, Text, Sink };
  Kind kind = Kind::Sink;
  bool negated = false;        ///< !%p
  std::uint32_t reg = 0;       ///< Reg: index in Function::regs; Address: base register if has_base
  bool has_base = false;       ///< Address: a register is part of it
  std::string_view name;       ///< Symbol, Special, Text; Address without register: the symbol or empty
  std::int32_t local = -1;     ///< Symbol, Address: index in Function::locals when `name` is declared there
  std::int64_t value = 0;      ///< Int, the bits of Float32/Float64, offset of Address and Symbol
  std::vector<Operand> parts;  ///< Vector elements; for `d|p` the one second name
};

struct Stmt {
  std::string_view opcode;  ///< "ld.global.v4.b32"
  std::string_view text;    ///< whole instruction, for messages
  std::uint32_t line = 0;   ///< in the PTX
  Loc loc;
  std::int32_t guard = -1;  ///< predicate register, or -1
  bool guard_negated = false;
  std::uint32_t scope = 0;  ///< innermost { } around it
  std::vector<Operand> operands;
};

struct Variable {
  std::string_view name;
  Space space = Space::Global;
  std::uint32_t align = 1;
  std::uint64_t bytes = 0;
  bool external = false;           ///< .extern .shared x[]: the dynamic shared memory
  std::vector<std::uint8_t> init;  ///< leading bytes; the rest is zero
  struct Fixup {
    std::uint64_t at;
    std::string_view symbol;
  };
  std::vector<Fixup> addresses;  ///< generic addresses of other variables inside `init`
};

struct Function {
  std::string_view name;
  bool entry = false;
  std::uint32_t line = 0;
  std::vector<Variable> params, results;
  std::vector<Ty> regs;
  /// Their names, in the order of `regs`: "%r" of %r<5> names %r0 … %r4; other names stand alone.
  struct RegisterNames {
    std::string_view name;
    bool numbered;
    std::uint32_t first, count;
  };
  std::vector<RegisterNames> reg_names;
  std::vector<Variable> locals;  ///< .shared, .local, .param declared in the body; names may repeat in sister scopes
  std::vector<Stmt> body;
  std::vector<std::uint32_t> scope_parents;                                    ///< of each { }; 0 is the body
  std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> labels;  ///< (scope, name) → index in body
  std::map<std::pair<std::uint32_t, std::string_view>, std::vector<std::string_view>> branch_tables;
  std::array<std::uint32_t, 3> reqntid{0, 0, 0}, maxntid{0, 0, 0};
  std::array<std::uint32_t, 3> cluster{1, 1, 1};
  std::uint32_t maxnreg = 0, minnctapersm = 0;
};

struct Module {
  std::string text;  ///< every string_view points in here
  int version = 0;   ///< 10·major + minor
  std::string_view target;
  std::vector<Function> functions;
  std::vector<Variable> variables;
  std::map<std::uint32_t, std::string> files;
  std::deque<std::string> names;  ///< that are not in the text: of the elements of vector registers

  const Function* find(std::string_view name) const {
    for (const Function& f : functions)
      if (f.name == name) return &f;
    return nullptr;
  }
};

/// Reads a module. Throws DeviceError "ptx:LINE: …" at the first thing it does not understand.
/// The result owns the text and must not be moved once string_views into it are kept elsewhere.
void parse(std::string text, Module& out);

}  // namespace kiln::rt::sim::ptx
