// Making a thing once for each key, from several threads and in circles.
#include "dsl/lang/once_per_key.h"

#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <stdexcept>

namespace kiln::detail {
namespace {

struct Made {
  int name = 0, by = 0;  // who made it
  Made* older = nullptr;
  int key() const { return name; }
};
using Table = OncePerKey<Made>;

struct Recursion : std::runtime_error {
  Recursion() : std::runtime_error("recursion") {}
};

/// Makes `key` of `table` as thread `by`, running `during` meanwhile.
Made& make(Table& table, int key, int by, const std::function<void()>& during = [] {}) {
  return table.find_or_make(
      key, [] { throw Recursion(); },
      [&] {
        during();
        return std::make_unique<Made>(key, by);
      });
}

/// Runs `thread(0)` … `thread(n - 1)` at the same time.
void on_threads(int n, const std::function<void(int)>& thread) {
  std::vector<std::thread> all;
  for (int t = 0; t < n; ++t) all.emplace_back(thread, t);
  for (std::thread& t : all) t.join();
}

TEST(OncePerKey, ThreadsThatRaceMakeItOnce) {
  Table table;
  std::atomic<int> made{0};
  on_threads(8, [&](int t) {
    for (int key = 0; key < 100; ++key) EXPECT_EQ(make(table, key, t, [&] { ++made; }).key(), key);
  });
  EXPECT_EQ(made, 100);
  EXPECT_EQ(table.size(), 100u);
}

// Each thread has its own thing in flight before it asks for the next one's. Whoever would close the circle makes it.
TEST(OncePerKey, ThreadsThatNeedEachOthersThingsAllGetThem) {
  constexpr int kThreads = 3;
  for (int round = 0; round < 50; ++round) {
    Table table[kThreads];
    std::latch in_flight(kThreads);
    on_threads(kThreads, [&](int t) {
      const int next = (t + 1) % kThreads;
      make(table[t], 0, t, [&] {
        in_flight.arrive_and_wait();
        EXPECT_EQ(make(table[next], 0, t).key(), 0);
      });
    });
    for (const Table& t : table) EXPECT_EQ(t.size(), 1u);
  }
}

// A needs B and B needs A: no order of threads makes either.
TEST(OncePerKey, ACircleOfThingsIsARecursionOnEveryThread) {
  Table a, b;
  std::latch in_flight(2);
  std::atomic<int> refused{0};
  const std::function<void(int, bool)> make_one = [&](int t, bool first) {
    make(t ? b : a, 0, t, [&] {
      if (first) in_flight.arrive_and_wait();
      make_one(1 - t, false);
    });
  };
  on_threads(2, [&](int t) {
    try {
      make_one(t, true);
    } catch (const Recursion&) {
      ++refused;
    }
  });
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(a.size() + b.size(), 0u);
}

TEST(OncePerKey, AfterAFailureTheNextThreadTries) {
  Table table;
  std::latch in_flight(1);
  std::thread second;
  EXPECT_THROW(make(table, 1, 0,
                    [&] {
                      second = std::thread([&] {
                        in_flight.count_down();
                        EXPECT_EQ(make(table, 1, 1).by, 1);
                      });
                      in_flight.wait();
                      throw std::runtime_error("no");
                    }),
               std::runtime_error);
  second.join();
  EXPECT_EQ(table.size(), 1u);
}

}  // namespace
}  // namespace kiln::detail
