// Heap: the memory of a simulated device. Real host memory at real host addresses, reserved without being committed, so
// a buffer of many GB costs nothing until it is touched. Every allocation has a gap on both sides, and freed addresses
// are not reused at once, so that a wild access is told apart from a valid one.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kiln::rt::sim {

class Shadow;

struct HeapRange {
  std::uint64_t base = 0;
  std::size_t bytes = 0;
  Shadow* shadow = nullptr;  ///< null where the heap keeps none
  std::uint64_t end() const { return base + bytes; }
};

/// The live allocations at one moment, sorted by address, and the last freed ones; immutable.
struct HeapView {
  std::vector<HeapRange> live;
  std::vector<HeapRange> freed;  ///< newest last
  std::uint64_t capacity = 0;

  /// Index of the allocation that contains [address, address + bytes), or live.size().
  std::size_t find(std::uint64_t address, std::size_t bytes) const;
  /// Why no access is allowed at an address: "null", "use-after-free" or "out-of-bounds", and in words where it is.
  struct Wild {
    const char* kind;
    std::string where;
  };
  Wild describe(std::uint64_t address) const;
  /// The closest live allocation, in words.
  std::string nearest(std::uint64_t address) const;
};

/// Thread-safe. Usable by any device whose memory is the host's.
class Heap {
 public:
  /// `capacity`: bytes that may be allocated at the same time. `shadowed`: accesses by kernels are checked.
  explicit Heap(std::size_t capacity, bool shadowed = false);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// 256-byte aligned; 0 bytes give an address of their own that nothing may access. Throws DeviceError with the bytes
  /// asked for and the bytes left when the capacity (or the host's address space) is exceeded.
  std::uint64_t allocate(std::size_t bytes);
  /// … of zero bytes, which a large one has without being written.
  std::uint64_t allocate_zeroed(std::size_t bytes);
  /// Throws DeviceError if `address` is not the base of a live allocation.
  void free(std::uint64_t address);
  /// The allocation that contains `address`; a zero-byte one contains its base.
  std::optional<HeapRange> find(std::uint64_t address) const;
  /// Throws DeviceError naming `what` unless [address, address + bytes) lies in one allocation.
  void check(std::uint64_t address, std::size_t bytes, const char* what) const;

  /// The host wrote [address, address + bytes), which lies in one allocation.
  void written(std::uint64_t address, std::size_t bytes) const;

  std::size_t capacity() const { return capacity_; }
  std::size_t used() const;
  std::shared_ptr<const HeapView> view() const;

 private:
  struct Region {  ///< one mmap
    std::byte* at = nullptr;
    std::size_t bytes = 0;
  };
  struct Live {
    std::size_t bytes = 0;
    int size_class = -1;  ///< -1: has a mapping of its own
    std::unique_ptr<Shadow> shadow;
    Region own;
  };
  static constexpr int kClasses = 12;  ///< slots of 1 KiB << class
  static constexpr std::size_t kChunk = std::size_t{32} << 20;

  std::uint64_t take_slot(int size_class);
  static Region map(std::size_t bytes);

  const std::size_t capacity_;
  const bool shadowed_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Live> live_;
  std::deque<HeapRange> freed_;
  std::array<std::deque<std::uint64_t>, kClasses> slots_;  ///< free ones, oldest first
  std::vector<Region> chunks_;
  std::byte* chunk_at_ = nullptr;
  std::size_t chunk_left_ = 0;
  std::size_t used_ = 0;
  mutable std::shared_ptr<const HeapView> view_;  ///< null after a change
};

}  // namespace kiln::rt::sim
