// The verbs of the program `kiln`, one file each. A verb adds its subcommand to the application; when it was chosen, its
// callback runs after parsing and returns through `status` what the program exits with.
#pragma once

namespace CLI {
class App;
}

namespace kiln::tools {

void add_bench(CLI::App& app, int& status);
void add_devices(CLI::App& app, int& status);
void add_dump(CLI::App& app, int& status);
void add_env(CLI::App& app, int& status);
void add_explain(CLI::App& app, int& status);
void add_fuzz(CLI::App& app, int& status);
void add_version(CLI::App& app, int& status);

}  // namespace kiln::tools
