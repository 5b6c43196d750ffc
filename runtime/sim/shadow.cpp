// How much memory all shadows take, and may take, are two of the process's few globals: it is the machine's.
#include "runtime/sim/shadow.h"

#include <unistd.h>

#include <new>

namespace kiln::rt::sim {
namespace {

std::uint64_t half_of_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  return pages <= 0 || bytes <= 0 ? UINT64_MAX
                                  : static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(bytes) / 2;
}
std::atomic<std::uint64_t> taken{0};
std::atomic<std::uint64_t>& limit() {
  static std::atomic<std::uint64_t> bytes{half_of_memory()};
  return bytes;
}

constexpr std::uint64_t page_bytes(std::size_t cells) { return sizeof(Page) + cells * sizeof(Cell); }

}  // namespace

std::uint64_t limit_shadows(std::uint64_t bytes) { return limit().exchange(bytes); }

void Page::restart(std::uint32_t of_launch) {
  launch = of_launch;
  std::fill(cells.begin(), cells.end(), Cell{});
  readers.clear();
  crossings.clear();
}

void Page::refine(std::uint32_t finest) {
  const std::uint32_t copies = 1u << (shift - finest), bytes = 1u << finest;
  std::vector<Cell> finer;
  finer.reserve(cells.size() * copies);
  for (const Cell& c : cells)
    for (std::uint32_t k = 0; k < copies; ++k) {
      Cell& f = finer.emplace_back(c);
      const auto part = static_cast<std::uint32_t>((1u << bytes) - 1);
      f.changed = static_cast<std::uint16_t>(c.changed >> (k * bytes) & part);
      f.differ = static_cast<std::uint16_t>(c.differ >> (k * bytes) & part);
      if (k == 0) continue;
      if (c.readers) {
        readers.push_back(std::vector<Access>(readers[c.readers - 1]));
        f.readers = static_cast<std::uint32_t>(readers.size());
      }
      if (c.crossing) {
        crossings.push_back(Crossing(crossings[c.crossing - 1]));
        f.crossing = static_cast<std::uint32_t>(crossings.size());
      }
    }
  taken.fetch_add((finer.size() - cells.size()) * sizeof(Cell), std::memory_order_relaxed);
  cells = std::move(finer);
  shift = finest;
}

template <class F>
void ByteBits::each_word(std::uint64_t at, std::uint64_t n, F f) {
  while (n > 0) {
    const std::uint64_t in = at % 64, part = std::min<std::uint64_t>(n, 64 - in);
    const std::uint64_t mask = (part == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << part) - 1) << in;
    if (!f(at / 64, mask)) return;
    at += part;
    n -= part;
  }
}

void ByteBits::set(std::uint64_t at, std::uint64_t n) {
  if (all_.load(std::memory_order_relaxed)) return;
  if (at == 0 && n == bytes_) return all_.store(true, std::memory_order_relaxed);
  each_word(at, n, [&](std::uint64_t word, std::uint64_t mask) {
    std::atomic_ref<std::uint64_t> w(words_[word]);
    if (mask & ~w.load(std::memory_order_relaxed)) w.fetch_or(mask, std::memory_order_relaxed);
    return true;
  });
}

void ByteBits::unset(std::uint64_t at, std::uint64_t n) {
  if (all_.load(std::memory_order_relaxed)) {
    std::fill_n(words_.get(), bytes_ / 64 + 1, ~std::uint64_t{0});
    all_.store(false, std::memory_order_relaxed);
  }
  each_word(at, n, [&](std::uint64_t word, std::uint64_t mask) {
    words_[word] &= ~mask;
    return true;
  });
}

std::uint64_t ByteBits::first_unset(std::uint64_t at, std::uint64_t n) const {
  std::uint64_t found = at + n;
  if (all_.load(std::memory_order_relaxed)) return found;
  each_word(at, n, [&](std::uint64_t word, std::uint64_t mask) {
    const std::atomic_ref<std::uint64_t> w(words_[word]);
    const std::uint64_t missing = mask & ~w.load(std::memory_order_relaxed);
    if (missing) found = word * 64 + static_cast<std::uint64_t>(std::countr_zero(missing));
    return missing == 0;
  });
  return found;
}

Shadow::Shadow(std::size_t bytes)
    : written(bytes),
      pages_(static_cast<std::atomic<Page*>*>(std::calloc(bytes / Page::kBytes + 1, sizeof(std::atomic<Page*>)))) {
  static_assert(sizeof(std::atomic<Page*>) == sizeof(Page*) && std::atomic<Page*>::is_always_lock_free);
  if (!pages_) throw std::bad_alloc();
}

Shadow::~Shadow() {
  forget();
  std::free(pages_);
}

void Shadow::forget() {
  const std::scoped_lock lock(making_);
  for (const std::uint64_t number : made_) {
    const Page* p = pages_[number].exchange(nullptr, std::memory_order_relaxed);
    taken.fetch_sub(page_bytes(p->cells.size()), std::memory_order_relaxed);
    delete p;
  }
  made_.clear();
}

Page& Shadow::make(std::uint64_t number) {
  const std::scoped_lock lock(making_);
  Page* p = pages_[number].load(std::memory_order_relaxed);
  if (p) return *p;
  if (const std::uint64_t most = limit(); taken.load(std::memory_order_relaxed) >= most) throw ShadowsAreFull{most};
  p = new Page;
  taken.fetch_add(page_bytes(p->cells.size()), std::memory_order_relaxed);
  pages_[number].store(p, std::memory_order_release);
  made_.push_back(number);
  return *p;
}

}  // namespace kiln::rt::sim
