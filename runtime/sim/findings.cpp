#include "runtime/sim/findings.h"

#include <algorithm>

#include "runtime/sim/crossing.h"
#include "runtime/sim/debug_hook.h"
#include "runtime/sim/racecheck.h"
#include "runtime/sim/report.h"

namespace kiln::rt::sim {
namespace {

constexpr std::size_t kKeys = 1000;      // of a host thread; a program with more is beyond help
constexpr std::size_t kCandidates = 16;  // of a key: some may be dropped at the end

}  // namespace

bool Findings::wants(const Key& key) const {
  const auto known = found_.find(key);
  if (known == found_.end()) return found_.size() < kKeys;
  // One that stands in any case is enough: clusters come in ascending order.
  return known->second.size() < kCandidates && known->second.back().range.shadow != nullptr;
}

void Findings::add(const Key& key, std::uint32_t cluster, Finding f, const ShadowRange& range) {
  if (debug_) debug_->found(f);
  found_[key].push_back({cluster, count_++, std::move(f), range});
}

bool Findings::stands(const Launch& launch, const Candidate& c) {
  if (!c.range.shadow || !launch.checks.races) return true;
  bool dropped = false;
  c.range.shadow->each(c.range.at, c.range.bytes, launch.number, false,
                       [&](Page& page, Cell& cell, std::uint64_t, std::uint32_t) {
                         if (c.finding.kind == FindingKind::Race) dropped |= crosses(page, cell);
                         else dropped |= written_by_others(page, cell, c.cluster);
                       });
  return !dropped;
}

void Findings::cross(const Launch& launch, const ShadowRange& r, Found& into) {
  r.shadow->each(r.at, r.bytes, launch.number, false, [&](Page& page, Cell& c, std::uint64_t at, std::uint32_t) {
    if (!crosses(page, c)) return;
    const std::array<Access, 2> pair = crossing_pair(page, c);
    const Key key{FindingKind::Race, pair[1].inst, pair[0].inst};
    std::vector<Candidate>& known = into[key];
    const auto rank = [](const Access& a, const Access& b, std::uint64_t address) {
      return std::tuple(a.cluster, b.cluster, address);
    };
    if (!known.empty() && std::tuple(known[0].cluster, known[0].number, known[0].range.base + known[0].range.at) <=
                              rank(pair[1], pair[0], r.base + at))
      return;
    known.assign(
        1, {pair[1].cluster, pair[0].cluster, crossing_finding(launch, pair, r.base, at), {r.shadow, at, 1, r.base}});
  });
}

void Findings::keep(const Launch& launch, const Fault* fault, Found& into) {
  // Where a fault ends the launch, it is left open which of the later clusters ran. What is known of global memory then
  // counts only where clusters run one by one.
  const bool partial = fault && !launch.program.communicates;
  for (auto& [key, candidates] : found_)
    for (Candidate& c : candidates) {
      if (partial && (c.range.shadow || c.cluster > fault->cluster)) continue;
      if (!stands(launch, c)) continue;
      std::vector<Candidate>& known = into[key];
      if (known.empty()) known.push_back(std::move(c));
      else if (c.cluster < known[0].cluster) known[0] = std::move(c);
      break;
    }
  if (partial) found_.clear(), crossings_.clear();
}

void Findings::append(Found& found, std::vector<Finding>& to) {
  std::vector<Candidate*> all;
  for (auto& [key, candidates] : found) all.push_back(&candidates[0]);
  std::stable_sort(all.begin(), all.end(), [](const Candidate* a, const Candidate* b) {
    return std::tuple(a->cluster, a->number) < std::tuple(b->cluster, b->number);
  });
  for (Candidate* c : all) to.push_back(std::move(c->finding));
}

std::vector<Finding> Findings::conclude(const Launch& launch, std::vector<Findings>& threads, const Fault* fault) {
  Found found, crossed;
  for (Findings& t : threads) t.keep(launch, fault, found);
  for (const Findings& t : threads)
    for (const ShadowRange& r : t.crossings_) cross(launch, r, crossed);
  std::vector<Finding> out;
  append(found, out);
  append(crossed, out);
  if (fault) out.push_back(fault->finding);
  return out;
}

}  // namespace kiln::rt::sim
