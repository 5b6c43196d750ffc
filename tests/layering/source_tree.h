// The project's own source files and what they include, read from the source tree.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace kiln::test {

struct Include {
  std::string name;  ///< as written between the quotes or angle brackets
  bool quoted = false;
  int line = 0;
};

struct SourceFile {
  std::string path;  ///< from the repository root: "runtime/device.h"
  std::vector<std::string> lines;
  std::vector<Include> includes;

  bool is_header() const;
};

/// Every .h, .cpp and .def below runtime, backend, dsl, examples, bench and tests, sorted by path.
std::vector<SourceFile> read_sources(const std::string& root);

/// Every include reachable from `path` through quoted includes, with the file that names it.
std::map<std::string, std::string> include_closure(const std::vector<SourceFile>& sources, const std::string& path);

}  // namespace kiln::test
