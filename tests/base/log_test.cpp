#include "runtime/base/log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "runtime/base/env.h"

namespace kiln::rt {
namespace {

template <class F>
std::string stderr_of(F&& body) {
  ::testing::internal::CaptureStderr();
  body();
  return ::testing::internal::GetCapturedStderr();
}

class Log : public ::testing::Test {
 protected:
  void level(const char* value) {
    ::setenv("KILN_LOG", value, 1);
    env::reload();
  }
  ~Log() override {
    ::unsetenv("KILN_LOG");
    env::reload();
  }
};

TEST_F(Log, WritesOneLineWithThePrefix) {
  level("1");
  EXPECT_EQ(stderr_of([] { say(LogLevel::Info, "hello"); }), "kiln: hello\n");
}

TEST_F(Log, LevelFilters) {
  level("0");
  EXPECT_EQ(stderr_of([] { say(LogLevel::Info, "info"); }), "");
  EXPECT_EQ(stderr_of([] { say(LogLevel::Error, "bad"); }), "kiln: bad\n");
  level("1");
  EXPECT_EQ(stderr_of([] { say(LogLevel::Debug, "detail"); }), "");
  level("2");
  EXPECT_EQ(stderr_of([] { say(LogLevel::Debug, "detail"); }), "kiln: detail\n");
}

TEST_F(Log, OnceIsOncePerTopicEvenFromManyThreads) {
  level("1");
  const std::string out = stderr_of([] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([] {
        for (int k = 0; k < 100; ++k) say_once(LogLevel::Info, "topic a", "first");
      });
    for (std::thread& t : threads) t.join();
    say_once(LogLevel::Info, "topic b", "second");
  });
  EXPECT_EQ(out, "kiln: first\nkiln: second\n");
}

TEST_F(Log, AHiddenMessageDoesNotUseUpItsTopic) {
  level("0");
  say_once(LogLevel::Info, "topic c", "third");
  level("1");
  EXPECT_EQ(stderr_of([] { say_once(LogLevel::Info, "topic c", "third"); }), "kiln: third\n");
}

}  // namespace
}  // namespace kiln::rt
