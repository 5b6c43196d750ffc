// The program build/bin/kiln: everything the start script does not do itself.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "dsl/tools/verbs.h"

int main(int argc, char** argv) {
  CLI::App app("Kiln: tile kernels in C++");
  app.name("kiln");
  app.require_subcommand(0, 1);  // none is said below: CLI11 would hide a misspelt verb behind it
  int status = 0;
  kiln::tools::add_bench(app, status);
  kiln::tools::add_devices(app, status);
  kiln::tools::add_dump(app, status);
  kiln::tools::add_env(app, status);
  kiln::tools::add_explain(app, status);
  kiln::tools::add_fuzz(app, status);
  kiln::tools::add_version(app, status);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) throw CLI::RequiredError("a verb");
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kiln: %s\n", e.what());
    return 1;
  }
  return status;
}
