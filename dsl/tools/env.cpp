// kiln env: the environment variables Kiln reads, their defaults, and those that are set.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "dsl/tools/verbs.h"
#include "runtime/base/env.h"

namespace kiln::tools {

static void show() {
  fmt::print("{}", env::help());
#define KILN_ENV(NAME, type, fallback, doc) \
  if (const char* value = std::getenv(#NAME)) fmt::print("set now: {}={}\n", #NAME, value);
#include "runtime/base/env.def"
}

void add_env(CLI::App& app, int&) {
  app.add_subcommand("env", "print the environment variables Kiln reads")->callback(show);
}

}  // namespace kiln::tools
