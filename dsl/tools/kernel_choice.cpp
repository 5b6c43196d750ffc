#include "dsl/tools/kernel_choice.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "runtime/base/error.h"

namespace kiln::tools {
namespace {

std::string library_list() {
  std::string text = "Kernels of the library:\n";
  for (const LibraryKernel& k : library_kernels()) text += fmt::format("  {:<26} {}\n", k.name, k.what);
  return text;
}

[[noreturn]] void become(const KernelChoice& choice) {
  dup2(STDERR_FILENO, STDOUT_FILENO);
  execlp(choice.program.c_str(), choice.program.c_str(), static_cast<char*>(nullptr));
  std::fprintf(stderr, "kiln: %s: cannot run %s: %s\n", choice.verb.c_str(), choice.program.c_str(),
               std::strerror(errno));
  _exit(127);
}

}  // namespace

void add_choice(CLI::App& verb, KernelChoice& choice) {
  choice.verb = verb.get_name();
  verb.add_option("kernel", choice.kernel, "a kernel of the library, or of the program")->required();
  verb.add_option("--target", choice.target, "architecture to compile for")->capture_default_str();
  verb.add_option("--program", choice.program,
                  "take the kernel from this program, which runs on the simulator until it compiles it");
  verb.footer(library_list());
}

Scratch::Scratch(const KernelChoice& choice) {
  std::string name = (std::filesystem::temp_directory_path() / fmt::format("kiln-{}-XXXXXX", choice.verb)).string();
  if (!mkdtemp(name.data()))
    throw UserError(fmt::format("{}: cannot make {}: {}", choice.verb, name, std::strerror(errno)));
  path_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void set_environment(const KernelChoice& choice, std::initializer_list<std::pair<const char*, std::string>> variables) {
  ::setenv("KILN_DEVICE", ("sim:" + choice.target).c_str(), 1);
  for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
}

const LibraryKernel& library_kernel(const KernelChoice& choice) {
  const auto& all = library_kernels();
  const auto kernel =
      std::find_if(all.begin(), all.end(), [&](const LibraryKernel& k) { return choice.kernel == k.name; });
  if (kernel == all.end())
    throw UserError(fmt::format("{}: the library has no kernel '{}'\n{}", choice.verb, choice.kernel, library_list()));
  return *kernel;
}

int run_program(const KernelChoice& choice, const std::function<bool()>& enough) {
  constexpr auto kPause = std::chrono::milliseconds(5);
  const pid_t child = fork();
  if (child == 0) become(choice);
  int status = 0;
  pid_t ended = child < 0 ? -1 : 0;
  for (bool killed = false; ended == 0;) {
    if (!killed && enough()) killed = kill(child, SIGKILL) == 0;
    ended = waitpid(child, &status, killed ? 0 : WNOHANG);
    if (ended == 0) std::this_thread::sleep_for(kPause);
  }
  if (ended < 0)
    throw UserError(fmt::format("{}: cannot run {}: {}", choice.verb, choice.program, std::strerror(errno)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace kiln::tools
