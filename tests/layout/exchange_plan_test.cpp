// Every plan, run over all threads and registers: each place of the destination gets the element of its coordinate.
#include "backend/ir/exchange_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "backend/ir/gf2.h"
#include "backend/ir/layout_zoo.h"
#include "tests/layout/random_layout.h"

namespace kiln::ir {
namespace {

using test::random_layout;
using Coord = LinearLayout::Coord;

constexpr int kLanes = 5;

struct Machine {
  const LinearLayout &from, &to;
  int threads() const { return 1 << (to.in_bits(Hw::Lane) + to.in_bits(Hw::Warp)); }
  static Coord at(const LinearLayout& l, std::uint64_t reg, std::uint64_t thread) {
    return l.apply({{Hw::Register, std::int64_t(reg)},
                    {Hw::Lane, std::int64_t(thread & 31)},
                    {Hw::Warp, std::int64_t(thread >> kLanes)}});
  }
  template <class Fn>
  void each_place(Fn&& fn) const {
    for (std::uint64_t t = 0; t < std::uint64_t(threads()); ++t)
      for (std::uint64_t r = 0; r < std::uint64_t(to.in_size(Hw::Register)); ++r) fn(t, r);
  }
};

void expect_registers(const Machine& m, const ExchangePlan& p) {
  m.each_place([&](std::uint64_t t, std::uint64_t r) {
    const std::uint64_t source = combine(p.of_register, r) ^ combine(p.of_thread, t);
    ASSERT_EQ(Machine::at(m.from, source, t), Machine::at(m.to, r, t)) << m.from.str() << " to " << m.to.str();
  });
}

void expect_shuffle(const Machine& m, const ExchangePlan& p) {
  m.each_place([&](std::uint64_t t, std::uint64_t r) {
    const std::uint64_t q = r ^ combine(p.to_register, t);
    const std::uint64_t lane = combine(p.round_lane, q) ^ combine(p.source_lane, t), s = (t & ~31u) | lane;
    ASSERT_LT(lane, 32u);
    const std::uint64_t source = combine(p.round_register, q) ^ combine(p.from_register, s);
    ASSERT_EQ(Machine::at(m.from, source, s), Machine::at(m.to, r, t)) << m.from.str() << " to " << m.to.str();
    const std::uint64_t packed = q & p.packable;
    ASSERT_EQ(combine(p.round_lane, packed), 0u) << "elements of one word take different ways";
  });
}

void expect_shared(const Machine& m, const ExchangePlan& p, int element_bytes) {
  std::map<std::uint64_t, Coord> memory;
  std::map<std::uint64_t, std::uint64_t> writer_warp;
  for (std::uint64_t t = 0; t < std::uint64_t(m.threads()); ++t)
    for (std::uint64_t r = 0; r < std::uint64_t(m.from.in_size(Hw::Register)); ++r) {
      if (t & std::uint64_t(p.owner_mask)) continue;
      const std::uint64_t at = combine(p.write_register, r) ^ combine(p.write_thread, t);
      ASSERT_LT(std::int64_t(at) * element_bytes, p.bytes);
      const Coord c = Machine::at(m.from, r, t);
      const auto [it, is_new] = memory.emplace(at, c);
      ASSERT_EQ(it->second, c) << "two elements at one offset";
      writer_warp[at] = t >> kLanes;
    }
  m.each_place([&](std::uint64_t t, std::uint64_t r) {
    const auto it = memory.find(combine(p.read_register, r) ^ combine(p.read_thread, t));
    ASSERT_NE(it, memory.end());
    ASSERT_EQ(it->second, Machine::at(m.to, r, t)) << m.from.str() << " to " << m.to.str();
    if (p.in_warp) {
      ASSERT_EQ(writer_warp[it->first], t >> kLanes);
    }
  });
}

/// Wavefronts beyond one for each 128 bytes of all accesses of one side.
int conflicts(const BitMap& registers, const BitMap& threads, int vector, int element_bytes, std::uint64_t inactive) {
  const int bytes = vector * element_bytes, together = 32 * 4 / std::max(4, bytes);
  int extra = 0;
  for (std::uint64_t r = 0; r < std::uint64_t(1) << registers.size(); ++r) {
    if (combine(registers, r) & std::uint64_t(vector - 1)) continue;
    for (std::uint64_t first = 0; first < std::uint64_t(1) << threads.size(); first += std::uint64_t(together)) {
      std::map<std::uint64_t, std::set<std::uint64_t>> words;  // by bank
      for (std::uint64_t t = first; t < first + std::uint64_t(together); ++t) {
        if (t & inactive) continue;
        const std::uint64_t at = (combine(registers, r) ^ combine(threads, t)) * std::uint64_t(element_bytes);
        for (std::uint64_t w = at / 4; w <= (at + std::uint64_t(bytes) - 1) / 4; ++w) words[w % 32].insert(w);
      }
      std::size_t most = 1;
      for (const auto& [bank, in_bank] : words) most = std::max(most, in_bank.size());
      extra += int(most) - 1;
    }
  }
  return extra;
}

int conflicts(const ExchangePlan& p, int element_bytes) {
  return conflicts(p.write_register, p.write_thread, p.write_vector, element_bytes, std::uint64_t(p.owner_mask)) +
         conflicts(p.read_register, p.read_thread, p.read_vector, element_bytes, 0);
}

TEST(ExchangePlan, RandomPairsGetEveryElement) {
  std::mt19937 random(1);
  int by_registers = 0, by_shuffle = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const test::LayoutKind kind = test::random_kind(random);
    const LinearLayout from = random_layout(random, kind), to = random_layout(random, kind);
    const Machine m{from, to};
    const int bytes = 1 << std::uniform_int_distribution<>(0, 3)(random);
    if (const auto p = plan_registers(from, to)) {
      expect_registers(m, *p);
      ++by_registers;
    }
    if (const auto p = plan_shuffle(from, to, bytes)) {
      expect_shuffle(m, *p);
      ++by_shuffle;
    }
    expect_shared(m, plan_shared(from, to, bytes), bytes);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(by_registers, 5);
  EXPECT_GT(by_shuffle, 50);
}

TEST(ExchangePlan, SharedMemoryHasNoBankConflicts) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 400; ++trial) {
    test::LayoutKind kind = test::random_kind(random);
    kind.mixed = false;
    const LinearLayout from = random_layout(random, kind), to = random_layout(random, kind);
    const int bytes = 1 << std::uniform_int_distribution<>(0, 3)(random);
    EXPECT_EQ(conflicts(plan_shared(from, to, bytes), bytes), 0)
        << bytes << " bytes: " << from.str() << " to " << to.str();
  }
}

TEST(ExchangePlan, TranspositionsMoveVectorsOnBothSides) {
  // 8x8 blocks in each thread: 16 bytes along either axis.
  const LinearLayout rows = blocked({128, 128}, {8, 8}, {1, 0}, 8), columns = blocked({128, 128}, {8, 8}, {0, 1}, 8);
  const ExchangePlan p = plan_exchange(rows, columns, 2);
  EXPECT_EQ(p.way, ExchangePlan::Way::Shared);
  EXPECT_EQ(p.write_vector, 8);
  EXPECT_EQ(p.read_vector, 8);
  EXPECT_EQ(p.bytes, 32768);
  EXPECT_EQ(conflicts(p, 2), 0);
}

TEST(ExchangePlan, EqualThreadsOnlyRenameRegisters) {
  const LinearLayout a = blocked({64, 64}, 4, {1, 0}, 4);
  const ExchangePlan p = plan_exchange(a, a, 4);
  EXPECT_EQ(p.way, ExchangePlan::Way::Registers);
  EXPECT_EQ(exchange_bytes(a, a, 4), 0);
}

TEST(ExchangePlan, LanesOfOneWarpShuffle) {
  // A row of 32 lanes as a column of 32 lanes.
  const LinearLayout rows = blocked({32, 4}, 4, {1, 0}, 1), columns = blocked({32, 4}, 1, {0, 1}, 1);
  EXPECT_EQ(plan_exchange(rows, columns, 4).way, ExchangePlan::Way::Registers);
  const LinearLayout wide = blocked({4, 32}, 1, {1, 0}, 1), tall = blocked({4, 32}, 4, {1, 0}, 1);
  const ExchangePlan p = plan_exchange(wide, tall, 4);
  EXPECT_EQ(p.way, ExchangePlan::Way::Shuffle);
}

}  // namespace
}  // namespace kiln::ir
