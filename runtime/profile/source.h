// Lines of the user's program, where its files are at hand.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln::rt {

/// Reads each file once.
class SourceFiles {
 public:
  /// Lines of a file, or null: it cannot be read, or is no text of a reasonable size.
  const std::vector<std::string>* lines(const std::string& file);
  /// Line `n`, counted from 1, without its end; null where there is none.
  const std::string* line(const std::string& file, std::uint32_t n);

 private:
  std::map<std::string, std::optional<std::vector<std::string>>> files_;
};

/// Text cut at line ends.
std::vector<std::string> split_lines(const std::string& text);

}  // namespace kiln::rt
