// Values that depend on bytes which nobody wrote.
//
// Programs may load bytes that nobody wrote and drop them: the padding of a tile, or the lanes beyond its edge. So a
// load of unwritten shared memory is no finding. From there on its warp computes three times: with the bytes as they
// are, all bits set, and in two sets of alternative registers, with every bit of them the other way and with bytes that
// their addresses decide, so that no two words are alike. A register in which these differ depends on them. What cannot
// be seen so, because few values show it, is decided here: a comparison of such a register comes out both ways, and the
// lesser of two values depends on both.
//
// It is a finding when an instruction needs such a value for more than its result: to store it in global memory, as an
// address, a condition, or an operand of an atomic. A store to shared or local memory makes the bytes unwritten again.
//
//   ld.shared.b32 %r1, [tile+64];    // nobody wrote it: %r1 is 0xFFFFFFFF, its alternatives 0 and, say, 0x51C30E9B
//   and.b32 %r2, %r1, 0;             // 0 in all
//   st.global.b32 [%rd1], %r2;       // fine
//   st.global.b32 [%rd1+4], %r1;     // the finding: of the load, which names this line
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/sim/program.h"

namespace kiln::rt::sim {

struct Warp;
struct Block;

/// The load that unwritten bytes came from.
struct Origin {
  const Warp* warp = nullptr;
  const Inst* load = nullptr;
  int lane = 0;
  std::uint64_t at = 0, missing = 0;  ///< what the lane loads, and the first byte of it that nobody wrote
  std::uint32_t bytes = 0;
};

/// What a byte is in each set of alternative registers.
constexpr std::size_t kAlternatives = 2;
using AlternativeBytes = std::array<std::byte, kAlternatives>;

/// One byte that depends on unwritten ones.
struct UnknownByte {
  Origin origin;
  AlternativeBytes values;
};

/// Bytes of a block that hold what depends on unwritten ones. Those of shared memory also are unwritten in its shadow.
struct UnknownBytes {
  std::map<std::uint64_t, UnknownByte> shared;  ///< by address
  std::map<std::uint64_t, UnknownByte> local;   ///< by place in the block's local memory
};

class Alternative {
 public:
  explicit Alternative(const Warp&);

  /// Executes the instruction, whose mask is set.
  void run(Warp&, const Inst&);
  /// The instruction, a load, was executed and made this object.
  void finish_load(Warp&, const Inst&, std::uint32_t lanes);
  /// The alternatives of these lanes of the registers that the instruction writes are the registers themselves.
  void settle(const Warp&, const Inst&, std::uint32_t lanes);
  /// A finding if an alternative of these lanes of the operand differs.
  void require(Warp&, const Inst&, std::size_t operand, std::uint32_t lanes);
  /// No register differs from its alternative.
  bool same(const Warp&) const;
  /// All alternative registers.
  const std::vector<std::uint64_t>& registers() const { return registers_; }

  // --- while an access is on its way ---
  /// The load reads this byte.
  void loads(std::byte*, const UnknownByte&);
  /// What a byte of shared memory that was never written is instead.
  static AlternativeBytes unwritten(std::uint64_t address, std::byte now);
  /// The store writes these bytes; `place`: as in UnknownBytes of the block.
  struct Stored {
    std::byte* at;
    std::uint32_t bytes;
    int lane;
    Block* block;
    bool shared;
    std::uint64_t place;
  };
  void stores(const Stored& s) {
    if (storing_ >> s.lane & 1) stored_.push_back(s);
  }
  /// The store writes global memory with these lanes.
  void stores_global(Warp&, const Inst&, std::uint32_t lanes);

 private:
  struct Loaded {
    std::byte* at;
    AlternativeBytes values;
  };
  /// Runs f(k) with each set of alternative registers in the place of the warp's own.
  template <class F>
  void alternatively(Warp&, F f);
  std::uint64_t difference(const Warp&, Ref, std::uint32_t bits, int lane) const;
  std::uint32_t differing(const Warp&, const Inst&, std::size_t operand, std::uint32_t lanes) const;
  std::uint32_t differing_predicate(const Warp&, Ref) const;
  std::uint32_t differing_guard(const Warp&, const Inst&) const;
  void require_guard(Warp&, const Inst&);
  void settle_register(const Warp&, Ref, std::uint32_t bits, std::uint32_t lanes);
  void report(Warp&, const Inst&, std::uint32_t from) const;
  std::uint32_t add(const Origin&);
  std::uint32_t origin(Ref) const;
  /// An origin of what the instruction reads in these lanes, 0 if nothing differs there.
  std::uint32_t origin_of(const Warp&, const Inst&, std::uint32_t lanes) const;
  void mark(const Warp&, const Inst&, std::uint32_t from, std::uint32_t lanes);
  void needs(Warp&, const Inst&);
  void load(Warp&, const Inst&);
  void store(Warp&, const Inst&);
  void keep_unknown(const Stored&, const std::array<const std::byte*, kAlternatives>& made, std::uint32_t from);
  void compute(Warp&, const Inst&);
  void decide(const Warp&, const Inst&, const std::array<std::uint64_t, kLanes>& differ, std::uint32_t lanes);
  void mix(const Warp&, const Inst&, const std::array<std::uint64_t, kLanes>& differ, std::uint32_t lanes);

  std::vector<std::uint64_t> registers_;  ///< as the warp's, once for each alternative
  std::array<std::uint32_t*, kAlternatives> regs_;
  std::vector<std::uint32_t> origin_;  ///< of each word of the register file: number of the origin of its difference
  std::vector<Origin> origins_;        ///< number − 1
  std::vector<Loaded> unwritten_;      ///< that the load reads
  std::uint32_t loaded_origin_ = 0;
  std::vector<Stored> stored_;
  std::uint32_t storing_ = 0;  ///< lanes whose data differ
};

}  // namespace kiln::rt::sim
