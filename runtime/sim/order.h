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

/// How far the agents of a cluster had come at some moment.
class Clock {
 public:
  void join(const Clock&) {}
  void clear() {}
};

/// One asynchronous operation.
struct Agent {
  Warp* issuer = nullptr;
  const Inst* inst = nullptr;  ///< that issued it
  std::uint8_t lane = 0;       ///< … of the issuer
  Proxy proxy = Proxy::Async;
  Clock known;
};

/// The operation that `lane` issues now.
Agent issue(Warp&, const Inst&, int lane, Proxy);

void release(Warp&, Clock& into);
void acquire(Warp&, const Clock& from);
/// The completion of an operation.
void release(const Agent&, Clock& into);
/// fence.proxy.async by the active lanes.
void fence_proxy_async(Warp&);

/// Host addresses of [at, at + bytes) of the block's shared memory, or of global memory, for a read or write that the
/// operation makes now. Throw Fault at the issuing instruction: out of bounds, race, uninitialised, use after free.
const std::byte* shared_read(Agent&, Block&, std::uint64_t at, std::uint32_t bytes);
std::byte* shared_write(Agent&, Block&, std::uint64_t at, std::uint32_t bytes);
const std::byte* global_read(Agent&, std::uint64_t address, std::uint32_t bytes);
std::byte* global_write(Agent&, std::uint64_t address, std::uint32_t bytes);

}  // namespace kiln::rt::sim
