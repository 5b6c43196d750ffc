// Runs a test under every schedule of asynchronous operations: a right program gives the same under all.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "runtime/base/env.h"

namespace kiln::test {

/// Sets KILN_SIM_SCHEDULE for a scope.
class UnderSchedule {
 public:
  explicit UnderSchedule(const std::string& schedule) {
    ::setenv("KILN_SIM_SCHEDULE", schedule.c_str(), 1);
    env::reload();
  }
  ~UnderSchedule() {
    ::unsetenv("KILN_SIM_SCHEDULE");
    env::reload();
  }
  UnderSchedule(const UnderSchedule&) = delete;
  UnderSchedule& operator=(const UnderSchedule&) = delete;
};

/// `f()` under each of them.
template <class F>
void under_every_schedule(F&& f) {
  for (const char* schedule : {"late", "early", "random:1", "random:2", "random:77"}) {
    SCOPED_TRACE(schedule);
    const UnderSchedule scope(schedule);
    f();
  }
}

}  // namespace kiln::test
