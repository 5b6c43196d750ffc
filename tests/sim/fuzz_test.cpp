// PTX that nobody should write: whatever the text, the simulator gives an error or runs it, within limits; it never
// crashes, hangs or asks the host for much memory.
//
// KILN_SIM_FUZZ=N makes N mutants instead of as many as fit into some seconds, KILN_SIM_FUZZ_SEED=S others (README.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "runtime/base/error.h"
#include "tests/sim/data_files.h"
#include "tests/sim/ptx_fixture.h"
#include "tests/support/knob.h"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string target_of(const std::string& ptx) {
  const std::size_t at = ptx.find(".target sm_");
  std::size_t end = at == std::string::npos ? 0 : at + 8;
  const std::size_t begin = end;
  while (end < ptx.size() && (std::isalnum(static_cast<unsigned char>(ptx[end])) || ptx[end] == '_')) ++end;
  const std::string name = ptx.substr(begin, end - begin);
  return name == "sm_80" || name == "sm_90a" || name == "sm_100a" || name == "sm_120a" ? name : "sm_90a";
}

/// The error of loading and running `entry` with the address of a buffer for every 8 bytes of parameters, or "".
std::string outcome(const std::string& ptx, const std::string& entry) {
  try {
    const Device device = Device::simulator(target_of(ptx));
    device.on_print([](const std::string&) {});
    const Shape shape{{2, 1, 1}, {64, 1, 1}, 1024};
    const auto kernel = load(device, ptx, entry, shape);
    Buffer<std::uint64_t> memory(device, 4096);
    memory.fill_bytes(0);
    const Stream stream(device);
    std::string error;
    for (std::size_t bytes = 0; bytes <= 64; bytes += 4) {
      Params params;
      while (params.bytes().size() + 8 <= bytes) params.add(memory.ptr());
      if (params.bytes().size() < bytes) params.add(std::uint32_t{64});
      try {
        launch(stream, *kernel, shape, params);
        stream.synchronize();
        return "";
      } catch (const DeviceError& e) {
        error = e.what();
        if (error.find("bytes of parameters") == std::string::npos) break;
      }
    }
    return error;
  } catch (const DeviceError& e) {
    return e.what();
  }
}

std::string kernel(const std::string& body, const std::string& before = "") {
  return ".version 8.3\n.target sm_90a\n.address_size 64\n" + before +
         ".visible .entry k(.param .u64 p)\n{\n .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>;\n"
         " ld.param.u64 %rd1, [p];\n" +
         body + "\n ret;\n}\n";
}
void expect_error(const std::string& ptx, const std::string& part) {
  EXPECT_THAT(outcome(ptx, "k"), HasSubstr(part)) << ptx.substr(0, 600);
}
std::string repeated(const std::string& text, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += text;
  return out;
}

TEST(HostilePtx, EveryTruncationEnds) {
  const std::string ptx = kernel(
      "LOOP: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 5; @%p1 bra LOOP;\n"
      "{ .reg .b32 t; .shared .align 4 .b8 s[64]; mov.u32 t, s; st.shared.u32 [t+4], %r1; }",
      ".global .align 8 .u64 table[2] = {generic(table), 5};\n");
  ASSERT_EQ(outcome(ptx, "k"), "");
  for (std::size_t n = 0; n + 4 < ptx.size(); ++n) EXPECT_NE(outcome(ptx.substr(0, n), "k"), "") << n;
}

TEST(HostilePtx, GarbageIsRefusedAtOnce) {
  std::mt19937 random(7);
  std::string bytes(4 << 20, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  EXPECT_NE(outcome(bytes, "k"), "");
  for (char& c : bytes) c = static_cast<char>(32 + random() % 95);
  EXPECT_NE(outcome(bytes, "k"), "");
  expect_error(kernel(repeated("a", 4 << 20) + ";"), "is not known");
  expect_error(kernel("add.s32 " + repeated("%r1, ", 1 << 18) + "%r1;"), "operands");
  expect_error(kernel("setp..eq.s32 %p1, %r1, %r2;"), "has no modifier '.'");
  expect_error(kernel("add" + repeated(".s32", 1 << 18) + " %r1, %r2, %r3;"), "types");
}

TEST(HostilePtx, SizesHaveLimits) {
  expect_error(kernel(".reg .b32 %x<4000000000>;"), "may declare");
  expect_error(kernel(".reg .b32 %x<-1>;"), "may declare");
  expect_error(kernel(".reg .b64 %x<1000000>;"), "registers a thread");
  expect_error(kernel(".shared .b8 s[4294968320];"), "shared memory");
  expect_error(kernel(".shared .b8 s[1000000];"), "shared memory");
  expect_error(kernel(".local .b8 s[1000000000];"), "local memory");
  expect_error(kernel("", ".global .b8 x[99999999999999];\n"), "at most");
  expect_error(kernel("", ".global .b8 x[1000000000][1000000000][1000000000];\n"), "at most");
  expect_error(kernel("", ".global .b8 x[1000000000000];\n"), "bytes");
  expect_error(kernel("", ".global .b8 x[-5];\n"), "at most");
  expect_error(kernel("", ".global .align 0 .b8 x[4];\n"), "an alignment of 0");
  expect_error(kernel("", ".global .align 24 .b8 x[4];\n"), "an alignment of 24");
  expect_error(kernel("", ".global .u32 x[2] = {1, 2, 3};\n"), "has 12 bytes, the variable 8");
  expect_error(kernel("", ".global .u32 x[1] = {x};\n"), "needs 8");
  expect_error(".version 8.3\n.target sm_90a\n.address_size 64\n.entry k(.param .b8 p[1000000]) { ret; }",
               "parameters");
}

TEST(HostilePtx, LargeVariablesTakeNoMemoryUntilTheyAreUsed) {
  EXPECT_EQ(outcome(kernel("", ".global .b8 x[100000000000];\n"), "k"), "");
}

TEST(HostilePtx, NestingHasLimits) {
  expect_error(kernel(repeated("{", 100000) + repeated("}", 100000)), "in one another");
  expect_error(kernel("mov.u32 %r1, " + repeated("!", 100000) + "%p1;"), "in one another");
  expect_error(kernel("mov.b64 %rd1, " + repeated("{", 100000) + ";"), "in one another");
  expect_error(kernel("mov.b64 %rd1, " + repeated("(", 100000) + ";"), "in one another");
  expect_error(kernel("", ".global .u32 x[] = " + repeated("{", 100000) + ";\n"), "in one another");
}

std::string function(const std::string& name, const std::string& body) {
  return ".func " + name + "() {\n" + body + "\nret;\n}\n";
}

TEST(HostilePtx, CallsHaveLimits) {
  expect_error(kernel("call a;", function("a", "call a;")), "calls itself");
  expect_error(kernel("call a;", ".func a();\n" + function("b", "call a;") + function("a", "call b;")), "calls itself");
  std::string twice = function("f0", "membar.cta;"), chain = twice;
  for (int i = 1; i < 40; ++i) {
    const std::string last = "call f" + std::to_string(i - 1) + ";";
    twice += function("f" + std::to_string(i), last + last);
  }
  expect_error(kernel("call f39;", twice), "more than 1048576 instructions");
  for (int i = 1; i < 100; ++i) chain += function("f" + std::to_string(i), "call f" + std::to_string(i - 1) + ";");
  expect_error(kernel("call f99;", chain), "calls in one another");
  expect_error(kernel("call k;"), "is a kernel");
  expect_error(kernel("call %rd1;"), "indirect call");
}

TEST(HostilePtx, LabelsStayInTheirFunction) {
  expect_error(kernel("A: A: ret;"), "label A is defined twice");
  expect_error(kernel("bra A;", function("f", "A: membar.cta;")), "unknown label A");
  expect_error(kernel("{ A: membar.cta; } bra A;"), "unknown label A");
  expect_error(kernel("", function("f", "") + function("f", "")), "f is defined twice");
  expect_error(kernel("", ".global .u32 x; .global .u32 x;\n"), "declared twice");
  expect_error(kernel("mov.u32 %r1, %r01;"), "%r01");
  expect_error(kernel("mov.u32 %r1, %r99999999999;"), "%r99999999999");
}

TEST(HostilePtx, EndlessLoopsEnd) {
  const Knob limit("KILN_SIM_STEPS", "100000");
  expect_error(kernel("L: add.u32 %r2, %r2, 1; bra L;"), "an endless loop: the warp has executed 100000 instructions");
  expect_error(kernel("L: bra L;"), "an endless loop");
  expect_error(kernel("L: setp.eq.u32 %p1, %r1, %r1; @%p1 bra L;"), "an endless loop");
  expect_error(kernel("L: ld.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"), "deadlock: ");
  expect_error(kernel("L: atom.global.add.u32 %r1, [%rd1], 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"), "deadlock: ");
}

TEST(HostilePtx, TangledBranchesAreAnalysedOrRefusedInTime) {
  std::mt19937 random(3);
  std::string body;
  for (int i = 0; i < 20000; ++i)
    body += "L" + std::to_string(i) + ": @%p1 bra L" + std::to_string(random() % 20000) + ";\n";
  const auto begin = std::chrono::steady_clock::now();
  const Knob limit("KILN_SIM_STEPS", "1000");
  outcome(kernel(body), "k");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

// --- operands of every kind for every instruction ---

/// Names of the rows of the instruction table, and their modifiers.
struct Row {
  std::string name, modifiers;
};
const Row kRows[] = {
#define KILN_PTX(name, modifiers, operands, maker) {name, modifiers},
#include "runtime/sim/insts.def"
};

TEST(HostilePtx, OperandsOfTheWrongKindAreErrors) {
  const Knob limit("KILN_SIM_STEPS", "2000");
  std::mt19937 random(11);
  const std::string operands[] = {"%r1",
                                  "%rd2",
                                  "%f1",
                                  "%p1",
                                  "!%p2",
                                  "5",
                                  "-1",
                                  "0f3F800000",
                                  "0d3FF0000000000000",
                                  "_",
                                  "[%rd1]",
                                  "[%rd1+8]",
                                  "[%r1]",
                                  "[p]",
                                  "[4]",
                                  "{%r1, %r2}",
                                  "{%f1, %f2, %f3, %f4}",
                                  "k",
                                  "%tid.x",
                                  "%clock64",
                                  "%r1|%p1",
                                  "!5",
                                  "{}",
                                  "[%rd1, {%r1, %r2}]",
                                  "s",
                                  "s+4",
                                  "unknown",
                                  "{%rd1, %rd2}",
                                  "({%r1})",
                                  "[s]",
                                  "!%r1",
                                  "%p1|%p2",
                                  "%nothing"};
  const std::string types[] = {"",    ".u32",  ".s64",  ".b32", ".f32", ".f16x2",   ".b64",  ".pred",
                               ".b8", ".b128", ".bf16", ".f64", ".u16", ".s32.f32", ".tf32", ".e4m3x2.f32"};
  const auto any = [&](const auto& list) { return std::string(list[random() % std::size(list)]); };
  for (const Row& row : kRows) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < row.modifiers.size();) {
      const std::size_t end = std::min(row.modifiers.find(' ', at), row.modifiers.size());
      if (end > at) words.push_back("." + row.modifiers.substr(at, end - at));
      at = end + 1;
    }
    for (int i = 0; i < 40; ++i) {
      std::string text = row.name;
      for (std::size_t n = words.empty() ? 0 : random() % 4; n > 0; --n) text += words[random() % words.size()];
      text += any(types) + " ";
      for (std::size_t n = random() % 6, k = 0; k < n; ++k) text += (k ? ", " : "") + any(operands);
      outcome(kernel(".shared .align 16 .b8 s[256];\n" + text + ";"), "k");  // must return
    }
  }
}

// --- mutants of real programs ---

std::vector<std::string> programs() {
  std::vector<std::string> out;
  for (const char* folder : {"cuda", "ptx-corpus", "llvm-kernels"})
    for (const auto& entry : fs::recursive_directory_iterator(data_folder() / folder))
      if (entry.path().extension() == ".ptx" && entry.file_size() < 40000) out.push_back(read_file(entry.path()));
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> out;
  const auto word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%' || c == '$' || c == '.';
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (word(text[at]))
      while (end < text.size() && word(text[end])) ++end;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string mutate(const std::string& text) {
    std::string out = random_() % 4 == 0 ? bytes(text) : tokens(text);
    return out;
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

 private:
  std::string bytes(std::string text) {
    for (std::size_t n = 1 + below(3); n > 0; --n) {
      const std::size_t at = below(text.size());
      switch (below(5)) {
        case 0: text[at] = static_cast<char>(random_()); break;
        case 1: text.erase(at, 1 + below(20)); break;
        case 2: text.insert(at, 1, ";,{}[]()%.@!0-"[below(14)]); break;
        case 3: text.insert(at, text.substr(below(text.size()), below(40))); break;
        default: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
      }
      if (text.empty()) text = " ";
    }
    return text;
  }
  std::string tokens(const std::string& text) {
    std::vector<std::string> t = tokens_of(text);
    static const char* const kWords[] = {"0",          "-1",     "4294967295", "9223372036854775807",
                                         "%rd1",       "%r1",    "%p1",        "[%rd1]",
                                         "bra",        "{",      "}",          ";",
                                         ",",          "@%p1",   ".b8",        ".v4",
                                         "0f7FC00000", "%tid.x", "1000000000", "_"};
    for (std::size_t n = 1 + below(4); n > 0; --n) {
      // Most of a text is its end: the instructions.
      const std::size_t at = below(3) ? t.size() / 8 + below(t.size() - t.size() / 8) : below(t.size());
      const std::size_t other = below(t.size());
      switch (below(5)) {
        case 0: t[at] = t[other]; break;
        case 1: std::swap(t[at], t[other]); break;
        case 2: t[at].clear(); break;
        case 3: t[at] = kWords[below(std::size(kWords))]; break;
        default: t[at] += t[other]; break;
      }
    }
    std::string out;
    for (const std::string& s : t) out += s;
    return out;
  }
  std::mt19937_64 random_;
};

TEST(HostilePtx, MutantsOfRealProgramsEnd) {
  const Knob limit("KILN_SIM_STEPS", "3000");
  const char* count = std::getenv("KILN_SIM_FUZZ");
  const char* seed = std::getenv("KILN_SIM_FUZZ_SEED");
  const std::uint64_t first = seed ? std::strtoull(seed, nullptr, 10) : 1;
  const std::uint64_t n = count ? std::strtoull(count, nullptr, 10) : UINT64_MAX;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(6);
  const std::vector<std::string> all = programs();
  ASSERT_GT(all.size(), 20u);
  std::uint64_t i = 0, ran = 0;
  for (; i < n && (count || std::chrono::steady_clock::now() < end); ++i) {
    Mutator mutator(first + i);
    const std::string& original = all[mutator.below(all.size())];
    const std::string text = mutator.mutate(original);
    if (const char* keep = std::getenv("KILN_SIM_FUZZ_KEEP")) std::ofstream(keep, std::ios::binary) << text;
    const auto names = entries(original);
    ran += outcome(text, names[mutator.below(names.size())]).empty();
  }
  RecordProperty("mutants", static_cast<int>(i));
  if (i >= 1000) {
    EXPECT_GT(ran, 0u) << "of " << i;
  }
}

}  // namespace
}  // namespace kiln::test
