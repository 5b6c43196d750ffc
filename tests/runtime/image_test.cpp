// The .kimg format: round trip, frozen bytes of version 2, files of 2.0, and a clear error for every kind of damage.
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

/// serialise(sample()) of version 2.0.
constexpr std::string_view kVersionTwoPointZero =
    "4b494d47020000007802000000000000f33c8a8e06c71323402a9e62cb47ad5e01000000100000000000000008000000000000006164"
    "645f72656c75020000000e000000000000000600000000000000736d5f3930610300000024000000000000001c000000000000002e76"
    "657273696f6e20382e300a2e74617267657420736d5f3930610a040000000f0000000000000007000000000000007f454c4600010205"
    "000000bd0000000000000020000000040000002400000000000000000300000000000000663332000100000000000000610000000008"
    "00000010000000000026000000000000000102000000000000006931000400000000000000666c616708000000010000000100000000"
    "002500000000000000000400000000000000626631360201000000000000006310000000080000000200000000002600000000000000"
    "010500000000000000696e6465780001000000000000006e180000000800000001000000010006000000800000000000000001000000"
    "020000003300000000000000000100000080000000010000000100000001000000010000000100000000000000000000000000000000"
    "00000000000000000035000000000000000204000000800100000100000001000000020000000100000001000000400d0300a8000000"
    "01010200000000010000000002000000070000004a0000000000000028000000ffffffffffffffff000000000000c040000000000000"
    "f0bf020000001400000000000000612069732031362d6279746520616c69676e656406000000000000006e2069732031080000002000"
    "00000000000010000000000000006578616d706c65732f6164642e6370701f00000007000000";

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

TEST(KernelImage, FilesOfVersionTwoPointZeroAreStillRead) {
  EXPECT_EQ(serialise(deserialise(bytes_of(kVersionTwoPointZero), "old.kimg")), serialise(sample()));
}

// The format is append-only: old files stay readable. A change of these bytes needs a new minor version, one that makes
// old readers wrong a new major version; then this value changes too.
TEST(KernelImage, BytesOfVersionTwoAreFrozen) {
  EXPECT_EQ(stable_hash(serialise(sample())), "126f205902cc4e4110559e841b744064");
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

KernelImage sample_with_maps() {
  KernelImage a = sample();
  a.signature = {};
  a.signature.append(pointer(DType::bf16, Access::Read, "x", 16));
  for (int i = 0; i < 4; ++i) a.signature.append(scalar(DType::index, "extent"));
  a.signature.args[3].align = 8;
  a.signature.args[4].is_one = true;
  for (LaunchRecipe& r : a.candidates) {
    r.hidden = {HiddenParam::UserGrid, HiddenParam::TensorMaps};
    r.tensor_maps = {view_map(0, DType::bf16, {1, 0}), view_map(0, DType::u16, {1, 0})};
    r.tensor_maps[1].box = {64, 128, 1, 1, 1};
    r.tensor_maps[1].sizes[0] = {TensorExtent::kNumber, 4096};
    r.tensor_maps[1].swizzle = TensorSwizzle::Bytes128;
    r.tensor_maps[1].fill = TensorFill::NaN;
    r.tensor_maps[1].promotion = TensorPromotion::Bytes256;
    r.tensor_maps[1].floats = TensorFloat::Tf32;
  }
  return a;
}

TEST(KernelImage, KeepsItsTensorMaps) {
  const KernelImage a = sample_with_maps(), b = deserialise(serialise(a), "x.kimg");
  EXPECT_EQ(b.recipe().tensor_maps, a.recipe().tensor_maps);
  EXPECT_EQ(b.candidates[0].tensor_maps, a.candidates[0].tensor_maps);
  EXPECT_EQ(b.recipe().hidden, a.recipe().hidden);
}

TEST(KernelImage, TensorMapsThatALaunchCannotMakeAreAnError) {
  KernelImage a = sample_with_maps();
  a.candidates[1].tensor_maps[0].base = 5;
  EXPECT_THAT(error_of(serialise(a)), HasSubstr("tensor map: the base is argument 6 of 5"));
  a = sample_with_maps();
  a.candidates[1].tensor_maps[1].rank = 6;
  EXPECT_THAT(error_of(serialise(a)), HasSubstr("tensor map: rank is 6"));
  a = sample_with_maps();
  a.signature.args[3].align = 1;
  EXPECT_THAT(error_of(serialise(a)), HasSubstr("tensor map: extent: not known to be a multiple of 16 bytes"));
  a = sample_with_maps();
  a.candidates[0].hidden.pop_back();
  EXPECT_THAT(error_of(serialise(a)), HasSubstr("2 tensor maps, but the last hidden parameter"));
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
  const std::string with = serialise(sample_with_maps()), without = serialise(sample());
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bad = i % 2 ? with : without;
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
  EXPECT_THAT(error_of(newer), HasSubstr("format 3.1, this build reads 2.x"));
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
  image.signature.args[0].align = 12;
  EXPECT_THAT(error_of(serialise(image)), HasSubstr("argument alignment is 12, no power of two"));
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
