// The element types of the library, for typed tests.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "dsl/kiln.h"

namespace kiln::test {

using RealTypes = testing::Types<float, f16, bf16>;
struct RealTypeNames {
  template <class T>
  static std::string GetName(int) {
    return name(dtype_of<T>);
  }
};

}  // namespace kiln::test
