// NVIDIA's compiler, where it is installed: it makes the PTX that tests keep as data once more. Never needed.
#pragma once
#include "tests/support/ptxas.h"

namespace kiln::test {

inline std::optional<std::filesystem::path> nvcc() { return cuda_tool("nvcc"); }

/// The PTX of a CUDA C++ file, or what the compiler says.
struct Compilation {
  bool accepted = false;
  std::string ptx, log;
};
inline Compilation compile_cuda(const std::filesystem::path& tool, const std::filesystem::path& source,
                                const std::string& arch, const std::vector<std::string>& options = {}) {
  const TemporaryFolder folder;
  const auto out = folder.path() / "k.ptx";
  std::vector<std::string> command{tool.string(), "-std=c++17", "-ptx", "-arch=" + arch};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {source.string(), "-o", out.string()});
  const ProcessResult r = run_program(command);
  Compilation c{r.status == 0, {}, r.output};
  if (c.accepted) {
    std::ifstream in(out, std::ios::binary);
    c.ptx.assign(std::istreambuf_iterator<char>(in), {});
  }
  return c;
}

}  // namespace kiln::test
