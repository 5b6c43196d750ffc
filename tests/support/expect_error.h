// Errors in tests: type, a part of the message, and the user's line.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/base/error.h"

namespace kiln::test {

/// what() of the E that `f` throws; "(no error)" if it throws nothing. Any other exception fails the test as usual.
template <class E, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "(no error)";
}

/// `f` throws an E that holds `part` and names `file`:`line`.
template <class E, class F>
void expect_error_at(F&& f, const std::string& part, const char* file, int line) {
  const std::string what = error_of<E>(f);
  EXPECT_THAT(what, testing::HasSubstr(part));
  EXPECT_THAT(what, testing::StartsWith(std::string(file) + ":" + std::to_string(line) + ": error: "));
}

template <class F>
void expect_user_error(F&& f, const std::string& part, const char* file, int line) {
  expect_error_at<UserError>(f, part, file, line);
}

}  // namespace kiln::test
