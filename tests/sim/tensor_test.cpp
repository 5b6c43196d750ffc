// Tensor maps and copies of boxes: every type, rank, swizzle and side of the tensor against a plain model, on the
// simulator and on a GPU where there is one.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/sim/schedules.h"
#include "tests/sim/tensor_case.h"

namespace kiln::test::tensors {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// The tile after the box was loaded into it.
std::vector<U8> loaded(const Device& device, const Case& c, const std::vector<U8>& memory) {
  Buffer<U8> tensor(device, memory.size()), data(device, kTile);
  tensor.upload(memory);
  data.fill_bytes(kUntouched);
  const TensorSpec spec = c.spec(tensor.ptr());
  const std::string ptx = kernel(load_text(c.rank()), true);
  expect_assembles(ptx, kTarget);
  run(device, ptx, "k", kBlock, params(data, TensorMap::encode(device, spec), c, spec.box_bytes()));
  return data.to_vector();
}

bool is_nan(DType d, const U8* at) {
  U32 v = 0;
  std::memcpy(&v, at, static_cast<std::size_t>(bytes(d)));
  if (d == DType::f32) return (v & 0x7FFFFFFF) > 0x7F800000;
  return d == DType::f16 ? (v & 0x7FFF) > 0x7C00 : (v & 0x7FFF) > 0x7F80;
}

void expect_loads(const Case& c) {
  std::ostringstream text;
  text << c;
  SCOPED_TRACE(text.str());
  const std::vector<U8> memory = noise(c.memory(), 7);
  std::vector<U8> want(kTile, kUntouched);
  std::vector<U64> outside;
  c.each([&](U64 tile, std::int64_t at) {
    if (at < 0) std::memset(&want[tile], 0, c.element()), outside.push_back(tile);
    else std::memcpy(&want[tile], &memory[static_cast<U64>(at)], c.element());
  });
  for (const Device& d : devices()) {
    std::vector<U8> got = loaded(d, c, memory);
    for (U64 tile : outside) {
      if (c.fill != TensorFill::NaN) continue;
      EXPECT_TRUE(is_nan(c.dtype, &got[tile])) << d.name() << ", tile at " << tile;
      std::memset(&got[tile], 0, c.element());
    }
    EXPECT_EQ(got, want) << d.name();
  }
}

void expect_stores(const Case& c) {
  std::ostringstream text;
  text << c;
  SCOPED_TRACE(text.str());
  const std::vector<U8> before = noise(c.memory(), 11), tile = noise(kTile, 12);
  std::vector<U8> want = before;
  c.each(
      [&](U64 from, std::int64_t at) {
        if (at >= 0) std::memcpy(&want[static_cast<U64>(at)], &tile[from], c.element());
      },
      /*stored=*/true);
  const std::string ptx = kernel(store_text(c.rank()), false);
  expect_assembles(ptx, kTarget);
  for (const Device& d : devices()) {
    Buffer<U8> tensor(d, before.size()), data(d, kTile);
    tensor.upload(before);
    data.upload(tile);
    run(d, ptx, "k", kBlock, params(data, TensorMap::encode(d, c.spec(tensor.ptr())), c, 0));
    EXPECT_EQ(tensor.to_vector(), want) << d.name();
  }
}

std::vector<Case> cases() {
  using S = TensorSwizzle;
  std::vector<Case> out = {
      {DType::u8, {1001}, {64}, {960}},
      {DType::f32, {100}, {256}, {-32}},
      {DType::bf16, {64, 40}, {32, 16}, {8, 20}},
      {DType::i64, {40, 9, 5}, {16, 4, 3}, {-2, 7, 3}},
      {DType::f16, {24, 5, 4, 3}, {16, 3, 2, 2}, {16, -1, 3, 1}},
      {DType::u32, {12, 4, 3, 5, 2}, {8, 3, 2, 4, 2}, {-4, 2, -1, 3, 1}},
      {DType::f64, {20, 6}, {4, 3}, {18, 5}},
      {DType::i16, {50, 50}, {8, 8}, {56, 2}},  // outside as a whole
      {DType::u8, {48, 30}, {16, 20}, {-16, -20}},
      {DType::i32, {64, 64}, {8, 16}, {4, 3}, S::None, {1, 3}},
      {DType::u16, {64, 20, 9}, {16, 7, 8}, {-8, 2, -2}, S::None, {1, 2, 4}},
      {DType::f32, {30, 30}, {16, 8}, {20, 26}, S::None, {}, TensorFill::NaN},
      {DType::f16, {30, 30}, {16, 8}, {-8, -3}, S::None, {}, TensorFill::NaN},
      {DType::bf16, {30, 30}, {64, 8}, {-8, 26}, S::Bytes128, {}, TensorFill::NaN},
      {DType::bf16, {200, 64}, {64, 32}, {72, 8}, S::Bytes128, {}, TensorFill::Zero, 256, 64},
  };
  for (const auto& [swizzle, width] :
       std::vector<std::pair<S, U32>>{{S::Bytes32, 32}, {S::Bytes64, 64}, {S::Bytes128, 128}})
    for (const DType d : {DType::u8, DType::bf16, DType::f32}) {
      const U32 n = width / static_cast<U32>(bytes(d));
      const int unit = 16 / bytes(d);
      out.push_back({d, {301, 40}, {n, 24}, {unit, 10}, swizzle});
      out.push_back({d, {300, 40, 3}, {n, 9, 2}, {-unit, 35, 1}, swizzle, {}, TensorFill::Zero, 384});
    }
  // Rows shorter than the swizzle.
  out.push_back({DType::bf16, {100, 40}, {32, 16}, {8, 4}, S::Bytes128});
  out.push_back({DType::bf16, {100, 40}, {8, 16}, {8, 4}, S::Bytes64});
  return out;
}

TEST(TensorCopy, BoxesAreLoaded) {
  for (const Case& c : cases()) expect_loads(c);
}
TEST(TensorCopy, BoxesAreStored) {
  for (Case c : cases()) {
    for (int& x : c.at) x = std::max(x, 0);
    expect_stores(c);
  }
}
TEST(TensorCopy, EverySchedule) {
  under_every_schedule([] {
    Case c = cases()[4];
    expect_loads(c);
    c.at[1] = 1;
    expect_stores(c);
  });
}

/// A word of each type in a tensor of one row, reduced with the same word of the tile.
struct Reduction {
  DType dtype;
  std::string op;
  U64 there, value, want;
};

TEST(TensorReduction, EveryTypeAndOperation) {
  const auto f = [](float v) -> U64 { return std::bit_cast<U32>(v); };
  const auto h = [](float v) -> U64 { return f16(v).bits; };
  const auto b = [](float v) -> U64 { return bf16(v).bits; };
  const auto d = [](double v) -> U64 { return std::bit_cast<U64>(v); };
  const std::vector<Reduction> all = {{DType::u32, "add", 0xFFFFFFFF, 3, 2},
                                      {DType::u32, "inc", 4, 4, 0},
                                      {DType::u32, "dec", 0, 9, 9},
                                      {DType::u32, "min", 4, 3, 3},
                                      {DType::i32, "max", 4, 0xFFFFFFFF, 4},
                                      {DType::i32, "min", 4, 0xFFFFFFFF, 0xFFFFFFFF},
                                      {DType::i32, "add", 4, 0xFFFFFFFF, 3},
                                      {DType::u32, "and", 12, 10, 8},
                                      {DType::u32, "or", 12, 10, 14},
                                      {DType::u32, "xor", 12, 10, 6},
                                      {DType::u64, "add", 0xFFFFFFFF, 1, 0x100000000},
                                      {DType::u64, "max", ~U64{0}, 1, ~U64{0}},
                                      {DType::i64, "max", ~U64{0}, 1, 1},
                                      {DType::u64, "xor", 0xF00000000, 0x100000001, 0xE00000001},
                                      {DType::f32, "add", f(1.5F), f(2.25F), f(3.75F)},
                                      {DType::f64, "add", d(1.5), d(2.25), d(3.75)},
                                      {DType::f16, "add", h(1.5F), h(2.25F), h(3.75F)},
                                      {DType::f16, "min", h(1.5F), h(-2.25F), h(-2.25F)},
                                      {DType::bf16, "add", b(1.5F), b(2.25F), b(3.75F)},
                                      {DType::bf16, "max", b(1.5F), b(2.25F), b(2.25F)}};
  for (const Reduction& r : all) {
    SCOPED_TRACE(std::string(name(r.dtype)) + " " + r.op);
    const U64 size = static_cast<U64>(bytes(r.dtype)), n = 32 / size;
    const Case c{r.dtype, {n}, {static_cast<U32>(n)}, {0}};
    const auto repeated = [&](U64 v, std::size_t total) {
      std::vector<U8> out(total);
      for (std::size_t i = 0; i < total; i += size) std::memcpy(&out[i], &v, size);
      return out;
    };
    const std::string ptx = kernel(store_text(1, r.op), false);
    expect_assembles(ptx, kTarget);
    for (const Device& device : devices()) {
      Buffer<U8> tensor(device, 32), data(device, kTile);
      tensor.upload(repeated(r.there, 32));
      data.upload(repeated(r.value, kTile));
      run(device, ptx, "k", kBlock, params(data, TensorMap::encode(device, c.spec(tensor.ptr())), c, 0));
      EXPECT_EQ(tensor.to_vector(), repeated(r.want, 32)) << device.name();
    }
  }
}

TEST(TensorCopy, FloatsAreRoundedOnTheirWay) {
  const auto run_with = [](TensorFloat floats, const std::vector<U32>& in) {
    const Device d = Device::simulator(kTarget);
    Buffer<U32> tensor(d, in.size());
    tensor.upload(in);
    Buffer<U8> data(d, kTile);
    data.fill_bytes(0);
    Case c{DType::f32, {in.size()}, {static_cast<U32>(in.size())}, {0}};
    TensorSpec spec = c.spec(tensor.ptr());
    spec.floats = floats;
    run(d, kernel(load_text(1), true), "k", kBlock, params(data, TensorMap::encode(d, spec), c, spec.box_bytes()));
    std::vector<U32> out(in.size());
    std::memcpy(out.data(), data.to_vector().data(), in.size() * 4);
    return out;
  };
  const std::vector<U32> in = {0x3F800000, 0x3F801FFF, 0x80000123, 0x7F800000};
  EXPECT_EQ(run_with(TensorFloat::AsIs, in), in);
  EXPECT_EQ(run_with(TensorFloat::FlushSubnormals, in),
            (std::vector<U32>{0x3F800000, 0x3F801FFF, 0x80000000, 0x7F800000}));
  EXPECT_EQ(run_with(TensorFloat::Tf32, in), (std::vector<U32>{0x3F800000, 0x3F802000, 0x80000000, 0x7F800000}));
}

TEST(TensorCopy, EachBlockOfAClusterLoadsAPartForAll) {
  // Rank r loads rows 8r to 8r + 7 of both blocks' tiles.
  const std::string ptx =
      ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 data, .param .align 64 .b8 "
      "map[128])\n{\n.reg .pred %p<9>; .reg .b16 %rs<3>; .reg .b32 %r<20>; .reg .b64 %rd<9>;\n.shared .align 1024 .b8 "
      "tile[2048]; .shared .align 8 .b8 bar[8];\nld.param.u64 %rd1, [data]; mov.b64 %rd2, map; cvta.param.u64 %rd2, "
      "%rd2; mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r3, bar; mov.u32 %r4, %cluster_ctarank; setp.ne.u32 %p1, "
      "%r1, 0; @%p1 bra A; mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster; "
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 2048;\nA: barrier.cluster.arrive.aligned; "
      "barrier.cluster.wait.aligned; @%p1 bra W; shl.b32 %r5, %r4, 10; add.u32 %r5, %r5, %r2; shl.b32 %r6, %r4, 3; "
      "mov.u16 %rs1, 3; mov.u32 %r7, 0; "
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%rd2, "
      "{%r7, %r6}], [%r3], %rs1;\nW: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0; @!%p3 bra W;\n"
      "mov.u32 %r8, %ctaid.x; mul.wide.u32 %rd3, %r8, 2048; add.s64 %rd3, %rd3, %rd1; shl.b32 %r9, %r1, 2; cvt.u64.u32 "
      "%rd4, %r9; add.s64 %rd3, %rd3, %rd4; add.u32 %r9, %r9, %r2; mov.u32 %r10, 0;\nC: ld.shared.b32 %r11, [%r9]; "
      "st.global.b32 [%rd3], %r11; add.u32 %r9, %r9, 128; add.s64 %rd3, %rd3, 128; add.u32 %r10, %r10, 1; setp.lt.u32 "
      "%p4, %r10, 16; @%p4 bra C; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret;\n}\n";
  expect_assembles(ptx, kTarget);
  const Case c{DType::bf16, {64, 16}, {64, 8}, {0, 0}, TensorSwizzle::Bytes128};
  const std::vector<U8> memory = noise(c.memory(), 3);
  under_every_schedule([&] {
    for (const Device& d : devices()) {
      Buffer<U8> tensor(d, memory.size()), data(d, 4096);
      tensor.upload(memory);
      run(d, ptx, "k", {{2, 1, 1}, {32, 1, 1}, 0, {2, 1, 1}},
          Params().add(data).add(TensorMap::encode(d, c.spec(tensor.ptr()))));
      const auto got = data.to_vector();
      for (U32 i = 0; i < 4096; ++i) {
        const U32 row = i / 128 % 16, chunk = i / 16 % 8 ^ row % 8;
        ASSERT_EQ(got[i], memory[row * 128 + chunk * 16 + i % 16]) << d.name() << " byte " << i;
      }
    }
  });
}

TEST(TensorMaps, MayLieInGlobalMemory) {
  const Case c{DType::u32, {32, 4}, {32, 2}, {0, 1}};
  const std::vector<U8> memory = noise(c.memory(), 5);
  std::string ptx = kernel(
      "add.s64 %rd2, %rd1, 16384; fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128; " + load_text(2), true);
  expect_assembles(ptx, kTarget);
  for (const Device& d : devices()) {
    Buffer<U8> tensor(d, memory.size()), data(d, kTile + TensorMap::kBytes);
    tensor.upload(memory);
    data.fill_bytes(kUntouched);
    const TensorMap map = TensorMap::encode(d, c.spec(tensor.ptr()));
    data.upload({reinterpret_cast<const U8*>(map.bytes()), TensorMap::kBytes}, kTile);
    run(d, ptx, "k", kBlock, params(data, map, c, 256));
    const auto got = data.to_vector();
    for (U32 i = 0; i < 256; ++i) ASSERT_EQ(got[i], memory[128 + i]) << d.name();
  }
}

TEST(TensorMaps, TrafficIsWhatIsInside) {
  const Case c{DType::u32, {32, 8}, {16, 4}, {24, 6}};
  const Device d = Device::simulator(kTarget);
  Buffer<U8> tensor(d, c.memory()), data(d, kTile);
  tensor.fill_bytes(1);
  data.fill_bytes(1);
  d.reset_counters();
  run(d, kernel(store_text(2), false), "k", kBlock, params(data, TensorMap::encode(d, c.spec(tensor.ptr())), c, 0));
  EXPECT_EQ(d.counters().global_bytes_written, 2u * 32u);
  EXPECT_EQ(d.counters().global_sectors_written, 2u);
}

}  // namespace
}  // namespace kiln::test::tensors
