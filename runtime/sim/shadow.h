// Shadow: what is known of each byte of some memory: who accessed it last, and whether it was ever written.
//
// Accesses are kept in cells of 16 bytes. A page whose accesses are finer has cells of 8, 4, 2 or 1 bytes, as fine as
// its finest access, so a cell's bytes always have one history. Pages are made at the first access. Those of global
// memory hold what one launch did: a page of an earlier one is empty.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace kiln::rt::sim {

/// One access by an agent.
struct Access {
  std::uint32_t time = 0;     ///< of its component; 0: none
  std::uint32_t cluster = 0;  ///< number of the cluster, low bits
  std::uint32_t inst = 0;     ///< index in Program::infos
  std::uint16_t component = 0;
  std::uint8_t lane = 0;
  bool async : 1 = false;      ///< by the async proxy
  std::uint8_t scope : 2 = 0;  ///< 0: weak; 1 to 3: strong among the threads of the block, the cluster, the device
};

/// Accesses of several clusters that nothing orders: the lowest and the highest cluster that wrote and read. They do
/// not depend on the order in which clusters ran.
struct Crossing {
  Access first_write, last_write, first_read, last_read;
};

struct Cell {
  Access write, read;          ///< the last ones
  std::uint32_t readers = 0;   ///< other reads since the last write: index in Page::readers + 1, 0: none
  std::uint32_t crossing = 0;  ///< index in Page::crossings + 1, 0: none
  std::uint16_t changed = 0;   ///< bytes that some write changed
  std::uint16_t differ = 0;    ///< bytes to which this launch wrote different values
  bool reported = false;       ///< its crossing is on a list
};

struct Page {
  static constexpr std::uint32_t kBytes = 1024;
  static constexpr std::uint32_t kCoarse = 4;  ///< log2 of the bytes of the largest cell

  std::atomic_flag busy = ATOMIC_FLAG_INIT;
  std::uint32_t shift = kCoarse;  ///< log2 of the bytes of a cell
  std::uint32_t launch = 0;
  std::vector<Cell> cells = std::vector<Cell>(kBytes >> kCoarse);
  std::vector<std::vector<Access>> readers;
  std::vector<Crossing> crossings;

  /// The other reads of a cell, and its crossing: made if there is none.
  std::vector<Access>& readers_of(Cell& c) {
    if (c.readers == 0) readers.emplace_back(), c.readers = static_cast<std::uint32_t>(readers.size());
    return readers[c.readers - 1];
  }
  Crossing& crossing_of(Cell& c) {
    if (c.crossing == 0) crossings.emplace_back(), c.crossing = static_cast<std::uint32_t>(crossings.size());
    return crossings[c.crossing - 1];
  }
  /// Of this launch, with cells of at most 2^finest bytes.
  void fit(std::uint32_t of_launch, std::uint32_t finest) {
    if (launch != of_launch) restart(of_launch);
    if (finest < shift) refine(finest);
  }

 private:
  friend class Shadow;
  void restart(std::uint32_t of_launch);
  void refine(std::uint32_t finest);
};

/// One bit a byte; bits start at zero.
class ByteBits {
 public:
  explicit ByteBits(std::size_t bytes)
      : words_(static_cast<std::uint64_t*>(std::calloc(bytes / 64 + 1, sizeof(std::uint64_t)))), bytes_(bytes) {}
  /// Sets the bits of [at, at + n); other threads may set others.
  void set(std::uint64_t at, std::uint64_t n);
  /// Clears them; no other thread may use the object.
  void unset(std::uint64_t at, std::uint64_t n);
  /// The first byte of [at, at + n) whose bit is not set, or at + n.
  std::uint64_t first_unset(std::uint64_t at, std::uint64_t n) const;
  void clear() {
    std::fill_n(words_.get(), bytes_ / 64 + 1, 0);
    all_.store(false, std::memory_order_relaxed);
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  template <class F>
  static void each_word(std::uint64_t at, std::uint64_t n, F f);
  std::unique_ptr<std::uint64_t[], Free> words_;
  std::size_t bytes_;
  std::atomic<bool> all_{false};  ///< all are set, whatever the words say: what was written at once costs nothing
};

/// Bytes that the shadows of all devices may take; at first half of the machine's memory. Returns what it was.
std::uint64_t limit_shadows(std::uint64_t bytes);
/// Thrown where one more page would be beyond that; `bytes`: the limit.
struct ShadowsAreFull {
  std::uint64_t bytes;
};

class Shadow {
 public:
  explicit Shadow(std::size_t bytes);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  /// f(page, cell, address, bytes) for the cells that make up [at, at + n). `shared`: several threads do so at a time.
  /// Throws ShadowsAreFull.
  template <class F>
  void each(std::uint64_t at, std::uint64_t n, std::uint32_t launch, bool shared, F&& f) {
    while (n > 0) {
      const std::uint32_t in = static_cast<std::uint32_t>(at % Page::kBytes);
      const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(n, Page::kBytes - in));
      Page& p = page(at / Page::kBytes);
      if (shared)
        while (p.busy.test_and_set(std::memory_order_acquire)) {
        }
      p.fit(launch, static_cast<std::uint32_t>(std::countr_zero(in | part | 1u << Page::kCoarse)));
      const std::uint32_t size = 1u << p.shift;
      Cell* c = p.cells.data() + (in >> p.shift);
      for (std::uint32_t done = 0; done < part; done += size, ++c) f(p, *c, at + done, size);
      if (shared) p.busy.clear(std::memory_order_release);
      at += part;
      n -= part;
    }
  }
  /// Forgets all accesses.
  void forget();

  ByteBits written;

 private:
  Page& page(std::uint64_t number) {
    Page* p = pages_[number].load(std::memory_order_acquire);
    return p ? *p : make(number);
  }
  Page& make(std::uint64_t number);

  std::atomic<Page*>* pages_;  ///< from calloc, so that a table nobody touches costs nothing
  std::mutex making_;
  std::vector<std::uint64_t> made_;  ///< numbers of the pages there are
};

}  // namespace kiln::rt::sim
