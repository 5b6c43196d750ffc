// A kernel ready to run: what decode() makes of one .entry.
//
// Every virtual register owns a slot of 32 lanes in the register file of its warp: 32-bit words for registers of up to
// 32 bits (handlers ignore the bits above the width), 64-bit words for the wide ones, and a single word, one bit a
// lane, for a predicate. Immediates are slots too, in a pool that all warps share, so a handler never asks what kind of
// operand it has.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/inst_class.h"
#include "runtime/sim/ptx.h"

namespace kiln::rt::sim {

using ptx::Space;
struct Warp;
struct Inst;
using Handler = void (*)(Warp&, const Inst&);

constexpr int kLanes = 32;
constexpr std::uint32_t kAllLanes = 0xFFFFFFFFu;

/// A slot: word offset in the warp's register file, or ~offset in the constant pool.
using Ref = std::int32_t;
constexpr Ref kNoRef = INT32_MIN;

enum class Round : std::uint8_t { Nearest, Zero, Down, Up };

/// Modifiers of float arithmetic that are looked at while executing.
enum : std::uint16_t {
  kFtz = 1,
  kSat = 2,
  kNaN = 4,
  kXorSign = 8,
  kAbs = 16,
  kRelu = 32,
  kSatFinite = 64,
  kApprox = 128,
  kIntegral = 256,
};

/// What an instruction makes of operands whose values depend on bytes that nobody wrote (alternative.h).
enum class Unknowns : std::uint8_t {
  Needed,    ///< it has an effect beyond registers, for which it must know them
  Ignored,   ///< it does not look at them
  Computes,  ///< a function of the lane's registers
  Decides,   ///< … with a truth value, that may be either
  Mixes,     ///< … that depends on all of them although not every value shows it
  Lanes,     ///< a function of registers of several lanes, which the last operand names
  Extreme,   ///< … that depends on all of them
  Warp,      ///< a function of registers of all lanes
  Loads,     ///< the first operand is an address
  Stores,    ///< … and the others are what is stored there
};

struct Inst {
  Handler run = nullptr;
  const Ref* ops = nullptr;         ///< operands in PTX order
  std::int64_t imm = 0;             ///< address offset; branch target; small tables (prmt mode, comparison…)
  std::int32_t guard = -1;          ///< predicate slot, -1: always
  std::uint32_t guard_flip = 0;     ///< all ones for @!p
  std::uint32_t info = 0;           ///< index in Program::infos
  std::uint32_t meet = UINT32_MAX;  ///< branches: where lanes that part here meet again
  std::uint16_t flags = 0;
  std::uint16_t n_ops = 0;
  Round round = Round::Nearest;
  Space space = Space::Generic;  ///< of a memory access
  std::uint8_t size = 0;         ///< bytes of one element of a memory access
  std::uint8_t count = 0;        ///< elements of a memory access
  bool sign = false;             ///< memory: extend the sign into a wider register
  bool wide = false;             ///< memory: the data registers are 64-bit
  bool wide_address = false;
  std::uint8_t scope =
      0;  ///< memory: 0: weak; strong (volatile, relaxed …) in 1: the block, 2: the cluster, 3: the device
  bool acquires = false;
  bool releases = false;
  bool control = false;  ///< runs even when no lane is active
  bool watched = false;  ///< touches a register that a wgmma of the kernel names, and is none itself
  Unknowns unknowns = Unknowns::Needed;
};

/// What an instruction does with the register that an operand names.
enum class OperandRole : std::uint8_t { None, Read, Written, Both };
struct OperandUse {
  OperandRole role = OperandRole::None;
  std::uint8_t bits = 0;  ///< of the register that count; 1: a predicate
};

/// What messages and counts need of an instruction.
struct InstInfo {
  std::string_view text;   ///< in the module's text
  std::uint32_t line = 0;  ///< in the PTX
  ptx::Loc loc;
  InstClass kind = InstClass::Other;
  Ty multiplied = Ty::none;         ///< of a matrix instruction: type of the factors
  bool packed = false;              ///< a type is of two values in a register
  bool implicit = true;             ///< part of another, or the exit at the end: not counted
  const ptx::Stmt* stmt = nullptr;  ///< null for the implicit exit
};

/// Special registers that are set once when a warp starts.
enum class Special : std::uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaX,
  CtaY,
  CtaZ,
  NctaX,
  NctaY,
  NctaZ,
  LaneId,
  WarpId,
  NWarpId,
  SmId,
  NSmId,
  MaskEq,
  MaskLt,
  MaskLe,
  MaskGt,
  MaskGe,
  IsCluster,  ///< a predicate: one bit a lane
  Zero,
  ReservedEnd,
  DynamicSmem,
  TotalSmem,
  AggregateSmem,
  ClusterX,
  ClusterY,
  ClusterZ,
  NclusterX,
  NclusterY,
  NclusterZ,
  CtaInClusterX,
  CtaInClusterY,
  CtaInClusterZ,
  NctaInClusterX,
  NctaInClusterY,
  NctaInClusterZ,
  CtaRank,
  NctaRank,
};
/// Where a variable lives: an address in its own space.
struct Place {
  Space space = Space::Global;
  std::uint64_t at = 0;
  bool operator==(const Place&) const = default;
};
using Symbols = std::map<std::string_view, Place>;

/// A function where its body stands in the code: the kernel, and each call that was expanded. For the debugger.
struct Expansion {
  const ptx::Function* function = nullptr;
  std::uint32_t begin = 0, end = 0;  ///< its instructions, those of calls inside included
  std::vector<Ref> slots;            ///< of its registers
  Symbols variables;                 ///< its parameters and local variables
};

struct SpecialInit {
  Special which;
  Ref slot;
  bool wide;
};

struct Program : std::enable_shared_from_this<Program> {
  std::shared_ptr<const ptx::Module> module;  ///< owns the text
  std::string kernel;
  std::vector<Inst> code;  ///< ends with an implicit exit
  std::vector<Ref> operand_pool;
  std::vector<OperandUse> operand_uses;  ///< of each in the pool
  std::vector<InstInfo> infos;
  std::vector<std::uint64_t> constants;  ///< pool of broadcast immediates, as 64-bit words for alignment
  std::vector<SpecialInit> specials;
  std::vector<Expansion> expansions;  ///< inner ones before those around them; the kernel last
  Symbols symbols;                    ///< the module's variables
  std::uint32_t register_words = 0;   ///< 32-bit words of a warp's register file
  std::uint32_t shared_bytes = 0;     ///< static shared memory
  std::uint32_t dynamic_at = 0;       ///< shared address where dynamic shared memory starts
  std::uint32_t local_bytes = 0;      ///< per thread
  std::uint32_t param_bytes = 0;
  std::array<std::uint32_t, 3> reqntid{0, 0, 0}, maxntid{0, 0, 0};
  std::array<std::uint32_t, 3> cluster{1, 1, 1};  ///< blocks of a cluster that the PTX requires
  std::uint32_t maxnreg = 0, minnctapersm = 0;    ///< 0: not given
  bool communicates = false;                      ///< has operations by which blocks may see each other's progress
  bool polls = false;                       ///< has operations with which a thread may wait for a change of memory
  std::vector<std::string_view> watched;    ///< names of the registers that a wgmma names
  std::vector<std::int32_t> watch_numbers;  ///< of each 32 words of the register file: index in watched, or -1

  std::vector<std::pair<std::uint64_t, std::uint64_t>> const_variables;  ///< where each begins and ends
  /// The address is of a .const variable.
  bool is_const(std::uint64_t address) const {
    for (const auto& [begin, end] : const_variables)
      if (address >= begin && address < end) return true;
    return false;
  }
  OperandUse use(const Inst& in, std::size_t operand) const {
    return operand_uses[static_cast<std::size_t>(in.ops - operand_pool.data()) + operand];
  }
  /// Index in `watched` of an operand, or -1.
  std::int32_t watch_number(const Inst& in, std::size_t operand) const {
    const Ref r = in.ops[operand];
    return r < 0 || use(in, operand).role == OperandRole::None ? -1
                                                               : watch_numbers[static_cast<std::size_t>(r) / kLanes];
  }
};

// Address windows of the generic address space; global memory has the host's addresses, which are below all of them.
constexpr std::uint64_t kSharedWindow = 1ull << 56, kLocalWindow = 2ull << 56, kParamWindow = 3ull << 56;
/// The first bytes of shared memory belong to the system, as on the hardware from sm_80 on; so 0 is never an address.
constexpr std::uint32_t kSharedBase = 1024;

// A shared::cluster address names the block above bit 24, as its rank + 1. Without that it is one of the block's own:
// every shared::cta address is a shared::cluster address too.
constexpr std::uint32_t kRankShift = 24;
constexpr std::uint64_t kInBlock = (1u << kRankShift) - 1;

}  // namespace kiln::rt::sim
