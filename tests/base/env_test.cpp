#include "runtime/base/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/base/error.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

/// Sets a variable for one test and re-reads the environment at both ends.
class WithEnv {
 public:
  WithEnv(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~WithEnv() {
    ::unsetenv(name_);
    env::reload();
  }

 private:
  const char* name_;
};

TEST(Env, UnsetKnobHasItsDefault) {
  ::unsetenv("KILN_CACHE_BYTES");
  env::reload();
  EXPECT_EQ(env::KILN_CACHE_BYTES(), 1073741824);
}

TEST(Env, ReadsEachType) {
  const WithEnv a("KILN_TIME", "on"), b("KILN_SIM_THREADS", "3"), c("KILN_DUMP", "llvm,ptx@add");
  env::reload();
  EXPECT_TRUE(env::KILN_TIME());
  EXPECT_EQ(env::KILN_SIM_THREADS(), 3);
  EXPECT_EQ(env::KILN_DUMP(), "llvm,ptx@add");
}

TEST(Env, EmptyValueIsAsGoodAsNone) {
  const WithEnv a("KILN_LOG", ""), b("KILN_DUMP_DIR", ""), c("KILN_TIME", "");
  env::reload();
  EXPECT_EQ(env::KILN_LOG(), 1);
  EXPECT_EQ(env::KILN_DUMP_DIR(), "kiln-dump");
  EXPECT_FALSE(env::KILN_TIME());
}

std::string reload_error() {
  try {
    env::reload();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Env, MalformedValueNamesKnobAndValue) {
  {
    const WithEnv a("KILN_SIM_THREADS", "3x");
    EXPECT_EQ(reload_error(), "KILN_SIM_THREADS: expected an integer of 0 or more, got '3x'");
    ::unsetenv("KILN_SIM_THREADS");
  }
  {
    const WithEnv a("KILN_SIM_THREADS", "-3");
    EXPECT_THAT(reload_error(), HasSubstr("got '-3'"));
    ::unsetenv("KILN_SIM_THREADS");
  }
  {
    const WithEnv a("KILN_SIM_THREADS", "99999999999999999999");
    EXPECT_THAT(reload_error(), HasSubstr("99999999999999999999"));
    ::unsetenv("KILN_SIM_THREADS");
  }
  const WithEnv b("KILN_TIME", "maybe");
  EXPECT_EQ(reload_error(), "KILN_TIME: expected 0 or 1, got 'maybe'");
  ::unsetenv("KILN_TIME");
}

TEST(Env, HelpListsEveryKnobWithItsMeaning) {
  const std::string help = env::help();
#define KILN_ENV(NAME, type, fallback, doc) \
  EXPECT_THAT(help, HasSubstr(#NAME));      \
  EXPECT_THAT(help, HasSubstr(doc));
#include "runtime/base/env.def"
  EXPECT_THAT(help, HasSubstr("1073741824"));
}

}  // namespace
}  // namespace kiln
