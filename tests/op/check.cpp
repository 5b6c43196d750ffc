#include "tests/op/check.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/op/values.h"

namespace kiln::test {
namespace {

std::string number(DType d, std::uint64_t pattern) {
  char text[64];
  std::snprintf(text, sizeof text, "%a (0x%llx)", value_of(d, pattern), static_cast<unsigned long long>(pattern));
  return text;
}

}  // namespace

Columns sample(const Columns& columns, std::size_t n) {
  Columns some(columns.size());
  const std::size_t step = columns[0].size() / n + 1;
  for (std::size_t k = 0; k < columns.size(); ++k)
    for (std::size_t i = 0; i < columns[k].size(); i += step) some[k].push_back(columns[k][i]);
  return some;
}

Failures::~Failures() {
  if (count_) ADD_FAILURE() << where_ << ": " << count_ << " wrong results, the first: " << first_;
}

void Failures::add(const std::string& what) {
  if (count_++ == 0) first_ = what;
}

std::string describe(const Kernel& kernel, const Columns& columns, std::size_t i) {
  std::string s = "of";
  for (std::size_t k = 0; k < columns.size(); ++k) s += " " + number(kernel.inputs[k], columns[k][i]);
  return s;
}

void expect_equal(Machine& machine, const Kernel& kernel, const Columns& columns,
                  const std::vector<std::uint64_t>& want) {
  std::vector<std::uint64_t> got = machine.run(kernel, columns);
  Failures failures(machine, kernel);
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!same_result(kernel.output, got[i], want[i]))
      failures.add(describe(kernel, columns, i) + ": got " + number(kernel.output, got[i]) + ", want " +
                   number(kernel.output, want[i]));
}

void expect_as_interpreted(const Kernel& kernel, const Columns& columns) {
  std::vector<std::uint64_t> want = interpreter_machine().run(kernel, columns);
  for (const auto& machine : compiled_machines()) expect_equal(*machine, kernel, columns, want);
}

void expect_in_every_form(Kernel kernel, const Columns& columns, const std::vector<std::uint64_t>& want) {
  const std::string name = kernel.name;
  for (const auto& [form, suffix] :
       {std::pair{Form::Tiles, "_tiles"}, {Form::Scalars, "_scalars"}, {Form::Constants, "_constants"}}) {
    kernel.form = form;
    kernel.name = name + suffix;
    expect_equal(interpreter_machine(), kernel, columns, want);
    for (const auto& machine : compiled_machines()) expect_equal(*machine, kernel, columns, want);
  }
}

}  // namespace kiln::test
