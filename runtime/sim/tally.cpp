#include "runtime/sim/tally.h"

#include <bit>

namespace kiln::rt::sim {

Footprint::Page& Footprint::find(std::uint64_t number) {
  if (2 * (used_ + 1) > pages_.size()) grow();
  const std::size_t mask = pages_.size() - 1;
  std::size_t slot = static_cast<std::size_t>((number * 0x9E3779B97F4A7C15u) >> 32) & mask;
  while (pages_[slot].number != number && pages_[slot].number != kNone) slot = (slot + 1) & mask;
  if (pages_[slot].number == kNone) {
    pages_[slot].number = number;
    ++used_;
  }
  recent_[number % kRecent] = static_cast<std::uint32_t>(slot);
  return pages_[slot];
}

void Footprint::grow() {
  std::vector<Page> old(std::max<std::size_t>(64, 2 * pages_.size()));
  old.swap(pages_);
  used_ = 0;
  for (const Page& p : old)
    if (p.number != kNone) find(p.number) = p;
}

void Footprint::add(const Footprint& other) {
  for (const Page& p : other.pages_) {
    if (p.number == kNone) continue;
    Page& own = page(p.number);
    for (std::size_t i = 0; i < 2; ++i) own.read[i] |= p.read[i], own.written[i] |= p.written[i];
  }
}

std::uint64_t Footprint::bytes_read() const {
  std::uint64_t n = 0;
  for (const Page& p : pages_) n += static_cast<std::uint64_t>(std::popcount(p.read[0]) + std::popcount(p.read[1]));
  return n * kSectorBytes;
}
std::uint64_t Footprint::bytes_written() const {
  std::uint64_t n = 0;
  for (const Page& p : pages_)
    n += static_cast<std::uint64_t>(std::popcount(p.written[0]) + std::popcount(p.written[1]));
  return n * kSectorBytes;
}

void add(Counters& to, const Counters& from) {
#define KILN_COUNTER(name, doc) to.name += from.name;
#include "runtime/counters.def"
}

void Tally::add(const Tally& other) {
  for (std::size_t i = 0; i < executed.size(); ++i) {
    executed[i].times += other.executed[i].times;
    executed[i].inactive += other.executed[i].inactive;
    executed[i].off += other.executed[i].off;
    sim::add(counts[i], other.counts[i]);
  }
  footprint.add(other.footprint);
  for (const auto& [block, text] : other.printed) printed[block] += text;
}

Counters Tally::of(const Program& p, std::uint32_t info) const {
  Counters c = counts[info];
  const Executed& e = executed[info];
  if (p.infos[info].implicit) return c;
  c.instructions = e.times;
  c.active_lanes = e.times * kLanes - e.inactive;
  c.executing_lanes = e.times * kLanes - e.off;
  if (p.infos[info].kind == InstClass::Barrier) c.barriers = e.times;
  return c;
}

}  // namespace kiln::rt::sim
