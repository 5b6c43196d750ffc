// Scratch: shared memory that an op needs while it runs, to move elements between the threads of its program.
//
// One function a family of ops, next to its meaning in backend/ir/op/; an op that is not listed in scratch_bytes needs
// none. allocate-shared gives each op that needs some the attribute `scratch`, its byte offset in the program's shared
// memory; ops.def lists the attribute in every op that may need it.
#pragma once
#include <cstdint>

#include "backend/ir/function.h"

namespace kiln::ir {

/// Bytes of shared memory that `inst` needs at stage laid or later; 0 for most.
std::int64_t scratch_bytes(const Function& f, const Inst& inst);

std::int64_t scratch_alloc(const Function& f, const Inst& inst);
std::int64_t scratch_convert(const Function& f, const Inst& inst);
std::int64_t scratch_load(const Function& f, const Inst& inst);
std::int64_t scratch_reduce(const Function& f, const Inst& inst);
std::int64_t scratch_scan(const Function& f, const Inst& inst);
std::int64_t scratch_shape(const Function& f, const Inst& inst);
std::int64_t scratch_dot(const Function& f, const Inst& inst);
std::int64_t scratch_sort(const Function& f, const Inst& inst);
std::int64_t scratch_histogram(const Function& f, const Inst& inst);
std::int64_t scratch_store_block(const Function& f, const Inst& inst);
std::int64_t scratch_atomic(const Function& f, const Inst& inst);

/// Bytes of one copy of every element of `type`, where some element is in several warps or blocks of the team; else 0:
/// what it takes to give every thread what only the owner of an element has.
std::int64_t replica_bytes(const Function& f, const Type& type);

/// Bytes [lo, hi) of the program's shared memory.
struct SharedRange {
  std::int64_t lo = 0, hi = 0;
  std::int64_t bytes() const { return hi - lo; }
  bool overlaps(const SharedRange& other) const { return lo < other.hi && other.lo < hi; }
  bool operator==(const SharedRange&) const = default;
};
/// Where `inst` has its scratch; empty if it needs none.
/// @pre allocate-shared has run
SharedRange scratch_range(const Function& f, const Inst& inst);

/// Shared memory of one program, all of it.
/// @pre allocate-shared has run
std::int64_t shared_bytes(const Function& f);

/// Whether a loaded scalar must come from one thread: it may decide a branch with a barrier behind it, so it has to be the
/// same in all threads whatever other programs write meanwhile. Not so what nothing writes during the launch, or what is
/// the program's own.
bool is_handed_round(const Function& f, const Inst& load);

}  // namespace kiln::ir
