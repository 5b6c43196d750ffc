// The layouts by name: threads own vectors of neighbours or blocks, small tiles are replicated, odd extents are padded.
#include <gtest/gtest.h>

#include <set>

#include "backend/ir/layout_zoo.h"

namespace kiln::ir {
namespace {

TEST(Blocked, ThreadOwnsVectorsAtStrideOfAllThreads) {
  for (std::int64_t vector : {1, 2, 4, 8})
    for (int warps : {1, 2, 8}) {
      const std::int64_t threads = 32 * warps, n = 4096;
      const LinearLayout l = blocked({n}, vector, {0}, warps);
      EXPECT_TRUE(l.surjective() && l.injective());
      for (std::int64_t e = 0; e < n; ++e) {
        const std::int64_t thread = e / vector % threads, reg = e % vector + vector * (e / (vector * threads));
        EXPECT_EQ(l.apply({{Hw::Register, reg}, {Hw::Lane, thread % 32}, {Hw::Warp, thread / 32}})[0], e);
      }
    }
}

TEST(Blocked, WalksTheFastestAxisFirst) {
  const LinearLayout rows = blocked({64, 32}, 4, row_major(2), 4), columns = blocked({64, 32}, 4, {0, 1}, 4);
  EXPECT_EQ(rows.basis(Hw::Register, 0), (LinearLayout::Coord{0, 1}));
  EXPECT_EQ(rows.basis(Hw::Lane, 0), (LinearLayout::Coord{0, 4}));
  EXPECT_EQ(rows.basis(Hw::Lane, 3), (LinearLayout::Coord{1, 0}));
  EXPECT_EQ(columns.basis(Hw::Register, 0), (LinearLayout::Coord{1, 0}));
  EXPECT_EQ(columns.basis(Hw::Lane, 4), (LinearLayout::Coord{0, 1}));
}

TEST(Blocked, SmallTilesReplicateInsteadOfRepeatingRegisters) {
  const LinearLayout l = blocked({8}, 4, {0}, 4);
  EXPECT_EQ(l.in_bits(Hw::Lane), 5);
  EXPECT_EQ(l.in_bits(Hw::Warp), 2);
  EXPECT_EQ(l.free_bits(Hw::Register), 0);
  EXPECT_EQ(l.free_bits(Hw::Lane), 0b11110);
  EXPECT_EQ(l.free_bits(Hw::Warp), 0b11);
}

TEST(Blocked, RankZeroIsHeldByEveryThread) {
  const LinearLayout l = blocked({}, 1, {}, 2);
  EXPECT_TRUE(l.surjective());
  EXPECT_EQ(l.free_bits(Hw::Lane), 31);
}

TEST(Blocked, PaddingFallsIntoWholeRegisters) {
  // 12288 elements of 2 bytes: 256 threads x 6 of 8 vectors of 8.
  const LinearLayout l = blocked({12288}, 8, {0}, 8);
  std::int64_t live = 0;
  for (std::int64_t r = 0; r < l.in_size(Hw::Register); ++r) {
    const RegisterUse use = register_use(l, r, {12288});
    EXPECT_NE(use, RegisterUse::Partial);
    live += use == RegisterUse::Full;
  }
  EXPECT_EQ(l.in_size(Hw::Register), 64);
  EXPECT_EQ(live, 48);
}

TEST(Blocked, BlockBitsDistributeOverACluster) {
  const LinearLayout l = blocked({1024}, 4, {0}, 1, 4);
  EXPECT_EQ(l.in_size(Hw::Block), 4);
  EXPECT_EQ(l.basis(Hw::Block, 0), (LinearLayout::Coord{128}));
  EXPECT_TRUE(l.surjective() && l.injective());
}

TEST(ProductBlocks, ThreadsOwnSquaresAndLanesStandAlongTheLastAxis) {
  const LinearLayout l = product_blocks({128, 128}, 8);
  EXPECT_TRUE(l.surjective() && l.injective());
  EXPECT_EQ(l.in_size(Hw::Register), 64);
  const LinearLayout::Coord registers = l.apply({{Hw::Register, 15}}), lanes = l.apply({{Hw::Lane, 31}});
  EXPECT_EQ(registers, (LinearLayout::Coord{3, 3}));
  EXPECT_EQ(lanes, (LinearLayout::Coord{12, 28}));
  EXPECT_EQ(l.basis(Hw::Register, 4), (LinearLayout::Coord{0, 64}));
  EXPECT_EQ(l.basis(Hw::Register, 5), (LinearLayout::Coord{64, 0}));
}

TEST(ProductBlocks, EveryShapeIsCovered) {
  for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{
           {1, 1}, {1, 64}, {64, 1}, {3, 5}, {16, 16}, {2, 100}, {256, 8}, {5, 7, 9}, {64, 4, 4}, {2, 3, 16, 16}})
    for (int warps : {1, 4, 16}) {
      const LinearLayout l = product_blocks(shape, warps);
      EXPECT_TRUE(l.surjective()) << l.str();
      EXPECT_EQ(l.free_bits(Hw::Register), 0) << l.str();
      EXPECT_EQ(l.in_bits(Hw::Lane), 5);
      EXPECT_EQ(l.in_size(Hw::Warp), warps);
      // A thread has a second element only where every thread has one.
      EXPECT_TRUE(l.in_bits(Hw::Register) == 0 || l.injective()) << l.str();
    }
}

// PTX ISA, "matrix fragments for mma.m16n8k16": rows of lanes, two neighbours, eight rows below.
TEST(MatrixBlocks, AreTheInstructionsFragments) {
  const LinearLayout l = matrix_blocks({16, 8}, 16, 1);
  for (std::int64_t lane = 0; lane < 32; ++lane)
    for (std::int64_t r = 0; r < 4; ++r)
      EXPECT_EQ(l.apply({{Hw::Register, r}, {Hw::Lane, lane}}),
                (LinearLayout::Coord{lane / 4 + 8 * (r / 2), lane % 4 * 2 + r % 2}));
}

TEST(MatrixBlocks, EveryShapeIsCovered) {
  for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{
           {1, 1}, {1, 64}, {64, 1}, {3, 5}, {16, 16}, {2, 100}, {256, 8}, {5, 7, 9}, {64, 4, 4}, {128, 256}})
    for (int m : {8, 16})
      for (int warps : {1, 4, 16}) {
        const LinearLayout l = matrix_blocks(shape, m, warps);
        EXPECT_TRUE(l.surjective()) << l.str();
        EXPECT_EQ(l.free_bits(Hw::Register), 0) << l.str();
        EXPECT_EQ(l.in_bits(Hw::Lane), 5);
        EXPECT_EQ(l.in_size(Hw::Warp), warps);
      }
}

TEST(MatrixBlocks, PartsOfWarpsAreSquareAndIdleWarpsRare) {
  const LinearLayout square = matrix_blocks({128, 128}, 16, 8);
  EXPECT_TRUE(square.injective());
  EXPECT_EQ(square.apply({{Hw::Warp, 7}}), (LinearLayout::Coord{48, 64}));  // 32 rows, 64 columns a warp
  EXPECT_TRUE(matrix_blocks({16, 256}, 16, 8).injective());
}

// PTX ISA, "wgmma.mma_async.m64nNk16": register fragments of D.
TEST(WarpgroupBlocks, AreTheInstructionsFragments) {
  const LinearLayout l = warpgroup_blocks({128, 64}, 8);
  EXPECT_TRUE(l.surjective() && l.injective());
  for (std::int64_t warp = 0; warp < 8; ++warp)
    for (std::int64_t lane = 0; lane < 32; ++lane)
      for (std::int64_t r = 0; r < 32; ++r)
        EXPECT_EQ(l.apply({{Hw::Register, r}, {Hw::Lane, lane}, {Hw::Warp, warp}}),
                  (LinearLayout::Coord{16 * warp + lane / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + lane % 4 * 2 + r % 2}));
}

TEST(WarpgroupBlocks, EveryShapeIsCovered) {
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{64, 8}, {64, 256}, {128, 256}, {256, 128}, {128, 24}, {256, 192}})
    for (int warps : {4, 8}) {
      const LinearLayout l = warpgroup_blocks(shape, warps);
      EXPECT_TRUE(l.surjective()) << l.str();
      EXPECT_EQ(l.free_bits(Hw::Register), 0) << l.str();
      EXPECT_EQ(l.in_size(Hw::Warp), warps);
    }
}

TEST(Padded, RoundsUpToPowersOfTwo) {
  EXPECT_EQ(padded(1), 1);
  EXPECT_EQ(padded(24), 32);
  EXPECT_EQ(padded_elements({3, 24, 64}), 4 * 32 * 64);
}

}  // namespace
}  // namespace kiln::ir
