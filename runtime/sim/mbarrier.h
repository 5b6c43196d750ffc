// mbarriers: objects in shared memory that count the arrivals and bytes a phase still waits for.
//
// The object's 64 bits are opaque to programs. What it counts is kept beside the memory; the memory holds a word that
// changes with it, so that a store over a live object is noticed.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "runtime/sim/order.h"
#include "runtime/sim/shadow.h"

namespace kiln::rt::sim {

class Signalling;

constexpr std::uint32_t kMaxArrivals = (1u << 20) - 1;    ///< of a phase
constexpr std::int64_t kMaxTransactions = (1 << 20) - 1;  ///< bytes that a phase may wait for, or be ahead by

struct Mbarrier {
  std::uint32_t expected = 0;  ///< arrivals of the next phase
  std::uint32_t pending = 0;   ///< arrivals that the current one misses
  std::int64_t bytes = 0;      ///< that it misses; less than 0 if more have arrived than were expected yet
  std::uint64_t phase = 0;     ///< the current one, counted from 0
  Access init;                 ///< that initialised it
  std::uint16_t warp = 0;      ///< … of this warp of the cluster
  bool fenced = false;         ///< asynchronous operations see the initialisation
  Clock arriving;              ///< what those that arrived in the current phase had done
  Clock arrived;               ///< … in completed phases
};

/// A place in the shared memory of a block.
struct SharedPlace {
  Block* block;
  std::uint32_t at;
};

/// Those of one block, by address.
class Mbarriers {
 public:
  Mbarrier* find(std::uint32_t at) {
    const auto it = live_.find(at);
    return it == live_.end() ? nullptr : &it->second;
  }
  /// Address of one that has bytes in [at, at + bytes), or 0.
  std::uint32_t inside(std::uint32_t at, std::uint32_t bytes) const;
  Mbarrier& init(std::uint32_t at) { return live_[at] = {}; }
  void invalidate(std::uint32_t at) { live_.erase(at); }
  void clear() { live_.clear(); }
  auto begin() { return live_.begin(); }
  auto end() { return live_.end(); }

 private:
  std::map<std::uint32_t, Mbarrier> live_;
};

/// The mbarrier that `lane` names. Throws Fault if there is none, or something was stored over it.
Mbarrier& live_mbarrier(const Warp&, const Inst&, int lane, SharedPlace);
/// … for the warp to use: what initialised it must have happened before, else a race is reported.
Mbarrier& used_mbarrier(Warp&, const Inst&, int lane, SharedPlace);
/// … for an asynchronous operation to signal. Throws Fault also if its initialisation need not be visible to it yet.
Mbarrier& signalled_mbarrier(Warp&, const Inst&, int lane, SharedPlace);

/// `count` arrivals. Throws Fault if the phase misses fewer.
void count_arrivals(const Warp&, const Inst&, int lane, SharedPlace, Mbarrier&, std::uint32_t count);
/// The phase waits for so many bytes more (or less). Throws Fault if that leaves the range.
void expect_bytes(const Warp&, const Inst&, int lane, SharedPlace, Mbarrier&, std::int64_t bytes);
/// An operation that signals is done and moved so many bytes: what it did is part of the phase.
void complete_bytes(Signalling&, std::uint32_t bytes);
/// What the mbarrier keeps is changed: ends the phase if nothing is missing, and wakes those that wait for it.
void settle(SharedPlace, Mbarrier&);

/// Asynchronous operations see from now on what the warp initialised.
void fence_mbarriers(Warp&);

/// "mbarrier 0x400 (phase 3, 1 of 2 arrivals and 4096 bytes are missing)", for the one that a warp waits for.
std::string awaited_mbarrier(const Warp&);

}  // namespace kiln::rt::sim
