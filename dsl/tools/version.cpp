// kiln version: the library's version and the compiler's, which is part of every disk-cache key.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "backend/compile.h"
#include "dsl/tools/verbs.h"
#include "dsl/version.h"

namespace kiln::tools {

void add_version(CLI::App& app, int&) {
  app.add_subcommand("version", "print the version of Kiln and of its compiler")->callback([] {
    fmt::print("kiln {}\ncompiler {}\n", version(), compiler_version());
  });
}

}  // namespace kiln::tools
