// The records of print and assert as words, their text, and whom an assembler's complaint is about.
#include "runtime/image/report_record.h"

#include <gtest/gtest.h>

#include "runtime/image/ptx_line.h"

namespace kiln::rt {
namespace {

ReportSite site(std::vector<DType> values) {
  ReportSite s;
  s.values = std::move(values);
  return s;
}

TEST(ReportRecord, IsReadAsItWasWritten) {
  std::vector<std::uint64_t> buffer(kReportHeaderWords + 16);
  buffer[kReportCapacity] = 16;
  ReportRecord r;
  r.launch = 3;
  r.site = 1;
  r.index = 77;
  r.program[0] = 4000000000u;
  r.program[2] = 9;
  r.values = {~std::uint64_t(0), 5};
  append_record(buffer.data(), r, false);
  const auto read =
      read_records(std::span(buffer).subspan(kReportHeaderWords), {site({}), site({DType::i64, DType::i32})});
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].launch, 3u);
  EXPECT_EQ(read[0].site, 1u);
  EXPECT_EQ(read[0].index, 77u);
  EXPECT_EQ(read[0].program[0], 4000000000u);
  EXPECT_EQ(read[0].program[1], 0u);
  EXPECT_EQ(read[0].program[2], 9u);
  EXPECT_EQ(read[0].values, r.values);
  EXPECT_EQ(buffer[kReportUsed], 6u);
}

TEST(ReportRecord, WithoutRoomIsCountedAndWritesNothing) {
  std::vector<std::uint64_t> buffer(kReportHeaderWords + 7);
  buffer[kReportCapacity] = 7;
  ReportRecord r;
  r.launch = 1;
  for (int i = 0; i < 3; ++i) append_record(buffer.data(), r, i == 2);
  EXPECT_EQ(buffer[kReportLost], 2u);
  EXPECT_EQ(buffer[kReportFailed], 1u);
  EXPECT_EQ(read_records(std::span(buffer).subspan(kReportHeaderWords), {site({})}).size(), 1u);
}

TEST(ReportFormat, CountsPlaces) {
  EXPECT_EQ(placeholders("a {} b {}{}"), 3);
  EXPECT_EQ(placeholders("{{}} {{{}}}"), 1);
  EXPECT_EQ(placeholders(""), 0);
  for (const char* wrong : {"{", "}", "{0}", "{:x}", "a } b", "{}}"}) EXPECT_EQ(placeholders(wrong), -1) << wrong;
}

TEST(ReportFormat, WritesEveryType) {
  const auto text = [](DType d, std::uint64_t bits) {
    ReportSite s = site({d});
    s.text = "<{}>";
    return format_report(s, std::span(&bits, 1));
  };
  EXPECT_EQ(text(DType::i1, 1), "<true>");
  EXPECT_EQ(text(DType::i8, 0x80), "<-128>");
  EXPECT_EQ(text(DType::u8, 0x80), "<128>");
  EXPECT_EQ(text(DType::i16, 0xffff), "<-1>");
  EXPECT_EQ(text(DType::u16, 0xffff), "<65535>");
  EXPECT_EQ(text(DType::i32, 0xffffffff), "<-1>");
  EXPECT_EQ(text(DType::u32, 0xffffffff), "<4294967295>");
  EXPECT_EQ(text(DType::index, ~std::uint64_t(0)), "<-1>");
  EXPECT_EQ(text(DType::u64, ~std::uint64_t(0)), "<18446744073709551615>");
  EXPECT_EQ(text(DType::f32, 0x3dcccccd), "<0.1>");
  EXPECT_EQ(text(DType::f32, 0xffc00000), "<nan>");
  EXPECT_EQ(text(DType::f64, 0xfff0000000000000), "<-inf>");
  EXPECT_EQ(text(DType::f16, 0x8000), "<-0>");
  EXPECT_EQ(text(DType::bf16, 0x3f80), "<1>");
  EXPECT_EQ(text(DType::f8e5m2, 0x3c), "<1>");
}

constexpr const char* kPtx =
    ".version 8.0\n"
    "\t// begin inline asm\n"
    "\tld.global.b32 %r1, [%rd1];\n"
    "\t// end inline asm\n"
    "\tadd.s32 %r1, %r1, 1;\n"
    "\t// begin inline asm\n"
    "\t// dir/k.cpp:12\n"
    "\t{\n"
    "\tno.such %r1;\n"
    "\t}\n"
    "\t// end inline asm\n"
    "\tret;\n";

TEST(PtxLine, OfInlinePtxIsTheUsers) {
  for (int line : {7, 8, 9, 10, 11}) EXPECT_EQ(inline_ptx_place(kPtx, line), "dir/k.cpp:12") << line;
  for (int line : {1, 2, 3, 4, 5, 12, 99}) EXPECT_EQ(inline_ptx_place(kPtx, line), "") << line;
}

TEST(PtxLine, IsFoundInTheAssemblersLog) {
  EXPECT_EQ(
      blamed_place("ptxas application ptx input, line 9; error   : Not a name of any known instruction: 'no'\n", kPtx),
      "dir/k.cpp:12: error: inline_ptx: ");
  EXPECT_EQ(blamed_place("ptx:9: expected an instruction", kPtx), "dir/k.cpp:12: error: inline_ptx: ");
  EXPECT_EQ(blamed_place("ptxas application ptx input, line 5; error", kPtx), "");
  EXPECT_EQ(blamed_place("out of memory", kPtx), "");
}

}  // namespace
}  // namespace kiln::rt
