// Races between clusters that run in any order.
//
// Clusters of a kernel whose clusters cannot wait for one another are run by several host threads, in any order. There
// a cell remembers the lowest and the highest cluster that read and wrote it, which no order changes, and the verdict
// on it is given after the launch.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/sim/shadow.h"

namespace kiln::rt::sim {

struct Launch;

/// Whether the launch's clusters run in any order, so that races between them are judged at the end.
bool crossing(const Launch&);
/// Adds an access by one of several clusters to what they did with the cell; true if they race now and nobody said so
/// yet.
bool note_several(const Access&, Page&, Cell&, bool reads, bool writes);
/// The same where there may be one cluster only. `changed`: bytes that the access changes. Before the cell remembers
/// it.
inline bool note_crossing(const Access& mine, Page& page, Cell& c, bool reads, bool writes, std::uint16_t changed) {
  const std::uint32_t own = mine.cluster;
  if (writes) {
    if (c.write.time) c.differ |= changed;
    c.changed |= changed;
  }
  const bool alone = (c.write.time == 0 || c.write.cluster == own) && (c.read.time == 0 || c.read.cluster == own);
  return !(c.crossing == 0 && alone) && note_several(mine, page, c, reads, writes);
}

/// Whether the accesses of several clusters to the cell, which nothing orders, race.
bool crosses(Page&, const Cell&);
/// Whether a cluster other than `own` wrote the cell.
bool written_by_others(Page&, const Cell&, std::uint32_t own);
/// The two accesses that race: in order of cluster, the writes if they do.
std::array<Access, 2> crossing_pair(Page&, const Cell&);

}  // namespace kiln::rt::sim
