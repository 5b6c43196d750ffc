#include "backend/llvm/geometry.h"

#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>

#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using ir::Hw;
constexpr int kLaneBits = 5;

int log2_of(int n, const char* what) {
  KILN_CHECK(n > 0 && std::has_single_bit(unsigned(n)), fmt::format("{} {} a team", n, what));
  return std::countr_zero(unsigned(n));
}

}  // namespace

GeometryCache::GeometryCache(llvm::IRBuilder<>& entry, const ir::Function& f)
    : entry_(entry),
      f_(f),
      warp_bits_(log2_of(f.exec->warps, "warps")),
      block_bits_(log2_of(f.exec->cluster, "blocks")),
      thread_bits_(kLaneBits + warp_bits_ + block_bits_) {
  const llvm::ArrayRef<llvm::Type*> none;
  tid_ = entry_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, none, {});
  if (f.exec->programs_per_cta > 1)  // several teams in a block
    tid_ = entry_.CreateAnd(tid_, entry_.getInt32((1u << (kLaneBits + warp_bits_)) - 1));
  if (block_bits_ != 0) {
    llvm::Value* rank = entry_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_cluster_ctarank, none, {});
    tid_ = entry_.CreateAdd(tid_, entry_.CreateShl(rank, std::uint64_t(kLaneBits + warp_bits_), "", true, true), "",
                            true, true);
  }
  scalar_ = scalar();
}

/// Basis of bit k of the thread index; zero where the layout has no such bit.
std::vector<std::int64_t> GeometryCache::thread_basis(const ir::LinearLayout& layout, int k) const {
  const int warp = k - kLaneBits, block = warp - warp_bits_;
  const Hw h = warp < 0 ? Hw::Lane : block < 0 ? Hw::Warp : Hw::Block;
  const int bit = warp < 0 ? k : block < 0 ? warp : block;
  return bit < layout.in_bits(h) ? layout.basis(h, bit) : std::vector<std::int64_t>(std::size_t(layout.rank()), 0);
}

/// Mask of the bits of the thread index along which elements repeat.
std::int64_t GeometryCache::replicated_threads(const ir::LinearLayout& layout) const {
  const auto bits_of = [&](Hw h, int count) {
    const std::int64_t absent = ((std::int64_t(1) << count) - 1) & ~(layout.in_size(h) - 1);
    return layout.free_bits(h) | absent;
  };
  return bits_of(Hw::Lane, kLaneBits) | bits_of(Hw::Warp, warp_bits_) << kLaneBits |
         bits_of(Hw::Block, block_bits_) << (kLaneBits + warp_bits_);
}

const Geometry& GeometryCache::of(const ir::Type& type) {
  if (type.is_scalar()) return scalar_;
  KILN_CHECK(type.layout != ir::kNoLayout, "tile without a layout: " + type.str());
  const auto key = std::make_pair(type.layout, type.shape);
  auto it = tiles_.find(key);
  if (it == tiles_.end()) it = tiles_.emplace(key, tile(f_.layout(type.layout), type.shape)).first;
  return it->second;
}

Geometry GeometryCache::scalar() {
  Geometry g;
  g.parts.resize(1);
  g.live = {true};
  g.first = {0};
  g.replicated_threads = (std::int64_t(1) << thread_bits_) - 1;
  g.owner = owner_where_zero(g.replicated_threads);
  g.replicated = true;
  return g;
}

llvm::Value* GeometryCache::owner_where_zero(std::int64_t thread_bits) {
  if (thread_bits == 0) return nullptr;
  llvm::Value* bits = entry_.CreateAnd(tid_, entry_.getInt32(std::uint32_t(thread_bits)));
  return entry_.CreateICmpEQ(bits, entry_.getInt32(0));
}

llvm::Value* GeometryCache::parity(std::int64_t thread_bits) {
  llvm::Value* bits = entry_.CreateAnd(tid_, entry_.getInt32(std::uint32_t(thread_bits)));
  if (std::has_single_bit(std::uint64_t(thread_bits))) return entry_.CreateICmpNE(bits, entry_.getInt32(0));
  return entry_.CreateTrunc(entry_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits), entry_.getInt1Ty());
}

Geometry GeometryCache::tile(const ir::LinearLayout& layout, const ir::Shape& shape) {
  KILN_CHECK(layout.rank() == int(shape.size()), "layout " + layout.str() + " has another rank than its tile");
  KILN_CHECK(layout.in_bits(Hw::Lane) <= kLaneBits && layout.in_bits(Hw::Warp) <= warp_bits_ &&
                 layout.in_bits(Hw::Block) <= block_bits_,
             fmt::format("layout {} does not fit a team of {} threads", layout.str(), 1 << thread_bits_));
  Geometry g;
  const int rank = layout.rank();
  for (std::int64_t r = 0; r < layout.in_size(Hw::Register); ++r) g.parts.push_back(layout.apply({{Hw::Register, r}}));
  std::vector<std::int64_t> thread_mask(std::size_t(rank), 0);
  for (int a = 0; a < rank; ++a) {
    std::vector<std::int64_t> bases;
    for (int k = 0; k < thread_bits_; ++k) {
      bases.push_back(thread_basis(layout, k)[std::size_t(a)]);
      thread_mask[std::size_t(a)] |= bases.back();
    }
    g.axes.push_back(axis(bases));
    g.axes.back().extent = shape[std::size_t(a)];
    for (const auto& part : g.parts)
      if (part[std::size_t(a)] & thread_mask[std::size_t(a)]) g.axes.back().swizzled = true;
  }
  const std::int64_t free_regs = layout.free_bits(Hw::Register);
  for (int r = 0; r < g.regs(); ++r) {
    bool inside = true;
    for (std::size_t a = 0; a < std::size_t(rank); ++a)
      inside &= (g.parts[std::size_t(r)][a] & ~thread_mask[a]) < shape[a];
    g.live.push_back(inside);
    int same = r;
    if (r & free_regs)
      for (int q = 0; q < r; ++q)
        if (g.parts[std::size_t(q)] == g.parts[std::size_t(r)]) {
          same = q;
          break;
        }
    g.first.push_back(same);
  }
  g.replicated_threads = replicated_threads(layout);
  g.owner = owner_where_zero(g.replicated_threads);
  g.replicated = g.replicated_threads != 0 || free_regs != 0;
  return g;
}

// Bits k, k+1, … of the thread index whose bases double are moved together: ((tid >> k) & mask) << shift.
Geometry::Axis GeometryCache::axis(const std::vector<std::int64_t>& bases) {
  auto it = axes_.find(bases);
  if (it != axes_.end()) return it->second;
  Geometry::Axis result;
  std::int64_t reached = 0;
  bool disjoint = true;
  for (int k = 0; k < thread_bits_;) {
    const std::int64_t first = bases[std::size_t(k)];
    int n = 1;
    if (std::has_single_bit(std::uint64_t(first)))
      while (k + n < thread_bits_ && bases[std::size_t(k + n)] == first << n) ++n;
    if (first != 0) {
      KILN_CHECK(first << (n - 1) <= std::numeric_limits<std::int32_t>::max() / 2, "tile extent beyond 2^30");
      llvm::Value* run = k == 0 ? tid_ : entry_.CreateLShr(tid_, entry_.getInt32(std::uint32_t(k)));
      if (k + n < thread_bits_) run = entry_.CreateAnd(run, entry_.getInt32((1u << n) - 1));
      const std::int64_t moved = first * ((std::int64_t(1) << n) - 1);
      run = n == 1 ? entry_.CreateMul(run, entry_.getInt32(std::uint32_t(first)), "", true, true)
                   : entry_.CreateShl(run, std::uint64_t(std::countr_zero(std::uint64_t(first))), "", true, true);
      disjoint &= (reached & moved) == 0;
      result.thread = result.thread == nullptr ? run
                      : disjoint               ? entry_.CreateAdd(result.thread, run, "", true, true)
                                               : entry_.CreateXor(result.thread, run);
      reached |= moved;
    }
    k += n;
  }
  if (reached != 0) result.thread_known = {{0, reached}, reached & -reached};
  return axes_[bases] = result;
}

TileValue::Reg GeometryCache::coordinate(llvm::IRBuilder<>& b, const Geometry& g, int reg, int axis) {
  const Geometry::Axis& a = g.axes[std::size_t(axis)];
  const std::int64_t part = g.parts[std::size_t(reg)][std::size_t(axis)];
  if (!a.swizzled) return {a.thread, part};
  return {b.CreateXor(a.thread, b.getInt32(std::uint32_t(part))), 0};
}

llvm::Value* GeometryCache::inside(llvm::IRBuilder<>& b, const Geometry& g, int reg) {
  llvm::Value* all = nullptr;
  for (int a = 0; a < int(g.axes.size()); ++a) {
    const Geometry::Axis& axis = g.axes[std::size_t(a)];
    const std::int64_t part = g.parts[std::size_t(reg)][std::size_t(a)];
    if ((part | axis.thread_known.range.hi) < axis.extent) continue;
    const TileValue::Reg at = coordinate(b, g, reg, a);
    llvm::Value* one = b.CreateICmpSLT(at.v, b.getInt32(std::uint32_t(axis.extent - at.c)));
    all = all == nullptr ? one : b.CreateAnd(all, one);
  }
  return all;
}

}  // namespace kiln::cg
