#include "runtime/base/file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

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
