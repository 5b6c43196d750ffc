// Every #include against the layer table of docs/architecture.md. A layer is a set of path prefixes; the longest prefix
// that matches decides. A row lists the layers (or single headers) that its files may include besides their own.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/layering/source_tree.h"
#include "tests/support/build_tree.h"

namespace kiln::test {
namespace {

struct Layer {
  const char* prefix;
  std::vector<std::string> may_include;
};

// The rows in layer order. A file of no row (tests, examples, bench, tools) is the top: it may include every layer.
const std::vector<Layer>& layers() {
  static const std::vector<Layer> table{
      {"runtime/base/", {}},
      {"runtime/image/", {"runtime/base/"}},
      {"runtime/cuda/", {"runtime/base/", "runtime/image/", "runtime/"}},
      {"runtime/sim/", {"runtime/base/", "runtime/image/", "runtime/"}},
      {"runtime/", {"runtime/base/", "runtime/image/", "runtime/cuda/", "runtime/sim/"}},
      {"backend/ir/", {"runtime/base/", "runtime/image/"}},
      {"backend/target", {"runtime/base/"}},
      {"backend/options.h", {}},
      {"backend/pass/", {"runtime/base/", "backend/ir/", "backend/target", "backend/options.h"}},
      {"backend/llvm/",
       {"runtime/base/", "runtime/image/", "backend/ir/", "backend/pass/", "backend/target", "backend/options.h",
        "backend/"}},
      {"backend/tools/",
       {"runtime/base/", "runtime/image/", "backend/ir/", "backend/pass/", "backend/target", "backend/options.h",
        "backend/"}},
      {"backend/",
       {"runtime/base/", "runtime/image/", "backend/ir/", "backend/pass/", "backend/llvm/", "backend/target",
        "backend/options.h"}},
      {"dsl/lang/",
       {"runtime/base/", "runtime/device.h", "runtime/launch.h", "runtime/image/arg_sig.h", "backend/ir/",
        "backend/options.h"}},
      {"dsl/lib/", {"runtime/base/", "dsl/lang/"}},
      {"dsl/expr/", {"runtime/base/", "runtime/device.h", "backend/ir/", "dsl/lang/", "dsl/lib/"}},
      {"dsl/tools/",
       {"runtime/", "runtime/base/", "backend/target", "backend/options.h", "backend/compile.h", "bench/", "dsl/"}},
      {"dsl/",
       {"runtime/", "runtime/base/", "runtime/image/", "backend/ir/", "backend/compile.h", "backend/options.h",
        "backend/target", "dsl/lang/"}},
  };
  return table;
}

// Third-party headers and who may include them.
struct ThirdParty {
  const char* prefix;
  std::vector<std::string> allowed_in;
  bool in_headers;
};

const std::vector<ThirdParty>& third_parties() {
  static const std::vector<ThirdParty> table{
      {"llvm/", {"backend/llvm/"}, true},
      {"boost/hana", {"dsl/expr/"}, true},
      {"cuda.h", {"tests/"}, false},
      {"cuda_runtime", {}, false},
      {"fmt/", {"runtime/", "backend/", "dsl/", "bench/", "examples/", "tests/"}, false},
      {"nlohmann/", {"runtime/", "backend/", "dsl/tools/", "bench/", "examples/", "tests/"}, false},
      {"CLI/", {"dsl/tools/", "backend/tools/", "bench/", "examples/"}, false},
      {"gtest/", {"tests/"}, true},
      {"gmock/", {"tests/"}, true},
      {"benchmark/", {"bench/"}, true},
  };
  return table;
}

const Layer* layer_of(const std::string& path) {
  const Layer* best = nullptr;
  for (const Layer& l : layers())
    if (path.starts_with(l.prefix) && (!best || std::string(l.prefix).size() > std::string(best->prefix).size()))
      best = &l;
  return best;
}

bool may_include(const Layer& from, const std::string& name) {
  const Layer* to = layer_of(name);
  if (to == &from) return true;
  for (const std::string& allowed : from.may_include)
    if (allowed == name || (to ? allowed == to->prefix : name.starts_with(allowed))) return true;
  return false;
}

class Includes : public testing::Test {
 protected:
  void SetUp() override {
    const auto root = source_dir();
    if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
    root_ = root->string();
    sources_ = read_sources(root_);
    ASSERT_GT(sources_.size(), 50u) << "the source tree at " << root_ << " is incomplete";
  }
  std::string root_;
  std::vector<SourceFile> sources_;
};

TEST_F(Includes, GoOnlyDownTheLayerTable) {
  for (const SourceFile& s : sources_) {
    const Layer* from = layer_of(s.path);
    if (!from) continue;
    for (const Include& i : s.includes) {
      EXPECT_TRUE(!i.quoted || may_include(*from, i.name))
          << s.path << ":" << i.line << ": a file of " << from->prefix << " may not include " << i.name;
    }
  }
}

TEST_F(Includes, NameFilesFromTheRepositoryRoot) {
  for (const SourceFile& s : sources_)
    for (const Include& i : s.includes)
      EXPECT_TRUE(!i.quoted || std::filesystem::exists(std::filesystem::path(root_) / i.name))
          << s.path << ":" << i.line << ": no file " << i.name << " below the root";
}

TEST_F(Includes, OfOtherLibrariesStayWhereTheyBelong) {
  for (const SourceFile& s : sources_)
    for (const Include& i : s.includes)
      for (const ThirdParty& t : third_parties()) {
        if (!i.name.starts_with(t.prefix) || i.quoted) continue;
        bool allowed = false;
        for (const std::string& where : t.allowed_in) allowed |= s.path.starts_with(where);
        EXPECT_TRUE(allowed) << s.path << ":" << i.line << ": <" << i.name << "> is not allowed here";
        EXPECT_TRUE(t.in_headers || !s.is_header() || s.path.starts_with("tests/"))
            << s.path << ":" << i.line << ": <" << i.name << "> belongs in .cpp files only";
      }
}

TEST_F(Includes, OfExamplesAreWhatAUserWrites) {
  for (const SourceFile& s : sources_)
    for (const Include& i : s.includes)
      EXPECT_FALSE(s.path.starts_with("examples/") && i.quoted && !i.name.starts_with("examples/"))
          << s.path << ":" << i.line << ": examples include <kiln/…>, not \"" << i.name << "\"";
}

TEST_F(Includes, OfTheUmbrellaHeaderReachNeitherCompilerNorHeavyHeaders) {
  const auto reached = include_closure(sources_, "dsl/kiln.h");
  ASSERT_FALSE(reached.empty());
  for (const auto& [name, from] : reached)
    for (const char* banned : {"llvm/", "backend/llvm", "backend/pass", "backend/pipeline", "fmt/", "nlohmann/",
                               "boost/", "iostream", "regex", "filesystem"})
      EXPECT_FALSE(name.starts_with(banned)) << "dsl/kiln.h reaches " << name << " through " << from;
}

TEST_F(Includes, OfTheRuntimesPublicHeadersStayInTheRuntime) {
  for (const char* header : {"runtime/device.h", "runtime/launch.h", "runtime/image/kernel_image.h"})
    for (const auto& [name, from] : include_closure(sources_, header))
      EXPECT_FALSE(name.starts_with("backend/") || name.starts_with("dsl/"))
          << header << " reaches " << name << " through " << from;
}

TEST(LayerTable, RefusesAnIncludeThatGoesUp) {
  EXPECT_FALSE(may_include(*layer_of("runtime/device.cpp"), "backend/ir/type.h"));
  EXPECT_FALSE(may_include(*layer_of("backend/ir/type.cpp"), "backend/pass/pass.h"));
  EXPECT_FALSE(may_include(*layer_of("dsl/lang/tile.h"), "backend/compile.h"));
  EXPECT_FALSE(may_include(*layer_of("runtime/sim/warp.cpp"), "runtime/cuda/driver.h"));
  EXPECT_FALSE(may_include(*layer_of("dsl/jit.cpp"), "tests/support/build_tree.h"));
  EXPECT_TRUE(may_include(*layer_of("dsl/jit.cpp"), "backend/compile.h"));
  EXPECT_TRUE(may_include(*layer_of("backend/llvm/emit.cpp"), "backend/ir/type.h"));
}

}  // namespace
}  // namespace kiln::test
