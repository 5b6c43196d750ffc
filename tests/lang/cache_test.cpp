// The disk cache behind a launch: what shares an entry and what does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "dsl/kiln.h"
#include "runtime/base/env.h"
#include "tests/support/devices.h"

namespace kiln::test {
namespace {

auto add_constant(float k) {
  return kernel("add_constant", [k](Out<float> c, Const<int> B) { store(c + arange(B), k); });
}

class LangCache : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(testing::TempDir()) / ("kiln-lang-cache-" + std::to_string(getpid()));
    std::filesystem::remove_all(dir_);
    set(dir_.c_str());
  }
  void TearDown() override {
    set("off");
    std::filesystem::remove_all(dir_);
  }
  static void set(const char* dir) {
    setenv("KILN_CACHE_DIR", dir, 1);
    env::reload();
  }
  int entries() const {
    int n = 0;
    if (std::filesystem::exists(dir_))
      for (const auto& e : std::filesystem::recursive_directory_iterator(dir_)) n += e.path().extension() == ".kimg";
    return n;
  }
  std::filesystem::path dir_;
};

TEST_F(LangCache, EqualCodeSharesAnEntryWhateverTheObject) {
  const Device d = Device::simulator();
  Buffer<float> c(d, 8);
  for (int i = 0; i < 3; ++i) {
    auto k = add_constant(1.5f);
    k.launch(Stream(d), 1, c, 8);
    EXPECT_EQ(c.to_vector(), std::vector<float>(8, 1.5f));
    EXPECT_EQ(entries(), 1);
  }
}

TEST_F(LangCache, EverythingThatChangesCodeIsInTheKey) {
  const Device d = Device::simulator();
  Buffer<float> c(d, 8);
  auto launch = [&](const Device& on, float captured, int block, const CompileOptions& o) {
    Buffer<float> out(on, 8);
    const auto k = add_constant(captured);
    k.with(o).launch(Stream(on), 1, out, block);
    EXPECT_EQ(out.to_vector()[0], captured);
    return entries();
  };
  EXPECT_EQ(launch(d, 1.5f, 8, {}), 1);
  EXPECT_EQ(launch(d, 2.5f, 8, {}), 2) << "captured constant";
  EXPECT_EQ(launch(d, 2.5f, 4, {}), 3) << "Const";
  EXPECT_EQ(launch(d, 2.5f, 4, {.num_warps = 2}), 4) << "options";
  EXPECT_EQ(launch(Device::simulator("sm_80"), 2.5f, 4, {.num_warps = 2}), 5) << "target";
  EXPECT_EQ(launch(d, 1.5f, 8, {}), 5);
}

TEST_F(LangCache, AMovedKernelHasItsOwnLines) {
  using testing::HasSubstr;
  const Device d = Device::simulator();
  Buffer<float> c(d, 8);
  const int first = __LINE__ + 1;
  auto k = kernel("one", [](Out<float> o) { store(o, 1.f); });
  auto moved = kernel("one", [](Out<float> o) { store(o, 1.f); });
  k.launch(Stream(d), 1, c);
  moved.launch(Stream(d), 1, c);
  EXPECT_EQ(entries(), 2);
  EXPECT_THAT(k.image(d, c).ptx, HasSubstr(" " + std::to_string(first) + " "));
  EXPECT_THAT(moved.image(d, c).ptx, HasSubstr(" " + std::to_string(first + 1) + " "));
  EXPECT_EQ(k.image(d, c).definition.line + 1, moved.image(d, c).definition.line);
}

TEST_F(LangCache, DeviceWithoutACacheWorks) {
  set("/proc/kiln-cannot-write-here");
  const Device d = Device::simulator();
  Buffer<float> c(d, 8);
  add_constant(3.f).launch(Stream(d), 1, c, 8);
  EXPECT_EQ(c.to_vector()[0], 3.f);
}

}  // namespace
}  // namespace kiln::test
