#include "dsl/lib/linear_plan.h"

#include <algorithm>
#include <bit>

#include "dsl/lib/blocks.h"

namespace kiln::lib {
namespace {

/// The table: the first row whose limits hold gives the blocks. `rows` and `cols` are the largest M and N that it is
/// for, `bytes` the largest element.
struct Rule {
  std::int64_t rows, cols;
  int bytes;
  LinearBlocks blocks;
};
constexpr std::int64_t kAny = std::int64_t(1) << 62;
constexpr int kMostSumsCrowded = 128 * 128;  ///< of a program that has much beside them
constexpr Rule kRules[] = {
    // few rows: the weights are the wide side, and k is long
    {8, kAny, 2, {8, 64, 128, true}},
    {16, kAny, 2, {16, 64, 128, true}},
    {32, kAny, 2, {32, 64, 64, true}},
    {64, kAny, 2, {64, 64, 64, false}},
    {8, kAny, 8, {8, 64, 32, true}},
    {16, kAny, 8, {16, 64, 32, true}},
    // few columns
    {kAny, 16, 8, {64, 16, 32, false}},
    {kAny, 64, 2, {64, 64, 64, false}},
    {kAny, 64, 8, {64, 64, 16, false}},
    // The rest: small results in more blocks. Four warps have 64 x 64 each; eight would read half again as
    // much from shared memory: 346 us at 4096^3 bf16 for sm_80 on an H200, 443 with eight.
    {256, 1024, 2, {64, 64, 64, false}},
    {kAny, kAny, 1, {128, 128, 128, false}},
    {kAny, kAny, 2, {128, 128, 64, false}},
    {kAny, kAny, 4, {64, 64, 32, false}},
    {kAny, kAny, 8, {32, 32, 16, false}},
};

bool has_warpgroup_unit(const LinearShape& s) {
  const bool floats =
      s.x == s.w && (s.x == DType::f16 || s.x == DType::bf16 || (s.x == DType::f32 && s.precision == Precision::tf32));
  const auto eight = [](DType d) { return d == DType::f8e4m3 || d == DType::f8e5m2; };
  return s.target == "sm_90a" && s.direct && (floats || (s.x == i8 && s.w == i8) || (eight(s.x) && eight(s.w)));
}

}  // namespace

int linear_warps(const LinearShape& s, const LinearBlocks& b) {
  if (has_warpgroup_unit(s)) return (b.weights_first ? b.BN : b.BM) > 64 ? 8 : 4;
  const int most = s.crowded ? kMostSumsCrowded / 2 : kMostSumsCrowded;  // of four warps
  return b.BM * b.BN > most ? 8 : 4;
}

namespace {

LinearPlan by_table(const LinearShape& s, std::int64_t rows) {
  // What tensor cores take of f32 is as many bytes of half as many steps.
  const bool tf32 = s.x == DType::f32 && s.precision == Precision::tf32;
  const int widest = tf32 ? 2 : std::max(bytes(s.x), bytes(s.w));
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules),
                                 [&](const Rule& r) { return rows <= r.rows && s.N <= r.cols && widest <= r.bytes; });
  LinearPlan plan{rule->blocks, 0};
  if (tf32) plan.blocks.BK /= 2;
  plan.num_warps = linear_warps(s, plan.blocks);
  // Steps beyond the end of k are work for nothing.
  plan.blocks.BK = std::max(16, block_for(s.K, plan.blocks.BK));
  return plan;
}

// --- warpgroups fed by copies ----------------------------------------------------------------------------------------
// A program occupies a multiprocessor: 64 rows a warpgroup of sums, the rest of the registers' and all shared memory
// for operands under way. A step of k then costs the time of the matrix unit or that of the operands' way from the L2,
// whichever is longer, and the product as many times that as there are waves of programs.

constexpr int kLine = 128;                ///< bytes of k in a step
constexpr double kFlopPerByteTime = 205;  ///< of 16-bit elements: 4096 a clock beside 40 bytes a clock from the L2
constexpr std::int64_t kFewRows = 64;     ///< so many rows of x stand where columns usually do

/// What a step of k costs, in the time of a byte from the L2.
double step_cost(const LinearShape& s, int BM, int BN) {
  const int size = bytes(s.x);
  const double flop = 2.0 * BM * BN * kLine / size;
  return std::max(flop / (kFlopPerByteTime * 2 / size), double(BM + BN) * kLine);
}

LinearPlan for_warpgroups(const LinearShape& s, std::int64_t rows) {
  const int step = kLine / bytes(s.x);
  if (rows <= kFewRows)
    return {{std::max(8, block_for(rows, int(kFewRows))), 64, rows <= 16 ? 2 * step : step, true}, 4};
  // The smaller of two that cost the same comes later: it has less in flight.
  constexpr int kBlocks[][2] = {{128, 256}, {256, 128}, {128, 128}, {128, 64}, {64, 128}, {64, 64}, {64, 32}, {64, 16}};
  LinearPlan best;
  double least = 0;
  for (const auto& b : kBlocks) {
    if (s.crowded && b[0] * b[1] > kMostSumsCrowded) continue;
    const double programs = double(cdiv(rows, b[0])) * double(cdiv(s.N, b[1]));
    const double waves = rows == kAny ? programs / s.sms : double(cdiv(std::int64_t(programs), s.sms));
    const double cost = waves * step_cost(s, b[0], b[1]);
    if (best.num_warps != 0 && cost >= least) continue;
    best = {{b[0], b[1], step, false}, 0};
    best.num_warps = linear_warps(s, best.blocks);
    least = cost;
  }
  return best;
}

}  // namespace

LinearPlan linear_plan(const LinearShape& s, bool any_rows) {
  const std::int64_t rows = any_rows ? kAny : s.M;
  return has_warpgroup_unit(s) ? for_warpgroups(s, rows) : by_table(s, rows);
}

}  // namespace kiln::lib
