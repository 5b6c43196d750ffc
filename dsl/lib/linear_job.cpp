#include "dsl/lib/linear_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"

namespace kiln::lib {

std::string LinearExplanation::text() const {
  std::string out =
      fmt::format("blocks {}\n  {}\n  {:.3g} GFLOP, {:.3g} MB; {}\n", plan, why, flop / 1e9, bytes / 1e6, bound);
  for (const Explanation& k : kernels) out += k.text();
  return out;
}

namespace chain {
namespace {

/// Sustained rates that were measured (docs/benchmarks.md), for the target of that GPU.
constexpr double kH200Bytes = 4.27e12, kH200Flop16 = 0.69e15;

std::string expected_bound(const LinearShape& s, double flop, double moved) {
  if (s.target != "sm_90a" || s.sms != 132)
    return fmt::format("{:.1f} FLOP a byte; the rates of this device are not known", flop / moved);
  const int widest = std::max(bytes(s.x), bytes(s.w));
  if (widest > 4 || (widest == 4 && s.precision != Precision::tf32))
    return fmt::format("memory alone takes {:.2f} us at 4.27 TB/s", moved / kH200Bytes * 1e6);
  const double memory = moved / kH200Bytes * 1e6, compute = flop / (kH200Flop16 * 2 / widest) * 1e6;
  return fmt::format("bound by {}: {:.2f} us at {} (the other: {:.2f} us)",
                     memory > compute ? "memory" : "the matrix units", std::max(memory, compute),
                     memory > compute ? "4.27 TB/s" : fmt::format("{:.0f} TFLOP/s", kH200Flop16 * 2 / widest / 1e12),
                     std::min(memory, compute));
}

}  // namespace

void check_operands(const char* function, SourceLoc at, std::span<const std::int64_t> x,
                    std::span<const std::int64_t> w, int packed) {
  check_sizes(function, at, "x", x);
  check_sizes(function, at, "w", w);
  if (cdiv(x.back(), packed) == w.back()) return;
  if (packed == 1)
    throw UserError(at, fmt::format("{}: x is {} and w is {}: they must have the same number of columns", function,
                                    fmt::join(x, "x"), fmt::join(w, "x")));
  throw UserError(at, fmt::format("{}: x is {} and w is {}: for {} weights a byte it must have {} columns", function,
                                  fmt::join(x, "x"), fmt::join(w, "x"), packed, cdiv(x.back(), packed)));
}

void check_options(const char* function, SourceLoc at, const LinearOptions& o, bool may_split) {
  if (o.splits < 0 || (!may_split && o.splits != 1))
    throw UserError(at, fmt::format("{}: splits is {}, must be {}", function, o.splits,
                                    may_split ? "at least 1, or 0 for the library's choice" : "1"));
  if (o.promote < 0 || o.promote % 32 != 0)
    throw UserError(at, fmt::format("{}: promote is {}, must be a multiple of 32", function, o.promote));
  constexpr int kMostWarps = 32;
  if (o.num_warps != 0 && (!std::has_single_bit(unsigned(o.num_warps)) || o.num_warps > kMostWarps || o.num_warps < 0))
    throw UserError(
        at, fmt::format("{}: num_warps is {}, must be a power of two up to {}, or 0 for the library's choice", function,
                        o.num_warps, kMostWarps));
  const LinearBlocks& b = o.blocks;
  if (b.BM == 0 && b.BN == 0 && b.BK == 0) return;
  const auto good = [](int x, int least) { return x >= least && std::has_single_bit(unsigned(x)); };
  if (!good(b.BM, 8) || !good(b.BN, 16) || !good(b.BK, 16))
    throw UserError(at, fmt::format("{}: blocks are BM {}, BN {}, BK {}, must be powers of two, at least 8, 16 and 16",
                                    function, b.BM, b.BN, b.BK));
}

void check_scales(const char* function, SourceLoc at, const char* name, std::span<const std::int64_t> size,
                  std::int64_t groups, std::int64_t rows, std::int64_t k, int group) {
  check_sizes(function, at, name, size);
  const std::array<std::int64_t, 3> want{groups, rows, cdiv(k, group)};
  if (std::equal(size.begin(), size.end(), want.begin())) return;
  throw UserError(at, fmt::format("{}: {} are {}, must be {}: one a row and {} steps of k", function, name,
                                  fmt::join(size, "x"), fmt::join(want, "x"), group));
}

void check_scale_groups(const char* function, SourceLoc at, int group, int other, int rows) {
  if (group < 16 || group % 16 != 0)
    throw UserError(at, fmt::format("{}: a scale is for {} steps of k, must be a multiple of 16", function, group));
  if (other != 0 && other != group)
    throw UserError(at, fmt::format("{}: scales of x and of w are for {} and {} steps of k, must be for as many",
                                    function, other, group));
  if (rows < 1) throw UserError(at, fmt::format("{}: a scale is for {} rows of w, must be at least 1", function, rows));
}

void check_groups(const char* function, SourceLoc at, std::int64_t x, std::int64_t w) {
  if (x != w)
    throw UserError(at, fmt::format("{}: x has {} batches and w has {}: they must have as many (a stride of 0 repeats "
                                    "one)",
                                    function, x, w));
}

void check_written(const char* function, SourceLoc at, std::span<const std::int64_t> y,
                   std::span<const std::int64_t> expected) {
  check_sizes(function, at, "y", y);
  if (!std::equal(y.begin(), y.end(), expected.begin()))
    throw UserError(at, fmt::format("{}: y is {}, must be {}", function, fmt::join(y, "x"), fmt::join(expected, "x")));
}

int step_within(int most, int group) {
  int step = most;
  while (group % step != 0) step /= 2;
  return step;
}

std::int64_t pieces_for(std::int64_t tiles, std::int64_t k, int step, int sms) {
  constexpr std::int64_t kLeastSteps = 4, kMostPieces = 32;
  const std::int64_t pieces = std::min({sms / tiles, k / (kLeastSteps * step), kMostPieces});
  return std::max<std::int64_t>(pieces, 1);
}

LinearExplanation explained(const Device& device, const char* kind, const LinearShape& s, const LinearOptions& o,
                            std::int64_t groups) {
  LinearExplanation e;
  const bool given = o.blocks.BM != 0;
  LinearPlan plan = linear_plan(s, o.batch_invariant);
  const LinearPlan tuned = o.batch_invariant ? plan : tuned_linear_plan(device, kind, s);
  const bool measured = name(tuned) != name(plan);
  plan = tuned;
  if (given) plan.blocks = o.blocks;
  if (o.num_warps) plan.num_warps = o.num_warps;
  e.plan = name(plan);
  const std::int64_t programs = cdiv(s.M, plan.blocks.BM) * cdiv(s.N, plan.blocks.BN) * groups;
  const double waves = double(programs) / s.sms;
  e.why = fmt::format("{}: {} programs, {:.2f} for each of {} multiprocessors",
                      given               ? "the options name these blocks"
                      : measured          ? "measured fastest for this shape by tune()"
                      : o.batch_invariant ? "the blocks for these weights, whatever the number of rows"
                                          : "the least waves and steps by the library's table",
                      programs, waves, s.sms);
  e.flop = 2.0 * double(groups) * double(s.M) * double(s.N) * double(s.K);
  e.bytes = double(groups) * (double(s.M) * double(s.K) * bytes(s.x) + double(s.N) * double(s.K) * bytes(s.w) +
                              double(s.M) * double(s.N) * bytes(s.x));
  e.bound = expected_bound(s, e.flop, e.bytes);
  return e;
}

Workspace::Workspace(const char* function, const On& on, std::int64_t bytes,
                     const std::optional<Vector<float>>& given) {
  if (bytes == 0) return;
  const std::int64_t floats = cdiv(bytes, std::int64_t(sizeof(float)));
  if (given) {
    check_vector(function, on.at, "workspace", given->size[0], given->stride[0], given->size[0]);
    if (given->size[0] < floats)
      throw UserError(on.at,
                      fmt::format("{}: workspace has {} elements, must have {}", function, given->size[0], floats));
    if (given->data.address % 16 != 0)
      throw UserError(on.at, fmt::format("{}: workspace must be aligned to 16 bytes", function));
    address_ = given->data.address;
    return;
  }
  if (on.stream.capturing())
    throw UserError(on.at, fmt::format("{}: the stream is being captured, so a workspace of {} floats is needed",
                                       function, floats));
  own_ = Buffer<float>(on.stream, std::size_t(floats), on.at);
  address_ = own_.ptr();
}

void Conflicts::check(const char* function, SourceLoc at) const {
  for (int i = 0; i < writes_; ++i) {
    for (int j = 0; j < reads_; ++j)
      refuse_overlap(function, at, written_[std::size_t(i)], read_[std::size_t(j)].reach,
                     read_[std::size_t(j)].in_place);
    for (int j = 0; j < i; ++j)
      if (may_overlap(written_[std::size_t(i)], written_[std::size_t(j)]))
        throw UserError(at, fmt::format("{}: {} and {} overlap, and both are written", function,
                                        written_[std::size_t(j)].name, written_[std::size_t(i)].name));
  }
}

bool Conflicts::in_place() const {
  for (int i = 0; i < writes_; ++i)
    for (int j = 0; j < reads_; ++j)
      if (read_[std::size_t(j)].in_place && read_[std::size_t(j)].reach == written_[std::size_t(i)]) return true;
  return false;
}

void Conflicts::reads(const Reach& r, bool in_place) {
  if (reads_ < int(read_.size())) read_[std::size_t(reads_++)] = {r, in_place};
}
void Conflicts::writes(const Reach& r) {
  if (writes_ < int(written_.size())) written_[std::size_t(writes_++)] = r;
}

}  // namespace chain
}  // namespace kiln::lib
