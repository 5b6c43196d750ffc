// The debugger on kernels in the language: variables by their names, as the simulator's registers hold them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "dsl/kiln.h"
#include "runtime/base/file.h"
#include "runtime/debugger.h"
#include "tests/support/devices.h"

namespace {
using namespace kiln;
using debug::Resume;
using debug::Stop;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

constexpr int kColumns = 300, kRows = 3;

// clang-format off
constinit auto softmax_row = kernel("softmax_row", [](In<float> x, Out<float> y, Int columns, Const<int> BLOCK) {
  Tile i = arange(BLOCK);
  Tile inside = i < columns;
  Scalar at = program_id(0) * columns;
  Tile row = load(x + at + i, inside, -INFINITY);
  Scalar top = max(row);                          // here: top
  Tile e = exp(row - top);                        // here: e
  Scalar total = sum(e), inverse = 1.f / total;
  store(y + at + i, e * inverse, inside);         // here: store
});

constinit auto sums = kernel("sums", [](In<float> x, Out<float> y, Int n, Const<int> BLOCK) {
  Tile acc = zeros(f32, {BLOCK});
  for (auto k : range(0, n, BLOCK)) {
    Tile part = load(x + k + arange(BLOCK));
    acc = acc + part;
    Scalar half = k / 2;
    store(y + k, half.cast(f32));                 // here: turn
  }
  store(y + arange(BLOCK), acc);                  // here: sum
});

constinit auto matrix = kernel("matrix", [](In<float> x, Out<float> y, Const<int> M, Const<int> N) {
  Tile m = arange(M), n = arange(N);
  Tile a = load(x + expand(m, 1) * N + n);
  Tile t = trans(a);
  auto [low, high] = split(reshape(a, {M, N / 2, 2}));
  Tile lines = sum(a, 1);
  store(y + expand(n, 1) * M + m, t);                // here: matrix
  store(y + m, lines + sum(low, 1) + sum(high, 1));
});
// clang-format on

/// The line of this file with the comment.
unsigned line_of(const std::string& comment) {
  std::istringstream text(rt::read_source(__FILE__).value());
  unsigned n = 0;
  for (std::string line; std::getline(text, line);) {
    ++n;
    if (line.find("// here: " + comment) != line.npos) return n;
  }
  return 0;
}

std::vector<float> numbers(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = float(int(i * 7 % 31) - 15) / 4;
  return v;
}

class NamesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!rt::read_source(__FILE__)) GTEST_SKIP() << "the source tree is not where this build was made from it";
  }
  NamesTest() {
    values = numbers(4096);
    x.upload(values);
  }
  void break_at(const std::string& comment, debug::Condition c = {}) {
    debugger.break_line("debugger_test.cpp", line_of(comment), c);
  }
  void run_softmax(int warps = 4) {
    softmax_row.with({.num_warps = warps, .debug = true}).launch(Stream(device), kRows, x, y, kColumns, 512);
  }
  float row(std::uint32_t block, std::size_t i) const { return values[block * kColumns + i]; }

  Device device = Device::simulator("sm_90a");
  std::vector<float> values;
  Buffer<float> x{device, 4096}, y{device, 4096};
  Debugger debugger{device};
};

TEST_F(NamesTest, ShowsTilesAndScalarsOfARow) {
  break_at("store", {.block = debug::Index3{1, 0, 0}});
  int stopped = 0;
  debugger.on_stop([&](Stop& s) {
    if (++stopped < 4) return Resume::Continue;  // the last of four warps: all have come here
    EXPECT_THAT(s.value_names(), IsSupersetOf({"i", "inside", "at", "row", "top", "e", "total", "inverse"}));
    const debug::Value r = s.value("row"), e = s.value("e"), inside = s.value("inside"), i = s.value("i");
    EXPECT_TRUE(r.tile);
    EXPECT_EQ(r.dtype, f32);
    EXPECT_THAT(r.shape, ElementsAre(512));
    EXPECT_THAT(r.absent, ElementsAre());
    EXPECT_EQ(s.value("at").number(0), kColumns);
    EXPECT_FALSE(s.value("top").tile);
    double top = -INFINITY, total = 0;
    for (std::size_t k = 0; k < kColumns; ++k) top = std::max(top, double(row(1, k)));
    EXPECT_EQ(s.value("top").number(0), top);
    for (std::size_t k = 0; k < 512; ++k) {
      EXPECT_TRUE(r.known[k]);
      const bool in = k < kColumns;
      EXPECT_EQ(i.number(k), double(k));
      EXPECT_EQ(inside.number(k), in);
      EXPECT_EQ(r.number(k), in ? row(1, k) : -INFINITY);
      EXPECT_NEAR(e.number(k), in ? std::exp(row(1, k) - top) : 0, 1e-6);
      total += e.number(k);
    }
    EXPECT_NEAR(s.value("total").number(0), total, 1e-4);
    EXPECT_NEAR(s.value("inverse").number(0), 1 / total, 1e-6);
    EXPECT_THROW(s.value("nothing"), UserError);
    return Resume::Continue;
  });
  run_softmax();
  EXPECT_EQ(stopped, 4);
}

TEST_F(NamesTest, SaysWhichWarpsHaveNoPartYet) {
  break_at("top", {.block = debug::Index3{0, 0, 0}, .warp = 2});
  int stopped = 0;
  debugger.on_stop([&](Stop& s) {
    ++stopped;
    EXPECT_THROW(s.value("top"), UserError) << "the statement is about to be executed";
    const debug::Value r = s.value("row");
    EXPECT_THAT(r.absent, ElementsAre("warp 3: not here yet")) << "the others wait for the reduction";
    std::size_t known = 0;
    for (std::size_t k = 0; k < 512; ++k) {
      known += r.known[k];
      EXPECT_TRUE(!r.known[k] || r.number(k) == (k < kColumns ? row(0, k) : -INFINITY));
    }
    EXPECT_EQ(known, 512u * 3 / 4);
    return Resume::Continue;
  });
  run_softmax();
  EXPECT_EQ(stopped, 1);
}

TEST_F(NamesTest, FollowsALoop) {
  break_at("turn", {.warp = 0});
  std::vector<double> k, half;
  std::vector<std::uint64_t> turns;
  std::vector<float> acc(256, 0);
  debugger.on_stop([&](Stop& s) {
    const auto at = std::size_t(s.value("k").number(0));
    k.push_back(double(at));
    half.push_back(s.value("half").number(0));
    const debug::Value a = s.value("acc"), part = s.value("part");
    turns.push_back(a.turn);
    for (std::size_t i = 0; i < 256; ++i) {
      acc[i] += values[at + i];
      EXPECT_TRUE(!a.known[i] || a.number(i) == acc[i]) << i;
      EXPECT_TRUE(!part.known[i] || part.number(i) == values[at + i]) << i;
    }
    EXPECT_TRUE(a.known[0]);
    return Resume::Continue;
  });
  sums.with({.num_warps = 2, .debug = true}).launch(Stream(device), 1, x, y, 1024, 256);
  EXPECT_THAT(k, ElementsAre(0, 256, 512, 768));
  EXPECT_THAT(half, ElementsAre(0, 128, 256, 384));
  EXPECT_THAT(turns, ElementsAre(1, 2, 3, 4));
}

TEST_F(NamesTest, StepsThroughALoop) {
  break_at("turn", {.warp = 0});
  std::vector<double> k;
  int steps = 0;
  debugger.on_stop([&](Stop& s) {
    steps += s.reason() == debug::Reason::Step;
    if (s.line() == line_of("turn")) k.push_back(s.value("k").number(0));
    return k.size() < 3 && steps < 100 ? Resume::StepLine : Resume::Detach;
  });
  sums.with({.num_warps = 1, .debug = true}).launch(Stream(device), 1, x, y, 512, 128);
  EXPECT_THAT(k, ElementsAre(0, 128, 256));
  EXPECT_GE(steps, 2 * 3) << "at least load, sum and store of two turns";
}

TEST_F(NamesTest, ShowsMatricesInEveryLayout) {
  break_at("matrix", {.warp = 3});
  int stopped = 0;
  debugger.on_stop([&](Stop& s) {
    ++stopped;
    const debug::Value a = s.value("a"), t = s.value("t"), low = s.value("low"), high = s.value("high");
    EXPECT_THAT(a.shape, ElementsAre(32, 64));
    EXPECT_THAT(t.shape, ElementsAre(64, 32));
    EXPECT_THAT(low.shape, ElementsAre(32, 32));
    int known = 0;
    for (std::int64_t i = 0; i < 32; ++i) {
      for (std::int64_t j = 0; j < 64; ++j) {
        const float want = values[std::size_t(i * 64 + j)];
        const debug::Value& half = j % 2 ? high : low;
        const std::size_t in_a = a.at({i, j}), in_t = t.at({j, i}), in_half = half.at({i, j / 2});
        known += a.known[in_a];
        EXPECT_TRUE(!a.known[in_a] || a.number(in_a) == want);
        EXPECT_TRUE(!t.known[in_t] || t.number(in_t) == want);
        EXPECT_TRUE(!half.known[in_half] || half.number(in_half) == want);
      }
    }
    EXPECT_GE(known, 32 * 64 / 4) << "at least those of this warp";
    return Resume::Continue;
  });
  matrix.with({.num_warps = 4, .debug = true}).launch(Stream(device), 1, x, y, 32, 64);
  EXPECT_EQ(stopped, 1);
}

TEST_F(NamesTest, WatchesTheOutput) {
  y.fill_bytes(0);
  debugger.watch(debug::Space::Global, y.ptr() + 4 * (2 * kColumns + 17), 4);
  int stopped = 0;
  debugger.on_stop([&](Stop& s) {
    ++stopped;
    EXPECT_EQ(s.block()[0], 2u);
    EXPECT_EQ(s.line(), line_of("store"));
    EXPECT_GT(s.load<float>(debug::Space::Global, y.ptr() + 4 * (2 * kColumns + 17)), 0);
    EXPECT_EQ(s.parameters().at(0).name, "x");
    return Resume::Continue;
  });
  run_softmax();
  EXPECT_EQ(stopped, 1);
}

TEST_F(NamesTest, WithoutTheOptionThereAreNone) {
  break_at("store", {.block = debug::Index3{0, 0, 0}, .warp = 0});
  int stopped = 0;
  debugger.on_stop([&](Stop& s) {
    ++stopped;
    EXPECT_THAT(s.value_names(), ElementsAre());
    EXPECT_EQ(s.module().find("kiln.value"), std::string::npos);
    return Resume::Continue;
  });
  softmax_row.launch(Stream(device), kRows, x, y, kColumns, 512);
  EXPECT_EQ(stopped, 1);
}

TEST_F(NamesTest, ResultsAreThoseWithoutNames) {
  run_softmax();
  const std::vector<float> named = y.to_vector();
  y.fill_bytes(0xFF);
  softmax_row.with({.num_warps = 4}).launch(Stream(device), kRows, x, y, kColumns, 512);
  for (std::size_t i = 0; i < kRows * kColumns; ++i) EXPECT_EQ(named[i], y.to_vector()[i]) << i;
}

TEST_F(NamesTest, OnTheTerminal) {
  const std::string line = std::to_string(line_of("store"));
  std::istringstream in("b " + line + " if block 2 warp 3\nc\np top\np row\np row[299]\np e[1, 2]\np columns\n" +
                        "p inside\np nothing\ni n\n");
  std::ostringstream out;
  debugger.break_kernel("softmax_row");
  debugger.on_stop(debug::console(debugger, in, out, false));
  run_softmax();
  EXPECT_THAT(out.str(), HasSubstr("softmax_row, block (2, 0, 0), warp 3, lane 0\ndebugger_test.cpp:" + line +
                                   ":    store(y + at + i, e * inverse, inside);         // here: store\n"));
  EXPECT_THAT(out.str(), HasSubstr("(kiln) p top\nf32 top = 3.75   (given at debugger_test.cpp:" +
                                   std::to_string(line_of("top")) + ")\n"));
  EXPECT_THAT(out.str(), HasSubstr("  [0, 1.75, 3.5, -2.5, …, -inf, -inf, -inf, -inf]\nmin -inf, max 3.75\n"));
  EXPECT_THAT(out.str(), HasSubstr("(kiln) p row[299]\nrow[299] = -3.75\n"));
  EXPECT_THAT(out.str(), HasSubstr("error: e has 1 axes, the index has 2\n"));
  EXPECT_THAT(out.str(), HasSubstr("(kiln) p columns\nindex columns = 300\n"));
  EXPECT_THAT(out.str(), HasSubstr("[true, true, true, true, …, false, false, false, false]\n"));
  EXPECT_THAT(out.str(), HasSubstr("error: there is no 'nothing' here; variables: i, inside, at, row, top, e, total, "
                                   "inverse; parameters: x, y, columns\n"));
  EXPECT_THAT(out.str(), HasSubstr("inverse: f32, given at "));
}

}  // namespace
