#include "runtime/sim/lifetime.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/racecheck.h"
#include "runtime/sim/report.h"

namespace kiln::rt::sim {
namespace {

bool looks(const Warp& w) { return w.block->launch->checks.races; }

void report(const Block& b, const Visit& v) {
  const Launch& launch = *b.launch;
  if (v.by != Visit::By::Thread)
    throw Fault{finding(FindingKind::AsyncMisuse, launch, v.access, unawaited(v.by)), b.cluster->number};
  const Findings::Key key{FindingKind::Race, v.access.inst, UINT32_MAX};
  Findings& findings = *b.cluster->findings;
  if (!findings.wants(key)) return;
  findings.add(key, v.access.cluster,
               finding(FindingKind::Race, launch, v.access,
                       fmt::format("race on shared memory with the exit of block {}, to which it belongs: nothing "
                                   "orders this access before it",
                                   id_text(b.id))),
               {});
}

}  // namespace

const char* unawaited(Visit::By by) {
  switch (by) {
    case Visit::By::GroupReader:
      return "its block exits while the copy still reads its shared memory: cp.async.bulk.wait_group is missing";
    case Visit::By::Writer: return "the block whose shared memory is written exits without having waited for it";
    default: return "its block exits while the copy still reads its shared memory";
  }
}

Access access_of(const Warp& w, const Inst& in, int lane) {
  const Knowledge& k = w.order;
  Access a;
  a.cluster = static_cast<std::uint32_t>(w.block->cluster->number);
  a.inst = in.info;
  a.component = static_cast<std::uint16_t>(k.self);
  a.time = w.block->cluster->time.on ? k.clock.known[k.self] : 0;
  a.lane = static_cast<std::uint8_t>(lane);
  return a;
}

void check_initialised(Warp& w, const Inst& in, int lane, const Block& b, std::uint32_t at, const Access& init) {
  if (!looks(w) || happened_before(w, init)) return;
  const Findings::Key key{FindingKind::Race, in.info, init.inst};
  Findings& findings = *w.block->cluster->findings;
  if (!findings.wants(key)) return;
  Access mine = access_of(w, in, lane);
  findings.add(
      key, mine.cluster,
      finding(FindingKind::Race, w, in, lane,
              race_text(*b.launch, true, fmt::format("the mbarrier at 0x{:x}", at), mine, init, /*unfenced=*/false)),
      {});
}

void visit(const Warp& w, const Inst& in, int lane, Block& to) {
  if (looks(w)) to.visits.add({access_of(w, in, lane), Visit::By::Thread});
}

void visit(const Agent& a, Block& of, Visit::By by) {
  if (!a.known) return;
  Access access = access_of(*a.issuer, *a.inst, a.lane);
  access.component = a.component;
  access.time = a.time;
  of.visits.add({access, by});
}

void check_visits(Block& b) {
  for (const Visit& v : b.visits.last()) {
    if (v.access.time == 0) continue;
    if (std::none_of(b.warps.begin(), b.warps.end(), [&](const Warp& w) { return happened_before(w, v.access); }))
      report(b, v);
  }
}

}  // namespace kiln::rt::sim
