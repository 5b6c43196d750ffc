// Warps that spin: what they do repeats itself until something changes that another one must change.
//
// A warp whose registers, places and lanes are what they were before, while nothing was changed by anybody, will do the
// same again for ever. It is not run until something changes; where that holds for all that do not wait anyway, nobody
// can go on. Warps are watched only when nothing has changed for a while, so that others cost nothing.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/sim/program.h"

namespace kiln::rt::sim {

struct Block;
struct Cluster;
struct Held;
struct Parked;
struct Warp;

/// One warp that is watched.
class Spin {
 public:
  /// What it read since the state that it came back to.
  struct Read {
    const Inst* inst;
    int lane;
    Block* shared;  ///< whose shared memory it is; null: global memory
    std::uint64_t address;
  };

  explicit Spin(const Warp&);

  /// The warp executed an instruction: whether it is as it was. Sets found().
  bool returned(const Warp&);
  /// It came back, and nothing has changed since.
  bool found(const Warp&) const;
  /// The warp goes on. Where something changed since it was remembered, what it did before counts no more.
  void resume(const Warp&);
  /// It is watched in vain.
  bool hopeless() const { return longest_ > kLongest; }

  void reads(const Inst& in, int lane, Block* shared, std::uint64_t address) {
    if (reads_.size() < kReads) reads_.push_back({&in, lane, shared, address});
  }
  const std::vector<Read>& reads() const { return reads_; }

 private:
  static constexpr std::uint64_t kLongest = 1 << 14;  ///< instructions until a loop comes back
  static constexpr int kTries = 3;                    ///< of a warp that came back and was woken by a change
  static constexpr std::size_t kReads = 16;

  void remember(const Warp&);
  bool same(const Warp&) const;

  std::vector<std::uint32_t> registers_;
  std::vector<std::uint64_t> alternatives_;  ///< of the registers; empty: they are like them
  std::vector<Parked> parked_;
  std::vector<Held> held_;
  std::uint32_t pc_ = 0, active_ = 0, reconverge_ = 0;
  std::uint64_t changes_ = 0;  ///< the count when it was remembered
  std::uint64_t steps_ = 0, longest_ = 16;
  bool found_ = false;
  int tries_ = 0;  ///< states that are remembered until it counts as watched in vain; 0: until loops are too long
  std::vector<Read> reads_;
};

/// The warp has executed so many instructions and is ready for more: begins to watch it if nothing has changed for
/// long.
void watch_spin(Warp&, std::uint64_t executed);
/// The warp spins: it need not run until something changes.
bool spins(const Warp&);
/// Behind each instruction of a warp that is watched; true if it spins, or is watched no more.
bool look_at_spin(Warp&);

/// "spins on shared memory at 0x400 (it holds 0x0; …) at …", for a warp that spins.
std::string spin_text(const Warp&);

}  // namespace kiln::rt::sim
