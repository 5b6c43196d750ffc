// Test data beside the program: build/bin/tests/data, wherever the build folder stands.
#pragma once
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::test {

inline std::filesystem::path data_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "data";
}

/// Contents of a file that must exist.
inline std::string read_file(const std::filesystem::path& p) {
  std::ifstream in(p, std::ios::binary);
  if (!in) throw std::runtime_error("missing test data: " + p.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Names of the kernels in PTX text.
inline std::vector<std::string> entries(const std::string& ptx) {
  std::vector<std::string> out;
  static const std::string kWord = ".entry ";
  for (std::size_t at = 0; (at = ptx.find(kWord, at)) != std::string::npos;) {
    at += kWord.size();
    out.push_back(ptx.substr(at, ptx.find('(', at) - at));
  }
  return out;
}

}  // namespace kiln::test
