// Comparison of what machines return, with the operands of the first difference.
#pragma once
#include <string>
#include <vector>

#include "tests/op/machine.h"

namespace kiln::test {

/// columns[k][i]: pattern of operand k of case i.
using Columns = std::vector<std::vector<std::uint64_t>>;

/// Counts the wrong results of one kernel on one machine; the destructor fails the test with the first.
class Failures {
 public:
  Failures(const Machine& machine, const Kernel& kernel) : where_(kernel.name + " on " + machine.name()) {}
  Failures(const Failures&) = delete;
  ~Failures();
  void add(const std::string& what);

 private:
  std::string where_, first_;
  std::size_t count_ = 0;
};

/// The operands of case i, as numbers and patterns.
std::string describe(const Kernel& kernel, const Columns& columns, std::size_t i);

/// Runs `kernel` and expects these patterns; any NaN is as good as another.
void expect_equal(Machine& machine, const Kernel& kernel, const Columns& columns,
                  const std::vector<std::uint64_t>& want);
/// Runs `kernel` on the interpreter and expects the same patterns of every compiled machine.
void expect_as_interpreted(const Kernel& kernel, const Columns& columns);

}  // namespace kiln::test
