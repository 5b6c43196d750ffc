// What tensor maps and copies of boxes refuse: arguments of a map, and copies that do not fit it.
#include <gmock/gmock.h>

#include "tests/sim/tensor_case.h"

namespace kiln::test::tensors {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::function<void(TensorSpec&)>& change) {
  std::string first;
  for (const Device& d : devices()) {
    Buffer<float> tensor(d, 4096);
    TensorSpec s = Case{DType::f32, {64, 64}, {32, 8}, {0, 0}}.spec(tensor.ptr());
    change(s);
    std::string what = "no error";
    try {
      TensorMap::encode(d, s);
    } catch (const UserError& e) {
      what = e.what();
      if (const auto at = what.find(d.name()); at != what.npos) what.replace(at, d.name().size(), "the device");
    }
    if (first.empty()) first = what;
    EXPECT_EQ(what, first) << d.name();
  }
  return first;
}

TEST(TensorMaps, ArgumentsAreChecked) {
  EXPECT_THAT(refusal([](TensorSpec&) {}), HasSubstr("no error"));
  EXPECT_THAT(refusal([](TensorSpec& s) { s.rank = 6; }), HasSubstr("tensor map: rank is 6; must be 1 to 5"));
  EXPECT_THAT(refusal([](TensorSpec& s) { s.rank = 0; }), HasSubstr("rank is 0; must be 1 to 5"));
  EXPECT_THAT(refusal([](TensorSpec& s) { s.sizes[1] = 0; }), HasSubstr("sizes[1] is 0; must be 1 to 2^32"));
  EXPECT_THAT(refusal([](TensorSpec& s) { s.box[1] = 257; }), HasSubstr("box[1] is 257; must be 1 to 256"));
  EXPECT_THAT(refusal([](TensorSpec& s) { s.steps[1] = 9; }), HasSubstr("steps[1] is 9; must be 1 to 8"));
  EXPECT_THAT(refusal([](TensorSpec& s) { s.steps[0] = 2; }), HasSubstr("steps[0] is 2; must be 1"));
  EXPECT_THAT(refusal([](TensorSpec& s) { s.strides[0] = 24; }),
              HasSubstr("strides[0] is 24 bytes; must be a multiple of 16"));
  EXPECT_THAT(refusal([](TensorSpec& s) { s.box[0] = 6; }),
              HasSubstr("box[0] is 6 elements of f32, 24 bytes; must be a multiple of 16"));
  EXPECT_THAT(refusal([](TensorSpec& s) { s.swizzle = TensorSwizzle::Bytes64; }),
              HasSubstr("box[0] is 128 bytes; a swizzle of 64 bytes takes no more"));
  EXPECT_THAT(refusal([](TensorSpec& s) { s.dtype = DType::i32, s.fill = TensorFill::NaN; }),
              HasSubstr("fill is NaN, but dtype is i32"));
  EXPECT_THAT(refusal([](TensorSpec& s) { s.dtype = DType::i32, s.floats = TensorFloat::Tf32; }),
              HasSubstr("floats changes elements of f32, but dtype is i32"));
}
TEST(TensorMaps, TheBaseIsMemoryOfTheDevice) {
  const Device d = Device::simulator(kTarget);
  Buffer<float> tensor(d, 4096);
  EXPECT_THAT(refusal([](TensorSpec& s) { s.base = 64; }), HasSubstr("base is 0x40, which is no memory of the device"));
}
TEST(TensorMaps, OlderTargetsHaveNone) {
  const Device d = Device::simulator("sm_80");
  Buffer<float> tensor(d, 4096);
  try {
    TensorMap::encode(d, Case{DType::f32, {64, 64}, {32, 8}, {0, 0}}.spec(tensor.ptr()));
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_THAT(e.what(), HasSubstr("has no tensor maps"));
  }
}

std::string fault(const std::string& copy, const std::function<void(TensorMap&)>& change = {}, U32 shift = 0) {
  const Device d = Device::simulator(kTarget);
  Case c{DType::f32, {64, 64}, {32, 8}, {0, 0}};
  c.shift = shift;
  Buffer<U8> tensor(d, c.memory()), data(d, kTile);
  tensor.fill_bytes(0);
  data.fill_bytes(0);
  TensorMap map = TensorMap::encode(d, c.spec(tensor.ptr()));
  if (change) change(map);
  try {
    run(d, kernel(copy, copy.find("mbarrier") != std::string::npos), "k", kBlock, params(data, map, c, 1024));
  } catch (const DeviceError& e) {
    return e.what();
  }
  return "no fault";
}

TEST(TensorFaults, AMapThatIsNoneIsReported) {
  const auto spoil = [](TensorMap& m) { const_cast<std::byte*>(m.bytes())[20] ^= std::byte{1}; };
  EXPECT_THAT(fault(load_text(2), spoil), HasSubstr("are no tensor map made for this device"));
  EXPECT_THAT(fault(store_text(2), spoil), HasSubstr("are no tensor map made for this device"));
  EXPECT_THAT(fault("mov.u64 %rd2, %rd1; " + store_text(2)), HasSubstr("are no tensor map made for this device"));
  EXPECT_THAT(fault("add.s64 %rd2, %rd2, 32; " + store_text(2)), HasSubstr("misaligned tensor map"));
}
TEST(TensorFaults, DimensionsAgree) {
  EXPECT_THAT(fault(store_text(3)), HasSubstr("a copy of 3 dimensions by a tensor map of 2"));
}
TEST(TensorFaults, TilesAreAligned) {
  EXPECT_THAT(fault(load_text(2), {}, 64), HasSubstr("misaligned destination of a tensor copy"));
  EXPECT_THAT(fault(store_text(2), {}, 16), HasSubstr("misaligned source of a tensor copy"));
}
TEST(TensorFaults, FirstCoordinatesAreWholeUnits) {
  const std::string misaligned = "first coordinate is 6, byte 24 of a row, which is no multiple of 16";
  for (const std::string& copy : {load_text(2), store_text(2), store_text(2, "add")})
    EXPECT_THAT(fault("mov.u32 %r10, 6; " + copy), HasSubstr(misaligned));
  EXPECT_THAT(fault("mov.u32 %r10, -4; mov.u32 %r11, 3; " + load_text(2)), HasSubstr("no fault"));
}
TEST(TensorFaults, StoredBoxesBeginInsideOrBehind) {
  EXPECT_THAT(fault("mov.u32 %r11, -1; " + store_text(2)), HasSubstr("coordinate 1 of a stored box is -1"));
  EXPECT_THAT(fault("mov.u32 %r10, -32; " + store_text(2, "add")), HasSubstr("coordinate 0 of a stored box is -32"));
  EXPECT_THAT(fault("mov.u32 %r11, 1000; " + store_text(2)), HasSubstr("no fault"));
}
TEST(TensorFaults, ElementsHaveTheReduction) {
  EXPECT_THAT(fault(store_text(2, "xor")), HasSubstr("a reduction that elements of f32 do not have"));
}
TEST(TensorFaults, MissingWaitsDeadlock) {
  // One byte more than arrives is expected.
  std::string copy = load_text(2);
  const std::string bytes = ", %r9;";
  copy.replace(copy.find(bytes), bytes.size(), ", 1040;");
  EXPECT_THAT(fault(copy), AllOf(HasSubstr("deadlock"), HasSubstr("0 of 1 arrivals and 16 bytes are missing")));
}
TEST(TensorFaults, OtherModesAreRefusedByName) {
  EXPECT_THAT(fault("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r2], [%rd2, "
                    "{%r10, %r11, %r12}], [%r3], {%rs1};"),
              HasSubstr("cp.async.bulk.tensor has no modifier '.im2col' here"));
  EXPECT_THAT(fault("tensormap.replace.tile.global_dim.global.b1024.b32 [%rd2], 0, %r10;"),
              HasSubstr("'tensormap' is not known"));
}

}  // namespace
}  // namespace kiln::test::tensors
