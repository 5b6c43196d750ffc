// The scanner of parameter lists: every form that PTX has, and text that is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "runtime/base/error.h"
#include "runtime/image/entry_params.h"

namespace kiln::rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<ParamSlot> params(const std::string& list) {
  return entry_params(".version 8.0\n.target sm_90a\n.visible .entry k(" + list + ")\n{ ret; }\n", "k");
}

std::string error_of(const std::string& list) {
  try {
    params(list);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(EntryParams, FollowEachOtherNaturallyAligned) {
  EXPECT_THAT(params(".param .u8 a, .param .f64 b, .param .b16 c, .param .s32 d"),
              ElementsAre(ParamSlot{0, 1, 1}, ParamSlot{8, 8, 8}, ParamSlot{16, 2, 2}, ParamSlot{20, 4, 4}));
  EXPECT_THAT(params(".param .u64 .ptr .align 16 bias, .param .align 64 .b8 maps[384], .param .u32 n"),
              ElementsAre(ParamSlot{0, 8, 8}, ParamSlot{64, 384, 64}, ParamSlot{448, 4, 4}));
}

TEST(EntryParams, TakeEveryFormOfADeclaration) {
  EXPECT_THAT(params(".param.u64 .ptr.global.align 128 p"), ElementsAre(ParamSlot{0, 8, 8}));
  EXPECT_THAT(params(".param .align 0x20 .b32 x[3][2]"), ElementsAre(ParamSlot{0, 24, 32}));
  EXPECT_THAT(params(".param .align 010 .b8 x[0b11U]"), ElementsAre(ParamSlot{0, 3, 8}));
  EXPECT_THAT(params(".param .v4 .f32 x"), ElementsAre(ParamSlot{0, 16, 16}));
  EXPECT_THAT(params(".param .b128 x, .param .texref t"), ElementsAre(ParamSlot{0, 16, 16}, ParamSlot{16, 8, 8}));
  EXPECT_THAT(params("\n\t.param /* , .param .u8 y */ .u32 // )\n x$_1\n"), ElementsAre(ParamSlot{0, 4, 4}));
  EXPECT_THAT(params(""), IsEmpty());
  EXPECT_THAT(entry_params(".entry k { ret; }", "k"), IsEmpty());
}

TEST(EntryParams, AreThoseOfTheNamedEntry) {
  const std::string two =
      "// .entry b(.param .u8 x)\n.file 1 \".entry b(.param .u8 x)\"\n.entry a(.param .u32 x) { ret; }\n"
      ".entry bb(.param .u16 x) { ret; }\n.entry b(.param .u64 x) { ret; }";
  EXPECT_THAT(entry_params(two, "b"), ElementsAre(ParamSlot{0, 8, 8}));
  EXPECT_THAT(entry_params(two, "a"), ElementsAre(ParamSlot{0, 4, 4}));
  EXPECT_THAT(entry_params(two, "c"), IsEmpty());
}

TEST(EntryParams, AreWideWhereOneIsAlignedToMoreThanSixteen) {
  EXPECT_THAT(wide_entry_params(".entry k(.param .u64 a, .param .align 16 .b8 b[16])", "k"), IsEmpty());
  EXPECT_THAT(wide_entry_params(".entry k(.param .u64 a, .param .align 32 .b8 b[32])", "k"),
              ElementsAre(ParamSlot{0, 8, 8}, ParamSlot{32, 32, 32}));
}

TEST(EntryParams, ErrorsNameTheEntryAndWhatWasFound) {
  EXPECT_EQ(error_of(".reg .u32 x"), "the header of entry k cannot be read: expected '.param', found '.reg'");
  EXPECT_THAT(error_of(".param .u32"), HasSubstr("expected the name of a parameter, found ')'"));
  EXPECT_THAT(error_of(".param x"), HasSubstr("a parameter without a type"));
  EXPECT_THAT(error_of(".param .wide x"), HasSubstr("'.wide' in a parameter"));
  EXPECT_THAT(error_of(".param .align 24 .b8 x[8]"), HasSubstr("an alignment of 24; must be a power of two up to 128"));
  EXPECT_THAT(error_of(".param .align 256 .b8 x[8]"), HasSubstr("an alignment of 256"));
  EXPECT_THAT(error_of(".param .align 0 .b8 x[8]"), HasSubstr("an alignment of 0"));
  EXPECT_THAT(error_of(".param .b8 x[n]"), HasSubstr("expected a number, found 'n'"));
  EXPECT_THAT(error_of(".param .b8 x[8"), HasSubstr("expected ']', found ')'"));
  EXPECT_THAT(error_of(".param .u32 x;"), HasSubstr("expected ')', found ';'"));
  EXPECT_THAT(error_of(".param .b8 x[99999999999999999999]"), HasSubstr("its parameters take more than 32764 bytes"));
  EXPECT_THAT(error_of(".param .b64 x[4096]"), HasSubstr("more than 32764 bytes"));
  EXPECT_THAT(error_of(".param .b64 x[4294967296][4294967296]"), HasSubstr("more than 32764 bytes"));
  EXPECT_THROW(entry_params(".entry k(.param .u32 x", "k"), Error);
}

TEST(EntryParams, DamagedTextNeverDoesMoreThanThrow) {
  const std::string good =
      ".visible .entry k(.param .u64 .ptr .align 16 bias, .param .align 64 .b8 maps[384], /* a */ .param .u32 n)";
  std::mt19937 random(3);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good.substr(0, random() % 8 ? good.size() : random() % good.size());
    for (auto n = 1 + random() % 3; n > 0 && !bad.empty(); --n)
      bad[random() % bad.size()] = random() % 2 ? good[random() % good.size()] : static_cast<char>(random());
    try {
      std::uint64_t used = 0;
      for (const ParamSlot& p : entry_params(bad, "k")) {
        ASSERT_EQ(p.offset % p.align, 0u) << bad;
        ASSERT_GE(p.offset, used) << bad;
        used = std::uint64_t(p.offset) + p.bytes;
      }
      ASSERT_LE(used, kMostParamBytes) << bad;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace kiln::rt
