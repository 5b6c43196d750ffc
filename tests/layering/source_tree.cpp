#include "tests/layering/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

namespace kiln::test {
namespace fs = std::filesystem;

bool SourceFile::is_header() const { return path.ends_with(".h"); }

static SourceFile read_source(const fs::path& root, const fs::path& file) {
  static const std::regex include(R"(^\s*#\s*include\s+(["<])([^">]+)[">].*)");
  SourceFile source{.path = file.lexically_relative(root).generic_string(), .lines = {}, .includes = {}};
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    source.lines.push_back(line);
    std::smatch m;
    if (line.find("#") != line.npos && std::regex_match(line, m, include))
      source.includes.push_back({m[2], m[1] == "\"", static_cast<int>(source.lines.size())});
  }
  return source;
}

std::vector<SourceFile> read_sources(const std::string& root) {
  std::vector<SourceFile> out;
  for (const char* top : {"runtime", "backend", "dsl", "examples", "bench", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / top)) {
      const auto ext = entry.path().extension();
      if (ext == ".h" || ext == ".cpp" || ext == ".def") out.push_back(read_source(root, entry.path()));
    }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return out;
}

std::map<std::string, std::string> include_closure(const std::vector<SourceFile>& sources, const std::string& path) {
  std::map<std::string, std::string> reached;
  std::vector<std::string> open{path};
  while (!open.empty()) {
    const std::string at = open.back();
    open.pop_back();
    for (const SourceFile& s : sources)
      if (s.path == at)
        for (const Include& i : s.includes)
          if (reached.emplace(i.name, at).second && i.quoted) open.push_back(i.name);
  }
  return reached;
}

}  // namespace kiln::test
