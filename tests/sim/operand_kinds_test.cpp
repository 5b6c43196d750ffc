// Which operands an instruction takes: kinds and widths of registers, constants, special registers, roundings of
// conversions. The assembler, where it is installed, must judge each line as the simulator does.
#include <gmock/gmock.h>

#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

using ::testing::HasSubstr;
using U32 = std::uint32_t;

std::string refusal(const std::string& body) {
  try {
    load(Device::simulator("sm_90a"), thread_program(body), "k");
  } catch (const DeviceError& e) {
    return e.what();
  }
  return {};
}
void expect_judged(const std::string& line, bool taken) {
  const auto tool = ptxas();
  if (!tool) return;
  EXPECT_EQ(assemble(*tool, thread_program(line), "sm_90a").accepted, taken) << line;
}
/// Lines that are all right, in one program.
void expect_taken(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) {
    EXPECT_EQ(refusal(line), "") << line;
    all += line + "\n";
  }
  expect_judged(all, true);
}
/// Lines that are none, each with what the simulator says.
void expect_refused(const std::vector<std::pair<std::string, std::string>>& lines) {
  for (const auto& [line, why] : lines) {
    EXPECT_THAT(refusal(line), HasSubstr(why)) << line;
    expect_judged(line, false);
  }
}

TEST(OperandKinds, OnlyMovAndIntegerCvtReadSpecialRegisters) {
  expect_taken({"mov.u32 %r2, %tid.x;", "mov.b32 %f1, %ntid.y;", "mov.s32 %r2, %laneid;", "mov.u16 %rs1, %tid.x;",
                "mov.u64 %rd3, %gridid;", "mov.u32 %r2, %gridid;", "mov.u64 %rd3, %clock64;", "mov.u32 %r2, %clock;",
                "cvt.u64.u32 %rd3, %tid.x;", "cvt.u16.u32 %rs1, %ntid.x;", "cvt.s64.s32 %rd3, %warpid;",
                "cvt.u32.u16 %r2, %tid.x;", "cvt.u32.u64 %r2, %clock64;", "cvt.u64.u32 %rd3, %clock;",
                "mov.b64 %rd3, {%tid.x, %tid.y};", "mov.v4.u32 {%r2, %r3, %r4, %r5}, %ctaid;",
                "add.s32 %r2, WARP_SZ, 5;"});
  const std::string why = "only mov and cvt between integers read a special register";
  expect_refused({{"add.s32 %r2, %ntid.x, 5;", why + "; add takes none"},
                  {"mad.lo.u32 %r2, %ntid.x, %ctaid.x, %tid.x;", why},
                  {"setp.eq.u32 %p1, %tid.x, 0;", why},
                  {"st.global.u32 [%rd1], %laneid;", why},
                  {"popc.b32 %r2, %lanemask_lt;", why},
                  {"cvt.rn.f32.u32 %f1, %tid.x;", why},
                  {"sub.u32 %r2, %clock, %r3;", why},
                  {"mov.u64 %rd3, %tid.x;", "%tid.x has 32 bits; mov.u64 does not read it"},
                  {"mov.u16 %rs1, %laneid;", "%laneid has 32 bits; mov.u16 does not read it"},
                  {"mov.f32 %f1, %tid.x;", "mov.f32 does not read it"},
                  {"mov.u32 %r2, %clock64;", "%clock64 has 64 bits; mov.u32 does not read it"},
                  {"mov.u32 %r2, %is_explicit_cluster;", "has 1 bit"},
                  {"cvt.u32.u64 %r2, %tid.x;", "cvt.u64 does not read it"}});
}
TEST(OperandKinds, ElementsOfSpecialRegistersHaveTwoNamesAndAFourthOfZero) {
  for (const char* name :
       {"tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"})
    expect_each({"mov.u32 %r2, %" + std::string(name) + ".w; mov.u32 %r3, %" + name + ".a; or.b32 %r9, %r2, %r3;"},
                [](U32) { return 0u; });
  expect_each({"mov.u32 %r2, %tid.r; mov.u32 %r3, %ntid.g; mad.lo.u32 %r9, %r3, 100, %r2;",
               "sm_90a",
               {{1, 1, 1}, {16, 1, 1}, 0}},
              [](U32 t) { return t + 100; });
  expect_each({"mov.u16 %rs1, %tid.x; cvt.u32.u16 %r9, %rs1;"}, [](U32 t) { return t; });
  expect_each({"cvt.u32.u16 %r2, %tid.x; mov.u64 %rd3, %clock64; cvt.u64.u32 %rd4, %tid.x; cvt.u32.u64 %r3, %rd4; "
               "add.u32 %r9, %r2, %r3;"},
              [](U32 t) { return 2 * t; });
}
TEST(OperandKinds, ConstantsAreOfTheOperationsKind) {
  expect_taken({"mov.f32 %f1, 3.0;", "mov.f32 %f1, 0f40400000;", "mov.f32 %f1, 0d4008000000000000;",
                "mov.f64 %fd1, 0f40400000;", "mov.b32 %r2, 0f40400000;", "mov.b64 %rd3, 3.0;", "mov.b32 %f1, 3;",
                "mov.f32 %f1, 1e5;", "mov.f32 %f1, 2.5e-3;", "mov.f32 %f1, .5;", "st.global.f32 [%rd1], 0.0;",
                "st.global.b32 [%rd1], 0f40400000;", "st.global.f64 [%rd1], 3.0;", "st.global.u8 [%rd1], 300;",
                "st.global.v2.f32 [%rd1], {1.0, %f1};"});
  const std::string integer = "where a float belongs", real = "a float of 64 bits where b32 belongs";
  expect_refused({{"mov.f32 %f1, 3;", "the integer 3 where a float belongs: write 3.0"},
                  {"mov.f64 %fd1, 3;", integer},
                  {"add.f32 %f1, %f2, 1;", integer},
                  {"setp.eq.f32 %p1, %f1, 0;", integer},
                  {"add.f16 %rs1, %rs2, 3;", integer},
                  {"st.global.f32 [%rd1], 0;", integer},
                  {"cvt.rn.f16.f32 %rs1, 3;", integer},
                  {"mov.b32 %r2, 3.0;", real},
                  {"st.global.b32 [%rd1], 3.0;", real},
                  {"mov.b64 %rd3, 0f40400000;", "a float of 32 bits where b64 belongs"},
                  {"mov.u32 %r2, 3.0;", "a float of 64 bits where u32 belongs"},
                  {"mov.f32 %f1, 1.0f;", "'1.0f' is not a number"}});
  expect_each({"mov.f32 %f1, 2.5e-1; mul.f32 %f1, %f1, 1e2; cvt.rzi.u32.f32 %r9, %f1;"}, [](U32) { return 25u; });
  expect_each({"mov.f32 %f1, 8.0-.5-1.5E+0; cvt.rzi.u32.f32 %r9, %f1;"}, [](U32) { return 6u; });
}
TEST(OperandKinds, RegistersAreOfTheOperationsKindAndWidth) {
  const std::string before = ".reg .u32 u; .reg .f32 f; .reg .u16 h;";
  for (const char* line : {"add.u32 %r2, u, %r3;", "mov.b32 u, f;", "add.f32 %f1, f, %r3;", "st.global.b32 [%rd1], f;",
                           "st.global.u32 [%rd1], %rd3;", "ld.global.u8 u, [%rd1];", "ld.global.b16 f, [%rd1];",
                           "cvt.u32.u16 u, h;", "cvt.rn.f16.f32 %r2, f;"})
    expect_taken({before + line});
  expect_refused({{before + "add.u32 %r2, f, %r3;", "register f is of f32, the operation needs u32"},
                  {before + "add.f32 f, u, f;", "register u is of u32, the operation needs f32"},
                  {before + "mov.u32 %r2, f;", "register f is of f32"},
                  {before + "setp.eq.u32 %p1, f, 0;", "register f is of f32"},
                  {before + "st.global.u32 [%rd1], f;", "register f is of f32"},
                  {before + "ld.global.u32 f, [%rd1];", "register f is of f32"},
                  {before + "cvt.u32.u32 %r2, f;", "register f is of f32"},
                  {before + "red.global.add.u32 [%rd1], f;", "register f is of f32"},
                  {"mov.b16 %rs1, %r2;", "register %r2 has 32 bits, the operation needs 16"},
                  {"add.u32 %r2, %rs1, %r3;", "register %rs1 has 16 bits, the operation needs 32"},
                  {"ld.global.f16 %rs1, [%rd1];", "this form is not supported"},
                  {"st.global.f16x2 [%rd1], %r2;", "this form is not supported"},
                  {"neg.u32 %r2, %r3;", "is of signed types only"},
                  {"abs.u64 %rd3, %rd4;", "is of signed types only"}});
}
TEST(OperandKinds, ConversionsHaveTheRoundingThatTheirTypesNeed) {
  expect_taken({"cvt.rni.u32.bf16 %r2, %rs1;", "cvt.rzi.s16.f32 %rs1, %f1;", "cvt.rn.bf16.u32 %rs1, %r2;",
                "cvt.rn.f32.f64 %f1, %fd1;", "cvt.f64.f32 %fd1, %f1;", "cvt.f32.bf16 %f1, %rs1;",
                "cvt.rn.f32.bf16 %f1, %rs1;", "cvt.bf16.f16 %rs1, %rs2;", "cvt.rz.f16.bf16 %rs1, %rs2;",
                "cvt.rni.f32.f32 %f1, %f2;", "cvt.f32.f32 %f1, %f2;", "cvt.rz.relu.f16.f32 %rs1, %f1;",
                "cvt.rna.tf32.f32 %r2, %f1;", "cvt.rn.relu.tf32.f32 %r2, %f1;", "cvt.sat.u8.u32 %r2, %r3;",
                "cvt.rzi.ftz.u32.f32 %r2, %f1;", "cvt.rn.sat.f16.f32 %rs1, %f1;"});
  const std::string needs = "these types need a rounding such as", none = "these types take no rounding";
  expect_refused({{"cvt.u32.bf16 %r2, %rs1;", needs + " '.rzi'"},
                  {"cvt.sat.u32.f32 %r2, %f1;", needs},
                  {"cvt.f32.u32 %f1, %r2;", needs + " '.rn'"},
                  {"cvt.f16.f32 %rs1, %f1;", needs},
                  {"cvt.bf16.f64 %rs1, %fd1;", needs},
                  {"cvt.tf32.f32 %r2, %f1;", needs},
                  {"cvt.rn.u32.f32 %r2, %f1;", needs},
                  {"cvt.rn.f64.f32 %fd1, %f1;", none + " '.rn'"},
                  {"cvt.rn.f32.f32 %f1, %f2;", none},
                  {"cvt.rni.f16.f32 %rs1, %f1;", none + " '.rni'"},
                  {"cvt.rni.f32.bf16 %f1, %rs1;", none},
                  {"cvt.rn.u32.u32 %r2, %r3;", none},
                  {"cvt.rna.relu.tf32.f32 %r2, %f1;", "'.relu' needs"},
                  {"cvt.rm.relu.f16.f32 %rs1, %f1;", "'.relu' needs"},
                  {"cvt.rm.satfinite.f16.f32 %rs1, %f1;", "'.satfinite' needs"},
                  {"cvt.rzi.ftz.u32.f64 %r2, %fd1;", "'.ftz' needs an f32"},
                  {"cvt.sat.f32.bf16 %f1, %rs1;", "no '.sat'"},
                  {"cvt.sat.u32.u32 %r2, %r3;", "no '.sat'"},
                  {"cvt.rzi.u8.bf16 %r2, %rs1;", "bf16 and integers of 8 bits"}});
}
TEST(OperandKinds, AddressesOfConstantsAreNotThoseOfGlobalMemory) {
  const auto with = [](const std::string& space) {
    return ThreadProgram{
        "mov.u64 %rd3, c; cvta.const.u64 %rd3, %rd3; mov.u64 %rd4, g; cvta.global.u64 %rd4, %rd4; "
        ".shared .b32 s; mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5; isspacep." +
            space + " %p1, %rd3; isspacep." + space + " %p2, %rd4; isspacep." + space + " %p3, %rd5; isspacep." +
            space +
            " %p4, %rd2; selp.u32 %r9, 1, 0, %p1; @%p2 add.u32 %r9, %r9, 10; @%p3 add.u32 %r9, %r9, "
            "100; @%p4 add.u32 %r9, %r9, 1000;",
        "sm_90a",
        {},
        ".const .align 4 .b32 c = 7; .global .align 4 .b32 g = 8;"};
  };
  expect_each(with("const"), [](U32) { return 1u; });
  expect_each(with("global"), [](U32) { return 1010u; });
  expect_each(with("shared"), [](U32) { return 100u; });
  // An address of 32 bits is none of a window above it.
  expect_each({"isspacep.shared %p1, %r1; selp.u32 %r9, 1, 0, %p1;"}, [](U32) { return 0u; });
}
TEST(OperandKinds, GenericAddressesOf32BitsAreThoseOfSharedMemory) {
  ThreadProgram p{
      ".shared .align 4 .b32 s; mov.u32 %r2, s; mov.u32 %r3, %cluster_ctarank; xor.b32 %r4, %r3, 1; mapa.u32 "
      "%r5, %r2, %r4; mapa.shared::cluster.u32 %r6, %r2, %r4; setp.eq.u32 %p1, %r5, %r6; selp.u32 %r9, 5, 0, "
      "%p1;",
      "sm_90a",
      {{2, 1, 1}, {32, 1, 1}, 0, {2, 1, 1}}};
  expect_each(std::move(p), [](U32) { return 5u; });
}

TEST(OperandKinds, NeedsAreNamedOnce) {
  const auto said = [](const std::string& line, const std::string& target, const std::string& version) {
    try {
      load(Device::simulator(target), thread_program(line, target, "", version), "k");
    } catch (const DeviceError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string tf32 = "cvt.rn.satfinite.tf32.f32 %r2, %f1;", e4m3 = "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;";
  EXPECT_THAT(said(tf32, "sm_80", "8.3"), HasSubstr("needs sm_100 or later, the module is for sm_80"));
  EXPECT_THAT(said(tf32, "sm_90", "8.3"), HasSubstr("needs sm_100 or later, the module is for sm_90"));
  EXPECT_THAT(said(e4m3, "sm_80", "8.3"), HasSubstr("needs sm_89 or later, the module is for sm_80"));
  EXPECT_THAT(said(e4m3, "sm_89", "8.0"), HasSubstr("needs PTX 8.1 or later"));
}
TEST(OperandKinds, BlocksHaveAtMost64LayersAlongZ) {
  const std::string ptx = thread_program("");
  const Device device = Device::simulator("sm_90a");
  Buffer<U32> out(device, 256), data(device, 1);
  EXPECT_NO_THROW(run(device, ptx, "k", {{1, 1, 1}, {2, 1, 64}, 0}, Params().add(out).add(data)));
  EXPECT_THAT(
      [&] {
        run(device, ptx, "k", {{1, 1, 1}, {2, 1, 65}, 0}, Params().add(out).add(data));
      },
      ::testing::ThrowsMessage<DeviceError>(HasSubstr("blocks of 65 threads along z; must be 1 to 64")));
}

}  // namespace
}  // namespace kiln::test
