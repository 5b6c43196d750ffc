#include "backend/llvm/shared_place.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "backend/llvm/emitter.h"

namespace kiln::cg {
namespace {

constexpr int kUnitBits = 4, kGroupBits = 3;  // units of 16 bytes, eight groups of banks

/// Whether no exclusive or of some of `v` is zero.
bool independent(std::vector<std::int64_t> v) {
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (v[i] == 0) return false;
    const std::int64_t top = std::int64_t(std::bit_floor(std::uint64_t(v[i])));
    for (std::size_t k = i + 1; k < v.size(); ++k)
      if (v[k] & top) v[k] ^= v[i];
  }
  return true;
}

/// The search for a group for each unit bit beyond the lowest three.
struct Swizzle {
  std::vector<int> readers, writers;  ///< unit bits
  std::vector<int> open;              ///< those to be given a group
  std::vector<std::int64_t> group;    ///< by unit bit

  bool apart(const std::vector<int>& lanes) const {
    std::vector<std::int64_t> v;
    for (int bit : lanes)
      if (bit < kGroupBits) v.push_back(std::int64_t(1) << bit);
      else if (group[std::size_t(bit)] != 0) v.push_back(group[std::size_t(bit)]);
    return independent(v);
  }
  bool solve(std::size_t next) {
    if (next == open.size()) return true;
    for (std::int64_t g = 1; g < (1 << kGroupBits); ++g) {
      group[std::size_t(open[next])] = g;
      if (apart(readers) && apart(writers) && solve(next + 1)) return true;
    }
    group[std::size_t(open[next])] = 0;
    return false;
  }
};

}  // namespace

SharedPlace::SharedPlace(std::int64_t bytes, const std::vector<int>& order, const std::vector<int>& bits)
    : axes_(order.size()), bytes_(bytes) {
  for (int axis : order)
    for (int bit = 0; bit < bits[std::size_t(axis)]; ++bit, bytes_ *= 2) axes_[std::size_t(axis)].push_back(bytes_);
}

SharedPlace::SharedPlace(std::int64_t bytes, const ir::LinearLayout& l) : axes_(std::size_t(l.rank())), bytes_(bytes) {
  for (int axis = 0; axis < l.rank(); ++axis)
    axes_[std::size_t(axis)].resize(std::size_t(std::countr_zero(std::uint64_t(l.out_shape()[std::size_t(axis)]))));
  const auto take = [&](std::int64_t& base) {
    if (base == 0) base = std::exchange(bytes_, 2 * bytes_);
  };
  for (ir::Hw h : {ir::Hw::Lane, ir::Hw::Register})
    for (int bit = 0; bit < l.in_bits(h); ++bit)
      for (std::size_t axis = 0; axis < axes_.size(); ++axis)
        if (const auto step = std::uint64_t(l.basis(h, bit)[axis]); std::has_single_bit(step))
          take(axes_[axis][std::size_t(std::countr_zero(step))]);
  for (Bases& axis : axes_)
    for (std::int64_t& base : axis) take(base);
}

SharedPlace SharedPlace::lines(std::int64_t bytes, int fast, int slow, const std::vector<int>& bits, bool turned) {
  constexpr int kBankBits = 7;  // of a byte's number among all banks
  SharedPlace p;
  p.axes_.resize(bits.size());
  p.bytes_ = bytes;
  const auto add = [&](int axis) { p.axes_[std::size_t(axis)].push_back(std::exchange(p.bytes_, 2 * p.bytes_)); };
  while (int(p.axes_[std::size_t(fast)].size()) < bits[std::size_t(fast)] && p.bytes_ < 1 << kBankBits) add(fast);
  const int units = std::max(std::countr_zero(std::uint64_t(p.bytes_)) - kUnitBits, 0);  // bits of a unit's number
  for (int bit = 0; bit < bits[std::size_t(slow)]; ++bit) {
    const int at = std::countr_zero(std::uint64_t(p.bytes_));
    add(slow);
    if (at >= kBankBits && at < kBankBits + units)
      p.axes_[std::size_t(slow)].back() |= std::int64_t(1) << (kUnitBits + (at - kBankBits + (turned ? 1 : 0)) % units);
  }
  while (int(p.axes_[std::size_t(fast)].size()) < bits[std::size_t(fast)]) add(fast);
  for (int axis = 0; axis < int(bits.size()); ++axis)
    while (axis != fast && axis != slow && int(p.axes_[std::size_t(axis)].size()) < bits[std::size_t(axis)]) add(axis);
  return p;
}

void SharedPlace::swizzle(const std::vector<ir::LinearLayout::Coord>& readers,
                          const std::vector<ir::LinearLayout::Coord>& writers) {
  Swizzle s;
  s.group.assign(64, 0);
  const auto unit_bits = [&](const std::vector<ir::LinearLayout::Coord>& lanes) {
    std::vector<int> out;
    for (const auto& lane : lanes) {
      const auto offset = std::uint64_t(at(lane));
      if (!std::has_single_bit(offset) || offset >> kUnitBits == 0) continue;
      if (out.size() < kGroupBits) out.push_back(std::countr_zero(offset) - kUnitBits);
    }
    return out;
  };
  s.readers = unit_bits(readers);
  s.writers = unit_bits(writers);
  for (const auto* lanes : {&s.readers, &s.writers})
    for (int bit : *lanes)
      if (bit >= kGroupBits && std::count(s.open.begin(), s.open.end(), bit) == 0) s.open.push_back(bit);
  if (!s.solve(0)) return;
  for (Bases& axis : axes_)
    for (std::int64_t& base : axis)
      if (const int bit = std::countr_zero(std::uint64_t(base)) - kUnitBits; bit >= kGroupBits)
        base ^= s.group[std::size_t(bit)] << kUnitBits;
}

std::int64_t SharedPlace::at(const ir::LinearLayout::Coord& coordinate) const {
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < coordinate.size(); ++axis)
    for (std::size_t bit = 0; bit < axes_[axis].size(); ++bit)
      if (coordinate[axis] >> bit & 1) offset ^= axes_[axis][bit];
  return offset;
}

std::int64_t SharedPlace::reach(int axis, std::int64_t mask) const {
  std::int64_t all = 0;
  const Bases& bases = axes_[std::size_t(axis)];
  for (std::size_t bit = 0; bit < bases.size(); ++bit)
    if (mask >> bit & 1) all |= bases[bit];
  return all;
}

// Runs of bits whose bases double are moved together.
llvm::Value* SharedPlace::at(llvm::IRBuilder<>& b, int axis, llvm::Value* x) const {
  const Bases& bases = axes_[std::size_t(axis)];
  llvm::Value* offset = b.getInt32(0);
  for (std::size_t first = 0; first < bases.size();) {
    std::size_t n = 1;
    while (first + n < bases.size() && bases[first + n] == bases[first] << n) ++n;
    llvm::Value* run = b.CreateAnd(x, b.getInt32(std::uint32_t(((std::uint64_t(1) << n) - 1) << first)));
    for (std::int64_t base = bases[first]; base != 0; base &= base - 1) {
      const int by = std::countr_zero(std::uint64_t(base)) - int(first);
      llvm::Value* moved = by >= 0 ? b.CreateShl(run, std::uint64_t(by)) : b.CreateLShr(run, std::uint64_t(-by));
      offset = b.CreateXor(offset, moved);
    }
    first += n;
  }
  return offset;
}

llvm::Value* shared_address(llvm::IRBuilder<>& b, llvm::Value* tile, llvm::Value* thread, std::int64_t reach,
                            std::int64_t part) {
  llvm::Value* offset = b.CreateXor(thread, b.getInt32(std::uint32_t(part & reach)));
  llvm::Value* at = b.CreateIntToPtr(b.CreateAdd(tile, offset), llvm::PointerType::get(b.getContext(), kShared));
  return b.CreateConstGEP1_64(b.getInt8Ty(), at, std::uint64_t(part & ~reach));
}

}  // namespace kiln::cg
