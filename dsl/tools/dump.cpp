// kiln dump: one kernel at one stage of its compilation, on stdout and nothing else there.
//
// The compiler writes artefacts where the environment asks for them (backend/pass/artefacts.h), so this sets the
// environment and lets the kernel be compiled for a simulator of the target: by the library's own function in this
// process, or by the program named. The compilation stops behind the PTX; no kernel of the library runs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "dsl/tools/kernel_choice.h"
#include "dsl/tools/verbs.h"
#include "runtime/base/error.h"
#include "runtime/device.h"

namespace kiln::tools {
namespace {

namespace fs = std::filesystem;

struct Options {
  KernelChoice choice;
  std::string stage = "ptx";
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// `kernel`: the one to stop behind; empty: the first.
void ask_for_artefacts(const Scratch& scratch, const KernelChoice& choice, const std::string& kernel) {
  set_environment(choice, {{"KILN_DUMP", "all"},
                           {"KILN_DUMP_DIR", scratch.path().string()},
                           {"KILN_STOP_AFTER", kernel.empty() ? "ptx" : "ptx@" + kernel},
                           {"KILN_OVERRIDE", ""},
                           {"KILN_TIME", "0"},
                           {"KILN_SIM_DEBUG", ""}});
}

/// Name of the kernel whose artefacts lie in `folder`: `kernel "softmax" stage=traced …`.
std::string kernel_of(const fs::path& folder) {
  const std::string text = read(folder / "00-traced.kir");
  const std::size_t begin = text.find('"'), end = text.find('"', begin + 1);
  return end == text.npos ? "" : text.substr(begin + 1, end - begin - 1);
}

/// The last artefact of a stage that differs from the one before.
std::optional<std::string> last_artefact(const fs::path& folder, const std::string& stage) {
  const std::string extension = stage == "tile" ? ".kir" : stage == "llvm" ? ".ll" : ".ptx";
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == extension) files.push_back(entry.path());
  std::sort(files.rbegin(), files.rend());
  for (const fs::path& file : files)
    if (std::string text = read(file); text != "(unchanged)\n") return text;
  return std::nullopt;
}

struct Found {
  std::optional<std::string> text;
  std::set<std::string> compiled;  ///< names of all kernels that were
};
Found find(const Scratch& scratch, const Options& options, bool any) {
  Found found;
  for (const auto& entry : fs::directory_iterator(scratch.path())) {
    const std::string name = kernel_of(entry.path());
    found.compiled.insert(name);
    if ((any || name == options.choice.kernel) && !found.text) found.text = last_artefact(entry.path(), options.stage);
  }
  return found;
}

std::string dump_library(const Options& options) {
  const LibraryKernel& kernel = library_kernel(options.choice);
  const Scratch scratch(options.choice);
  ask_for_artefacts(scratch, options.choice, "");
  try {
    kernel.call(Stream(Device::simulator(options.choice.target, 132, {})));
  } catch (const UserError&) {
    if (const auto text = find(scratch, options, true).text) return *text;
    throw;
  }
  throw InternalError(fmt::format("dump: {} was launched without being compiled", options.choice.kernel));
}

/// The stop usually ends the program.
std::string dump_program(const Options& options) {
  const KernelChoice& choice = options.choice;
  const Scratch scratch(choice);
  ask_for_artefacts(scratch, choice, choice.kernel);
  const int status = run_program(choice, [] { return false; });
  const Found found = find(scratch, options, false);
  if (found.text) return *found.text;
  throw UserError(fmt::format("dump: {} ended with status {} and did not compile '{}'; it compiled: {}", choice.program,
                              status, choice.kernel,
                              found.compiled.empty() ? "nothing" : fmt::format("{}", fmt::join(found.compiled, ", "))));
}

}  // namespace

void add_dump(CLI::App& app, int&) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("dump", "print a kernel's tile IR, LLVM IR or PTX");
  add_choice(*verb, options->choice);
  verb->add_option("--stage", options->stage, "tile: the tile IR behind the last pass; llvm; ptx")
      ->check(CLI::IsMember({"tile", "llvm", "ptx"}))
      ->capture_default_str();
  verb->callback([options] {
    fmt::print("{}", options->choice.program.empty() ? dump_library(*options) : dump_program(*options));
  });
}

}  // namespace kiln::tools
