#include "dsl/lib/linear_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>

#include "dsl/lang/once_per_key.h"
#include "dsl/lib/blocks.h"
#include "runtime/base/error.h"

namespace kiln::lib {
namespace {

/// Registers of a thread that hold sums: with operands from shared memory, and beside operands in registers.
constexpr std::int64_t kMostSums = 128, kMostSumsBeside = 64;
constexpr int kBlocks[][3] = {  // BM, BN, BK of 16-bit elements
    {128, 256, 64}, {256, 128, 64}, {128, 128, 64}, {128, 128, 32}, {128, 64, 64}, {64, 128, 64},
    {64, 256, 64},  {64, 64, 64},   {64, 64, 128},  {64, 32, 64},   {64, 16, 128}};
constexpr int kTurned[][3] = {  // of few rows: BM rows of x beside BN of w
    {8, 64, 128}, {8, 128, 128}, {16, 64, 128}, {16, 128, 64}, {32, 64, 64}, {32, 128, 64}, {64, 128, 64}};

constexpr std::int64_t kMostTurnedRows = 128;

int row_class(std::int64_t rows) { return int(std::bit_width(std::uint64_t(std::max<std::int64_t>(rows, 1) - 1))); }

bool operator==(const LinearBlocks& a, const LinearBlocks& b) {
  return a.BM == b.BM && a.BN == b.BN && a.BK == b.BK && a.weights_first == b.weights_first;
}

/// A block much larger than the result is work for nothing.
bool wasteful(std::int64_t block, std::int64_t extent) { return block >= 2 * std::max<std::int64_t>(extent, 16); }

class Candidates {
 public:
  explicit Candidates(const LinearShape& s) : shape_(s) { all_.push_back(linear_plan(s, false)); }

  void add(const int (&b)[3], bool weights_first) {
    const int widest = std::max(bytes(shape_.x), bytes(shape_.w));
    const int depth = std::max(16, block_for(shape_.K, std::max(16, b[2] * 2 / widest)));
    if (wasteful(b[0], shape_.M) || wasteful(b[1], shape_.N)) return;
    for (int warps : {4, 8}) {
      const std::int64_t sums = std::int64_t(b[0]) * b[1] / (32 * warps);
      if (sums * std::max(1, widest / 4) > (shape_.direct ? kMostSums : kMostSumsBeside) || (warps == 8 && sums < 16))
        continue;
      const LinearPlan plan{{b[0], b[1], depth, weights_first}, warps};
      const auto same = [&](const LinearPlan& p) { return p.blocks == plan.blocks && p.num_warps == plan.num_warps; };
      if (std::none_of(all_.begin(), all_.end(), same)) all_.push_back(plan);
    }
  }
  std::vector<LinearPlan> take() && { return std::move(all_); }

 private:
  const LinearShape& shape_;
  std::vector<LinearPlan> all_;
};

/// The plan of one class of shapes on one device.
struct Known {
  struct Key {
    const rt::DeviceImpl* device;
    const char* kind;
    DType x, w;
    int rows;
    std::int64_t N, K;
    bool direct, crowded;
    Precision precision;
    bool operator==(const Key& o) const {
      return device == o.device && std::strcmp(kind, o.kind) == 0 && x == o.x && w == o.w && rows == o.rows &&
             N == o.N && K == o.K && direct == o.direct && crowded == o.crowded && precision == o.precision;
    }
  };
  Known(const Device& d, const Key& k, const LinearPlan* p) : owner(d), of(k), plan(p) {}
  Device owner;  // keeps the address in the key from being reused
  Key of;
  std::atomic<const LinearPlan*> plan;  ///< null: the table's
  Known* older = nullptr;
  Key key() const { return of; }
};

kiln::detail::OncePerKey<Known>& known() {
  static kiln::detail::OncePerKey<Known> table;
  return table;
}

/// A copy that is never freed: launches on other threads may be reading the one before.
const LinearPlan* kept(const LinearPlan& plan) {
  static std::mutex mutex;
  static std::deque<LinearPlan> plans;
  const std::lock_guard lock(mutex);
  return &plans.emplace_back(plan);
}

Known& entry(const Device& device, const char* kind, const LinearShape& s) {
  const Known::Key key{&device.impl(), kind, s.x, s.w, row_class(s.M), s.N, s.K, s.direct, s.crowded, s.precision};
  if (Known* k = known().find(key)) return *k;
  const auto read = [&] {
    const std::vector<LinearPlan> candidates = linear_candidates(s);
    std::vector<std::string> names;
    for (const LinearPlan& p : candidates) names.push_back(name(p));
    const auto found = rt::tuned(device, linear_subject(kind, s), names);
    return std::make_unique<Known>(device, key, found ? kept(candidates[*found]) : nullptr);
  };
  return known().find_or_make(
      key, [] { KILN_CHECK(false, "a plan is looked up while it is looked up"); }, read);
}

}  // namespace

std::string name(const LinearPlan& p) {
  const LinearBlocks& b = p.blocks;
  return fmt::format("{}x{}x{} num_warps={}{}", b.BM, b.BN, b.BK, p.num_warps, b.weights_first ? " weights first" : "");
}

std::vector<LinearPlan> linear_candidates(const LinearShape& s) {
  Candidates c(s);
  for (const auto& b : kBlocks) c.add(b, false);
  if (s.M <= kMostTurnedRows)
    for (const auto& b : kTurned) c.add(b, true);
  return std::move(c).take();
}

std::string linear_subject(const char* kind, const LinearShape& s) {
  constexpr const char* kPrecisions[] = {"", ", tf32", ", tf32x3", ", bf16x3"};
  return fmt::format("{} {} x {}, M to 2^{}, N {}, K {}{}{}{}", kind, kiln::name(s.x), kiln::name(s.w), row_class(s.M),
                     s.N, s.K, s.direct ? ", direct" : "", s.crowded ? ", crowded" : "",
                     kPrecisions[std::size_t(s.precision)]);
}

LinearPlan tuned_linear_plan(const Device& device, const char* kind, const LinearShape& s) {
  const LinearPlan* found = entry(device, kind, s).plan.load(std::memory_order_acquire);
  return found ? *found : linear_plan(s, false);
}

void keep_linear_plan(const Device& device, const char* kind, const LinearShape& s, const LinearPlan& found) {
  entry(device, kind, s).plan.store(kept(found), std::memory_order_release);
}

}  // namespace kiln::lib
