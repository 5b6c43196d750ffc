// Which kernel a verb looks at: one of the library at its default configuration, or one of a program. Either is
// compiled for a simulator of the target under variables of the environment that the verb sets, and does not run to its
// end.
#pragma once
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include "dsl/tools/library_kernels.h"

namespace CLI {
class App;
}

namespace kiln::tools {

struct KernelChoice {
  std::string verb, kernel, target = "sm_90a", program;
};

/// Adds the options KERNEL, --target and --program, and the list of kernels behind the help. `choice` outlives parsing.
void add_choice(CLI::App& verb, KernelChoice& choice);

/// A folder that is gone with this object.
class Scratch {
 public:
  explicit Scratch(const KernelChoice&);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Sets the variables, and the device to a simulator of the target, of this process and the programs that it starts.
/// Before anything reads the environment.
void set_environment(const KernelChoice&, std::initializer_list<std::pair<const char*, std::string>> variables);

/// Throws UserError that lists those there are when the library has no such kernel.
const LibraryKernel& library_kernel(const KernelChoice&);

/// Runs the program until it ends or, asked every few milliseconds, `enough` says so: then it is killed. What it prints
/// goes to stderr. Gives its exit status, 128 + signal where one ended it.
int run_program(const KernelChoice&, const std::function<bool()>& enough);

}  // namespace kiln::tools
