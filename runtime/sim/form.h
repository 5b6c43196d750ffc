// Form: one instruction while it is decoded. A row of insts.def names a maker; the maker looks at the modifiers and
// types, asks for its operands, fills Inst and returns the handler, or nullptr if the simulator does not have this
// form.
#pragma once
#include <string_view>
#include <vector>

#include "runtime/sim/program.h"

namespace kiln::rt::sim {

class Decoder;
struct SpecialName;

struct Form {
  std::string_view name;               ///< "ld"
  std::vector<std::string_view> mods;  ///< "global", "v4"
  std::vector<Ty> types;               ///< b32
  const ptx::Stmt& stmt;
  Decoder& decoder;
  Inst& inst;
  mutable std::uint64_t asked = 0;  ///< bits of the modifiers that has() found

  bool has(std::string_view mod) const {
    for (std::size_t i = 0; i < mods.size(); ++i)
      if (mods[i] == mod) return asked |= std::uint64_t{1} << (i & 63), true;
    return false;
  }
  /// A modifier that no call of has() asked for, or empty.
  std::string_view unasked() const {
    for (std::size_t i = 0; i < mods.size(); ++i)
      if (!(asked >> (i & 63) & 1)) return mods[i];
    return {};
  }
  Ty type(std::size_t i = 0) const { return i < types.size() ? types[i] : Ty::none; }
  std::size_t count() const { return stmt.operands.size(); }
  const ptx::Operand& operand(std::size_t i) const { return stmt.operands[i]; }

  // Each appends one reference to the instruction's operands. They throw when the operand is not of that kind.
  void dst(std::size_t i, Ty type);
  void src(std::size_t i, Ty type);
  void dst(const ptx::Operand&, Ty type);
  void src(const ptx::Operand&, Ty type);
  /// A register of 128 bits: two references, to its halves of 64.
  void dst_128(const ptx::Operand&);
  void src_128(const ptx::Operand&);
  /// Destination and n − 1 sources of the first type, and no operand more.
  void same_type_operands(std::size_t n);
  void special(const SpecialName&, Ty type);
  void none();                    ///< an absent operand
  void zero();                    ///< an operand of 32 zero bits
  void add_reference_of_carry();  ///< the warp's carry predicate
  /// Address operand: one reference (or none) and inst.imm; sets wide_address.
  void address(const ptx::Operand&);
  /// Value of an operand that must be an immediate.
  std::int64_t immediate(std::size_t i) const;
  /// Width in bits of a register operand; 0 for anything else.
  int register_bits(const ptx::Operand&) const;
  /// Fails if the operand is a register of integers and the type a float, or the other way round.
  void require_kind(const ptx::Operand&, Ty) const;

  /// Reads .rn/.rz/.rm/.rp, .ftz, .sat, .NaN, .xorsign, .abs, .relu, .satfinite into inst.
  void float_modifiers();

  /// Fails unless the module reaches one of the alternatives, as in needs.def ("80@7.5").
  void requires_module(std::string_view alternatives) const;
  [[noreturn]] void fail(const std::string& why) const;
};

using Maker = Handler (*)(Form&);

struct Row {
  std::string_view name, modifiers, operands;
  Maker make;
};
// The makers, one for each row.
#define KILN_PTX(name, modifiers, operands, maker) Handler maker(Form&);
#include "runtime/sim/insts.def"

/// A call of a function that CUDA's device library supplies (builtin.cpp); fails, naming it, where it is another.
Handler builtin_function(Form&, std::string_view name, const std::vector<ptx::Operand>& results,
                         const std::vector<ptx::Operand>& arguments);
/// Writes the time, less its lowest inst.size bits, into a register of 64 or 32 bits.
Handler clock_reader(bool wide);
/// Handler of the implicit exit behind the last instruction.
Handler exit_handler();
/// Handler of a jump to inst.imm.
Handler branch_handler();

}  // namespace kiln::rt::sim
