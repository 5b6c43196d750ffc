// For experts: shared memory by name, barriers, PTX. Ordinary kernels need none of it: tiles move through shared memory
// and wait for each other by themselves.
//
//     Scalar bins = shared<std::int32_t>(256);                         // a pointer like any other
//     store(bins + arange(256), 0);
//     atomic_add(bins + load(x + i, mask), 1, mask);
//     store(out + arange(256), load(bins + arange(256)));
//
//     Tile y = inline_ptx<float>("ex2.approx.ftz.f32 $0, $1;", x);     // per element
#pragma once
#include <initializer_list>
#include <tuple>
#include <vector>

#include "dsl/lang/report.h"

namespace kiln {

namespace detail {
Made shared(DType, std::int64_t count, SourceLoc);
std::vector<Made> inline_ptx(const Text& ptx, std::initializer_list<Arg> operands,
                             std::initializer_list<DType> results);

template <class Result, std::size_t... I>
auto results_of(const std::vector<Made>& made, std::index_sequence<I...>) {
  if constexpr (sizeof...(I) == 1) return Result(made[0]);
  else if constexpr (sizeof...(I) > 1) return std::tuple{((void)I, Result(made[I]))...};
}
}  // namespace detail

/// A pointer to `count` elements of shared memory that belong to this program and live as long as it; uninitialised.
/// Pointer arithmetic, load, store and atomics work as on global memory, and accesses happen in the order written, with
/// barriers where threads need them. A pointer to shared memory never becomes one to global memory. Several calls are
/// several places; one in a loop is one place. Errors: UserError for a count outside 1 to 1048576; when the kernel is
/// compiled, for more than the device has, and for a program of several blocks.
template <Element T>
[[nodiscard]] Scalar shared(std::int64_t count, RawLoc l = RawLoc::current()) {
  return Scalar(detail::shared(dtype_of<T>, count, l));
}

/// All threads of the program wait for each other; what they wrote before is seen by all after. Program order needs
/// none: it is for memory that inline PTX touches.
void barrier(RawLoc l = RawLoc::current());
/// The hardware's barrier `id`, 1 to 15 (0 is the compiler's), at which `threads` threads meet, a multiple of 32; 0:
/// all of the program. It stands wherever the program comes by, in all threads: fewer than all make sense only together
/// with PTX that arrives there too. Errors: UserError for an id or a number of threads that the program does not have.
void barrier(int id, int threads = 0, RawLoc l = RawLoc::current());

/// `ptx` for each element, with the element types R of its results: $0, $1, … are the results, then the operands
/// (Tiles, Scalars, numbers; broadcast to one shape). One result is a Tile, or a Scalar where all operands are; several
/// are a tuple of them. 8-bit types are in 16-bit registers, i1 in predicates.
///
/// The text may hold several instructions and declare registers: it stands between braces. It is run at least once an
/// element, in any thread that holds the element, and never removed or moved over another effect. It may not branch
/// out, and must not count on which threads run it together. The interpreter cannot run it: an error. What the
/// assembler says of it names this line.
template <Element... R, class... A>
auto inline_ptx(detail::Text ptx, const A&... operands) {
  using Result = std::conditional_t<(std::derived_from<A, Tile> || ...), Tile, Scalar>;
  const std::vector<detail::Made> made = detail::inline_ptx(ptx, {Arg(operands, RawLoc{})...}, {dtype_of<R>...});
  return detail::results_of<Result>(made, std::index_sequence_for<R...>{});
}

}  // namespace kiln
