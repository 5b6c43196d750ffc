#include "runtime/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "runtime/base/env.h"
#include "tests/support/temporary_folder.h"

namespace kiln::rt {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::uint64_t kLarge = 1 << 30;

KernelImage image_named(const std::string& name, std::size_t ptx_bytes = 100) {
  KernelImage image;
  image.name = name;
  image.target = "sm_90a";
  image.ptx = std::string(ptx_bytes, 'p');
  image.candidates.emplace_back();
  return image;
}

class Cache : public ::testing::Test {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& e : fs::directory_iterator(dir_)) found.push_back(e.path().filename().string());
    return found;
  }
  std::string only_file() const {
    const auto found = files();
    EXPECT_EQ(found.size(), 1u);
    return dir_ + "/" + found.at(0);
  }

  const test::TemporaryFolder folder_;
  const std::string root_ = folder_.path().string(), dir_ = root_ + "/cache";
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

template <class F>
std::string stderr_of(F&& body) {
  ::testing::internal::CaptureStderr();
  body();
  return ::testing::internal::GetCapturedStderr();
}

TEST_F(Cache, FindsWhatWasStoredAndNothingElse) {
  const DiskCache cache(dir_, kLarge);
  EXPECT_FALSE(cache.find("key"));
  cache.store("key", image_named("k"));
  ASSERT_TRUE(cache.find("key"));
  EXPECT_EQ(cache.find("key")->name, "k");
  EXPECT_FALSE(cache.find("key2"));
  EXPECT_FALSE(cache.find(""));
}

TEST_F(Cache, LaterStoreOfAKeyWins) {
  const DiskCache cache(dir_, kLarge);
  cache.store("key", image_named("old"));
  cache.store("key", image_named("new"));
  EXPECT_EQ(cache.find("key")->name, "new");
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(Cache, GivesAllImagesByTheirLastUse) {
  const DiskCache cache(dir_, kLarge);
  EXPECT_TRUE(cache.images().empty());
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 4; ++i) {
    cache.store(std::to_string(i), image_named("k" + std::to_string(i)));
    fs::last_write_time(EntryStore(dir_, ".kimg", kLarge).path_of(std::to_string(i)), now - std::chrono::minutes(i));
  }
  std::ofstream(EntryStore(dir_, ".kimg", kLarge).path_of("2"), std::ios::trunc) << "no entry";
  fs::last_write_time(EntryStore(dir_, ".kimg", kLarge).path_of("2"), now - std::chrono::minutes(2));
  std::vector<std::string> names;
  for (const KernelImage& image : cache.images()) names.push_back(image.name);
  EXPECT_THAT(names, ::testing::ElementsAre("k3", "k1", "k0"));
  EXPECT_EQ(files().size(), 4u) << "a corrupt entry is find()'s to remove";
  EXPECT_TRUE(DiskCache({}, 0).images().empty());
}

TEST_F(Cache, SurvivesTheProcess) {
  if (const pid_t child = ::fork(); child == 0) {
    DiskCache(dir_, kLarge).store("key", image_named("from the child"));
    ::_exit(0);
  } else {
    int status = 0;
    ::waitpid(child, &status, 0);
  }
  ASSERT_TRUE(DiskCache(dir_, kLarge).find("key"));
}

TEST_F(Cache, EmptyDirMeansOff) {
  const DiskCache cache("", kLarge);
  cache.store("key", image_named("k"));
  EXPECT_FALSE(cache.find("key"));
}

TEST_F(Cache, EnvironmentChoosesTheFolder) {
  const auto dir_with = [](const char* name, const char* value) {
    ::setenv(name, value, 1);
    env::reload();
    const std::string dir = DiskCache::from_env().dir();
    ::unsetenv(name);
    env::reload();
    return dir;
  };
  const char* cache_dir = std::getenv("KILN_CACHE_DIR");
  const std::string before = cache_dir ? cache_dir : "";
  ::unsetenv("KILN_CACHE_DIR");
  EXPECT_EQ(dir_with("KILN_CACHE_DIR", "/some/where"), "/some/where");
  EXPECT_EQ(dir_with("KILN_CACHE_DIR", "off"), "");
  EXPECT_EQ(dir_with("XDG_CACHE_HOME", "/xdg"), "/xdg/kiln");
  if (cache_dir) ::setenv("KILN_CACHE_DIR", before.c_str(), 1);
  env::reload();
}

// Two keys with one hash cannot be made here, so the stored key is changed instead.
TEST_F(Cache, EntryOfAnotherKeyIsAMissAndStays) {
  const DiskCache cache(dir_, kLarge);
  cache.store("key A", image_named("k"));
  std::string bytes = read_file(only_file());
  bytes.replace(bytes.find("key A"), 5, "key B");
  write_file(only_file(), bytes);
  EXPECT_FALSE(cache.find("key A"));
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(Cache, EntryOfAnotherFormatVersionIsAMissAndStays) {
  const DiskCache cache(dir_, kLarge);
  cache.store("key", image_named("k"));
  std::string bytes = read_file(only_file());
  bytes[3] = '2';
  write_file(only_file(), bytes);
  EXPECT_FALSE(cache.find("key"));
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(Cache, EveryTruncatedEntryIsAMissAndIsReplaced) {
  const DiskCache cache(dir_, kLarge);
  cache.store("key", image_named("k"));
  const std::string path = only_file(), bytes = read_file(path);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    write_file(path, bytes.substr(0, n));
    const std::string log = stderr_of([&] { ASSERT_FALSE(cache.find("key")) << n; });
    if (n >= 4 + 8 + 3) {
      ASSERT_THAT(log, HasSubstr("corrupt entry")) << n;  // shorter ones may look like another key's or version's
      ASSERT_FALSE(fs::exists(path)) << n;
    }
  }
  cache.store("key", image_named("again"));
  EXPECT_EQ(cache.find("key")->name, "again");
}

TEST_F(Cache, DamagedEntryIsRemovedWithAWord) {
  const DiskCache cache(dir_, kLarge);
  cache.store("key", image_named("k"));
  std::string bytes = read_file(only_file());
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 1);
  write_file(only_file(), bytes);
  const std::string log = stderr_of([&] { EXPECT_FALSE(cache.find("key")); });
  EXPECT_THAT(log, HasSubstr("removing a corrupt entry"));
  EXPECT_THAT(log, HasSubstr(dir_));
  EXPECT_TRUE(files().empty());
}

TEST_F(Cache, UnusableFolderIsToldOnceAndIsNoError) {
  write_file(dir_, "a file where the folder should be");
  const DiskCache cache(dir_, kLarge);
  const std::string log = stderr_of([&] {
    cache.store("key", image_named("k"));
    cache.store("key", image_named("k"));
    EXPECT_FALSE(cache.find("key"));
  });
  EXPECT_THAT(log, HasSubstr(dir_));
  EXPECT_EQ(log.find("nothing is kept"), log.rfind("nothing is kept"));
}

TEST_F(Cache, ReadOnlyFolderStillServesHits) {
  DiskCache(dir_, kLarge).store("key", image_named("k"));
  constexpr uid_t kNobody = 65534;  // root may write everywhere, so a child gives that up
  if (::geteuid() == 0) {
    for (const std::string& path : {root_, only_file(), dir_}) ASSERT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
  }
  fs::permissions(dir_, fs::perms::owner_read | fs::perms::owner_exec);
  if (const pid_t child = ::fork(); child == 0) {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(2);
    const DiskCache cache(dir_, kLarge);
    const std::string log = stderr_of([&] { cache.store("other", image_named("o")); });
    const bool told = log.find("opening a file: Permission denied") != std::string::npos;
    ::_exit(told && cache.find("key") && !cache.find("other") ? 0 : 1);
  } else {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  fs::permissions(dir_, fs::perms::owner_all);
}

TEST_F(Cache, FullDiskIsToldAndLeavesNothingBehind) {
  // A file size limit stands in for a full disk: write() fails in the same place.
  if (const pid_t child = ::fork(); child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    DiskCache(dir_, kLarge).store("key", image_named("k", 100000));
    ::_exit(0);
  } else {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(files().empty());
  EXPECT_FALSE(DiskCache(dir_, kLarge).find("key"));
}

TEST_F(Cache, BoundRemovesTheLeastRecentlyUsed) {
  const DiskCache cache(dir_, 3500);
  const auto age = [&](const std::string& key, int minutes) {
    fs::last_write_time(dir_ + "/" + stable_hash(key) + ".kimg",
                        fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
  };
  for (const char* key : {"a", "b", "c"}) cache.store(key, image_named(key, 700));
  age("a", 30);
  age("b", 20);
  age("c", 10);
  EXPECT_TRUE(cache.find("a"));  // a use: now the youngest
  cache.store("d", image_named("d", 700));
  EXPECT_TRUE(cache.find("a"));
  EXPECT_FALSE(cache.find("b"));
  EXPECT_TRUE(cache.find("c"));
  EXPECT_TRUE(cache.find("d"));
}

TEST_F(Cache, StaleTemporaryFilesAreRemoved) {
  const DiskCache cache(dir_, kLarge);
  fs::create_directories(dir_);
  write_file(dir_ + "/.tmp-1-0", "of a process that died");
  write_file(dir_ + "/.tmp-2-0", "of a process at work");
  fs::last_write_time(dir_ + "/.tmp-1-0", fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache.store("key", image_named("k"));
  EXPECT_FALSE(fs::exists(dir_ + "/.tmp-1-0"));
  EXPECT_TRUE(fs::exists(dir_ + "/.tmp-2-0"));
}

/// Stores and reads 20 keys over and over; a found image must be whole and the right one.
bool hammer(const std::string& dir, std::uint64_t bound, bool expect_hits) {
  const DiskCache cache(dir, bound);
  for (int round = 0; round < 10; ++round)
    for (int k = 0; k < 20; ++k) {
      const std::string name = "kernel" + std::to_string(k);
      auto found = cache.find(name);
      if (!found) {
        cache.store(name, image_named(name, 5000));
        found = cache.find(name);
      }
      if (expect_hits && !found) return false;
      if (found && (found->name != name || found->ptx.size() != 5000)) return false;
    }
  return true;
}

TEST_F(Cache, EightProcessesOnAnEmptyFolderAllSucceed) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(hammer(dir_, kLarge, true) ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files().size(), 20u);  // no temporary file is left
}

TEST_F(Cache, ProcessesThatEvictEachOthersEntriesAllSucceed) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(hammer(dir_, 30000, false) ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(Cache, TwoThreadsShareOneCache) {
  bool ok[2] = {false, false};
  std::thread a([&] { ok[0] = hammer(dir_, kLarge, true); }), b([&] { ok[1] = hammer(dir_, kLarge, true); });
  a.join();
  b.join();
  EXPECT_TRUE(ok[0] && ok[1]);
  EXPECT_EQ(files().size(), 20u);
}

}  // namespace
}  // namespace kiln::rt
