// ExchangePlan: how the elements of a tile get from one register layout to another.
//
// Three ways, the cheapest that works is taken:
//
//   registers  every thread already has its elements: registers are renamed, or selected by bits of the thread number
//   shuffle    every element stays in its warp: selects in the source lane, a warp shuffle, selects in the destination
//   shared     through shared memory: each element is written once, by its owner, and read where it is wanted
//
// Registers and shuffle. For each place of the destination (register q', lane l', warp w') the source place of the same
// element is, bit by bit, an XOR: register = Rr q' + Rl l' + Rw w', lane = Lr q' + Ll l' + Lw w', warp = w'. In round q
// of the shuffle the destination lane l' receives what belongs in its register q + D l', from lane
// Lr q + K l' + Lw w' with K = Ll + Lr D. D is chosen so that K is invertible where it can be; then the source lane s
// knows whom it serves, l' = K^-1(…), and which of its registers that wants: both sides are linear in their own lane.
// (Where lanes are replicated, K has a kernel; lanes that differ by it read one lane, and must want one register.)
//
// Shared. Elements are laid out so that both sides move vectors and neither has bank conflicts. With V the vectors
// common to the registers of both sides, and W_x = V + the lanes of side x that one wavefront of 128 bytes serves, an
// offset is [V | rest of W_a | S], where the segment bits S span a common complement of W_a and W_b: for the bases
// e_i of W_a and f_i of W_b beyond W_a ∩ W_b they are e_i + f_i, and a complement of W_a + W_b. Bank conflicts on side
// x are elements of W_x ∩ S, and there are none. For a transposition this is the familiar XOR swizzle: S has the
// columns chunk_i + row_i. Where V is narrower than 16 bytes, one side may still have wider vectors than the other.
//
// Source: "Linear Layouts" (Zhou et al., 2025), section 5.4.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/ir/layout.h"

namespace kiln::ir {

/// Vectors over bits: bases of a linear map, one for each bit of its argument.
using BitMap = std::vector<std::uint64_t>;

struct ExchangePlan {
  enum class Way : std::uint8_t { Registers, Shuffle, Shared } way = Way::Registers;
  // "Thread bits" are lane, warp and block bits in this order. Registers are numbered as in the layouts.

  // --- registers: the source of destination register q in thread t is register combine(of_register, q) ^
  // combine(of_thread, t)
  BitMap of_register, of_thread;

  // --- shuffle
  std::uint64_t reached = 0;   ///< destination register bits that `to_register` sets
  BitMap round_lane;           ///< per destination register bit: Lr
  BitMap source_lane;          ///< per thread bit of the destination: K, Lw
  BitMap to_register;          ///< per thread bit: D; the element of round q goes to register q ^ this
  BitMap round_register;       ///< per destination register bit: source register of round q
  BitMap from_register;        ///< per thread bit of the *source*: XORed to it
  std::uint64_t packable = 0;  ///< destination register bits whose elements travel in one word

  // --- shared: offsets in elements
  BitMap write_register, write_thread, read_register, read_thread;
  int write_vector = 1, read_vector = 1;  ///< elements an access
  std::int64_t owner_mask = 0;            ///< thread bits that must be 0 in a thread that writes
  std::int64_t bytes = 0;                 ///< of shared memory
  bool in_warp = false;                   ///< no element leaves its warp
};

/// Whether the block bits of two layouts mean the same: what a block of a cluster holds in one, it holds in the other.
bool same_blocks(const LinearLayout& a, const LinearLayout& b);

/// @pre surjective layouts of equal extents and thread bits; same_blocks
/// @post a thread of `to` finds, for each of its registers, the element of that register's coordinate
ExchangePlan plan_exchange(const LinearLayout& from, const LinearLayout& to, int element_bytes);

/// Shared memory that the exchange needs; often none.
std::int64_t exchange_bytes(const LinearLayout& from, const LinearLayout& to, int element_bytes);

/// The ways one by one, for tests; nothing where a way cannot do it.
std::optional<ExchangePlan> plan_registers(const LinearLayout& from, const LinearLayout& to);
std::optional<ExchangePlan> plan_shuffle(const LinearLayout& from, const LinearLayout& to, int element_bytes);
ExchangePlan plan_shared(const LinearLayout& from, const LinearLayout& to, int element_bytes);

}  // namespace kiln::ir
