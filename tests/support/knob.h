// An environment knob with another value for a while.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>

#include "runtime/base/env.h"

namespace kiln::test {

class Knob {
 public:
  Knob(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
    try {
      env::reload();
    } catch (...) {  // there will be no destructor
      restore();
      throw;
    }
  }
  ~Knob() { restore(); }
  Knob(const Knob&) = delete;
  Knob& operator=(const Knob&) = delete;

 private:
  void restore() {
    if (before_) ::setenv(name_, before_->c_str(), 1);
    else ::unsetenv(name_);
    env::reload();
  }

  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace kiln::test
