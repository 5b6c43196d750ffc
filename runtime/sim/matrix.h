// What the matrix instructions share: numbers of each element type as doubles, the fragments of a warp, and products.
//
// A fragment spreads a matrix over the registers of a warp. One register of a lane holds p = 32 / bits elements that
// are neighbours in a row (f64: one, in a 64-bit register), and one register of all lanes a block of 8 rows and 4·p
// columns: lane l has of row l/4 the elements p·(l%4) … p·(l%4) + p − 1. So the register's lanes, one behind the other,
// are the block row by row. Register r of A (M×K) is the block at row 8·(r % (M/8)), column 4·p·(r / (M/8)); register r
// of B (K×8) is the block at column 4·p·r of B's transpose. Accumulators are 8×8 blocks, of which lane l has of row l/4
// the elements 2·(l%4) and 2·(l%4) + 1: in two registers, or for f16 in one; a block of 16×N has those of its columns
// in turn, rows 0…7 before rows 8…15. Example: f16 has p = 2, so A of m16n8k16 is 4 registers, and lane 5 has in
// register 3 the elements of row 8 + 1, columns 8 + 2 and 8 + 3.
//
// Every element type's numbers are doubles, products of two are exact there, and a sum is rounded to the accumulator's
// type once an instruction. Hardware aligns the terms to the largest and cuts them off, so the two agree bit by bit
// only where sums are exact.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/sim/form.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

constexpr std::size_t kBlock = 64;  ///< elements of an 8×8 block of accumulators

/// A type of A or B.
struct Element {
  Ty type = Ty::none;
  std::uint32_t bits = 0;
  /// `n` packed elements as doubles; n is a multiple of 8.
  void (*to_doubles)(const std::byte* from, std::size_t n, double* to) = nullptr;

  std::uint32_t per_register() const { return bits == 64 ? 1 : 32 / bits; }
};
/// nullptr if no matrix has elements of this type.
const Element* element(Ty);

/// A type of accumulators.
struct Accumulator {
  Ty type = Ty::none;
  std::uint32_t registers = 0;  ///< of an 8×8 block
  /// The block in these registers, row by row, and back; `saturates`: s32 is clamped instead of wrapped.
  void (*load)(const Warp&, const Ref* registers, double* block) = nullptr;
  void (*store)(Warp&, const Ref* registers, const double* block, bool saturates) = nullptr;
};
/// nullptr if there are none of this type.
const Accumulator* accumulator(Ty);

/// The rows of A (m×k) from its registers.
void load_rows(const Warp&, const Element&, const Ref* registers, std::uint32_t m, std::uint32_t k, double* rows);
/// 8 rows of `k` elements as 8 columns of k: out[i·8 + row].
void transpose(const double* rows, std::uint32_t k, double* out);
/// c (m×8) += a (m×k) · b (k×8); m is even.
void multiply(const double* a, const double* b, double* c, std::uint32_t m, std::uint32_t k);

/// Matrix instructions need all 32 lanes; false: some are on their way and the instruction comes again.
bool whole_warp(Warp&, const Inst&);
/// Appends the registers of a {…} operand of `type`; false unless it has n.
bool fragment(Form&, std::size_t operand, std::size_t n, Ty type, bool result);

}  // namespace kiln::rt::sim
