// Kernels that are measured: which candidate is taken, when it is measured, and that measuring leaves no trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "dsl/kiln.h"
#include "tests/support/devices.h"
#include "tests/support/expect_error.h"
#include "tests/support/knob.h"
#include "tests/support/temporary_folder.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Block {
  int BLOCK = 128;
  bool twice = false;
};

void add_one_program(InOut<float> x, Int n, Tune<Block> t) {
  Tile i = program_id(0) * t.BLOCK + arange(t.BLOCK);
  store(x + i, load(x + i, i < n) + (t.twice ? 2 : 1), i < n);
}

/// Hands out times by name and counts how often each candidate was asked for.
struct Times {
  std::map<std::string, double> us;
  std::map<std::string, int> asked;
  rt::Stopwatch stopwatch() {
    return [this](const Stream& s, const rt::Candidate& c, int launches) {
      ++asked[c.name];
      for (int i = 0; i < std::min(launches, 2); ++i) c.launch(s);
      return us.at(c.name);
    };
  }
  int total() const {
    int n = 0;
    for (const auto& [name, k] : asked) n += k;
    return n;
  }
};

auto grid_for(std::int64_t n) {
  return [n](const Block& b) { return Grid(cdiv(n, b.BLOCK)); };
}

class TunedKernel : public ::testing::Test {
  const test::TemporaryFolder folder_;
  const test::Knob cache_{"KILN_CACHE_DIR", folder_.path().string()};
};

TEST_F(TunedKernel, TheFastestCandidateRunsAndIsRemembered) {
  const auto k = kernel("fastest", &add_one_program);
  Times times{{{"{128, false}", 9}, {"{256, true}", 5}, {"{512, false}", 7}}, {}};
  const auto tuned = k.tune({{}, {.BLOCK = 256, .twice = true}, {.BLOCK = 512}}).by(times.stopwatch());
  const Device d = Device::simulator();
  const Stream s(d);
  Buffer<float> x = test::buffer_of(d, std::vector<float>(1000, 1.f));
  tuned.launch(s, grid_for(1000), x, 1000);
  EXPECT_EQ(x.to_vector(), std::vector<float>(1000, 3.f)) << "measuring must leave no trace, and {256, true} adds 2";
  const int asked = times.total();
  EXPECT_GT(asked, 3);
  tuned.launch(s, grid_for(1000), x, 1000);
  tuned.launch(s, grid_for(1001), x, 1000);  // of the same class
  EXPECT_EQ(times.total(), asked);
  EXPECT_EQ(x.to_vector(), std::vector<float>(1000, 7.f));
}

TEST_F(TunedKernel, AnotherMagnitudeIsMeasuredAnew) {
  const auto k = kernel("magnitudes", &add_one_program);
  Times times{{{"{128, false}", 9}, {"{256, false}", 5}}, {}};
  const auto tuned = k.tune({{}, {.BLOCK = 256}}).by(times.stopwatch());
  const Device d = Device::simulator();
  const Stream s(d);
  Buffer<float> x = test::buffer_of(d, std::vector<float>(5000));
  tuned.launch(s, grid_for(1000), x, 1000);
  const int once = times.total();
  tuned.launch(s, grid_for(3000), x, 3000);
  EXPECT_EQ(times.total(), 2 * once);
}

TEST_F(TunedKernel, ACandidateThatTheDeviceRefusesIsNotTaken) {
  const auto k = kernel("refused", &add_one_program);
  Times times{{{"{128, false} num_warps=4", 9}, {"{256, false} num_warps=4", 8}}, {}};
  const auto tuned = k.tune({{}, {.BLOCK = 256}}, {{.num_warps = 64}, {.num_warps = 4}}).by(times.stopwatch());
  const Device d = Device::simulator();
  const Stream s(d);
  Buffer<float> x = test::buffer_of(d, std::vector<float>(1000));
  const Tuning t = tuned.measure(s, grid_for(1000), x, 1000);
  ASSERT_EQ(t.rows.size(), 4u);
  EXPECT_EQ(t.chosen, 3u);
  EXPECT_THAT(t.rows[0].refused, HasSubstr("num_warps 64 is 2048 threads"));
  EXPECT_THAT(t.table(), AllOf(HasSubstr("* {256, false} num_warps=4   8.00 us"), HasSubstr("refused: ")));
}

TEST_F(TunedKernel, WithoutAClockTheFirstThatRunsIsTaken) {
  const auto k = kernel("no_clock", &add_one_program);
  const auto tuned = k.tune({{}, {.BLOCK = 256, .twice = true}}, {{.num_warps = 64}, {.num_warps = 4}});
  for (const Device& d : {Device::simulator(), Device::simulator("sm_80")}) {
    const Stream s(d);
    Buffer<float> x = test::buffer_of(d, std::vector<float>(100, 1.f));
    tuned.launch(s, grid_for(100), x, 100);
    EXPECT_EQ(x.to_vector(), std::vector<float>(100, 2.f));
    const Tuning t = tuned.measure(s, grid_for(100), x, 100);
    EXPECT_FALSE(t.measured);
    EXPECT_EQ(t.chosen, 1u);
    EXPECT_EQ(x.to_vector(), std::vector<float>(100, 2.f));
  }
  const auto none = k.tune({{}}, {{.num_warps = 64}, {.num_warps = 128}});
  const Device d = Device::simulator();
  const Stream s(d);
  Buffer<float> x = test::buffer_of(d, std::vector<float>(100));
  EXPECT_THAT(test::error_of<UserError>([&] { none.launch(s, grid_for(100), x, 100); }),
              AllOf(HasSubstr("tuned_test.cpp"), HasSubstr("kernel 'no_clock': none of 2 candidates runs on simulator"),
                    HasSubstr("{128, false} num_warps=64: ")));
}

TEST_F(TunedKernel, RunsOnEveryDevice) {
  const auto k = kernel("everywhere", &add_one_program);
  const auto tuned = k.tune({{}, {.BLOCK = 256}, {.BLOCK = 512}}, {{.num_warps = 2}, {.num_warps = 4}});
  test::on_each_device([&](const Device& d) {
    const Stream s(d);
    Buffer<float> x = test::buffer_of(d, std::vector<float>(777, 1.f));
    tuned.launch(s, grid_for(777), x, 777);
    EXPECT_EQ(x.to_vector(), std::vector<float>(777, 2.f));
    const Tuning t = tuned.measure(s, grid_for(777), x, 777);
    EXPECT_EQ(t.measured, d.kind() == DeviceKind::Cuda);
    EXPECT_EQ(x.to_vector(), std::vector<float>(777, 2.f));
  });
}

TEST_F(TunedKernel, MemoryOfUnknownExtentThatIsReadAndWrittenIsRefused) {
  const auto k = kernel("unknown", &add_one_program).names("x n t");
  Times times{{{"{128, false}", 9}, {"{256, false}", 5}}, {}};
  const auto tuned = k.tune({{}, {.BLOCK = 256}}).by(times.stopwatch());
  const Device d = Device::simulator();
  const Stream s(d);
  Buffer<float> x = test::buffer_of(d, std::vector<float>(1000));
  EXPECT_THAT(test::error_of<UserError>([&] { tuned.launch(s, grid_for(1000), device_ptr<float>(x.ptr()), 1000); }),
              AllOf(HasSubstr("tuned_test.cpp"), HasSubstr("argument 1 (x), whose extent is not known")));
  tuned.launch(s, grid_for(1000), device_ptr<float>(x.ptr(), 1000), 1000);
}

TEST_F(TunedKernel, NothingIsMeasuredInACapture) {
  const auto k = kernel("captured", &add_one_program);
  Times times{{{"{128, false}", 9}, {"{256, true}", 5}}, {}};
  const auto tuned = k.tune({{}, {.BLOCK = 256, .twice = true}}).by(times.stopwatch());
  const Device d = Device::simulator();
  const Stream s(d);
  Buffer<float> x = test::buffer_of(d, std::vector<float>(100, 0.f));
  EXPECT_THAT(
      test::error_of<UserError>([&] { (void)Graph::capture(s, [&] { tuned.launch(s, grid_for(100), x, 100); }); }),
      HasSubstr("kernel 'captured' is not loaded for these arguments, and the stream is being captured"));
  k.launch(s, 1, x, 100, {});
  Graph::capture(s, [&] { tuned.launch(s, grid_for(100), x, 100); }).replay(s);
  EXPECT_EQ(x.to_vector()[0], 2.f) << "the first candidate, twice";
  EXPECT_EQ(times.total(), 0);
  tuned.launch(s, grid_for(100), x, 100);  // measured now
  EXPECT_GT(times.total(), 0);
  Graph::capture(s, [&] { tuned.launch(s, grid_for(100), x, 100); }).replay(s);
  EXPECT_EQ(x.to_vector()[0], 6.f) << "the fastest candidate adds 2, twice";
}

TEST_F(TunedKernel, AnotherProcessFindsTheResult) {
  const auto k = kernel("kept", &add_one_program);
  Times times{{{"{128, false}", 9}, {"{256, true}", 5}}, {}};
  const auto launch = [&](Times& t) {
    const auto tuned = k.tune({{}, {.BLOCK = 256, .twice = true}}).by(t.stopwatch());
    const Device d = Device::simulator();
    const Stream s(d);
    Buffer<float> x = test::buffer_of(d, std::vector<float>(100, 0.f));
    tuned.launch(s, grid_for(100), x, 100);
    return x.to_vector()[0];
  };
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(launch(times) == 2.f ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  Times unused;
  EXPECT_EQ(launch(unused), 2.f);
  EXPECT_EQ(unused.total(), 0) << "the result of the child is in the cache folder";
}

TEST_F(TunedKernel, ThreadsMeasureOnce) {
  const auto k = kernel("threads", &add_one_program);
  std::atomic<int> calls{0};
  const auto tuned = k.tune({{}, {.BLOCK = 256}}).by([&](const Stream&, const rt::Candidate& c, int) {
    ++calls;
    return c.name == "{256, false}" ? 1.0 : 2.0;
  });
  const Device d = Device::simulator();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        const Stream s(d);
        Buffer<float> x = test::buffer_of(d, std::vector<float>(100));
        tuned.launch(s, grid_for(100), x, 100);
      });
  }
  EXPECT_EQ(calls, 2 * 2 + 6) << "a first look and a first round of both, then the faster one alone";
}

}  // namespace
}  // namespace kiln
