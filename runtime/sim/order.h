// Order: what happened before what, so that a race is told from an access that is ordered.
//
// Warps are agents, and so is each asynchronous operation (cp.async, bulk and tensor copies, wgmma), which starts with
// what its issuer knew. Synchronisation hands knowledge on: the one that arrives releases what it knows into a Clock,
// those that pass acquire it. Accesses to shared and global memory are checked against what their agent knows.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::rt::sim {

struct Block;
struct Inst;
struct Warp;

/// Generic: ld, st, atom, cp.async, ldmatrix … Async: bulk and tensor copies, wgmma operands in shared memory. What one
/// proxy wrote the other sees only behind a proxy fence (or the completion of the asynchronous operation).
enum class Proxy : std::uint8_t { Generic, Async };

/// What an agent knows: how far the others had come.
class Clock {
 public:
  void join(const Clock&) {}
  void clear() {}
};

/// One asynchronous operation. Copies are cheap.
struct Agent {
  Warp* issuer = nullptr;
  const Inst* inst = nullptr;  ///< that issued it
  std::uint8_t lane = 0;       ///< … of the issuer
  Proxy proxy = Proxy::Async;
};

/// The operation that `lane` issues now.
Agent issue(Warp&, const Inst&, int lane, Proxy);

/// What the warp did and knows goes into the clock, and from it to those that acquire it.
void release(Warp&, Clock& into);
void acquire(Warp&, const Clock& from);
/// Relaxed forms: what the warp knew at its last fence goes into the clock; what it takes from one counts from its next
/// fence on.
void release_relaxed(Warp&, Clock& into);
void acquire_relaxed(Warp&, const Clock& from);
/// The completion of an operation.
void release(const Agent&, Clock& into);
/// fence.proxy.async: what the warp wrote so far, the async proxy may see. A fence by another warp does not count.
void fence_proxy_async(Warp&);

/// Host addresses of [at, at + bytes) of the block's shared memory, or of global memory, for a read or write that the
/// operation makes now. Throw Fault at the issuing instruction where nothing may be accessed; races and uninitialised
/// reads are collected.
const std::byte* shared_read(Agent&, Block&, std::uint64_t at, std::uint32_t bytes);
std::byte* shared_write(Agent&, Block&, std::uint64_t at, std::uint32_t bytes);
const std::byte* global_read(Agent&, std::uint64_t address, std::uint32_t bytes);
std::byte* global_write(Agent&, std::uint64_t address, std::uint32_t bytes);
/// The same for a reduction, which is atomic.
std::byte* shared_update(Agent&, Block&, std::uint64_t at, std::uint32_t bytes);
std::byte* global_update(Agent&, std::uint64_t address, std::uint32_t bytes);

}  // namespace kiln::rt::sim
