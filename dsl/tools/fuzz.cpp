// kiln fuzz: random programs on the interpreter, the simulator and the GPUs found, compared bit for bit where the
// language promises it. The last line of the output is JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "dsl/tools/fuzz/campaign.h"
#include "dsl/tools/verbs.h"
#include "runtime/base/error.h"

namespace kiln::tools {
namespace {

struct Options {
  fuzz::Campaign campaign;
  std::string plant, program, out = "kiln-dump";
};

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw UserError(fmt::format("fuzz: cannot read {}", path));
  return text.str();
}

void report(const fuzz::Failure& f, const Options& options) {
  std::filesystem::create_directories(options.out);
  const auto path = std::filesystem::path(options.out) / fmt::format("fuzz-{}.kir", f.program.seed);
  std::ofstream file(path, std::ios::binary);
  file << f.program.text();
  file.close();
  if (!file) throw UserError(fmt::format("fuzz: cannot write {}", path.string()));
  fmt::print("seed {} differs on {}:\n{}{}\nagain: kiln fuzz --program {}{}\n", f.program.seed, f.device, f.difference,
             f.program.text(), path.string(), options.plant.empty() ? "" : " --plant " + options.plant);
}

int run(Options& options) {
  fuzz::Campaign& c = options.campaign;
  if (!options.plant.empty()) {
    c.planted = ir::op_named(options.plant);
    if (!c.planted) throw UserError(fmt::format("fuzz: no operation is called '{}'", options.plant));
  }
  if (options.program.empty()) c.run();
  else c.run_one(fuzz::parse(read(options.program), options.program));
  if (c.failure) report(*c.failure, options);
  fmt::print("{}\n", c.json());
  return c.failure ? 1 : 0;
}

}  // namespace

void add_fuzz(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("fuzz", "compare random programs on interpreter, simulator and GPU");
  verb->add_option("--count", options->campaign.count, "programs to run")->capture_default_str();
  verb->add_option("--seed", options->campaign.first, "seed of the first; the next ones count up")
      ->capture_default_str();
  verb->add_option("--seconds", options->campaign.seconds, "stop after this time");
  verb->add_option("--plant", options->plant, "break this operation in the interpreter: the difference must be found");
  verb->add_option("--program", options->program, "run this program (as written after a difference) instead");
  verb->add_option("--out", options->out, "folder for the program that shows a difference")->capture_default_str();
  verb->add_flag("--show", options->campaign.show, "print every program before it runs");
  verb->callback([options, &status] { status = run(*options); });
}

}  // namespace kiln::tools
