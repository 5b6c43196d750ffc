// Builder: inferred types, and errors at the user's line that give both types.
#include "backend/ir/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/ir/text.h"
#include "backend/ir/verify.h"
#include "runtime/base/error.h"

namespace kiln::ir::test {
namespace {

using testing::HasSubstr;

class BuilderTest : public testing::Test {
 protected:
  BuilderTest() {
    f.params = {{Type::pointer(f32, true), "in", rt::Access::Read, 16, false},
                {Type::pointer(f32), "out", rt::Access::Write, 16, false},
                {Type::scalar(DType::index), "n", rt::Access::Read, 1, false},
                {Type::scalar(f32), "s", rt::Access::Read, 1, false}};
    in = b.param(0, at);
    out = b.param(1, at);
    n = b.param(2, at);
    s = b.param(3, at);
    i = b.arange(0, 8, at);
    tile = b.splat(s, {8}, at);
  }
  template <class F>
  void expect_error(F&& make, const std::string& message) {
    try {
      make();
      FAIL() << "no error, expected: " << message;
    } catch (const UserError& e) {
      EXPECT_EQ(std::string(e.what()), "k.cpp:42: error: " + message);
    }
  }
  std::string type(Value v) const { return f.type(v).str(); }

  Function f{"k"};
  Builder b{f};
  SourceLoc at{"k.cpp", 42, 3};
  Value in, out, n, s, i, tile;
};

TEST_F(BuilderTest, InfersTypes) {
  EXPECT_EQ(type(i), "tile<8xindex>");
  EXPECT_EQ(type(b.program_id(2, at)), "index");
  EXPECT_EQ(type(b.elementwise(Op::Add, {tile, tile}, at)), "tile<8xf32>");
  EXPECT_EQ(type(b.elementwise(Op::Lt, {i, b.splat(n, {8}, at)}, at)), "tile<8xi1>");
  EXPECT_EQ(type(b.expand_dims(i, 0, at)), "tile<1x8xindex>");
  EXPECT_EQ(type(b.expand_dims(i, 1, at)), "tile<8x1xindex>");
  EXPECT_EQ(type(b.broadcast(b.expand_dims(i, 1, at), {8, 5}, at)), "tile<8x5xindex>");
  EXPECT_EQ(type(b.cast(i, DType::bf16, false, at)), "tile<8xbf16>");
  EXPECT_EQ(type(b.bitcast(s, u32, at)), "u32");
  EXPECT_EQ(type(b.ptr_add(b.splat(in, {8}, at), i, at)), "tile<8xptr<const f32>>");
  EXPECT_EQ(type(b.load(b.splat(in, {8}, at), {}, {}, CacheHint::Plain, at)), "tile<8xf32>");
  EXPECT_EQ(type(b.load(in, {}, {}, CacheHint::Plain, at)), "f32");
  EXPECT_EQ(format(f, verify(f)), "");
}

TEST_F(BuilderTest, KeepsLocations) { EXPECT_EQ(f.loc_of(tile).str(), "k.cpp:42"); }

TEST_F(BuilderTest, DropsOtherWithoutAMask) {
  const Value v = b.load(in, {}, s, CacheHint::Plain, at);
  EXPECT_EQ(f.inst(f.def(v)).operands.size(), 1u);
}

TEST_F(BuilderTest, RefusesOperandsThatDoNotFit) {
  const Value d = b.cast(s, f64, false, at), m = b.splat(b.elementwise(Op::Lt, {s, s}, at), {4}, at);
  const Value narrow = b.cast(s, DType::f8e4m3, false, at);
  expect_error([&] { b.elementwise(Op::Add, {s, d}, at); }, "add: operand types differ: f32, f64");
  expect_error([&] { b.elementwise(Op::Add, {s, tile}, at); }, "add: operand types differ: f32, tile<8xf32>");
  expect_error([&] { b.elementwise(Op::Add, {s}, at); }, "add: has 1 operands, takes (a, b)");
  expect_error(
      [&] {
        b.elementwise(Op::Add, {in, in}, at);
      },
      "add: takes integers, index, f16, bf16, f32, f64, not ptr<const f32>");
  expect_error(
      [&] {
        b.elementwise(Op::Add, {narrow, narrow}, at);
      },
      "add: takes integers, index, f16, bf16, f32, f64, not f8e4m3");
  expect_error([&] { b.elementwise(Op::Floor, {n}, at); }, "floor: takes f16, bf16, f32, f64, not index");
  expect_error([&] { b.elementwise(Op::Exp, {d}, at); }, "exp: takes f16, bf16, f32, not f64");
  expect_error([&] { b.elementwise(Op::Shl, {s, s}, at); }, "shl: takes integers, index, not f32");
  expect_error([&] { b.elementwise(Op::And, {s, s}, at); }, "and: takes i1, integers, index, not f32");
  expect_error([&] { b.elementwise(Op::Add, {s, s}, at, true); }, "add: has no attribute fast");
  expect_error([&] { b.elementwise(Op::Div, {n, n}, at, true); },
               "div: has a fast form for f16, bf16, f32, f64, not for index");
  expect_error([&] { b.select(m, tile, tile, at); }, "select: condition is tile<4xi1>, must be tile<8xi1>");
  expect_error([&] { b.select(m, tile, s, at); }, "select: branches differ: tile<8xf32> and f32");
  expect_error([&] { b.splat(tile, {8}, at); }, "splat: takes a scalar, not tile<8xf32>");
  expect_error([&] { b.splat(s, {8, 0}, at); }, "splat: extents of a tile are positive, shape is [8,0]");
  expect_error(
      [&] {
        b.splat(s, {1 << 11, 1 << 10}, at);
      },
      "splat: tile of shape [2048,1024] has more than 1048576 elements");
  expect_error([&] { b.arange(5, 5, at); }, "arange: end must be above start, range is 5 to 5");
  expect_error([&] { b.arange(INT64_MIN, INT64_MAX, at); },
               "arange: range -9223372036854775808 to 9223372036854775807 has more than 1048576 elements");
  expect_error([&] { b.expand_dims(tile, 2, at); }, "expand_dims: axis 2 is not in 0 to 1 for tile<8xf32>");
  expect_error([&] { b.expand_dims(s, 0, at); }, "expand_dims: takes a tile, not f32");
  expect_error([&] { b.broadcast(tile, {4}, at); }, "broadcast: tile<8xf32> does not broadcast to shape [4]");
  expect_error([&] { b.broadcast(tile, {8, 8}, at); }, "broadcast: tile<8xf32> does not broadcast to shape [8,8]");
  expect_error([&] { b.program_id(3, at); }, "program_id: grid axes are 0, 1 and 2, axis is 3");
  expect_error([&] { b.param(9, at); }, "param: kernel has 4 parameters, index is 9");
  expect_error([&] { b.bitcast(s, f64, at); }, "bitcast: widths differ: f32 read as f64");
  expect_error([&] { b.cast(in, f32, false, at); }, "cast: pointers are not converted: ptr<const f32> to f32");
  expect_error([&] { b.cast(s, i32, true, at); },
               "cast: saturate is for float results, i32 always saturates from float and wraps from int");
  expect_error([&] { b.ptr_add(s, n, at); }, "ptr_add: takes a pointer, not f32");
  expect_error([&] { b.ptr_add(in, s, at); }, "ptr_add: offset must be an integer, is f32");
  expect_error([&] { b.ptr_add(in, i, at); }, "ptr_add: shapes differ: ptr<const f32> and tile<8xindex>");
}

TEST_F(BuilderTest, RefusesMemoryAccessesThatDoNotFit) {
  const Value ptrs = b.splat(in, {8}, at), flag = b.elementwise(Op::Lt, {s, s}, at), d = b.cast(s, f64, false, at);
  expect_error([&] { b.load(s, {}, {}, CacheHint::Plain, at); }, "load: takes a pointer, not f32");
  expect_error([&] { b.load(ptrs, flag, {}, CacheHint::Plain, at); },
               "load: mask is i1, must be tile<8xi1> for a pointer of tile<8xptr<const f32>>");
  expect_error([&] { b.load(in, flag, d, CacheHint::Plain, at); },
               "load: other is f64, must be f32 for a pointer of ptr<const f32>");
  expect_error([&] { b.store(in, s, {}, CacheHint::Plain, at); },
               "store: pointer is ptr<const f32>, which is read only");
  expect_error([&] { b.store(out, d, {}, CacheHint::Plain, at); }, "store: value is f64, pointer is ptr<f32>");
  expect_error([&] { b.store(out, tile, {}, CacheHint::Plain, at); },
               "store: value is tile<8xf32>, pointer is ptr<f32>");
  expect_error([&] { b.store(out, s, n, CacheHint::Plain, at); },
               "store: mask is index, must be i1 for a pointer of ptr<f32>");
}

TEST_F(BuilderTest, AppendsControlFlowForTheCallerToFill) {
  const InstId branch = b.append(Op::If, {b.elementwise(Op::Lt, {s, s}, at)}, {Type::scalar(f32)}, {}, at);
  for (int k = 0; k < 2; ++k) {
    b.set_region(f.add_region(branch));
    b.make(Op::Yield, {s}, {}, at);
  }
  b.set_region(f.body());
  b.store(out, f.inst(branch).results[0], {}, CacheHint::Plain, at);
  EXPECT_EQ(format(f, verify(f)), "");
  expect_error([&] { b.append(Op::For, {n, s, n}, {}, {}, at); }, "for: bounds differ: index and f32");
  expect_error([&] { b.append(Op::For, {s, s, s}, {}, {}, at); }, "for: bounds must be integer scalars, lower is f32");
  expect_error([&] { b.append(Op::If, {s}, {}, {}, at); }, "if: condition is f32, must be a scalar i1");
}

TEST_F(BuilderTest, LeavesNothingBehindAfterAnError) {
  const std::string before = print(f);
  EXPECT_THROW(b.elementwise(Op::Add, {s, n}, at), UserError);
  EXPECT_EQ(print(f), before);
}

}  // namespace
}  // namespace kiln::ir::test
