#include "runtime/profile/source.h"

#include "runtime/base/file.h"

namespace kiln::rt {
namespace {

std::optional<std::vector<std::string>> read_lines(const std::string& file) {
  const auto text = read_source(file);
  return text ? std::optional(split_lines(*text)) : std::nullopt;
}

}  // namespace

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    if (!out.back().empty() && out.back().back() == '\r') out.back().pop_back();
    at = end + 1;
  }
  return out;
}

const std::vector<std::string>* SourceFiles::lines(const std::string& file) {
  auto known = files_.find(file);
  if (known == files_.end()) known = files_.emplace(file, read_lines(file)).first;
  return known->second ? &*known->second : nullptr;
}

const std::string* SourceFiles::line(const std::string& file, std::uint32_t n) {
  const std::vector<std::string>* all = lines(file);
  return all && n >= 1 && n <= all->size() ? &(*all)[n - 1] : nullptr;
}

}  // namespace kiln::rt
