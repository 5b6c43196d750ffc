// Post-dominators by Cooper, Harvey and Kennedy's iteration ("A Simple, Fast Dominance Algorithm") over basic blocks of
// the reversed graph, with one virtual node behind every exit.
#include "runtime/sim/cfg.h"

#include <algorithm>

namespace kiln::rt::sim {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
/// Steps of the iteration; what compilers write takes a few for each block, only graphs made to be slow take more.
constexpr std::uint64_t kMostSteps = 200'000'000;

/// Basic blocks, numbered in code order; the last number is the virtual exit.
struct Blocks {
  std::vector<std::uint32_t> first, of;  // first instruction of a block; block of an instruction
  std::vector<std::vector<std::uint32_t>> succ, pred;
  std::uint32_t exit = 0;
};

Blocks split(const Successors& next) {
  const auto n = static_cast<std::uint32_t>(next.size());
  std::vector<char> leader(n + 1, 0);
  if (n) leader[0] = 1;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (next[i].size() == 1 && next[i][0] == i + 1) continue;
    leader[i + 1] = 1;
    for (std::uint32_t s : next[i]) leader[s] = 1;
  }
  Blocks b;
  b.of.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (leader[i]) b.first.push_back(i);
    b.of[i] = static_cast<std::uint32_t>(b.first.size() - 1);
  }
  b.exit = static_cast<std::uint32_t>(b.first.size());
  b.succ.resize(b.exit + 1);
  b.pred.resize(b.exit + 1);
  for (std::uint32_t k = 0; k < b.exit; ++k) {
    const std::uint32_t last = (k + 1 < b.exit ? b.first[k + 1] : n) - 1;
    for (std::uint32_t s : next[last]) b.succ[k].push_back(b.of[s]);
    if (next[last].empty()) b.succ[k].push_back(b.exit);
    for (std::uint32_t s : b.succ[k]) b.pred[s].push_back(k);
  }
  return b;
}

/// Blocks that reach the exit, in reverse post-order of the reversed graph (the exit first).
std::vector<std::uint32_t> order_from_exit(const Blocks& b) {
  std::vector<std::uint32_t> order;
  std::vector<char> seen(b.exit + 1, 0);
  std::vector<std::pair<std::uint32_t, std::size_t>> stack{{b.exit, 0}};
  seen[b.exit] = 1;
  while (!stack.empty()) {
    auto& [node, at] = stack.back();
    if (at == b.pred[node].size()) {
      order.push_back(node);
      stack.pop_back();
    } else if (const std::uint32_t p = b.pred[node][at++]; !seen[p]) {
      seen[p] = 1;
      stack.push_back({p, 0});
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

std::vector<std::uint32_t> reconvergence_points(const Successors& next) {
  const Blocks b = split(next);
  const std::vector<std::uint32_t> order = order_from_exit(b);
  std::vector<std::uint32_t> rank(b.exit + 1, kNone), idom(b.exit + 1, kNone);
  for (std::uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  idom[b.exit] = b.exit;
  std::uint64_t steps = 0;
  for (bool changed = true; changed;) {
    changed = false;
    if (steps > kMostSteps) return {};
    for (std::uint32_t node : order) {
      if (node == b.exit) continue;
      ++steps;
      std::uint32_t best = kNone;
      for (std::uint32_t s : b.succ[node]) {
        if (rank[s] == kNone || idom[s] == kNone) continue;
        if (best == kNone) best = s;
        for (std::uint32_t other = s; best != other; ++steps)
          if (rank[best] > rank[other]) best = idom[best];
          else other = idom[other];
      }
      if (best != idom[node]) idom[node] = best, changed = true;
    }
  }
  std::vector<std::uint32_t> out(next.size(), kNone);
  for (std::uint32_t i = 0; i < next.size(); ++i) {
    if (next[i].size() < 2) continue;
    const std::uint32_t meet = idom[b.of[i]];
    if (meet != kNone && meet != b.exit) out[i] = b.first[meet];
  }
  return out;
}

}  // namespace kiln::rt::sim
