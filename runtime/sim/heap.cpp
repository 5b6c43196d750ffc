#include "runtime/sim/heap.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>

#include "runtime/base/error.h"
#include "runtime/sim/shadow.h"

namespace kiln::rt::sim {
namespace {

constexpr std::size_t kGap = 64 << 10;  // on both sides of a mapping of its own
constexpr std::size_t kMinGap = 256;    // between neighbours of one chunk; at least as much as the request's quarter
constexpr std::size_t kFreedKept = 1024;

std::size_t with_gap(std::size_t bytes) { return bytes + std::max(kMinGap, bytes / 4); }

}  // namespace

std::size_t HeapView::find(std::uint64_t address, std::size_t bytes) const {
  const auto after = std::upper_bound(live.begin(), live.end(), address,
                                      [](std::uint64_t a, const HeapRange& r) { return a < r.base; });
  if (after == live.begin()) return live.size();
  const HeapRange& r = *(after - 1);
  const bool inside = address - r.base <= r.bytes && bytes <= r.bytes - (address - r.base);
  return inside ? static_cast<std::size_t>(after - 1 - live.begin()) : live.size();
}

HeapView::Wild HeapView::describe(std::uint64_t address) const {
  if (address < 4096)
    return {"null", address == 0 ? "the null address" : fmt::format("{} bytes from the null address", address)};
  for (auto r = freed.rbegin(); r != freed.rend(); ++r)
    if (address >= r->base && address < r->end())
      return {"use-after-free", fmt::format("{} bytes into the freed allocation 0x{:x} of {} bytes", address - r->base,
                                            r->base, r->bytes)};
  return {"out-of-bounds", nearest(address)};
}

std::string HeapView::nearest(std::uint64_t address) const {
  const HeapRange* near = nullptr;
  std::uint64_t distance = UINT64_MAX;
  for (const HeapRange& r : live) {
    const std::uint64_t d = address < r.base ? r.base - address : address < r.end() ? 0 : address - r.end();
    if (d < distance) distance = d, near = &r;
  }
  if (!near) return "and nothing is allocated";
  if (distance > std::max<std::uint64_t>(near->bytes, 16 << 20)) return "far from every allocation";
  const char* side = "past the end of";
  if (address < near->base) side = "before the start of";
  else if (address < near->end()) side = "before the end of", distance = near->end() - address;
  return fmt::format("{} bytes {} the allocation 0x{:x} of {} bytes", distance, side, near->base, near->bytes);
}

Heap::Heap(std::size_t capacity, bool shadowed) : capacity_(capacity), shadowed_(shadowed) {}

Heap::~Heap() {
  for (const auto& [address, a] : live_)
    if (a.own.at) munmap(a.own.at, a.own.bytes);
  for (const Region& r : chunks_) munmap(r.at, r.bytes);
}

Heap::Region Heap::map(std::size_t bytes) {
  // Where the host maps nothing by itself, one after another: a program's addresses, and so its messages, are the same
  // on each run. One of the process's few globals, as the address space is the process's.
  constexpr std::uint64_t kBegin = 0x200000000000, kEnd = 0x500000000000;
  static std::atomic<std::uint64_t> next{kBegin};
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const std::uint64_t hint = next.fetch_add((bytes + kGap - 1) / kGap * kGap, std::memory_order_relaxed);
#ifdef __SANITIZE_THREAD__
  constexpr bool kMayChoose = false;  // its shadow is there
#else
  constexpr bool kMayChoose = true;
#endif
  void* p = MAP_FAILED;
  if (kMayChoose && hint + bytes <= kEnd)
    p = mmap(reinterpret_cast<void*>(hint), bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, -1, 0);
  if (p == MAP_FAILED) p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (p == MAP_FAILED) return {};
  return {static_cast<std::byte*>(p), bytes};
}

std::uint64_t Heap::take_slot(int size_class) {
  std::deque<std::uint64_t>& free = slots_[static_cast<std::size_t>(size_class)];
  // A slot rests until 16 of its class are free, so that a stale pointer is found out.
  if (free.size() > 16) {
    const std::uint64_t at = free.front();
    free.pop_front();
    return at;
  }
  const std::size_t bytes = std::size_t{1024} << size_class;
  if (chunk_left_ < bytes) {
    const Region r = map(kChunk);
    if (!r.at) return 0;
    chunks_.push_back(r);
    chunk_at_ = r.at + kGap;
    chunk_left_ = r.bytes - kGap;
  }
  const std::uint64_t at = reinterpret_cast<std::uint64_t>(chunk_at_);
  chunk_at_ += bytes;
  chunk_left_ -= bytes;
  return at;
}

std::uint64_t Heap::allocate(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto refuse = [&](const char* why) {
    throw DeviceError(
        fmt::format("cannot allocate {} bytes: {} of {} bytes are free{}", bytes, capacity_ - used_, capacity_, why));
  };
  if (bytes > capacity_ - used_) refuse("");
  Live a;
  a.bytes = bytes;
  std::uint64_t at = 0;
  const std::size_t padded = with_gap(bytes);
  if (padded <= (std::size_t{1024} << (kClasses - 1))) {
    a.size_class = std::max(0, static_cast<int>(std::bit_width(padded - 1)) - 10);
    at = take_slot(a.size_class);
  } else if (a.own = map(((bytes + 4095) & ~std::size_t{4095}) + 2 * kGap); a.own.at) {
    at = reinterpret_cast<std::uint64_t>(a.own.at) + kGap;
  }
  if (at == 0) refuse(", but the host has no address space left");
  if (shadowed_) a.shadow = std::make_unique<Shadow>(bytes);
  live_[at] = std::move(a);
  used_ += bytes;
  // The address is valid again: what was freed there no longer explains a fault.
  std::erase_if(freed_, [&](const HeapRange& r) { return r.base < at + padded && at < r.end(); });
  view_.reset();
  return at;
}

std::uint64_t Heap::allocate_zeroed(std::size_t bytes) {
  const std::uint64_t at = allocate(bytes);
  // Larger ones have fresh pages of their own.
  if (with_gap(bytes) <= (std::size_t{1024} << (kClasses - 1))) std::memset(reinterpret_cast<void*>(at), 0, bytes);
  return at;
}

void Heap::free(std::uint64_t address) {
  const std::scoped_lock lock(mutex_);
  const auto it = live_.find(address);
  if (it == live_.end())
    throw DeviceError(fmt::format("free of 0x{:x}, which is not the start of a live allocation", address));
  const Live a = std::move(it->second);
  live_.erase(it);
  used_ -= a.bytes;
  if (a.own.at) munmap(a.own.at, a.own.bytes);
  else slots_[static_cast<std::size_t>(a.size_class)].push_back(address);
  freed_.push_back({address, a.bytes, nullptr});
  if (freed_.size() > kFreedKept) freed_.pop_front();
  view_.reset();
}

std::optional<HeapRange> Heap::find(std::uint64_t address) const {
  const std::scoped_lock lock(mutex_);
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return std::nullopt;
  --it;
  if (address != it->first && address - it->first >= it->second.bytes) return std::nullopt;
  return HeapRange{it->first, it->second.bytes, it->second.shadow.get()};
}

void Heap::check(std::uint64_t address, std::size_t bytes, const char* what) const {
  const auto v = view();
  if (v->find(address, bytes) == v->live.size())
    throw DeviceError(fmt::format("{} of {} bytes at 0x{:x}: {}, {}", what, bytes, address, v->describe(address).kind,
                                  v->describe(address).where));
}

void Heap::written(std::uint64_t address, std::size_t bytes) const {
  if (!shadowed_ || bytes == 0) return;
  if (const auto r = find(address)) r->shadow->written.set(address - r->base, bytes);
}

std::size_t Heap::used() const {
  const std::scoped_lock lock(mutex_);
  return used_;
}

std::shared_ptr<const HeapView> Heap::view() const {
  const std::scoped_lock lock(mutex_);
  if (!view_) {
    auto v = std::make_shared<HeapView>();
    v->live.reserve(live_.size());
    for (const auto& [address, a] : live_) v->live.push_back({address, a.bytes, a.shadow.get()});
    v->freed.assign(freed_.begin(), freed_.end());
    v->capacity = capacity_;
    view_ = std::move(v);
  }
  return view_;
}

}  // namespace kiln::rt::sim
