// An entry is <dir>/<hash of key><suffix>: "KCE1", the key's length and text, then the bytes. All writing is "temporary
// file, rename", so a reader sees a whole entry or none; a rename over an equal entry is harmless. The modification
// time is the time of last use, from which the size bound chooses what goes.
#include "runtime/entry_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "runtime/base/env.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/log.h"

namespace kiln::rt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "KCE1", kTemporary = ".tmp-";
constexpr auto kStaleAfter = std::chrono::hours(1);  // a temporary file this old belongs to a process that died

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool open() const { return fd_ >= 0; }

  std::optional<std::string> read_all() const {
    struct stat st;
    if (::fstat(fd_, &st) != 0) return std::nullopt;
    std::string bytes(static_cast<std::size_t>(st.st_size), '\0');
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::read(fd_, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return std::nullopt;
      done += static_cast<std::size_t>(n);
    }
    return bytes;
  }
  bool write_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  /// Some file systems report a full disk only here.
  bool close() {
    const int fd = std::exchange(fd_, -1);
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

/// Sets the time of last use; a read-only folder keeps its order.
void touch(const std::string& path) { ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

void report_store_failure(const std::string& dir, const std::string& step, const std::string& why) {
  say_once(LogLevel::Info, "cache store " + dir,
           fmt::format("cache: nothing is kept in {}: {}: {} (set KILN_CACHE_DIR to another folder, or to 'off')", dir,
                       step, why));
}

struct Entry {
  fs::path path;
  std::uint64_t bytes;
  fs::file_time_type used;
};

/// Every entry of the folder with this suffix; stale temporary files are removed on the way.
std::vector<Entry> entries_of(const std::string& dir, const std::string& suffix) {
  std::vector<Entry> found;
  std::error_code ec;
  for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
    std::error_code gone;  // another process may remove a file between listing and looking
    const Entry e{it->path(), it->file_size(gone), it->last_write_time(gone)};
    if (gone) continue;
    const std::string file = e.path.filename().string();
    if (file.starts_with(kTemporary)) {
      if (fs::file_time_type::clock::now() - e.used > kStaleAfter) ::unlink(e.path.c_str());
    } else if (file.ends_with(suffix)) {
      found.push_back(e);
    }
  }
  return found;
}

/// Removes the least recently used entries until those of this suffix are within `max_bytes`.
void enforce_bound(const std::string& dir, const std::string& suffix, std::uint64_t max_bytes) {
  std::vector<Entry> entries = entries_of(dir, suffix);
  std::uint64_t total = 0;
  for (const Entry& e : entries) total += e.bytes;
  if (total <= max_bytes) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.used, a.path) < std::pair(b.used, b.path); });
  for (const Entry& e : entries) {
    if (total <= max_bytes) break;
    ::unlink(e.path.c_str());
    total -= e.bytes;
  }
}

std::string entry_bytes(const std::string& key, std::string_view value) {
  const std::uint64_t n = key.size();
  std::string bytes(kMagic);
  bytes.append(reinterpret_cast<const char*>(&n), sizeof n);
  return (bytes += key) += value;
}

/// Key and value of an entry; nothing when it has another version's format. Throws Error when corrupt.
std::optional<std::pair<std::string_view, std::string_view>> parts_of(std::string_view bytes, const std::string& path) {
  if (!bytes.starts_with(kMagic.substr(0, 3))) throw Error(path + ": not a cache entry");
  if (!bytes.starts_with(kMagic)) return std::nullopt;
  bytes.remove_prefix(kMagic.size());
  std::uint64_t n = 0;
  if (bytes.size() < sizeof n) throw Error(path + ": ends inside its header");
  std::memcpy(&n, bytes.data(), sizeof n);
  bytes.remove_prefix(sizeof n);
  if (n > bytes.size()) throw Error(fmt::format("{}: key of {} bytes, {} are left", path, n, bytes.size()));
  return std::pair(bytes.substr(0, n), bytes.substr(n));
}

/// The value of an entry; nothing when it holds another key or another version's format. Throws Error when corrupt.
std::optional<std::string> value_of(std::string_view bytes, const std::string& key, const std::string& path) {
  const auto parts = parts_of(bytes, path);
  if (!parts || parts->first != key) return std::nullopt;
  return std::string(parts->second);
}

std::string default_dir() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) return std::string(xdg) + "/kiln";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/kiln";
  return {};
}

}  // namespace

std::string stable_hash(const std::string& text) {
  const Hash128 h = hash128(text);
  return fmt::format("{:016x}{:016x}", h.low, h.high);
}

EntryStore::EntryStore(std::string dir, std::string suffix, std::uint64_t max_bytes)
    : dir_(std::move(dir)), suffix_(std::move(suffix)), max_bytes_(max_bytes) {}

EntryStore EntryStore::from_env(std::string suffix) {
  const std::string& dir = env::KILN_CACHE_DIR();
  const auto bytes = static_cast<std::uint64_t>(env::KILN_CACHE_BYTES());
  return EntryStore(dir == "off" ? std::string() : dir.empty() ? default_dir() : dir, std::move(suffix), bytes);
}

std::string EntryStore::path_of(const std::string& key) const { return dir_ + "/" + stable_hash(key) + suffix_; }

std::optional<std::string> EntryStore::find(const std::string& key) const {
  if (dir_.empty()) return std::nullopt;
  const std::string path = path_of(key);
  const File file(path, O_RDONLY);
  if (!file.open()) return std::nullopt;
  const auto bytes = file.read_all();
  if (!bytes) return std::nullopt;
  try {
    auto value = value_of(*bytes, key, path);
    if (value) touch(path);
    return value;
  } catch (const Error& e) {
    remove(key, e.what());
    return std::nullopt;
  }
}

std::vector<std::string> EntryStore::values() const {
  std::vector<std::string> out;
  if (dir_.empty()) return out;
  std::vector<Entry> entries = entries_of(dir_, suffix_);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& e : entries) try {
      const File file(e.path.string(), O_RDONLY);
      const auto bytes = file.open() ? file.read_all() : std::nullopt;
      if (!bytes) continue;
      if (const auto parts = parts_of(*bytes, e.path.string())) out.emplace_back(parts->second);
    } catch (const Error&) {  // find() names and removes it
    }
  return out;
}

void EntryStore::remove(const std::string& key, const std::string& why) const {
  say(LogLevel::Info, fmt::format("cache: removing a corrupt entry: {}", why));
  ::unlink(path_of(key).c_str());
}

void EntryStore::store(const std::string& key, std::string_view value) const {
  if (dir_.empty()) return;
  static std::atomic<unsigned> serial{0};  // threads of this process; processes differ by pid
  std::error_code ec;
  fs::create_directories(dir_, ec);
  if (ec) return report_store_failure(dir_, "making the folder", ec.message());

  const std::string temporary = fmt::format("{}/{}{}-{}", dir_, kTemporary, ::getpid(), serial.fetch_add(1));
  File file(temporary, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.open()) return report_store_failure(dir_, "opening a file", std::strerror(errno));
  const bool written = file.write_all(entry_bytes(key, value)) && file.close();
  if (!written || ::rename(temporary.c_str(), path_of(key).c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return report_store_failure(dir_, written ? "publishing an entry" : "writing an entry", std::strerror(error));
  }
  enforce_bound(dir_, suffix_, max_bytes_);
}

}  // namespace kiln::rt
