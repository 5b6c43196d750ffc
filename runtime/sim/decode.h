// decode(): one .entry of a parsed module → Program. Calls of .func are expanded in place, so control flow is one
// graph.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/sim/cfg.h"
#include "runtime/sim/form.h"
#include "runtime/sim/program.h"
#include "runtime/sim/ptx.h"
#include "runtime/sim/special.h"

namespace kiln::rt::sim {

/// `globals`: places of the module's .global and .const variables. Throws DeviceError naming the instruction, its line
/// and the kernel at the first thing that is not supported.
std::shared_ptr<const Program> decode(std::shared_ptr<const ptx::Module>, const ptx::Function& entry, Symbols globals);

class Decoder {
 public:
  Decoder(std::shared_ptr<const ptx::Module>, const ptx::Function& entry, Symbols globals);
  std::shared_ptr<const Program> run();

  // --- for Form and the makers ---
  Ref source(const ptx::Operand&, Ty, const ptx::Stmt&);
  Ref destination(const ptx::Operand&, Ty, const ptx::Stmt&);
  Ref constant(std::uint64_t value, bool wide);
  Ref special(const SpecialName&, bool wide, const ptx::Stmt&);
  Ref carry() const { return carry_; }
  int register_bits(const ptx::Operand&) const;
  /// A float operation takes no register of integers, nor the other way round; registers of bits are of any kind.
  void require_kind(const ptx::Operand&, Ty, const ptx::Stmt&) const;
  std::uint32_t param_bytes() const { return program_->param_bytes; }
  /// The variable a symbol or address names.
  Place find(const ptx::Operand&, const ptx::Stmt&) const;
  void add_reference(Ref r, OperandUse use = {}) {
    pending_.push_back(r);
    pending_uses_.push_back(use);
  }
  /// The instruction being decoded is a wgmma, and these are its registers.
  void watch(const std::vector<ptx::Operand>& registers);
  std::string_view target() const { return module_.target; }
  int version() const { return module_.version; }
  void communicates() { program_->communicates = true; }
  void polls() { program_->polls = true; }
  /// The instruction being decoded jumps to `label`, besides falling through if it is guarded.
  void jumps(std::string_view label, const ptx::Stmt&);
  /// … to one of the labels of a .branchtargets table; their places are appended to its operands.
  void jumps_by_table(std::string_view table, const ptx::Stmt&);
  /// … out of the kernel, or to the end of the expanded function; true if it is the kernel.
  bool returns();
  void exits();
  /// Expands a call; the statement leaves no instruction of its own, unless the function is a library's.
  Handler expand_call(Form&);
  [[noreturn]] void fail(const ptx::Stmt&, const std::string& why) const;

 private:
  enum class Flow : std::uint8_t { Next, Jump, Table, Leave };
  /// A function while its body is decoded.
  struct Frame {
    const ptx::Function* function = nullptr;
    std::vector<Ref> slots;  // of its registers
    std::vector<Place> locals;
    Symbols params;
    std::vector<std::uint32_t> pc_of;  // of its statements, and one behind the last
    struct Fixup {
      std::uint32_t inst;
      std::uint32_t stmt;    // target
      std::int64_t operand;  // -1: the instruction's imm, else index in the operand pool
    };
    std::vector<Fixup> fixups;
  };

  void place_shared();
  /// Room for a variable behind `at`; throws where the sum is more than `most`.
  std::uint64_t reserve(std::uint32_t& at, const ptx::Variable&, std::uint64_t most, const char* what) const;
  void check_parts(const Form&) const;
  void place_variable(const ptx::Variable&, Frame&);
  Ref new_slot(Ty);
  Ref float_constant(const ptx::Operand&, Ty, const ptx::Stmt&);
  void open(Frame&, const ptx::Function&);
  void body(Frame&);
  void statement(const ptx::Stmt&);
  Handler make(Form&);
  void operands_by_pattern(Form&, std::string_view pattern);
  void append(Inst, const ptx::Stmt&, const std::vector<Ref>& operands, Flow);
  void mark_watched();
  std::uint32_t label_target(std::string_view label, const ptx::Stmt&) const;
  void keep_expansion(Frame&);
  void finish();

  std::shared_ptr<Program> program_;
  const ptx::Module& module_;
  const ptx::Function& entry_;
  Symbols symbols_;
  std::vector<Frame*> frames_;              // innermost last
  std::vector<std::size_t> operand_start_;  // of each instruction, until the pool stops growing
  std::vector<Ref> pending_;                // operands of the instruction being decoded
  std::vector<OperandUse> pending_uses_;
  std::vector<Flow> flows_;
  Flow flow_ = Flow::Next;                   // of the instruction being decoded
  bool skip_ = false;                        // it leaves none
  std::map<Ref, std::string_view> watched_;  // registers that a wgmma names
  std::vector<std::uint32_t> wgmmas_;        // instructions
  std::uint32_t words_ = 0;                  // of the register file so far
  std::uint32_t pred_words_ = 0, pred_free_ = 0;
  std::uint32_t shared_at_ = kSharedBase, local_at_ = 0;
  Ref carry_ = 0, sink32_ = 0, sink64_ = 0, sink_pred_ = 0;
  std::map<std::pair<std::uint64_t, bool>, Ref> constants_;
  std::map<std::pair<Special, bool>, Ref> specials_;
  std::map<const ptx::Variable*, Place> shared_variables_;  // looked up only, never iterated
};

}  // namespace kiln::rt::sim
