// kiln_opt: reads a kernel's IR text, runs passes, prints IR text. Any dump or reproducer is an input.
//
//     kiln_opt k.kir --pass canonicalise,infer-facts      these passes, in this order
//     kiln_opt k.kir --until choose-exec                  the pipeline from where k.kir stands through that pass
//     kiln_opt k.kir --verify                             only check
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <sstream>

#include "backend/ir/text.h"
#include "backend/ir/verify.h"
#include "backend/pass/artefacts.h"
#include "backend/pass/pass.h"
#include "backend/pipeline.h"
#include "backend/target.h"
#include "runtime/base/env.h"
#include "runtime/base/error.h"

namespace kiln {
namespace {

struct Arguments {
  std::string input = "-", output = "-", until, arch = "sm_90a";
  std::vector<std::string> passes;
  bool verify_only = false, locations = true;
  CompileOptions options;
};

std::string read(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError(fmt::format("cannot read {}", path));
  text << in.rdbuf();
  return text.str();
}

void write(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::cout << text;
    return;
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) throw UserError(fmt::format("cannot write {}", path));
}

ir::Pass known_pass(const std::string& flag) {
  if (const auto p = ir::pass_named(flag)) return *p;
  std::string known;
  for (const ir::PassInfo& p : ir::all_passes()) known += fmt::format("{}{}", known.empty() ? "" : ", ", p.flag);
  throw UserError(fmt::format("no pass is called '{}'; known are {}", flag, known));
}

/// The passes asked for. --until leaves out those that the function is already beyond.
std::vector<ir::Pass> chosen(const Arguments& a, ir::Stage stage) {
  std::vector<ir::Pass> passes;
  for (const std::string& flag : a.passes) passes.push_back(known_pass(flag));
  if (a.until.empty()) return passes;
  const ir::Pass last = known_pass(a.until);
  for (ir::Pass p : pipeline()) {
    if (info(p).from >= stage || info(p).to > stage) passes.push_back(p);
    if (p == last) break;
  }
  return passes;
}

int run(const Arguments& a) {
  ir::Function f = ir::parse(read(a.input), a.input == "-" ? "<stdin>" : a.input);
  if (const auto violations = verify(f); !violations.empty()) {
    std::cerr << format(f, violations);
    return 1;
  }
  if (a.verify_only) return 0;
  const Target target = target_named(a.arch);
  ir::Artefacts artefacts(f, target, a.options);
  ir::PassRunner runner(target, a.options, nullptr, artefacts, int(env::KILN_VERIFY()));
  for (ir::Pass p : chosen(a, f.stage)) runner.run(p, f);
  write(a.output, print(f, {.locations = a.locations}));
  return 0;
}

std::string pass_table() {
  std::string text = "passes:\n";
  for (const ir::PassInfo& p : ir::all_passes())
    text += fmt::format("  {:<16} {} -> {}: {}\n", p.flag, name(p.from), name(p.to), p.doc);
  return text;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("runs Kiln's passes on IR text");
  kiln::Arguments a;
  app.add_option("input", a.input, "a .kir file; - is standard input")->capture_default_str();
  app.add_option("-o,--output", a.output, "where the result goes; - is standard output")->capture_default_str();
  auto* pass = app.add_option("--pass", a.passes, "passes to run, separated by commas")->delimiter(',');
  app.add_option("--until", a.until, "run the pipeline through this pass")->excludes(pass);
  app.add_flag("--verify", a.verify_only, "check the input and print nothing");
  app.add_flag("!--no-locations", a.locations, "leave locations out of the result");
  app.add_option("--target", a.arch, "architecture compiled for")->capture_default_str();
  app.add_option("--num-warps", a.options.num_warps, "0: chosen");
  app.add_option("--cluster", a.options.cluster, "0: chosen");
  app.add_option("--max-registers", a.options.max_registers, "0: chosen");
  app.add_option("--stages", a.options.stages, "slots of rings; 0: chosen");
  app.footer(kiln::pass_table());
  CLI11_PARSE(app, argc, argv);
  try {
    return kiln::run(a);
  } catch (const kiln::Error& e) {
    std::cerr << "kiln_opt: " << e.what() << "\n";
    return 1;
  }
}
