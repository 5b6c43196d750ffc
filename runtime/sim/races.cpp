#include "runtime/sim/races.h"

namespace kiln::rt::sim {

const Races::Access* Races::add(std::uint64_t at, std::uint32_t n, Access a, bool writes) {
  a.epoch = epoch_;
  bool found = false;
  for (Byte *b = bytes_.data() + at, *end = b + n; b != end; ++b) {
    if (races(b->written, a)) {
      found_ = b->written;
      found = true;
    } else if (writes && b->read.epoch == epoch_ && (b->many || races(b->read, a))) {
      found_ = b->read;
      found = true;
    }
    if (writes) {
      b->written = a;
    } else {
      b->many = b->read.epoch == epoch_ && (b->many || b->read.warp != a.warp);
      b->read = a;
    }
  }
  return found ? &found_ : nullptr;
}

}  // namespace kiln::rt::sim
