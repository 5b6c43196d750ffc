// Races: accesses of two warps to one byte of a block's shared memory, one of them a write, with nothing in between
// that orders them.
//
// A barrier, a fence or an access with an order ends an epoch of the block. Accesses of one epoch are unordered, unless
// one warp made both or both are atomic. A barrier of some warps ends the epoch for all, so a race may be missed, but
// none is made up. A write of what is there already changes nothing and is none.
#pragma once
#include <cstdint>
#include <vector>

namespace kiln::rt::sim {

class Races {
 public:
  struct Access {
    std::uint32_t epoch = 0;
    std::uint32_t inst = 0;  ///< index in Program::infos
    std::uint16_t warp = 0;  ///< in the cluster
    bool atomic = false;
  };

  /// Makes room for shared memory up to `end`; what was accessed before is forgotten.
  void start(std::uint32_t end) {
    if (bytes_.size() < end) bytes_.resize(end);
    order();
  }
  void order() { ++epoch_; }

  /// The access to [at, at + n) that races with this one, or null. The new one is remembered.
  const Access* read(std::uint64_t at, std::uint32_t n, Access a) { return add(at, n, a, false); }
  const Access* write(std::uint64_t at, std::uint32_t n, Access a) { return add(at, n, a, true); }

 private:
  struct Byte {
    Access written, read;
    bool many = false;  ///< warps that read
  };
  bool races(const Access& before, const Access& now) const {
    return before.epoch == epoch_ && before.warp != now.warp && !(before.atomic && now.atomic);
  }
  const Access* add(std::uint64_t at, std::uint32_t n, Access a, bool writes);

  std::vector<Byte> bytes_;
  std::uint32_t epoch_ = 0;
  Access found_;
};

}  // namespace kiln::rt::sim
