// Atomics: memory changed and read in one step, whatever other programs do to it.
//
//     Scalar ticket = atomic_add(counter, 1);          // one number a program, each given out once
//     atomic_add(bins + load(x + i, mask), 1, mask);   // a histogram: an unused result is not waited for
//     atomic_max(top, value, true, {.order = Order::release});
//
// Each takes a pointer, a value, and optionally a mask and how it is ordered, and gives what was in memory before.
// Every element is done exactly once, also where two pointers of a tile are equal, in no stated order; where the mask
// is false, memory is not touched and the result is 0. The result is the same in every use.
//
// Elements have 16, 32 or 64 bits: i16 to u64, f16, bf16, f32, f64 (bitwise ones: integers). The value has the
// pointer's dtype; a C++ number adapts, another dtype is an error (cast first). add, min and max compute what the
// operators and minimum, maximum do, one rounding a step, NaN kept; but f32 sums in global memory count denormals as
// zero. add, min, max, and, or, xor of 32- and 64-bit integers, exchange and cas of 32 and 64 bits, cas of 16 bits and
// sums of floats (bf16: from sm_90 on) are single instructions, everything else a loop around cas.
#pragma once
#include "dsl/lang/tile.h"

namespace kiln {

/// Which other accesses an atomic orders. `release`: the program's earlier ones, by all its threads, are seen by
/// whoever acquires what it wrote; `acquire`: its later ones see what the releasing program wrote before.
enum class Order : std::uint8_t { relaxed, acquire, release, acq_rel };
/// Between whom: the programs of the launch (and of the GPU), one block, a cluster of blocks, or everything that shares
/// the memory.
enum class Scope : std::uint8_t { gpu, cta, cluster, system };
struct Atomic {
  Order order = Order::relaxed;
  Scope scope = Scope::gpu;
};

namespace detail {
enum class AtomicOp : std::uint8_t { add, min, max, and_, or_, xor_, exchange };
/// Value id of the result.
Made atomic(AtomicOp, const Handle& ptr, const Operand& value, const Operand* mask, Atomic, SourceLoc);
Made atomic_cas(const Handle& ptr, const Operand& expected, const Operand& desired, const Operand* mask, Atomic,
                SourceLoc);
}  // namespace detail

#define KILN_ATOMIC(name, op)                                                                                   \
  inline Tile name(const Tile& ptr, Arg value, RawLoc l = RawLoc::current()) {                                  \
    return Tile(detail::atomic(detail::AtomicOp::op, ptr, value, nullptr, {}, l));                              \
  }                                                                                                             \
  inline Tile name(const Tile& ptr, Arg value, Arg mask, Atomic how = {}, RawLoc l = RawLoc::current()) {       \
    return Tile(detail::atomic(detail::AtomicOp::op, ptr, value, &mask, how, l));                               \
  }                                                                                                             \
  inline Tile name(const Tile& ptr, Arg value, Atomic how, RawLoc l = RawLoc::current()) {                      \
    return Tile(detail::atomic(detail::AtomicOp::op, ptr, value, nullptr, how, l));                             \
  }                                                                                                             \
  inline Scalar name(const Scalar& ptr, SArg value, RawLoc l = RawLoc::current()) {                             \
    return Scalar(detail::atomic(detail::AtomicOp::op, ptr, value, nullptr, {}, l));                            \
  }                                                                                                             \
  inline Scalar name(const Scalar& ptr, SArg value, SArg mask, Atomic how = {}, RawLoc l = RawLoc::current()) { \
    return Scalar(detail::atomic(detail::AtomicOp::op, ptr, value, &mask, how, l));                             \
  }                                                                                                             \
  inline Scalar name(const Scalar& ptr, SArg value, Atomic how, RawLoc l = RawLoc::current()) {                 \
    return Scalar(detail::atomic(detail::AtomicOp::op, ptr, value, nullptr, how, l));                           \
  }

/// memory = memory + value
KILN_ATOMIC(atomic_add, add)
/// memory = minimum(memory, value)
KILN_ATOMIC(atomic_min, min)
/// memory = maximum(memory, value)
KILN_ATOMIC(atomic_max, max)
/// memory = memory & value
KILN_ATOMIC(atomic_and, and_)
/// memory = memory | value
KILN_ATOMIC(atomic_or, or_)
/// memory = memory ^ value
KILN_ATOMIC(atomic_xor, xor_)
/// memory = value
KILN_ATOMIC(atomic_xchg, exchange)
#undef KILN_ATOMIC

/// memory = desired, where it equals expected bit for bit (so -0 and +0 differ, and a NaN equals itself). Gives what
/// was there: equal to expected where it was replaced.
Tile atomic_cas(const Tile& ptr, Arg expected, Arg desired, RawLoc l = RawLoc::current());
Tile atomic_cas(const Tile& ptr, Arg expected, Arg desired, Arg mask, Atomic = {}, RawLoc l = RawLoc::current());
Tile atomic_cas(const Tile& ptr, Arg expected, Arg desired, Atomic, RawLoc l = RawLoc::current());
Scalar atomic_cas(const Scalar& ptr, SArg expected, SArg desired, RawLoc l = RawLoc::current());
Scalar atomic_cas(const Scalar& ptr, SArg expected, SArg desired, SArg mask, Atomic = {}, RawLoc l = RawLoc::current());
Scalar atomic_cas(const Scalar& ptr, SArg expected, SArg desired, Atomic, RawLoc l = RawLoc::current());

}  // namespace kiln
