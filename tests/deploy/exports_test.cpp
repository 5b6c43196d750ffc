// What the shared libraries need and export, read from the files themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/deploy/elf.h"
#include "tests/support/build_tree.h"

namespace kiln::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

ElfFile library(const char* name) { return read_elf((lib_dir() / name).string()); }

std::vector<std::string> exported(const ElfFile& elf, const std::string& part) {
  std::vector<std::string> out;
  for (const DynamicSymbol& s : elf.symbols)
    if (s.defined && s.name.find(part) != s.name.npos) out.push_back(s.name);
  return out;
}

std::set<std::string> strong_definitions(const ElfFile& elf) {
  std::set<std::string> out;
  for (const DynamicSymbol& s : elf.symbols)
    if (s.defined && !s.weak) out.insert(s.name);
  return out;
}

std::vector<std::string> in_both(const ElfFile& a, const ElfFile& b) {
  const auto x = strong_definitions(a), y = strong_definitions(b);
  std::vector<std::string> out;
  std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(out));
  return out;
}

TEST(RuntimeLibrary, NeedsNeitherCompilerNorDriver) {
  const ElfFile elf = library("libkiln_runtime.so");
  for (const char* part : {"libkiln", "LLVM", "libcuda", "nvrtc"})
    EXPECT_THAT(elf.needed, Not(Contains(HasSubstr(part))));
  EXPECT_THAT(exported(elf, "4llvm"), IsEmpty());
  EXPECT_THAT(exported(elf, "_ZN4kiln2ir"), IsEmpty());
  EXPECT_THAT(exported(elf, "_ZN4kiln6Device"), Not(IsEmpty()));
}

TEST(TestingLibrary, ExportsTheInnerLayersAndNothingOfLlvm) {
  const ElfFile elf = library("libkiln_testing.so");
  EXPECT_THAT(elf.needed, Contains("libkiln_runtime.so"));
  EXPECT_THAT(elf.needed, Not(Contains(HasSubstr("LLVM"))));
  EXPECT_THAT(exported(elf, "4llvm"), IsEmpty());
  EXPECT_THAT(exported(elf, "LLVM"), IsEmpty());
  EXPECT_THAT(exported(elf, "_ZN4kiln2ir"), Not(IsEmpty()));
}

TEST(TestingLibrary, SharesNoObjectWithTheRuntime) {
  EXPECT_THAT(in_both(library("libkiln_testing.so"), library("libkiln_runtime.so")), IsEmpty());
}

#ifdef KILN_WITH_LLVM
TEST(CompilerLibrary, ExportsNamespaceKilnAlone) {
  const ElfFile elf = library("libkiln.so");
  for (const DynamicSymbol& s : elf.symbols) {
    EXPECT_TRUE(!s.defined || s.name.find("4kiln") != s.name.npos) << s.name;
  }
  EXPECT_THAT(exported(elf, "LLVM"), IsEmpty());
  EXPECT_THAT(exported(elf, "4llvm"), IsEmpty());
  for (const char* prefix : {"_ZN4kiln", "_ZNK4kiln", "_ZTVN4kiln", "_ZTIN4kiln", "_ZTSN4kiln"})
    for (const char* inner : {"2ir", "2cg"})
      for (const std::string& name : exported(elf, std::string(prefix) + inner))
        ADD_FAILURE() << name << " is exported";
  EXPECT_THAT(exported(elf, "_ZN4kiln7versionEv"), SizeIs(1));
}

TEST(CompilerLibrary, NeedsTheRuntimeAndNoLlvm) {
  const ElfFile elf = library("libkiln.so");
  EXPECT_THAT(elf.needed, Contains("libkiln_runtime.so"));
  for (const char* part : {"LLVM", "libcuda", "libz3", "libxml2", "libffi", "libedit"})
    EXPECT_THAT(elf.needed, Not(Contains(HasSubstr(part))));
}

TEST(CompilerLibrary, SharesNoObjectWithTheRuntime) {
  EXPECT_THAT(in_both(library("libkiln.so"), library("libkiln_runtime.so")), IsEmpty());
}
#endif

TEST(ElfReader, RefusesWhatIsNoElfFile) {
  EXPECT_THROW(read_elf("/proc/self/maps"), std::runtime_error);
  EXPECT_THROW(read_elf("/nonexistent"), std::runtime_error);
}

}  // namespace
}  // namespace kiln::test
