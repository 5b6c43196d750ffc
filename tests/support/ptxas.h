// NVIDIA's assembler, where it is installed: a second opinion on the PTX that Kiln emits. Never needed.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace kiln::test {

/// A program of CUDA's toolkit, on PATH or in the usual folder.
inline std::optional<std::filesystem::path> cuda_tool(const std::string& name) {
  std::vector<std::filesystem::path> folders;
  if (const char* path = std::getenv("PATH"))
    for (std::string rest = path; !rest.empty();) {
      const auto colon = std::min(rest.find(':'), rest.size());
      folders.emplace_back(rest.substr(0, colon));
      rest.erase(0, colon + 1);
    }
  folders.emplace_back("/usr/local/cuda/bin");
  for (const auto& folder : folders)
    if (std::filesystem::exists(folder / name)) return folder / name;
  return std::nullopt;
}
inline std::optional<std::filesystem::path> ptxas() { return cuda_tool("ptxas"); }

struct Assembly {
  bool accepted = false;
  std::string log;  ///< with -v: registers, spills, warnings
};

inline Assembly assemble(const std::filesystem::path& tool, const std::string& ptx, const std::string& arch) {
  const TemporaryFolder folder;
  const auto in = folder.path() / "k.ptx";
  std::ofstream(in) << ptx;
  const ProcessResult r =
      run_program({tool.string(), "-v", "-arch=" + arch, in.string(), "-o", (folder.path() / "k.cubin").string()});
  return {r.status == 0, r.output};
}

}  // namespace kiln::test
