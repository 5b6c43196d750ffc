// Runs passes on IR text, with every check of the runner on, and gives the text back.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "backend/ir/text.h"
#include "backend/pass/artefacts.h"
#include "backend/pass/pass.h"
#include "tests/support/check_ir.h"

namespace kiln::test {

/// `text` after `passes`, without locations. Verified after each, with the interpreter's result compared.
inline std::string after(std::initializer_list<ir::Pass> passes, const std::string& text,
                         const CompileOptions& options = {}) {
  ir::Function f = ir::parse(text, "test.kir");
  const Target target;
  ir::Artefacts artefacts(f, target, options);
  ir::PassRunner runner(target, options, nullptr, artefacts, 3);
  for (ir::Pass p : passes) runner.run(p, f);
  return ir::print(f, {.locations = false});
}

/// `body` as a kernel at stage traced.
inline std::string kernel(const std::string& params, const std::string& body) {
  return "kernel \"k\" stage=traced\n" + params + "{\n" + body + "\n}\n";
}

}  // namespace kiln::test

/// The passes turn `text` into what its own CHECK lines say.
#define EXPECT_PASS(text, ...) EXPECT_IR(::kiln::test::after({__VA_ARGS__}, text), text)
