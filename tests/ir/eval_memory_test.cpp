// The interpreter's programs, values and memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

#include "backend/ir/builder.h"
#include "tests/ir/op_samples.h"
#include "tests/ir/run.h"

namespace kiln::ir::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kCopy = R"(kernel "copy" stage=traced loc("k.cpp":1:1)
param "in" : ptr<const f32> access=read
param "out" : ptr<f32> access=write
param "n" : index access=read
{
  %0 = param index=0 : ptr<const f32>
  %1 = param index=1 : ptr<f32>
  %2 = param index=2 : index
  %3 = program_id axis=0 : index
  %4 = constant value=index(8) : index
  %5 = mul %3, %4 : index
  %6 = splat %5 : tile<8xindex>
  %7 = arange start=0 end=8 : tile<8xindex>
  %8 = add %6, %7 : tile<8xindex>
  %9 = splat %2 : tile<8xindex>
  %10 = lt %8, %9 : tile<8xi1>
  %11 = splat %0 : tile<8xptr<const f32>>
  %12 = ptr_add %11, %8 : tile<8xptr<const f32>>
  %13 = load %12, %10 : tile<8xf32> loc("k.cpp":5:1)
  %14 = splat %1 : tile<8xptr<f32>>
  %15 = ptr_add %14, %8 : tile<8xptr<f32>>
  %16 = constant value=f32(1) : f32
  %17 = splat %16 : tile<8xf32>
  %18 = add %13, %17 : tile<8xf32>
  store %15, %18, %10 loc("k.cpp":6:1)
})";

TEST(EvalPrograms, RunAllOfThem) {  // docs/pitfalls.md A43: 24 rows, block 8
  std::vector<float> in(24), out(24, -1);
  std::iota(in.begin(), in.end(), 0.f);
  Launch(kCopy).array(in).array(out).index(24)(3);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(out[std::size_t(i)], float(i) + 1);
}

TEST(EvalPrograms, OfAnEmptyGridTouchNothing) {  // docs/pitfalls.md A7
  std::vector<float> in(8), out(8, -1);
  Launch(kCopy).array(in).array(out).index(8)(0);
  EXPECT_THAT(out, Each(-1.f));
}

TEST(EvalPrograms, KnowTheirPlaceInThreeAxes) {
  const std::string text = R"(kernel "k" stage=traced
param "out" : ptr<i32> access=write
{
  %0 = program_id axis=0 : index
  %1 = program_id axis=1 : index
  %2 = program_id axis=2 : index
  %3 = num_programs axis=0 : index
  %4 = num_programs axis=1 : index
  %5 = mul %2, %4 : index
  %6 = add %5, %1 : index
  %7 = mul %6, %3 : index
  %8 = add %7, %0 : index
  %9 = param index=0 : ptr<i32>
  %10 = ptr_add %9, %8 : ptr<i32>
  %11 = cast %8 : i32
  %12 = constant value=i32(1) : i32
  %13 = add %11, %12 : i32
  store %10, %13
})";
  std::vector<std::int32_t> out(24);
  Launch(text).array(out)(4, 3, 2);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(out[std::size_t(i)], i + 1);
}

TEST(EvalMemory, MaskedLanesTouchNothing) {
  std::vector<float> in(13), out(24, -1);
  Launch(kCopy).array(in).array(out).index(13)(3);  // lanes 13 to 23 are outside of `in`
  EXPECT_EQ(out[12], 1);
  EXPECT_EQ(out[13], -1);
}

std::string load_store(DType d, const char* other) {  // out[i] = load(p[i], i < 3, other)
  const std::string t = name(d);
  return "kernel \"k\" stage=traced\nparam \"p\" : ptr<const " + t + "> access=read\nparam \"q\" : ptr<" + t +
         "> access=write\n{\n" +
         R"(  %0 = arange start=0 end=6 : tile<6xindex>
  %1 = constant value=index(3) : index
  %2 = splat %1 : tile<6xindex>
  %3 = lt %0, %2 : tile<6xi1>
)" + "  %4 = param index=0 : ptr<const " +
         t + ">\n  %5 = splat %4 : tile<6xptr<const " + t + ">>\n  %6 = ptr_add %5, %0 : tile<6xptr<const " + t +
         ">>\n  %7 = constant value=" + t + "(1) : " + t + "\n  %8 = splat %7 : tile<6x" + t + ">\n  %9 = load %6, %3" +
         other + " : tile<6x" + t + ">\n  %10 = param index=1 : ptr<" + t + ">\n  %11 = splat %10 : tile<6xptr<" + t +
         ">>\n  %12 = ptr_add %11, %0 : tile<6xptr<" + t + ">>\n  store %12, %9\n}";
}

TEST(EvalMemory, EveryDtypeLoadsAndStoresItsOwnBytesOnly) {
  for (DType d : all_dtypes()) {
    const auto size = std::size_t(bytes(d));
    std::vector<std::uint8_t> in(6 * size), zero(7 * size, 0xee), other(7 * size, 0xee);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = d == DType::i1 ? std::uint8_t(i % 2) : std::uint8_t(17 * i + 3);
    Launch(load_store(d, "")).array(in).array(zero)();
    Launch(load_store(d, ", %8")).array(in).array(other)();
    const std::uint64_t one = Literal::of_int(d, 1).bits;
    for (std::size_t i = 0; i < 3 * size; ++i) {
      EXPECT_EQ(zero[i], in[i]) << name(d);
      EXPECT_EQ(other[i], in[i]) << name(d);
      EXPECT_EQ(zero[3 * size + i], 0) << name(d);  // absent `other` is 0
    }
    for (std::size_t i = 3; i < 6; ++i) EXPECT_EQ(std::memcmp(&other[i * size], &one, size), 0) << name(d);
    for (std::size_t i = 6 * size; i < 7 * size; ++i) EXPECT_EQ(zero[i], 0xee) << name(d);
  }
}

TEST(EvalMemory, FillingBytesWithANegativeValueFillsEachAlone) {  // docs/pitfalls.md A42
  const std::string text = R"(kernel "k" stage=traced
param "p" : ptr<i8> access=write
{
  %0 = param index=0 : ptr<i8>
  %1 = splat %0 : tile<64xptr<i8>>
  %2 = arange start=0 end=64 : tile<64xindex>
  %3 = ptr_add %1, %2 : tile<64xptr<i8>>
  %4 = constant value=i8(-7) : i8
  %5 = splat %4 : tile<64xi8>
  store %3, %5
})";
  std::vector<std::int8_t> out(65, 1);
  Launch(text).array(out)();
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[std::size_t(i)], -7);
  EXPECT_EQ(out[64], 1);
}

TEST(EvalMemory, AnyNonzeroByteOfI1IsTrue) {
  std::vector<std::uint8_t> in{0, 1, 2, 0x80, 0xff, 0}, out(7);
  std::string text = load_store(DType::i1, "");
  text.replace(text.find("index(3)"), 8, "index(6)");
  Launch(text).array(in).array(out)();
  EXPECT_THAT(out, ElementsAre(0, 1, 1, 1, 1, 0, 0));
}

TEST(EvalMemory, StoresToOneAddressKeepTheLastElement) {
  const std::string text = R"(kernel "k" stage=traced
param "p" : ptr<i64> access=write
{
  %0 = param index=0 : ptr<i64>
  %1 = splat %0 : tile<2x4xptr<i64>>
  %2 = arange start=0 end=4 : tile<4xindex>
  %3 = expand_dims axis=0 %2 : tile<1x4xindex>
  %4 = broadcast %3 : tile<2x4xindex>
  %5 = arange start=1 end=3 : tile<2xindex>
  %6 = expand_dims axis=1 %5 : tile<2x1xindex>
  %7 = broadcast %6 : tile<2x4xindex>
  %8 = cast %7 : tile<2x4xi64>
  %9 = ptr_add %1, %4 : tile<2x4xptr<i64>>
  store %9, %8
})";
  std::vector<std::int64_t> out(4);
  Launch(text).array(out)();
  EXPECT_THAT(out, Each(2));
}

TEST(EvalMemory, OverlappingAndEqualBuffersFollowProgramOrder) {  // docs/pitfalls.md A24: in == out
  std::vector<float> data(24);
  std::iota(data.begin(), data.end(), 0.f);
  Launch run(kCopy);
  run.array(data).arg({DType::u64, 0x10000}).index(24)(3);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(data[std::size_t(i)], float(i) + 1);
}

TEST(EvalMemory, OffsetsHave64Bits) {  // docs/pitfalls.md A5, without the memory
  const std::string text = R"(kernel "k" stage=traced
param "p" : ptr<f16> access=write
param "n" : index access=read
{
  %0 = param index=0 : ptr<f16>
  %1 = param index=1 : index
  %2 = ptr_add %0, %1 : ptr<f16>
  %3 = constant value=f16(2) : f16
  store %2, %3 loc("k.cpp":9:1)
})";
  std::vector<std::uint16_t> end(4);
  const Function f = parse(text);
  const std::int64_t n = (std::int64_t(1) << 31) + 7;
  const std::uint64_t base = 0x7000000000;
  eval(f, {}, {{DType::u64, base}, Literal::of_int(DType::index, n)},
       {{reinterpret_cast<std::byte*>(end.data()), 8, base + 2 * std::uint64_t(n) - 4}});
  EXPECT_THAT(end, ElementsAre(0, 0, 0x4000, 0));
  eval(f, {}, {{DType::u64, base + 8}, Literal::of_int(DType::index, -3)},
       {{reinterpret_cast<std::byte*>(end.data()), 8, base}});
  EXPECT_EQ(end[1], 0x4000);
}

TEST(EvalMemory, AccessOutsideNamesLineAddressElementAndNearestBlock) {
  std::vector<float> in(23), out(24);
  EXPECT_EQ(Launch(kCopy).array(in).array(out).index(24).error(3),
            "k.cpp:5: error: load: 4 bytes at 0x1005c (element 7 of program (2,0,0)) are outside all memory, 4 bytes "
            "past the end "
            "of the block of 92 bytes at 0x10000");
  std::vector<float> whole(24), part(22);
  EXPECT_THAT(Launch(kCopy).array(whole).array(part).index(24).error(3),
              HasSubstr("k.cpp:6: error: store: 4 bytes at 0x20058"));
}

TEST(EvalMemory, AccessBeforeABlockOrWithoutAny) {
  std::vector<float> out(8);
  EXPECT_THAT(Launch(kCopy).arg({DType::u64, 0xfff0}).array(out).index(8).error(),
              HasSubstr("4 bytes at 0xfff0 (element 0 of program (0,0,0)) are outside all memory, 16 bytes before the "
                        "block of 32 bytes at 0x10000"));
  EXPECT_THAT(Launch(kCopy).arg({DType::u64, 64}).arg({DType::u64, 64}).index(8).error(),
              HasSubstr("there is no memory at all"));
}

TEST(EvalMemory, AccessThatStraddlesTheEndIsOutside) {
  std::vector<std::uint8_t> in(30);
  std::vector<float> out(8);
  EXPECT_THAT(
      Launch(kCopy).array(in).array(out).index(8).error(),
      HasSubstr("4 bytes at 0x1001c (element 7 of program (0,0,0)) are outside all memory, 2 bytes past the end"));
}

TEST(EvalMemory, NullAndMisalignedPointers) {
  std::vector<float> out(8);
  EXPECT_EQ(Launch(kCopy).arg({DType::u64, 0}).array(out).index(8).error(),
            "k.cpp:5: error: load: 4 bytes at 0x0 (element 0 of program (0,0,0)): null pointer");
  EXPECT_THAT(Launch(kCopy).arg({DType::u64, 0x10002}).array(out).index(8).error(),
              HasSubstr("4 bytes at 0x10002 (element 0 of program (0,0,0)) are not aligned to 4 bytes"));
}

TEST(EvalMemory, AWriteBeforeTheErrorStays) {
  std::vector<float> in(24), out(10, -1);
  EXPECT_NE(Launch(kCopy).array(in).array(out).index(24).error(3), "no error");
  EXPECT_EQ(out[7], 1);
}

TEST(EvalArguments, AreChecked) {
  std::vector<float> a(8);
  EXPECT_EQ(Launch(kCopy).array(a).error(), "k.cpp:1: error: copy: 1 arguments given, kernel takes 3");
  EXPECT_EQ(Launch(kCopy).array(a).array(a).arg(Literal::of_int(i32, 8)).error(),
            "k.cpp:1: error: copy: argument 2 (n): expected index, got i32");
  EXPECT_EQ(Launch(kCopy).index(3).array(a).index(8).error(),
            "k.cpp:1: error: copy: argument 0 (in): expected u64, got index");
}

TEST(EvalValues, ScalarsTilesAndFoldedConstantsAgree) {  // docs/pitfalls.md A13, A47 on all three
  Function f("k");
  f.params = {{Type::pointer(i64), "out", rt::Access::Write, 8, false},
              {Type::scalar(i64), "y", rt::Access::Read, 1, false}};
  Builder b(f);
  const SourceLoc at;
  const Value out = b.param(0, at), y = b.param(1, at), x = b.cast(b.arange(0, 16, at), i64, false, at);
  const auto store = [&](Value v, int row) {
    const Value offset = b.elementwise(
        Op::Add, {b.arange(0, 16, at), b.splat(b.constant(Literal::of_int(DType::index, row * 16), at), {16}, at)}, at);
    b.store(b.ptr_add(b.splat(out, {16}, at), offset, at), v, {}, CacheHint::Plain, at);
  };
  store(b.elementwise(Op::Div, {x, b.splat(y, {16}, at)}, at), 0);
  store(b.elementwise(Op::Rem, {x, b.splat(y, {16}, at)}, at), 1);
  store(b.splat(b.elementwise(Op::Div, {b.constant(Literal::of_int(i64, 15), at), y}, at), {16}, at), 2);
  for (std::int64_t divisor : {-2, 0, 5}) {
    std::vector<std::int64_t> got(48);
    Launch(f).array(got).arg(Literal::of_int(i64, divisor))();
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::int64_t q = divisor ? i / divisor : 0, r = divisor ? i % divisor : 0;
      EXPECT_EQ(got[std::size_t(i)], q);
      EXPECT_EQ(got[std::size_t(16 + i)], r);
      EXPECT_EQ(eval_elementwise(Op::Div, {Literal::of_int(i64, i), Literal::of_int(i64, divisor)}).as_int(), q);
    }
    EXPECT_EQ(got[32], divisor ? 15 / divisor : 0);
  }
}

TEST(EvalValues, BroadcastsSelectsAndReinterprets) {
  const std::string text = R"(kernel "k" stage=traced
param "out" : ptr<u32> access=write
{
  %0 = arange start=0 end=3 : tile<3xindex>
  %1 = expand_dims axis=1 %0 : tile<3x1xindex>
  %2 = broadcast %1 : tile<3x4xindex>
  %3 = arange start=0 end=4 : tile<4xindex>
  %4 = expand_dims axis=0 %3 : tile<1x4xindex>
  %5 = broadcast %4 : tile<3x4xindex>
  %6 = lt %2, %5 : tile<3x4xi1>
  %7 = cast %2 : tile<3x4xf32>
  %8 = cast %5 : tile<3x4xf32>
  %9 = select %6, %7, %8 : tile<3x4xf32>
  %10 = bitcast %9 : tile<3x4xu32>
  %11 = constant value=index(4) : index
  %12 = splat %11 : tile<3x4xindex>
  %13 = mul %2, %12 : tile<3x4xindex>
  %14 = add %13, %5 : tile<3x4xindex>
  %15 = param index=0 : ptr<u32>
  %16 = splat %15 : tile<3x4xptr<u32>>
  %17 = ptr_add %16, %14 : tile<3x4xptr<u32>>
  store %17, %10
})";
  std::vector<float> out(12);
  Launch(text).array(out)();
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 4; ++c) EXPECT_EQ(out[std::size_t(4 * r + c)], float(std::min(r, c)));
}

TEST(EvalSpeed, AddReluOfAMillionElementsTakesUnderTwoSeconds) {
  Function f("add_relu");
  f.params = {{Type::pointer(f32, true), "a"},
              {Type::pointer(f32, true), "b"},
              {Type::pointer(f32), "c", rt::Access::Write},
              {Type::scalar(DType::index), "n"}};
  Builder b(f);
  const SourceLoc at;
  const Value base =
      b.elementwise(Op::Mul, {b.program_id(0, at), b.constant(Literal::of_int(DType::index, 1024), at)}, at);
  const Value i = b.elementwise(Op::Add, {b.splat(base, {1024}, at), b.arange(0, 1024, at)}, at);
  const Value mask = b.elementwise(Op::Lt, {i, b.splat(b.param(3, at), {1024}, at)}, at);
  const auto pointers = [&](int k) { return b.ptr_add(b.splat(b.param(k, at), {1024}, at), i, at); };
  const auto load = [&](int k) { return b.load(pointers(k), mask, {}, CacheHint::Plain, at); };
  b.store(pointers(2), b.elementwise(Op::Relu, {b.elementwise(Op::Add, {load(0), load(1)}, at)}, at), mask,
          CacheHint::Plain, at);

  const std::size_t n = 1000000;
  std::vector<float> x(n), y(n), z(n);
  for (std::size_t k = 0; k < n; ++k) x[k] = float(k % 1000) - 500, y[k] = float(k % 7);
  std::vector<EvalBlock> blocks;
  std::vector<EvalArg> args;
  for (auto* v : {&x, &y, &z}) {
    const auto address = std::uint64_t(0x100000000) * (blocks.size() + 1);
    blocks.push_back({reinterpret_cast<std::byte*>(v->data()), n * 4, address});
    args.push_back({DType::u64, address});
  }
  args.push_back(Literal::of_int(DType::index, std::int64_t(n)));
  const auto start = std::chrono::steady_clock::now();
  eval(f, {{(std::int64_t(n) + 1023) / 1024, 1, 1}}, args, blocks);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, 2);
  for (std::size_t k = 0; k < n; ++k) ASSERT_EQ(z[k], std::max(0.f, x[k] + y[k]));
}

}  // namespace
}  // namespace kiln::ir::test
