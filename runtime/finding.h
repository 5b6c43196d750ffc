// Finding: one thing that the simulator saw a kernel do wrong, and where.
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace kiln {

/// What is wrong. Races and uninitialised reads are collected while the kernel runs on; every other kind ends it.
enum class FindingKind : std::uint8_t {
  OutOfBounds,    ///< an access outside of every allocation, of the block's shared memory, of the thread's local memory
  Misaligned,     ///< an address that is no multiple of what the access needs
  UseAfterFree,   ///< an access to memory that was freed
  Uninitialised,  ///< a load of bytes that nobody wrote
  Race,           ///< two accesses, one of them a write, that nothing orders
  Divergence,     ///< lanes that must be together and are not: at barriers, shuffles, matrix instructions
  Deadlock,       ///< every warp waits
  AsyncMisuse,    ///< an asynchronous operation or its barrier used against its rules
  Registers,      ///< registers of an asynchronous matrix product touched before it was waited for
  Descriptor,     ///< a matrix descriptor that describes no operand
  TensorMap,      ///< a tensor map that is none, or does not fit its use
  Trap,           ///< the program executed trap
  Limit,          ///< more steps than KILN_SIM_STEPS allows
  Invalid,        ///< an operand that its instruction does not take
};

/// "out-of-bounds", "race" …
const char* name(FindingKind);

/// One finding; Device::findings() returns them. Example: `for (const Finding& f : device.findings())
/// puts(f.message.c_str());`
struct Finding {
  FindingKind kind = FindingKind::Invalid;
  std::string kernel;
  std::array<std::uint32_t, 3> block{};   ///< its coordinates in the grid
  std::uint32_t warp = 0;                 ///< in the block
  int lane = -1;                          ///< of the warp; -1: the warp as a whole
  std::array<std::uint32_t, 3> thread{};  ///< of the lane (of the warp's first one), in the block
  std::uint32_t ptx_line = 0;             ///< in the PTX text, from 1
  std::string ptx;                        ///< the instruction
  std::string where;                      ///< the user's "file:line", or "ptx line N" where the PTX names none
  std::string message;                    ///< all of it in one sentence, as the launch's error has it
};

}  // namespace kiln
