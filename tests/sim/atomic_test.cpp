// Atomics: every operation on every type it has, in global and shared memory, with the old values that lanes get.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "runtime/base/float16.h"
#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

using ::testing::HasSubstr;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

/// What one lane's `op` (with operand %VALUE of the type) makes of `memory`, in global and in shared memory, as atom
/// and, where there is one, as red; the old value is checked too.
struct Case {
  std::string op, type;  ///< "add", "u32"
  U64 memory, operand, want;
  std::string extra = "";  ///< "noftz."
};

/// Bits of the element type.
int width(const std::string& type) { return type.ends_with("64") ? 64 : type.ends_with("16") ? 16 : 32; }

std::string hex(U64 v) { return std::to_string(static_cast<std::int64_t>(v)); }

void expect_case(const Case& c, bool shared, bool red) {
  const int w = width(c.type);
  const std::string reg = w == 64 ? "%rd" : w == 16 ? "%rs" : "%r", b = "b" + std::to_string(w);
  const std::string space = shared ? "shared" : "global", at = shared ? "[%r2]" : "[%rd2]";
  const std::string form = c.op + (c.extra.empty() ? "" : "." + c.extra) + "." + c.type;
  std::string body =
      ".shared .align 8 .b8 cell[8]; mov.u32 %r2, cell; ld.global.b64 %rd3, [%rd2]; st.shared.b64 [%r2], %rd3; "
      "setp.ne.u32 %p1, %r1, 0; @%p1 bra END;\n";
  body += "mov." + b + " " + reg + "5, " + hex(w == 16 ? static_cast<std::uint16_t>(c.operand) : c.operand) + ";\n";
  if (red) body += "red." + space + "." + form + " " + at + ", " + reg + "5;\n";
  else
    body += "atom." + space + "." + form + " " + reg + "6, " + at + ", " + reg + "5; st.global." + b + " [%rd2+8], " +
            reg + "6;\n";
  body += "ld." + space + "." + b + " " + reg + "7, " + at + "; st.global." + b + " [%rd2+16], " + reg + "7;\nEND:";
  ThreadProgram p{body, "sm_90a", {}, "", {static_cast<U32>(c.memory), static_cast<U32>(c.memory >> 32), 0, 0, 0, 0}};
  p.run();
  const U64 mask = w == 64 ? ~U64{0} : (U64{1} << w) - 1;
  const U64 old = (p.data[2] | U64{p.data[3]} << 32) & mask;
  EXPECT_EQ(old, red ? 0 : c.memory & mask) << form << " in " << space << ": old value";
  EXPECT_EQ((p.data[4] | U64{p.data[5]} << 32) & mask, c.want & mask)
      << form << " in " << space << (red ? " as red" : "");
}

U32 f(float v) { return std::bit_cast<U32>(v); }
U64 d(double v) { return std::bit_cast<U64>(v); }
U32 h(float v) { return std::bit_cast<std::uint16_t>(f16(v)); }
U32 bh(float v) { return std::bit_cast<std::uint16_t>(bf16(v)); }

TEST(AtomicTypes, EveryOperationHasItsTypes) {
  const U64 minus5 = static_cast<U64>(-5), big = U64{1} << 40;
  const std::vector<Case> cases{
      {"add", "u32", 0xFFFFFFFF, 3, 2},
      {"add", "s32", 0x7FFFFFFF, 1, 0x80000000},
      {"add", "u64", big, big, 2 * big},
      {"add", "f32", f(1.5f), f(2.25f), f(3.75f)},
      {"add", "f64", d(1.5), d(0x1p-40), d(1.5 + 0x1p-40)},
      {"add", "f16", h(2048), h(1), h(2048), "noftz"},
      {"add", "bf16", bh(256), bh(3), bh(260), "noftz"},
      {"add", "f16x2", h(1) | h(2) << 16, h(3) | h(-2) << 16, h(4), "noftz"},
      {"add", "bf16x2", bh(1) | bh(2) << 16, bh(3) | bh(5) << 16, bh(4) | bh(7) << 16, "noftz"},
      {"min", "u32", minus5, 7, 7},
      {"min", "s32", minus5, 7, minus5},
      {"max", "u32", minus5, 7, minus5},
      {"max", "s32", minus5, 7, 7},
      {"min", "u64", minus5, big, big},
      {"min", "s64", minus5, big, minus5},
      {"max", "u64", minus5, big, minus5},
      {"max", "s64", minus5, big, big},
      {"and", "b32", 0b1100, 0b1010, 0b1000},
      {"or", "b32", 0b1100, 0b1010, 0b1110},
      {"xor", "b32", 0b1100, 0b1010, 0b0110},
      {"and", "b64", big | 3, big | 5, big | 1},
      {"or", "b64", big | 3, 5, big | 7},
      {"xor", "b64", big | 3, big | 5, 6},
      {"inc", "u32", 8, 9, 9},
      {"inc", "u32", 9, 9, 0},
      {"dec", "u32", 0, 9, 9},
      {"dec", "u32", 12, 9, 9},
      {"dec", "u32", 4, 9, 3},
  };
  for (const Case& c : cases)
    for (const bool shared : {false, true})
      for (const bool red : {false, true}) expect_case(c, shared, red);
  for (const bool shared : {false, true}) {
    expect_case({"exch", "b32", 5, 8, 8}, shared, false);
    expect_case({"exch", "b64", big, 8, 8}, shared, false);
  }
}

TEST(AtomicTypes, SharedFloatAdditionKeepsSubnormals) {
  expect_case({"add", "f32", 1, 2, 3}, true, false);
  expect_case({"add", "f32", 1, 2, 0}, false, false);
}

TEST(AtomicTypes, CompareAndSwapSetsOnAMatch) {
  const auto swapped = [](const std::string& type, const std::string& reg, U64 compare) {
    ThreadProgram p{"setp.ne.u32 %p1, %r1, 0; @%p1 bra END; mov.b" + type + " " + reg + "5, " + hex(compare) +
                        "; mov.b" + type + " " + reg + "6, 77; atom.global.acq_rel.gpu.cas.b" + type + " " + reg +
                        "7, [%rd2], " + reg + "5, " + reg + "6; st.global.b" + type + " [%rd2+8], " + reg + "7; END:",
                    "sm_90a",
                    {},
                    "",
                    {41, 0, 0, 0}};
    p.run();
    EXPECT_EQ(p.data[2], 41u) << type;
    return p.data[0];
  };
  for (const auto& [type, reg] :
       std::vector<std::pair<std::string, std::string>>{{"16", "%rs"}, {"32", "%r"}, {"64", "%rd"}}) {
    EXPECT_EQ(swapped(type, reg, 41), 77u) << type;
    EXPECT_EQ(swapped(type, reg, 42), 41u) << type;
  }
}

TEST(AtomicTypes, SixteenBytesAreOneValue) {
  // Lane 0 alone; what was there goes to data[4 … 7].
  const auto one_lane = [](const std::string& body, std::vector<U32> data) {
    ThreadProgram p{
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra END;\n{ .reg .b128 %q<4>; mov.b64 %rd5, 0x200000001; mov.b64 "
        "%rd6, 0x400000003; mov.b128 %q1, {%rd5, %rd6}; mov.b64 %rd7, 77; mov.b128 %q2, {%rd7, %rd7};\n" +
            body + "\nst.global.b128 [%rd2+16], %q3; }\nEND:",
        "sm_90a",
        {},
        "",
        std::move(data)};
    p.run();
    return p.data;
  };
  const std::vector<U32> counted{1, 2, 3, 4, 0, 0, 0, 0};
  EXPECT_EQ(one_lane("atom.global.exch.b128 %q3, [%rd2], %q2;", counted), (std::vector<U32>{77, 0, 77, 0, 1, 2, 3, 4}));
  EXPECT_EQ(one_lane("atom.acq_rel.gpu.global.cas.b128 %q3, [%rd2], %q1, %q2;", counted),
            (std::vector<U32>{77, 0, 77, 0, 1, 2, 3, 4}));
  // One differing bit in the upper half is enough.
  EXPECT_EQ(one_lane("atom.global.cas.b128 %q3, [%rd2], %q1, %q2;", {1, 2, 3, 5, 0, 0, 0, 0}),
            (std::vector<U32>{1, 2, 3, 5, 1, 2, 3, 5}));
  EXPECT_EQ(one_lane(".shared .align 16 .b8 s[16]; st.shared.b128 [s], %q1; atom.shared.exch.b128 %q3, [s], %q2; "
                     "ld.shared.b128 %q1, [s]; st.global.b128 [%rd2], %q1;",
                     counted),
            (std::vector<U32>{77, 0, 77, 0, 1, 2, 3, 4}));
}

TEST(AtomicTypes, OrdersAndScopesAreTaken) {
  std::string body;
  for (const char* order : {"relaxed", "acquire", "release", "acq_rel"})
    for (const char* scope : {"cta", "cluster", "gpu", "sys"})
      body += "atom." + std::string(order) + "." + scope + ".global.add.u32 %r2, [%rd2], 1;\n";
  for (const char* order : {"relaxed", "release"})
    for (const char* scope : {"cta", "cluster", "gpu", "sys"})
      body += "red." + std::string(order) + "." + scope + ".global.add.u32 [%rd2], 1;\n";
  ThreadProgram p{body};
  p.run();
  EXPECT_EQ(p.data[0], 24u * 32);
}

TEST(AtomicVectors, ElementsAreUpdatedOneByOne) {
  const auto one_lane = [](const std::string& body, std::vector<U32> data) {
    ThreadProgram p{"setp.ne.u32 %p1, %r1, 0; @%p1 bra END;\n" + body + "\nEND:", "sm_90a", {}, "", std::move(data)};
    p.run();
    return p.data;
  };
  const auto add4 = one_lane(
      "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; atom.global.v4.f32.add {%f3, %f4, %f5, %f6}, [%rd2], {%f1, "
      "%f2, %f1, "
      "%f2}; st.global.v4.f32 [%rd2+16], {%f3, %f4, %f5, %f6};",
      {f(10), f(20), f(30), f(40), 0, 0, 0, 0});
  EXPECT_EQ(add4, (std::vector<U32>{f(11), f(22), f(31), f(42), f(10), f(20), f(30), f(40)}));
  const auto max2 = one_lane("mov.b32 %r2, " + hex(h(5) | h(-7) << 16) +
                                 "; mov.b32 %r3, 0x7FFF7FFF; red.global.v2.f16x2.max.noftz [%rd2], {%r2, %r3};",
                             {h(4) | h(4) << 16, h(1) | h(2) << 16});
  EXPECT_EQ(max2, (std::vector<U32>{h(5) | h(4) << 16, h(1) | h(2) << 16}));  // a NaN does not replace a number
  const auto min8 = one_lane(
      "mov.b16 %rs1, 0; mov.b16 %rs2, 0x8000; red.global.v8.bf16.min.noftz [%rd2], {%rs1, %rs2, %rs1, %rs1, "
      "%rs1, %rs1, %rs1, %rs1};",
      {bh(1) | 0u << 16, bh(-3) | bh(3) << 16, 0x8000, 0});
  EXPECT_EQ(min8, (std::vector<U32>{0x80000000, bh(-3), 0x8000, 0}));  // −0 is less than +0
  const auto add2 = one_lane("mov.b16 %rs1, " + hex(bh(2)) +
                                 "; atom.global.v2.bf16.add.noftz {%rs3, _}, [%rd2], {%rs1, %rs1}; "
                                 "st.global.b16 [%rd2+4], %rs3;",
                             {bh(5) | bh(6) << 16, 0});
  EXPECT_EQ(add2, (std::vector<U32>{bh(7) | bh(8) << 16, bh(5)}));
}

TEST(AtomicFaults, VectorsAreAlignedAsAWhole) {
  EXPECT_THAT(fault_of({"mov.f32 %f1, 0f3F800000; red.global.v4.f32.add [%rd2+8], {%f1, %f1, %f1, %f1};",
                        "sm_90a",
                        {},
                        "",
                        std::vector<U32>(8)}),
              HasSubstr("misaligned global atomic of 16 bytes"));
}

TEST(AtomicFaults, FormsThatPtxDoesNotHaveAreRefused) {
  const auto refused = [](const std::string& body) {
    try {
      load(Device::simulator("sm_90a"), thread_program(body), "k");
    } catch (const DeviceError& e) {
      return std::string(e.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(refused("atom.global.and.u32 %r2, [%rd2], 1;"), HasSubstr("this form is not supported"));
  EXPECT_THAT(refused("atom.shared.v2.f32.add {%f1, %f2}, [%r2], {%f1, %f2};"),
              HasSubstr("this form is not supported"));
  EXPECT_THAT(refused("red.global.exch.b32 [%rd2], 1;"), HasSubstr("red has no modifier '.exch' here"));
  EXPECT_THAT(refused("atom.global.exch.b128 %rd3, [%rd2], %rd4;"),
              HasSubstr("%rd3 has 64 bits, the operation needs 128"));
  EXPECT_THAT(refused("{ .reg .b128 %q<3>; atom.global.add.b128 %q1, [%rd2], %q2; }"),
              HasSubstr("this form is not supported"));
  const std::string exchange = thread_program("{ .reg .b128 %q<3>; atom.global.exch.b128 %q1, [%rd2], %q2; }", "sm_80");
  EXPECT_THAT([&] { load(Device::simulator("sm_80"), exchange, "k"); },
              ::testing::ThrowsMessage<DeviceError>(HasSubstr("needs sm_90 or later")));
}

TEST(Redux, FloatExtremes) {
  // Lane 3 holds a NaN, lane 4 −0, the others their number − 20; sm_100a alone has these.
  const std::string values =
      "cvt.rn.f32.s32 %f1, %r1; add.f32 %f1, %f1, 0fC1A00000; setp.eq.u32 %p1, %r1, 3; selp.f32 %f1, "
      "0f7FC00000, %f1, %p1;\n";
  const auto reduced = [&](const std::string& op) {
    return ThreadProgram{values + "redux.sync." + op + ".f32 %f2, %f1, -1; mov.b32 %r9, %f2;", "sm_100a"}.run()[7];
  };
  EXPECT_EQ(reduced("min"), f(-20));
  EXPECT_EQ(reduced("max"), f(11));
  EXPECT_EQ(reduced("max.abs"), f(20));
  EXPECT_EQ(reduced("min.abs"), f(0));
  EXPECT_EQ(reduced("min.NaN"), 0x7FFFFFFFu);
  EXPECT_EQ(reduced("max.abs.NaN"), 0x7FFFFFFFu);
  const std::string zeros = "mov.f32 %f1, 0f00000000; setp.eq.u32 %p1, %r1, 4; selp.f32 %f1, 0f80000000, %f1, %p1;\n";
  EXPECT_EQ((ThreadProgram{zeros + "redux.sync.min.f32 %f2, %f1, -1; mov.b32 %r9, %f2;", "sm_100a"}.run()[7]),
            0x80000000u);
  EXPECT_EQ((ThreadProgram{zeros + "redux.sync.max.f32 %f2, %f1, -1; mov.b32 %r9, %f2;", "sm_100a"}.run()[7]), 0u);
}

}  // namespace
}  // namespace kiln::test
