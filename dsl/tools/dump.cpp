// kiln dump: one kernel at one stage of its compilation, on stdout and nothing else there.
//
// The compiler writes artefacts where the environment asks for them (backend/pass/artefacts.h), so this sets the
// environment and lets the kernel be compiled for a simulator of the target: by the library's own function in this
// process, or by the program named. The compilation stops behind the PTX; no kernel of the library runs.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "dsl/tools/library_kernels.h"
#include "dsl/tools/verbs.h"
#include "runtime/base/error.h"
#include "runtime/device.h"

namespace kiln::tools {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string kernel, target = "sm_90a", stage = "ptx", program;
};

/// A folder that is gone with this object.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "kiln-dump-XXXXXX").string();
    if (!mkdtemp(name.data())) throw UserError(fmt::format("dump: cannot make {}: {}", name, std::strerror(errno)));
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Before anything reads the environment of this process. `kernel`: the one to stop behind; empty: the first.
void ask_for_artefacts(const Scratch& scratch, const std::string& target, const std::string& kernel) {
  const std::pair<const char*, std::string> variables[] = {
      {"KILN_DEVICE", "sim:" + target},
      {"KILN_DUMP", "all"},
      {"KILN_DUMP_DIR", scratch.path().string()},
      {"KILN_STOP_AFTER", kernel.empty() ? "ptx" : "ptx@" + kernel},
      {"KILN_OVERRIDE", ""},
      {"KILN_TIME", "0"},
      {"KILN_SIM_DEBUG", ""},
  };
  for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
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
    if ((any || name == options.kernel) && !found.text) found.text = last_artefact(entry.path(), options.stage);
  }
  return found;
}

std::string library_list() {
  std::string text = "Kernels of the library:\n";
  for (const LibraryKernel& k : library_kernels()) text += fmt::format("  {:<26} {}\n", k.name, k.what);
  return text;
}

std::string dump_library(const Options& options) {
  const auto& all = library_kernels();
  const auto kernel =
      std::find_if(all.begin(), all.end(), [&](const LibraryKernel& k) { return options.kernel == k.name; });
  if (kernel == all.end())
    throw UserError(fmt::format("dump: the library has no kernel '{}'\n{}", options.kernel, library_list()));
  const Scratch scratch;
  ask_for_artefacts(scratch, options.target, "");
  try {
    kernel->call(Stream(Device::simulator(options.target, 132, {})));
  } catch (const UserError&) {
    if (const auto text = find(scratch, options, true).text) return *text;
    throw;
  }
  throw InternalError(fmt::format("dump: {} was launched without being compiled", options.kernel));
}

/// Runs the program to its end, which the stop usually is; what it prints goes to stderr. Its exit status.
int run(const std::string& program) {
  const pid_t child = fork();
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execlp(program.c_str(), program.c_str(), static_cast<char*>(nullptr));
    std::fprintf(stderr, "kiln: dump: cannot run %s: %s\n", program.c_str(), std::strerror(errno));
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0)
    throw UserError(fmt::format("dump: cannot run {}: {}", program, std::strerror(errno)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string dump_program(const Options& options) {
  const Scratch scratch;
  ask_for_artefacts(scratch, options.target, options.kernel);
  const int status = run(options.program);
  const Found found = find(scratch, options, false);
  if (found.text) return *found.text;
  throw UserError(fmt::format("dump: {} ended with status {} and did not compile '{}'; it compiled: {}",
                              options.program, status, options.kernel,
                              found.compiled.empty() ? "nothing" : fmt::format("{}", fmt::join(found.compiled, ", "))));
}

}  // namespace

void add_dump(CLI::App& app, int&) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("dump", "print a kernel's tile IR, LLVM IR or PTX");
  verb->add_option("kernel", options->kernel, "a kernel of the library, or of the program")->required();
  verb->add_option("--target", options->target, "architecture to compile for")->capture_default_str();
  verb->add_option("--stage", options->stage, "tile: the tile IR behind the last pass; llvm; ptx")
      ->check(CLI::IsMember({"tile", "llvm", "ptx"}))
      ->capture_default_str();
  verb->add_option("--program", options->program,
                   "take the kernel from this program, which runs on the simulator until it compiles it");
  verb->footer(library_list());
  verb->callback(
      [options] { fmt::print("{}", options->program.empty() ? dump_library(*options) : dump_program(*options)); });
}

}  // namespace kiln::tools
