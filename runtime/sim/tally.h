// What a launch did, counted by instruction. Each host thread has one; sums do not depend on which did what.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/sim/program.h"

namespace kiln::rt::sim {

constexpr std::uint64_t kSectorBytes = 32;

/// The distinct 32-byte sectors that a launch read and wrote.
class Footprint {
 public:
  void read(std::uint64_t sector) {
    Page& p = page(sector / kPageSectors);
    p.read[sector % kPageSectors / 64] |= std::uint64_t{1} << sector % 64;
  }
  void written(std::uint64_t sector) {
    Page& p = page(sector / kPageSectors);
    p.written[sector % kPageSectors / 64] |= std::uint64_t{1} << sector % 64;
  }
  void add(const Footprint&);
  std::uint64_t bytes_read() const;
  std::uint64_t bytes_written() const;

 private:
  static constexpr std::uint64_t kPageSectors = 128, kNone = UINT64_MAX;
  struct Page {
    std::uint64_t number = kNone;
    std::array<std::uint64_t, 2> read{}, written{};
  };
  Page& page(std::uint64_t number) {
    const std::uint32_t slot = recent_[number % kRecent];
    if (slot < pages_.size() && pages_[slot].number == number) return pages_[slot];
    return find(number);
  }
  Page& find(std::uint64_t number);
  void grow();

  std::vector<Page> pages_;  ///< hash table with linear probing; its size is a power of two
  std::size_t used_ = 0;
  static constexpr std::size_t kRecent = 32;
  std::array<std::uint32_t, kRecent> recent_{};  ///< slots of pages found last
};

/// How often an instruction was executed, and what it lacked of 32 lanes each time.
struct Executed {
  std::uint64_t times = 0, inactive = 0, off = 0;  ///< off: inactive or switched off by a predicate
};

/// Vectors are indexed as Program::infos.
struct Tally {
  std::vector<Executed> executed;
  std::vector<Counters> counts;  ///< the other counters; those of execution are 0
  Footprint footprint;
  std::map<std::uint64_t, std::string> printed;  ///< what printf wrote, by number of the block

  void start(const Program& p) {
    executed.resize(p.infos.size());
    counts.resize(p.infos.size());
  }
  void add(const Tally&);
  /// Everything that the instruction counted.
  Counters of(const Program&, std::uint32_t info) const;
};

/// Sums counters.
void add(Counters& to, const Counters& from);

struct Warp;

/// Called when an instruction runs with less than all 32 lanes.
void count_lanes(Warp&, const Inst&);
/// Takes the instruction back: it waits, and is executed again.
void uncount(Warp&, const Inst&);
/// Lanes that waited at the instruction joined those that it was counted with.
void recount(Warp&, const Inst&, std::uint32_t active, std::uint32_t mask);
/// The active lanes part here.
void count_divergence(Warp&, const Inst&);

/// A run of bytes of global memory.
struct GlobalRun {
  std::uint64_t address = 0, bytes = 0;
};
/// What a bulk or tensor copy does with global memory: reads it, writes it, reads and writes it (a reduction), nothing
/// (between blocks of a cluster); a prefetch reads it and copies nothing.
enum class Traffic : std::uint8_t { Read, Written, Reduced, None, Prefetch };
/// One bulk or tensor copy of `bytes` bytes, which touches `runs` of global memory: one request. Bytes that are filled
/// and not read belong to `bytes` alone.
void count_bulk(Warp&, const Inst&, Traffic, std::uint64_t bytes, const std::vector<GlobalRun>& runs);
/// Copies of `lanes` lanes by cp.async; their global and shared accesses are counted as those of other instructions.
void count_async(Warp&, const Inst&, std::uint64_t lanes, std::uint64_t bytes);
/// Operations of a matrix instruction: 2·M·N·K of what this warp computes.
void count_matrix(Warp&, const Inst&, std::uint64_t flop);
/// Local memory of the lanes of `mask`, `bytes` each.
void count_local(Warp&, const Inst&, std::uint32_t mask, std::uint32_t bytes);

}  // namespace kiln::rt::sim
