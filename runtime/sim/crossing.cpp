#include "runtime/sim/crossing.h"

#include <utility>

#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;

void widen(Access& first, Access& last, const Access& a) {
  if (a.time == 0) return;
  if (first.time == 0 || a.cluster <= first.cluster) first = a;
  if (last.time == 0 || a.cluster >= last.cluster) last = a;
}

}  // namespace

bool note_several(const Access& mine, Page& page, Cell& c, bool reads, bool writes) {
  Crossing& all = page.crossing_of(c);
  widen(all.first_write, all.last_write, c.write);
  widen(all.first_read, all.last_read, c.read);
  if (writes) widen(all.first_write, all.last_write, mine);
  if (reads) widen(all.first_read, all.last_read, mine);
  if (c.reported || !crosses(page, c)) return false;
  c.reported = true;
  return true;
}

bool crossing(const Launch& launch) {
  return launch.checks.races && !launch.program.communicates && launch.clusters() > 1;
}

bool crosses(Page& page, const Cell& c) {
  if (c.crossing == 0) return false;
  const Crossing& all = page.crossings[c.crossing - 1];
  if (all.first_write.time == 0) return false;
  const U32 writer = all.first_write.cluster;
  if (c.differ && writer != all.last_write.cluster) return true;
  if (c.changed == 0 || all.first_read.time == 0) return false;
  return writer != all.last_write.cluster || writer != all.first_read.cluster || writer != all.last_read.cluster;
}

bool written_by_others(Page& page, const Cell& c, U32 own) {
  if (c.crossing == 0) return c.write.time && c.write.cluster != own;
  const Crossing& all = page.crossings[c.crossing - 1];
  return all.first_write.time && (all.first_write.cluster != own || all.last_write.cluster != own);
}

std::array<Access, 2> crossing_pair(Page& page, const Cell& c) {
  const Crossing& all = page.crossings[c.crossing - 1];
  std::array<Access, 2> pair{all.first_write, all.last_write};
  if (!c.differ || pair[0].cluster == pair[1].cluster) {
    if (all.last_read.cluster != all.first_write.cluster) pair[1] = all.last_read;
    else if (all.first_read.cluster != all.first_write.cluster) pair[1] = all.first_read;
    else pair[0] = all.last_write, pair[1] = all.first_read;
  }
  if (pair[0].cluster > pair[1].cluster) std::swap(pair[0], pair[1]);
  return pair;
}

}  // namespace kiln::rt::sim
