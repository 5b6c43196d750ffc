#include "runtime/base/file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

#include "runtime/base/error.h"

namespace kiln::rt {

namespace fs = std::filesystem;

std::string read_whole(const fs::path& path, std::size_t most) {
  std::error_code e;
  const fs::file_status status = fs::status(path, e);
  if (!fs::exists(status)) throw UserError(fmt::format("{}: no such file", path.string()));
  if (!fs::is_regular_file(status)) throw UserError(fmt::format("{}: not a file", path.string()));
  const std::uintmax_t size = fs::file_size(path, e);
  if (!e && size > most)
    throw UserError(fmt::format("{}: has {} bytes; must be at most {}", path.string(), size, most));
  std::ifstream in(path, std::ios::binary);
  std::string out(e ? 0 : size, '\0');
  if (!in || e || !in.read(out.data(), static_cast<std::streamsize>(size)))
    throw UserError(fmt::format("{}: cannot read it", path.string()));
  return out;
}

std::optional<std::string> read_source(const std::string& name) {
  constexpr std::size_t kMostBytes = std::size_t{8} << 20;
  std::error_code e;
  std::vector<fs::path> folders{fs::path()};
  if (fs::path(name).is_relative())
    for (fs::path at = fs::read_symlink("/proc/self/exe", e).parent_path(); at.has_relative_path();
         at = at.parent_path())
      folders.push_back(at);
  for (const fs::path& folder : folders) {
    if (!fs::is_regular_file(folder / name, e)) continue;
    try {
      std::string text = read_whole(folder / name, kMostBytes);
      if (text.find('\0') == text.npos) return text;
    } catch (const UserError&) {
      // as if it were not there
    }
  }
  return std::nullopt;
}

void write_whole(const fs::path& path, std::string_view contents) {
  static std::atomic<unsigned> number{0};
  fs::path temporary = path;
  temporary += fmt::format(".tmp-{}-{}", ::getpid(), number++);
  std::ofstream out(temporary, std::ios::binary);
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  out.close();
  std::error_code e;
  if (out) fs::rename(temporary, path, e);
  if (out && !e) return;
  const std::string why = e ? e.message() : std::strerror(errno);
  fs::remove(temporary, e);
  throw UserError(fmt::format("{}: cannot write it: {}", path.string(), why));
}

}  // namespace kiln::rt
