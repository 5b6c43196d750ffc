// Values under keys in a folder: safe with many processes, a full or read-only disk, corrupt entries.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::rt {

/// 128-bit hash of `text` in 32 hexadecimal digits; stable over versions and machines.
std::string stable_hash(const std::string& text);

/// One file an entry, all with one suffix; several kinds of entries share a folder.
class EntryStore {
 public:
  /// `dir` empty: nothing is kept. The folder is made on the first store. `max_bytes`: of the entries of this suffix.
  EntryStore(std::string dir, std::string suffix, std::uint64_t max_bytes);
  /// In the folder, and within the bound, that KILN_CACHE_DIR and KILN_CACHE_BYTES describe.
  static EntryStore from_env(std::string suffix);

  /// The value stored under `key` (any text; it is hashed, and compared in full with the stored one). A corrupt entry
  /// is a miss and is removed.
  std::optional<std::string> find(const std::string& key) const;
  /// Publishes atomically (temporary file in the same folder, then rename). Failure is logged once and is no error.
  void store(const std::string& key, std::string_view value) const;
  /// All values, the one used longest ago first. Corrupt entries are left out.
  std::vector<std::string> values() const;
  /// Removes an entry whose value its reader cannot use, and says why in the log.
  void remove(const std::string& key, const std::string& why) const;

  const std::string& dir() const { return dir_; }
  std::string path_of(const std::string& key) const;

 private:
  std::string dir_, suffix_;
  std::uint64_t max_bytes_;
};

}  // namespace kiln::rt
