// Comparison of what machines return, with the operands of the first difference.
#pragma once
#include <string>
#include <vector>

#include "tests/op/machine.h"

namespace kiln::test {

/// About `n` of the cases, spread over all.
Columns sample(const Columns& columns, std::size_t n);

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
/// Runs `kernel` in each form on every machine and expects these patterns.
void expect_in_every_form(Kernel kernel, const Columns& columns, const std::vector<std::uint64_t>& want);

}  // namespace kiln::test
