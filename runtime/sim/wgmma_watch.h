// What a wgmma's registers may not see. From its issue until it is waited for its accumulators belong to it, and the
// registers of A may be read only; a register that other instructions accessed is its own again behind a wgmma.fence.
//
// Decoder numbers the registers that any wgmma of the kernel names and marks the instructions that touch one of them
// (Inst::watched); only those come here.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace kiln::rt::sim {

struct Inst;
struct Program;
struct Warp;
enum class OperandRole : std::uint8_t;

class WgmmaWatch {
 public:
  void start(const Program&);
  /// An instruction that is no wgmma accesses registers. Throws Fault if one of them belongs to a wgmma under way.
  void touch(const Warp&, const Inst&);
  void fence();
  /// A wgmma starts: registers [0, n_d) of its operands are its accumulators, n_a behind them are A. Throws Fault.
  void issue(const Warp&, const Inst&, std::uint32_t n_d, std::uint32_t n_a);
  void commit() { ++committed_; }
  /// All but the last `left` groups are done.
  void wait(const Program&, std::uint32_t left);

 private:
  /// A register, since the last fence and now.
  struct Register {
    const Inst* touched = nullptr;                ///< by this instruction, no wgmma
    bool written = false;                         ///< … which wrote it
    std::uint32_t accumulating = 0, reading = 0;  ///< wgmmas under way that have it in D, in A
    const Inst* owner = nullptr;                  ///< the last of those
    std::uint32_t position = 0;                   ///< in its D
  };
  struct Flight {
    const Inst* inst;
    std::uint32_t n_d, n_a, group;
  };
  void touch(const Warp&, const Inst&, OperandRole);
  void require_fence(const Warp&, const Inst&, std::uint32_t n_d, std::uint32_t n_a) const;

  std::vector<Register> registers_;
  std::vector<Flight> flights_;
  std::uint32_t committed_ = 0;
  bool fenced_ = false;  ///< there was one
};

}  // namespace kiln::rt::sim
