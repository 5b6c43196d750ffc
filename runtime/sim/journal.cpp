#include "runtime/sim/journal.h"

#include <algorithm>

namespace kiln::rt::sim {

std::uint32_t Journal::add(std::uint32_t cluster, std::shared_ptr<const Times> known, std::uint32_t before) {
  entries_.push_back({cluster, before, 0, std::move(known)});
  return static_cast<std::uint32_t>(entries_.size() - 1);
}

bool Journal::sums(std::uint32_t all, std::uint32_t part) const {
  for (std::uint32_t i = 0; i < kSums; ++i) {
    const Entry& e = entries_[all];
    if (e.first == part || e.second == part) return true;
    if (e.known || e.first == 0) return false;
    all = e.first;
  }
  return false;
}

std::uint32_t Journal::join(std::uint32_t a, std::uint32_t b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (sums(a, b)) return a;
  if (sums(b, a)) return b;
  entries_.push_back({0, a, b, nullptr});
  return static_cast<std::uint32_t>(entries_.size() - 1);
}

void Journal::join(Told& to, const Told& from) {
  to.known = join(to.known, from.known);
  to.published = join(to.published, from.published);
  to.observed = join(to.observed, from.observed);
}

bool Journal::knows(std::uint32_t entry, std::uint32_t cluster, std::uint32_t component, std::uint32_t time) {
  if (entry == 0) return false;
  Found& f = found_[std::uint64_t{entry} << 32 | cluster];
  if (component < f.known.size() && f.known[component] >= time) return true;
  if (f.complete) return false;
  // Breadth first: what an agent looks at is mostly told by the one it heard of last.
  visited_.resize(entries_.size());
  queue_.assign(1, entry);
  visited_[entry] = ++visit_;
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const Entry& e = entries_[queue_[i]];
    if (e.known && e.cluster == cluster) {
      if (f.known.size() < e.known->size()) f.known.resize(e.known->size());
      for (std::size_t c = 0; c < e.known->size(); ++c) f.known[c] = std::max(f.known[c], (*e.known)[c]);
      if (f.known[component] >= time) return true;
    }
    for (const std::uint32_t next : {e.first, e.second}) {
      if (next == 0 || visited_[next] == visit_) continue;
      visited_[next] = visit_;
      queue_.push_back(next);
    }
  }
  f.complete = true;
  return false;
}

}  // namespace kiln::rt::sim
