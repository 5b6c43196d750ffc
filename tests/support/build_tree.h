// Where a test program finds the rest of the build, wherever the build folder was moved to.
#pragma once
#include <filesystem>
#include <optional>

namespace kiln::test {

/// build/bin/tests, the folder of the running program.
inline std::filesystem::path program_dir() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }
inline std::filesystem::path bin_dir() { return program_dir().parent_path(); }
inline std::filesystem::path lib_dir() { return bin_dir().parent_path() / "lib"; }

#ifdef KILN_SOURCE_HINT
/// The source tree this build was made from, found relative to the program; nothing when it was moved away from it.
inline std::optional<std::filesystem::path> source_dir() {
  const auto dir = (program_dir() / KILN_SOURCE_HINT).lexically_normal();
  if (!std::filesystem::exists(dir / "runtime" / "device.h")) return std::nullopt;
  return dir;
}
#endif

}  // namespace kiln::test
