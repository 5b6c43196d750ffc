// The .kimg format: round trip, frozen bytes of version 2, and a clear error for every kind of damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/cache.h"
#include "runtime/image/kernel_image.h"

namespace kiln::rt {
namespace {

using ::testing::HasSubstr;

Arg pointer(DType dtype, Access access, const char* name, std::uint32_t align) {
  Arg a;
  a.kind = ArgKind::Pointer;
  a.dtype = dtype;
  a.access = access;
  a.name = name;
  a.align = align;
  return a;
}

Arg scalar(DType dtype, const char* name) {
  Arg a;
  a.dtype = dtype;
  a.name = name;
  return a;
}

KernelImage sample() {
  KernelImage image;
  image.name = "add_relu";
  image.target = "sm_90a";
  image.ptx = ".version 8.0\n.target sm_90a\n";
  image.cubin = std::string(
      "\x7f"
      "ELF\0\1\2",
      7);
  image.signature.append(pointer(f32, Access::Read, "a", 16));
  image.signature.append(scalar(DType::i1, "flag"));
  image.signature.append(pointer(DType::bf16, Access::ReadWrite, "c", 2));
  Arg n = scalar(DType::index, "n");
  n.is_one = true;
  image.signature.append(n);
  LaunchRecipe plain, persistent;
  plain.block = {128, 1, 1};
  persistent.grid = GridRule::Persistent;
  persistent.programs_per_cta = 4;
  persistent.block = {384, 1, 1};
  persistent.cluster = {2, 1, 1};
  persistent.smem_bytes = 200000;
  persistent.max_registers = 168;
  persistent.nonportable_cluster = persistent.pdl = true;
  persistent.hidden = {HiddenParam::UserGrid, HiddenParam::TileCounter};
  persistent.workspace_bytes = 1ull << 33;
  image.candidates = {plain, persistent};
  image.accepted = 1;
  image.report.registers = 40;
  image.report.bytes_read_per_program = 8192;
  image.report.facts = {"a is 16-byte aligned", "n is 1"};
  image.definition = SourceLoc("examples/add.cpp", 31, 7);
  return image;
}

/// The error of reading `bytes`, or "" when they are taken.
std::string error_of(const std::string& bytes) {
  try {
    deserialise(bytes, "x.kimg");
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

/// Makes size and checksum of changed bytes right again, so that what lies behind them is tested.
std::string resealed(std::string bytes) {
  const std::uint64_t size = bytes.size();
  std::memcpy(bytes.data() + 8, &size, sizeof size);
  const Hash128 head = hash128(std::string_view(bytes).substr(0, 16)),
                body = hash128(std::string_view(bytes).substr(32));
  const Hash128 sum{head.low ^ body.low, head.high + body.high};
  std::memcpy(bytes.data() + 16, &sum, sizeof sum);
  return bytes;
}

TEST(ArgSig, OffsetsAreNaturallyAligned) {
  const ArgSig sig = sample().signature;
  EXPECT_EQ(sig.args[0].offset, 0u);
  EXPECT_EQ(sig.args[1].offset, 8u);
  EXPECT_EQ(sig.args[1].size, 1u);
  EXPECT_EQ(sig.args[2].offset, 16u);
  EXPECT_EQ(sig.args[3].offset, 24u);
  EXPECT_EQ(sig.bytes, 32u);
}

TEST(KernelImage, SurvivesARoundTrip) {
  const KernelImage a = sample(), b = deserialise(serialise(a), "memory");
  EXPECT_EQ(b.name, a.name);
  EXPECT_EQ(b.target, a.target);
  EXPECT_EQ(b.ptx, a.ptx);
  EXPECT_EQ(b.cubin, a.cubin);
  ASSERT_EQ(b.signature.args.size(), 4u);
  EXPECT_EQ(b.signature.bytes, a.signature.bytes);
  EXPECT_EQ(b.signature.args[2].dtype, DType::bf16);
  EXPECT_EQ(b.signature.args[2].access, Access::ReadWrite);
  EXPECT_EQ(b.signature.args[2].align, 2u);
  EXPECT_EQ(b.signature.args[2].name, "c");
  EXPECT_TRUE(b.signature.args[3].is_one);
  EXPECT_EQ(b.accepted, 1u);
  EXPECT_EQ(b.recipe().cluster[0], 2u);
  EXPECT_EQ(b.recipe().hidden, a.recipe().hidden);
  EXPECT_EQ(b.recipe().workspace_bytes, 1ull << 33);
  EXPECT_EQ(b.report.registers, 40);
  EXPECT_EQ(b.report.spill_bytes, -1);
  EXPECT_EQ(b.report.facts, a.report.facts);
  EXPECT_EQ(b.definition.str(), "examples/add.cpp:31");
  EXPECT_EQ(serialise(b), serialise(a));
}

// The format is append-only: old files stay readable. A change of these bytes needs a new minor version, one that makes
// old readers wrong a new major version; then this value changes too.
TEST(KernelImage, BytesOfVersionTwoAreFrozen) {
  EXPECT_EQ(stable_hash(serialise(sample())), "32cb6fc6f491eb0dde5cc8d55072f54f");
}

TEST(KernelImage, KeepsWhatTheKernelReports) {
  KernelImage a = sample();
  a.sites = {{ReportSite::Kind::Print, "x = {}", {DType::f16}, {4, 8}, SourceLoc("examples/add.cpp", 33, 5)},
             {ReportSite::Kind::Assert, "must hold {", {}, {}, SourceLoc("examples/add.cpp", 34, 5)}};
  EXPECT_EQ(deserialise(serialise(a), "x.kimg").sites, a.sites);
  a.sites[0].text = "no place";
  EXPECT_THAT(error_of(serialise(a)), HasSubstr("a report of 1 values with the format 'no place'"));
}

TEST(KernelImage, KeepsWhereWideParametersLie) {
  KernelImage a = sample();
  a.params = {{0, 8, 8}, {64, 384, 64}, {448, 4, 4}};
  EXPECT_EQ(deserialise(serialise(a), "x.kimg").params, a.params);
  a.params[1].offset = 48;
  EXPECT_THAT(error_of(serialise(a)), HasSubstr("parameter 2 lies at 48 with 384 bytes, expected 64"));
  a.params = {{0, 32765, 1}};
  EXPECT_THAT(error_of(serialise(a)), HasSubstr("at most 32764 in all"));
  a.params = {{0, 8, 48}};
  EXPECT_THAT(error_of(serialise(a)), HasSubstr("parameter alignment is 48, no power of two"));
}

TEST(KernelImage, EveryTruncationIsAnError) {
  const std::string bytes = serialise(sample());
  for (std::size_t n = 0; n < bytes.size(); ++n)
    ASSERT_THAT(error_of(bytes.substr(0, n)), HasSubstr("x.kimg: not a valid kernel image")) << n;
  EXPECT_THAT(error_of(bytes + "x"), HasSubstr("the header says"));
}

TEST(KernelImage, EveryFlippedByteIsAnError) {
  const std::string bytes = serialise(sample());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const int flip : {1, 128, 255}) {
      std::string bad = bytes;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      ASSERT_NE(error_of(bad), "") << i;
    }
}

TEST(KernelImage, TruncationBehindAGoodChecksumIsAnError) {
  const std::string bytes = serialise(sample());
  for (std::size_t n = 32; n < bytes.size(); ++n) {
    const std::string error = error_of(resealed(bytes.substr(0, n)));
    if (!error.empty()) {  // an end between two sections leaves a shorter, possibly valid image
      ASSERT_THAT(error, HasSubstr("x.kimg: not a valid kernel image")) << n;
    }
  }
}

TEST(KernelImage, RandomDamageBehindAGoodChecksumNeverDoesMoreThanThrow) {
  const std::string bytes = serialise(sample());
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bad = bytes;
    for (unsigned k = 0; k < 1 + random() % 4; ++k)
      bad[32 + random() % (bad.size() - 32)] = static_cast<char>(random() % 3 ? random() : 0xff);
    if (!error_of(resealed(bad)).empty()) ++refused;
  }
  EXPECT_GT(refused, 1000);
}

TEST(KernelImage, ErrorsSayWhatIsWrong) {
  const std::string bytes = serialise(sample());
  EXPECT_THAT(error_of("KIMG"), HasSubstr("4 bytes, the header alone has 32"));
  EXPECT_THAT(error_of("ELF " + bytes.substr(4)), HasSubstr("not KIMG"));
  std::string newer = bytes;
  newer[4] = 3;
  EXPECT_THAT(error_of(newer), HasSubstr("format 3.0, this build reads 2.x"));
  std::string flipped = bytes;
  flipped[40] = static_cast<char>(flipped[40] ^ 4);
  EXPECT_THAT(error_of(flipped), HasSubstr("checksum"));

  KernelImage image = sample();
  image.accepted = 2;
  EXPECT_THAT(error_of(serialise(image)), HasSubstr("recipe 2 of 2"));
  image = sample();
  image.candidates[0].block[1] = 0;
  EXPECT_THAT(error_of(serialise(image)), HasSubstr("of 0"));
  image = sample();
  image.signature.args[1].offset = 4;
  EXPECT_THAT(error_of(serialise(image)), HasSubstr("argument 2 lies at 4"));
  image = sample();
  image.ptx.clear();
  image.cubin.clear();
  EXPECT_THAT(error_of(serialise(image)), HasSubstr("neither PTX nor machine code"));
}

TEST(KernelImage, UnknownSectionsAreSkipped) {
  std::string bytes = serialise(sample());
  const std::uint32_t tag = 4711;
  const std::uint64_t length = 3;
  bytes.append(reinterpret_cast<const char*>(&tag), sizeof tag);
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += "new";
  EXPECT_EQ(serialise(deserialise(resealed(bytes), "x.kimg")), serialise(sample()));
}

}  // namespace
}  // namespace kiln::rt
