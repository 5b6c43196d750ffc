// kiln-sim: runs a kernel given as PTX text on the simulator, compares what it computes and says what it did wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/env.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/tools/diagnostics.h"
#include "runtime/tools/sim_print.h"

namespace kiln::rt::tools {
namespace {

constexpr const char* kAbout = R"(Runs a kernel given as PTX text on Kiln's simulator.

  kiln-sim --case DIR/sm_90.json            the PTX and buffers beside that file; compares every buffer
  kiln-sim --ptx k.ptx --args a.json --grid 4 --block 128 --print 8
  kiln-sim --ptx k.ptx --list               the entries of a file)";

constexpr const char* kFooter =
    R"(Exit status: 0 every output matches (or there is none to compare with), 1 an output differs, 2 the kernel
did something wrong (a race, an access out of bounds, …), 3 the command or a file cannot be used.
The format of JSON files, of profiles and of --json is described in docs/simulator.md.)";

struct Options {
  std::string case_file, ptx, entry, args, target, out, check, schedule, debug;
  std::vector<std::uint32_t> grid, block, cluster;
  std::uint32_t shared = 0;
  std::size_t print = 0;
  std::int64_t steps = -1, threads = -1;
  std::vector<std::string> profiles;
  std::string by;
  bool json = false, list = false;
};

struct Knob {
  CLI::Option* option;
  const char* variable;
};

std::array<std::uint32_t, 3> triple(const std::vector<std::uint32_t>& v) {
  std::array<std::uint32_t, 3> out{1, 1, 1};
  std::copy(v.begin(), v.end(), out.begin());
  return out;
}

CaseOptions case_options(const Options& o, const CLI::App& app) {
  CaseOptions c;
  if (!o.ptx.empty()) c.ptx = o.ptx;
  if (!o.entry.empty()) c.entry = o.entry;
  if (!o.target.empty()) c.target = o.target;
  if (!o.grid.empty()) c.grid = triple(o.grid);
  if (!o.block.empty()) c.block = triple(o.block);
  if (!o.cluster.empty()) c.cluster = triple(o.cluster);
  if (app.count("--smem")) c.shared_bytes = o.shared;
  return c;
}

Case case_of(const Options& o, const CLI::App& app) {
  const CaseOptions options = case_options(o, app);
  if (!o.case_file.empty()) return read_case(o.case_file, options);
  if (o.ptx.empty()) throw UserError("--case FILE or --ptx FILE is needed");
  return o.args.empty() ? bare_case(options) : read_case(o.args, options);
}

/// What the options name must be writable before the kernel runs, and of a form that is known.
void check_outputs(const Options& o) {
  for (const std::string& file : o.profiles) {
    const std::string kind = std::filesystem::path(file).extension().string();
    if (kind != ".json" && kind != ".html" && kind != ".txt")
      throw UserError(
          fmt::format("--profile {}: a profile's name must end in .json, .html or .txt, not '{}'", file, kind));
  }
  if (o.out.empty()) return;
  std::error_code e;
  std::filesystem::create_directories(o.out, e);
  if (e) throw UserError(fmt::format("--out {}: cannot make the folder: {}", o.out, e.message()));
}

void write_buffers(const Outcome& outcome, const std::filesystem::path& folder) {
  for (const Result& r : outcome.results)
    write_whole(folder / (r.argument->name + ".out"), {reinterpret_cast<const char*>(r.after.data()), r.after.size()});
}

ProfileBy rows_of(const std::string& by) {
  return by == "kernel" ? ProfileBy::Kernel : by == "ptx" ? ProfileBy::Ptx : ProfileBy::Line;
}

int run(const Options& o, const CLI::App& app) {
  if (o.list) {
    if (o.ptx.empty()) throw UserError("--list needs --ptx FILE");
    fmt::print("{}", describe_entries(o.ptx));
    return 0;
  }
  check_outputs(o);
  const Case c = case_of(o, app);
  const Outcome outcome = run_case(c);
  if (!o.out.empty()) write_buffers(outcome, o.out);
  for (const std::string& file : o.profiles) write_profile(outcome.profile, file);
  fmt::print(stderr, "{}", diagnostics(outcome.findings, c.ptx_file));
  if (!outcome.error.empty()) fmt::print(stderr, "kiln-sim: {}\n", outcome.error);
  fmt::print("{}", o.json ? outcome_json(c, outcome) : outcome_text(c, outcome, o.print));
  if (!o.by.empty() && !o.json) fmt::print("\n{}", to_table(outcome.profile, rows_of(o.by)));
  return static_cast<int>(verdict(outcome));
}

/// Digits alone; `least`: 0 or 1.
CLI::Validator whole_number(int least) {
  const auto check = [least](const std::string& text) -> std::string {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (digits && (least == 0 || text.find_first_not_of('0') != std::string::npos)) return {};
    return fmt::format("'{}' is no whole number of {} or more", text, least);
  };
  return {check, "NUMBER"};
}

std::vector<Knob> declare(CLI::App& app, Options& o) {
  const auto triple_option = [&](const char* name, std::vector<std::uint32_t>& v, const char* what) {
    app.add_option(name, v, what)->delimiter(',')->expected(1, 3)->check(whole_number(1));
  };
  auto* file = app.add_option("--case", o.case_file, "a JSON file with its PTX and buffers beside it");
  auto* ptx = app.add_option("--ptx", o.ptx, "PTX text; instead of that beside the case");
  app.add_option("--args", o.args, "JSON file with the arguments")->needs(ptx)->excludes(file);
  app.add_option("--entry", o.entry, "the kernel, where the PTX has several");
  triple_option("--grid", o.grid, "blocks along x, y, z: 4 or 4,2,1");
  triple_option("--block", o.block, "threads of a block along x, y, z");
  triple_option("--cluster", o.cluster, "blocks of a cluster along x, y, z");
  app.add_option("--smem", o.shared, "bytes of dynamic shared memory")->check(whole_number(0));
  app.add_option("--target", o.target, "the GPU modelled; otherwise the PTX's own");
  app.add_flag("--list", o.list, "print the entries of the PTX and stop");
  app.add_option("--print", o.print, "print so many elements of each buffer")->check(whole_number(0));
  app.add_option("--out", o.out, "write each buffer to NAME.out in this folder, whatever the verdict");
  app.add_option("--profile", o.profiles, "write what the kernel did to a .html, .json or .txt file");
  app.add_option("--by", o.by, "print what the kernel did: a row for each line, ptx instruction or kernel")
      ->check(CLI::IsMember({"line", "ptx", "kernel"}));
  app.add_flag("--json", o.json, "print verdict, findings and counters as JSON");
  return {
      {app.add_option("--check", o.check, "checks: all, none, or races, uninit, registers, separated by commas"),
       "KILN_SIM_CHECK"},
      {app.add_option("--schedule", o.schedule, "asynchronous operations: late, early or random:SEED"),
       "KILN_SIM_SCHEDULE"},
      {app.add_option("--steps", o.steps, "instructions a warp may execute")->check(whole_number(1)), "KILN_SIM_STEPS"},
      {app.add_option("--threads", o.threads, "host threads; 0: one a core")->check(whole_number(0)),
       "KILN_SIM_THREADS"},
      {app.add_flag("--debug{1}", o.debug, "stop at the first instruction, with the debugger on the terminal"),
       "KILN_SIM_DEBUG"},
  };
}

/// Options of the simulator that are environment variables, too: the option goes first.
void set_knobs(const std::vector<Knob>& knobs) {
  for (const Knob& k : knobs)
    if (k.option->count()) setenv(k.variable, k.option->results().back().c_str(), 1);
  env::reload();
}

int main_of(int argc, char** argv) {
  CLI::App app(kAbout, "kiln-sim");
  app.footer(kFooter);
  Options o;
  const std::vector<Knob> knobs = declare(app, o);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(Verdict::BadInput);
  }
  try {
    set_knobs(knobs);
    return run(o, app);
  } catch (const Error& e) {
    fmt::print(stderr, "kiln-sim: {}\n", e.what());
  } catch (const std::exception& e) {
    fmt::print(stderr, "kiln-sim: {}\n", e.what());
  }
  return static_cast<int>(Verdict::BadInput);
}

}  // namespace
}  // namespace kiln::rt::tools

int main(int argc, char** argv) { return kiln::rt::tools::main_of(argc, argv); }
