// OncePerKey<Made>: things made on first use, one for each key, found again without a lock.
//
// Threads that miss on one key make it once: the first leaves a flight, the others wait for it to land. Making may ask
// for other things, of this table or of others (a kernel may be launched while another one is traced), so nothing is
// locked meanwhile, and waiting could go in a circle: thread 1 makes A, which needs B, while thread 2 makes B, which
// needs A. The thread whose wait would close a circle makes the thing itself, as if it were alone.
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kiln::detail {

/// Which thread waits for which, in the whole process.
namespace waits {
/// This thread waits for `other` from now on. False, and nothing happens, if `other` waits for this thread, directly or
/// over others.
bool begin(std::thread::id other);
void end();
}  // namespace waits

/// Made: has key(), comparable with ==, and `Made* older`, which belongs to the table.
template <class Made>
class OncePerKey {
 public:
  using Key = decltype(std::declval<const Made&>().key());

  OncePerKey() = default;
  OncePerKey(const OncePerKey&) = delete;
  OncePerKey& operator=(const OncePerKey&) = delete;
  ~OncePerKey() {
    for (Made* m = newest_.load(); m;) delete std::exchange(m, m->older);
  }

  /// Without a lock; null if it was not made yet.
  Made* find(const Key& key) const {
    for (Made* m = newest_.load(std::memory_order_acquire); m; m = m->older)
      if (m->key() == key) return m;
    return nullptr;
  }
  std::uint64_t size() const {
    std::uint64_t n = 0;
    for (Made* m = newest_.load(std::memory_order_acquire); m; m = m->older) ++n;
    return n;
  }

  /// What `key` names, made by this thread with make() → unique_ptr<Made>, or by the one that came first. What make()
  /// throws leaves nothing behind. `recursion()` must throw: this thread is making that very thing.
  template <class Recursion, class Make>
  Made& find_or_make(const Key& key, Recursion&& recursion, Make&& make) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (Made* m = find(key)) return *m;
      const Flight* f = flight_of(key);
      if (!f) break;
      if (f->thread == std::this_thread::get_id()) recursion();
      if (!waits::begin(f->thread)) break;
      landed_.wait(lock);
      waits::end();
    }
    const Landing landing(*this, lock, key);
    lock.unlock();
    std::unique_ptr<Made> fresh = make();
    lock.lock();
    if (Made* m = find(key)) return *m;  // another thread of a circle was first
    fresh->older = newest_.load(std::memory_order_relaxed);
    newest_.store(fresh.get(), std::memory_order_release);
    return *fresh.release();
  }

 private:
  struct Flight {
    const Key* key;  // of the thread that makes it
    std::thread::id thread;
  };
  /// Somebody's flight for `key`; this thread's own if there is one.
  const Flight* flight_of(const Key& key) const {
    const Flight* found = nullptr;
    for (const Flight& f : flights_)
      if (*f.key == key && (!found || f.thread == std::this_thread::get_id())) found = &f;
    return found;
  }
  /// Enters a flight; removes it and wakes the waiting threads, however the making ends.
  struct Landing {
    OncePerKey& table;
    std::unique_lock<std::mutex>& lock;
    const Key& key;
    Landing(OncePerKey& t, std::unique_lock<std::mutex>& l, const Key& k) : table(t), lock(l), key(k) {
      table.flights_.push_back({&key, std::this_thread::get_id()});
    }
    ~Landing() {
      if (!lock.owns_lock()) lock.lock();
      std::erase_if(table.flights_, [&](const Flight& f) { return f.key == &key; });
      table.landed_.notify_all();
    }
  };

  std::atomic<Made*> newest_{nullptr};
  std::mutex mutex_;  // of flights_ and of publishing; never held while making
  std::condition_variable landed_;
  std::vector<Flight> flights_;
};

}  // namespace kiln::detail
