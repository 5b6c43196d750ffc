// TileValue: how one IR value lives in the code of one thread.
//
// Element types other than index and pointers are plain: one LLVM value per register. Index values and pointers are
// kept as sums whose parts are cheap where they stand:
//
//   element of register r = uniform + regs[r].v + regs[r].c           (index)
//   address of register r = uniform + scale * regs[r].v + regs[r].c   (pointer, in bytes)
//
//   uniform  one 64-bit scalar, the same in all threads: program_id * BLOCK, n, a base pointer
//   v        the part that depends on the thread; i32 wherever its range proves that 32 bits hold it, otherwise i64
//   c        a constant; it ends in the address field of a load or store
//
// Example: i = program_id(0) * 1024 + arange(1024) on 256 threads is uniform = 1024 * ctaid, v = 4 * tid (i32, the same
// LLVM value for all four registers) and c = 0, 1, 2, 3. That four registers are neighbours in memory, or that a mask
// is the same for all of them, is thus read off the values themselves: equal v and consecutive c, or one i1 for all.
#pragma once
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Value.h>

#include <cstdint>
#include <limits>
#include <numeric>

namespace kiln::cg {

/// A closed interval of integers; the default holds every 64-bit one, which is also what an overflow gives.
struct Range {
  std::int64_t lo = std::numeric_limits<std::int64_t>::min();
  std::int64_t hi = std::numeric_limits<std::int64_t>::max();

  static Range of(std::int64_t x) { return {x, x}; }
  bool full() const { return *this == Range{}; }
  bool fits32() const {
    return lo >= std::numeric_limits<std::int32_t>::min() && hi <= std::numeric_limits<std::int32_t>::max();
  }
  bool operator==(const Range&) const = default;
};
Range operator+(Range a, Range b);
Range operator-(Range a, Range b);
Range operator*(Range a, Range b);
Range join(Range a, Range b);

/// What is known of an integer: its range, and a divisor (0: it is zero, so everything divides it).
struct Known {
  Range range;
  std::int64_t divisor = 1;

  static Known constant(std::int64_t x) {
    return {Range::of(x), x == std::numeric_limits<std::int64_t>::min() ? 1 : std::abs(x)};
  }
};
Known operator+(Known a, Known b);
Known operator-(Known a, Known b);
Known operator*(Known a, Known b);

struct TileValue {
  enum class Kind : std::uint8_t { Plain, Index, Pointer };
  struct Reg {
    llvm::Value* v = nullptr;  ///< Plain: the element, null in a dead register; otherwise the thread's part, null = 0
    std::int64_t c = 0;
    bool operator==(const Reg&) const = default;
  };

  Kind kind = Kind::Plain;
  llvm::SmallVector<Reg, 4> regs;  ///< one per register of the layout; a scalar has one

  llvm::Value* uniform = nullptr;            ///< Index: i64, null = 0; Pointer: ptr addrspace(1)
  Known uniform_known = Known::constant(0);  ///< Pointer: divisor is the alignment in bytes
  Known thread_known = Known::constant(0);   ///< holds for v in every register
  std::int64_t scale = 1;                    ///< Pointer only
  bool distinct = false;  ///< no two elements of the tile are equal, whatever register or thread holds them

  /// No register depends on the thread and all constants are one: a scalar or its splat.
  bool is_uniform() const;
  /// Range and divisor of the constants over all registers.
  Known constants_known() const;
  /// Index: what is known of whole elements.
  Known known() const { return uniform_known + thread_known + constants_known(); }
};

}  // namespace kiln::cg
