#include "backend/llvm/lanes.h"

#include <numeric>

namespace kiln::cg {
namespace {

using llvm::Value;

Value* both(llvm::IRBuilder<>& b, Value* x, Value* y) {
  return x == nullptr ? y : y == nullptr ? x : b.CreateAnd(x, y);
}

}  // namespace

/// Lanes of a padded tile that hold no element. Where a power of two divides extent and thread part, neighbours share
/// one comparison.
void Lanes::add_extents() {
  std::vector<std::pair<std::pair<int, std::int64_t>, Value*>> done;
  for (int r = 0; r < g_.regs(); ++r) {
    Lane& lane = lanes_[std::size_t(r)];
    if (!g_.live[std::size_t(r)]) lane.off = true;
    for (int a = 0; a < int(g_.axes.size()) && !lane.off; ++a) {
      const Geometry::Axis& axis = g_.axes[std::size_t(a)];
      std::int64_t part = g_.parts[std::size_t(r)][std::size_t(a)];
      if ((part | axis.thread_known.range.hi) < axis.extent) continue;
      if (!axis.swizzled) {
        const std::int64_t d = std::gcd(axis.extent, axis.thread_known.divisor);
        part &= -(d & -d);
      }
      Value* inside = nullptr;
      for (const auto& [key, value] : done)
        if (key == std::pair(a, part)) inside = value;
      if (inside == nullptr) {
        Value* at = axis.swizzled ? GeometryCache::coordinate(b_, g_, r, a).v : axis.thread;
        const std::int64_t limit = axis.swizzled ? axis.extent : axis.extent - part;
        inside = b_.CreateICmpSLT(at, b_.getInt32(std::uint32_t(limit)));
        done.push_back({{a, part}, inside});
      }
      lane.active = both(b_, lane.active, inside);
    }
  }
}

void Lanes::add_mask(const TileValue& mask) {
  std::vector<std::tuple<Value*, Value*, Value*>> done;
  for (int r = 0; r < g_.regs(); ++r) {
    Lane& lane = lanes_[std::size_t(r)];
    if (lane.off) continue;
    Value* m = mask.regs[std::size_t(r)].v;
    if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(m)) {
      lane.off = constant->isZero();
      continue;
    }
    Value* active = nullptr;
    for (const auto& [x, y, value] : done)
      if (x == lane.active && y == m) active = value;
    if (active == nullptr) {
      active = both(b_, lane.active, m);
      done.emplace_back(lane.active, m, active);
    }
    lane.active = active;
  }
}

void Lanes::add_owner() {
  for (int r = 0; r < g_.regs(); ++r)
    if (g_.first[std::size_t(r)] != r) lanes_[std::size_t(r)].off = true;
  if (g_.owner != nullptr) add_mask(map_registers(g_, {}, [&](Regs) { return g_.owner; }));
}

}  // namespace kiln::cg
