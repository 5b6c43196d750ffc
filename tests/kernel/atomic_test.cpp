// Atomics: each element once, the same result in every use, the value that the semantics page states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/support/expect_error.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::error_of;
using kiln::test::EveryDevice;

class Atomics : public EveryDevice {};
KILN_ON_EVERY_DEVICE(Atomics);

// --- what is computed ------------------------------------------------------------------------------------------------

enum class Do { add, min, max, and_, or_, xor_, xchg };

Tile apply(Do op, const Tile& p, const Tile& v, const Tile& mask) {
  switch (op) {
    case Do::add: return atomic_add(p, v, mask);
    case Do::min: return atomic_min(p, v, mask);
    case Do::max: return atomic_max(p, v, mask);
    case Do::and_: return atomic_and(p, v, mask);
    case Do::or_: return atomic_or(p, v, mask);
    case Do::xor_: return atomic_xor(p, v, mask);
    case Do::xchg: break;
  }
  return atomic_xchg(p, v, mask);
}

template <class T>
constinit auto update = kernel("update", [](InOut<T> memory, In<T> values, Out<T> old, Int n, Const<Do> OP) {
  Tile i = arange(64), mask = i < n;
  store(old + i, apply(OP, memory + i, load(values + i, mask), mask));
});

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_integral_v<T>) return false;
  else return std::isnan(double(float(v)));
}

/// The host's answer, written down once more.
template <class T>
T expected(Do op, T a, T b) {
  if (op == Do::xchg) return b;
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    switch (op) {
      case Do::add: return T(U(a) + U(b));
      case Do::min: return std::min(a, b);
      case Do::max: return std::max(a, b);
      case Do::and_: return T(a & b);
      case Do::or_: return T(a | b);
      case Do::xor_: return T(a ^ b);
      case Do::xchg: break;
    }
    return b;
  } else {
    using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const F x = F(a), y = F(b);
    if (op == Do::add) return T(x + y);
    if (std::isnan(x) || std::isnan(y)) return T(std::numeric_limits<F>::quiet_NaN());
    if (x == 0 && y == 0) return std::signbit(x) == (op == Do::min) ? a : b;
    return (x < y) == (op == Do::min) ? a : b;
  }
}

template <class T>
std::vector<T> corners() {
  if constexpr (std::is_integral_v<T>) {
    using L = std::numeric_limits<T>;
    return {T(0), T(1), T(-1), T(7), T(100), L::min(), L::max(), T(L::max() - 1)};
  } else {
    using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const F inf = std::numeric_limits<F>::infinity(), nan = std::numeric_limits<F>::quiet_NaN();
    return {T(F(0)), T(F(-0.0)), T(F(1)), T(F(-1.5)), T(F(1.0009765625)), T(inf), T(-inf), T(nan)};
  }
}

template <class T>
void expect_updates(const Device& d, Do op) {
  // Every pair of corners; a negative NaN too, which a comparison of bit patterns would take for a small number.
  const std::vector<T> c = corners<T>();
  std::vector<T> memory, values;
  for (const T& a : c)
    for (const T& b : c) {
      memory.push_back(a);
      values.push_back(b);
    }
  if constexpr (std::is_same_v<T, float>) memory[15 * 4 - 4] = std::copysign(std::nanf(""), -1.f);
  Stream s(d);
  auto m = buffer_of(d, memory), v = buffer_of(d, values);
  Buffer<T> old(d, 64);
  update<T>.launch(s, 1, m, v, old, 63, op);
  s.synchronize();
  const std::vector<T> now = m.to_vector(), was = old.to_vector();
  const auto same = [](const T& a, const T& b) {
    return (is_nan(a) && is_nan(b)) || std::memcmp(&a, &b, sizeof a) == 0;
  };
  for (std::size_t i = 0; i < 64; ++i) {
    const T want = i == 63 ? memory[i] : expected(op, memory[i], values[i]);
    EXPECT_TRUE(same(now[i], want)) << "op " << int(op) << " element " << i;
    EXPECT_TRUE(same(was[i], i == 63 ? T{} : memory[i])) << "op " << int(op) << " element " << i;
  }
}

constexpr Do kAll[] = {Do::add, Do::min, Do::max, Do::and_, Do::or_, Do::xor_, Do::xchg};

TEST_P(Atomics, ComputeWhatTheOperatorsDoOnIntegers) {
  for (const Do op : kAll) {
    expect_updates<std::int32_t>(device(), op);
    expect_updates<std::uint32_t>(device(), op);
    expect_updates<std::int64_t>(device(), op);
    expect_updates<std::uint64_t>(device(), op);
  }
}

TEST_P(Atomics, ComputeWhatTheOperatorsDoOnFloats) {
  for (const Do op : {Do::add, Do::min, Do::max, Do::xchg}) {
    expect_updates<float>(device(), op);
    expect_updates<double>(device(), op);
  }
}

TEST_P(Atomics, ComputeWhatTheOperatorsDoOnSixteenBits) {
  for (const Do op : {Do::add, Do::min, Do::max, Do::xchg}) {
    expect_updates<f16>(device(), op);
    expect_updates<bf16>(device(), op);
  }
  for (const Do op : kAll) {
    expect_updates<std::int16_t>(device(), op);
    expect_updates<std::uint16_t>(device(), op);
  }
}

TEST(AtomicsOnOlderTargets, SumsOfBf16AreLoops) { expect_updates<bf16>(Device::simulator("sm_80"), Do::add); }

constinit auto add_tiny = kernel("add_tiny", [](InOut<float> global, Out<float> shared_sum, Float by) {
  Scalar s = shared<float>(1);
  store(s, 0.f);
  atomic_add(global, by);
  atomic_add(s, by);
  store(shared_sum, load(s));
});
TEST_P(Atomics, SumsOfDenormalsAreZeroInGlobalMemoryOnly) {
  Stream s(device());
  const float tiny = std::numeric_limits<float>::denorm_min();
  auto global = buffer_of<float>(device(), {0.f}), shared_sum = buffer_of<float>(device(), {-1.f});
  add_tiny.launch(s, 1, global, shared_sum, tiny);
  s.synchronize();
  EXPECT_EQ(global.to_vector()[0], 0.f);
  EXPECT_EQ(shared_sum.to_vector()[0], tiny);
}

// --- each element once -----------------------------------------------------------------------------------------------

constinit auto histogram = kernel("histogram", [](In<std::int32_t> x, InOut<std::int32_t> bins, Int n, Const<int> B) {
  Tile i = program_id(0) * B + arange(B), mask = i < n;
  atomic_add(bins + load(x + i, mask), 1, mask);
});
TEST_P(Atomics, CountEveryElementOfAHistogramOnce) {
  const int n = 5000, kinds = 37;
  std::vector<std::int32_t> x(n), want(kinds, 0);
  for (int i = 0; i < n; ++i) ++want[std::size_t(x[std::size_t(i)] = (i * i + 3 * i) % kinds)];
  Stream s(device());
  for (int block : {128, 1000, 1024}) {
    auto in = buffer_of(device(), x), bins = buffer_of(device(), std::vector<std::int32_t>(kinds, 0));
    histogram.launch(s, cdiv(n, block), in, bins, n, block);
    s.synchronize();
    EXPECT_EQ(bins.to_vector(), want) << block;
  }
}

// All lanes of all programs draw from one counter.
constinit auto draw = kernel("draw", [](InOut<std::int32_t> counter, Out<std::int32_t> tickets, Const<int> B) {
  Tile i = arange(B);
  store(tickets + program_id(0) * B + i, atomic_add(counter + i * 0, 1));
});
TEST_P(Atomics, GiveEachTicketOnce) {
  Stream s(device());
  for (int block : {3, 32, 100, 512}) {
    auto counter = buffer_of<std::int32_t>(device(), {0});
    Buffer<std::int32_t> tickets(device(), std::size_t(4 * block));
    draw.with({.num_warps = 4}).launch(s, 4, counter, tickets, block);
    s.synchronize();
    auto got = tickets.to_vector();
    std::sort(got.begin(), got.end());
    std::vector<std::int32_t> want(got.size());
    std::iota(want.begin(), want.end(), 0);
    EXPECT_EQ(got, want) << block;
    EXPECT_EQ(counter.to_vector()[0], 4 * block);
  }
}

constinit auto ticket = kernel("ticket", [](InOut<std::int32_t> counter, Out<std::int32_t> tickets, Const<int> B) {
  Scalar mine = atomic_add(counter, 1);
  store(tickets + mine * B + arange(B), mine);
});
TEST_P(Atomics, GiveAScalarToEveryThread) {
  Stream s(device());
  for (int warps : {1, 2, 8}) {
    auto counter = buffer_of<std::int32_t>(device(), {0});
    Buffer<std::int32_t> tickets(device(), 5 * 300);
    ticket.with({.num_warps = warps}).launch(s, 5, counter, tickets, 300);
    s.synchronize();
    const auto got = tickets.to_vector();
    for (int i = 0; i < 1500; ++i) ASSERT_EQ(got[std::size_t(i)], i / 300) << warps << " " << i;
  }
}

// One element, eight columns: all see the same old value.
constinit auto row = kernel("row", [](InOut<std::int32_t> p, Out<std::int32_t> out) {
  Tile old = atomic_add(p + arange(1), 1);
  store(out + arange(8), broadcast_to(old, {8}));
});
TEST_P(Atomics, GiveOneOldValueToAllColumns) {
  Stream s(device());
  auto p = buffer_of<std::int32_t>(device(), {41});
  Buffer<std::int32_t> out(device(), 8);
  row.launch(s, 1, p, out);
  s.synchronize();
  EXPECT_EQ(out.to_vector(), std::vector<std::int32_t>(8, 41));
  EXPECT_EQ(p.to_vector()[0], 42);
}

// Few elements over many threads and warps: each is held many times, added once, and its result used by all.
template <class T>
constinit auto replicated = kernel("replicated", [](InOut<T> p, Out<T> out, Const<int> N, Const<int> W) {
  Tile i = arange(N);
  Tile old = atomic_add(p + i, full(dtype_of<T>, {N}, 2), i != 1);
  store(out + (expand(i, 1) * W + arange(W)), broadcast_to(expand(old, 1), {N, W}));
});
TEST_P(Atomics, AddReplicatedElementsOnce) {
  Stream s(device());
  const auto check = [&]<class T>(T, int n, int width, int warps) {
    std::vector<T> start(std::size_t(n), T{});
    for (int i = 0; i < n; ++i) start[std::size_t(i)] = T(float(i + 5));
    auto p = buffer_of(device(), start);
    Buffer<T> out(device(), std::size_t(n * width));
    replicated<T>.with({.num_warps = warps}).launch(s, 1, p, out, n, width);
    s.synchronize();
    const auto now = p.to_vector(), old = out.to_vector();
    for (int i = 0; i < n; ++i) EXPECT_EQ(float(now[std::size_t(i)]), float(i == 1 ? 6 : i + 7)) << i;
    for (int i = 0; i < n * width; ++i)
      ASSERT_EQ(float(old[std::size_t(i)]), float(i / width == 1 ? 0 : i / width + 5)) << i;
  };
  for (int warps : {1, 4})
    for (int n : {2, 3, 8, 40}) {
      check(std::int32_t{}, n, 16, warps);
      check(double{}, n, 16, warps);
      check(f16{}, n, 16, warps);
    }
}

constinit auto swap_if = kernel("swap_if", [](InOut<float> p, In<float> expected, In<float> desired, Out<float> old) {
  Tile i = arange(4);
  store(old + i, atomic_cas(p + i, load(expected + i), load(desired + i)));
});
TEST_P(Atomics, CompareBitsBeforeTheySwap) {
  Stream s(device());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto p = buffer_of<float>(device(), {1.f, -0.f, nan, 4.f}), want = buffer_of<float>(device(), {1.f, 0.f, nan, 5.f});
  auto with = buffer_of<float>(device(), {10.f, 20.f, 30.f, 40.f});
  Buffer<float> old(device(), 4);
  swap_if.launch(s, 1, p, want, with, old);
  s.synchronize();
  const auto now = p.to_vector(), was = old.to_vector();
  EXPECT_EQ(now[0], 10.f);
  EXPECT_TRUE(now[1] == 0.f && std::signbit(now[1]));
  EXPECT_EQ(now[2], 30.f);
  EXPECT_EQ(now[3], 4.f);
  EXPECT_EQ(was[0], 1.f);
  EXPECT_EQ(was[3], 4.f);
}

// --- order inside a program ------------------------------------------------------------------------------------------

// The second exchange, the load and the store are done by other threads than the first exchange.
constinit auto in_order = kernel("in_order", [](InOut<std::int32_t> p, Out<std::int32_t> seen, Const<int> N) {
  Tile i = arange(N), back = N - 1 - i;
  atomic_xchg(p + i, i.cast<std::int32_t>());
  Tile first = atomic_xchg(p + back, 1000 + back.cast<std::int32_t>());
  Tile second = load(p + i);
  store(p + back, 7);
  Tile third = atomic_add(p + i, 1);
  store(seen + i, first);
  store(seen + N + i, second);
  store(seen + 2 * N + i, third);
});
TEST_P(Atomics, KeepProgramOrderWithLoadsStoresAndEachOther) {
  Stream s(device());
  const int n = 256;
  auto p = buffer_of(device(), std::vector<std::int32_t>(n, 0));
  Buffer<std::int32_t> seen(device(), 3 * n);
  in_order.with({.num_warps = 4}).launch(s, 1, p, seen, n);
  s.synchronize();
  const auto got = seen.to_vector(), now = p.to_vector();
  for (int i = 0; i < n; ++i) {
    ASSERT_EQ(got[std::size_t(i)], n - 1 - i) << i;
    ASSERT_EQ(got[std::size_t(n + i)], 1000 + i) << i;
    ASSERT_EQ(got[std::size_t(2 * n + i)], 7) << i;
    ASSERT_EQ(now[std::size_t(i)], 8) << i;
  }
}

// Programs add up their parts; the one that comes last, by the counter, sees all of them.
constinit auto last_sums = kernel(
    "last_sums", [](InOut<std::int32_t> parts, InOut<std::int32_t> counter, Out<std::int32_t> total, Const<int> N) {
      Tile i = arange(N);
      store(parts + program_id(0) * N + i, (program_id(0) + 1).cast<std::int32_t>());
      Scalar before = atomic_add(counter, 1, true, {.order = Order::acq_rel});
      Tile sum = zeros(DType::i32, {N});
      for (int p = 0; p < 8; ++p) sum += load(parts + p * N + i, before == 7);  // others may still be writing
      store(total + i, sum, before == 7);
    });
TEST_P(Atomics, ReleaseAndAcquireHandOverWhatAllThreadsWrote) {
  Stream s(device());
  const int n = 256;
  auto parts = buffer_of(device(), std::vector<std::int32_t>(8 * n, 0)),
       counter = buffer_of<std::int32_t>(device(), {0});
  Buffer<std::int32_t> total(device(), n);
  last_sums.launch(s, 8, parts, counter, total, n);
  s.synchronize();
  EXPECT_EQ(total.to_vector(), std::vector<std::int32_t>(n, 36));
}

// One program makes data, the other waits for the flag and reads what other threads wrote.
constinit auto pass_on =
    kernel("pass_on", [](InOut<float> data, InOut<std::int32_t> flag, Out<float> out, Const<int> N) {
      Tile i = arange(N);
      if_(
          program_id(0) == 0,
          [&] {
            store(data + i, i.cast<float>() * 2);
            atomic_xchg(flag, 1, {.order = Order::release});
          },
          [&] {
            Scalar seen = 0;
            while_([&] { return seen == 0; }, [&] { seen = atomic_add(flag, 0, {.order = Order::acquire}); });
            store(out + i, load(data + (N - 1 - i)));
          });
    });
TEST_P(Atomics, AFlagPassesDataFromProgramToProgram) {
  Stream s(device());
  const int n = 500;
  Buffer<float> data(device(), n), out(device(), n);
  auto flag = buffer_of<std::int32_t>(device(), {0});
  pass_on.with({.num_warps = 4}).launch(s, 2, data, flag, out, n);
  s.synchronize();
  const auto got = out.to_vector();
  for (int i = 0; i < n; ++i) ASSERT_EQ(got[std::size_t(i)], 2.f * float(n - 1 - i));
}

// What no single atomic does, by a loop around cas.
constinit auto multiply = kernel("multiply", [](InOut<float> p, In<float> by) {
  Scalar factor = load(by + program_id(0)), seen = atomic_cas(p, factor, factor), done = false;
  while_([&] { return !done; },
         [&] {
           Scalar was = atomic_cas(p, seen, seen * factor);
           done = was.bitcast<std::uint32_t>() == seen.bitcast<std::uint32_t>();
           seen = was;
         });
});
TEST_P(Atomics, ACasLoopLosesNoUpdate) {
  Stream s(device());
  auto p = buffer_of<float>(device(), {1.f}), by = buffer_of<float>(device(), {2, 2, 4, 0.5f, 8, 2, 2, 16});
  multiply.with({.num_warps = 2}).launch(s, 8, p, by);
  s.synchronize();
  EXPECT_EQ(p.to_vector()[0], 4096.f);
}

constinit auto scopes = kernel("scopes", [](InOut<std::int64_t> p) {
  for (const Order order : {Order::relaxed, Order::acquire, Order::release, Order::acq_rel})
    for (const Scope scope : {Scope::gpu, Scope::cta, Scope::cluster, Scope::system}) {
      atomic_add(p, 1, {.order = order, .scope = scope});
      atomic_max(p + 1, load(p), true, {order, scope});
      atomic_cas(p + 2, load(p) - 1, load(p), {order, scope});
    }
});
TEST_P(Atomics, RunInEveryOrderAndScope) {
  Stream s(device());
  auto p = buffer_of<std::int64_t>(device(), {0, 0, 0});
  scopes.launch(s, 1, p);
  s.synchronize();
  EXPECT_EQ(p.to_vector(), (std::vector<std::int64_t>{16, 16, 16}));
}

// --- errors ----------------------------------------------------------------------------------------------------------

template <class F>
void expect_refused(F f, const char* message) {
  auto k = kernel("refused", f);
  EXPECT_THAT(error_of<UserError>([&] { (void)k.trace(device_ptr<f16>(64), device_ptr<std::int8_t>(64)); }),
              testing::HasSubstr(message));
}

TEST(AtomicErrors, NameBothTypes) {
  expect_refused([](InOut<f16> h, InOut<std::int8_t>) { atomic_max(h, Scalar(1.f)); },
                 "atomic_max: value is f32, pointer is ptr<f16>; cast first");
  expect_refused([](InOut<f16>, InOut<std::int8_t> b) { atomic_add(b, 1); },
                 "atomic_add: pointer is ptr<i8>; only elements of 16, 32 and 64 bits are changed atomically");
  expect_refused([](InOut<f16> h, InOut<std::int8_t>) { atomic_or(h, 1); },
                 "atomic_or: needs integers, pointer is ptr<f16>");
  expect_refused([](In<f16> h, InOut<std::int8_t>) { atomic_add(h, 1); },
                 "atomic_add: through the read-only pointer ptr<const f16> of an In parameter");
  expect_refused([](InOut<f16> h, InOut<std::int8_t>) { atomic_cas(h, 1, Scalar(2)); },
                 "atomic_cas: desired is i32, pointer is ptr<f16>; cast first");
  expect_refused([](InOut<f16> h, InOut<std::int8_t>) { atomic_add(h + arange(4), 1, arange(4)); },
                 "atomic_add: mask must be i1, not tile<4xindex>");
}

}  // namespace
