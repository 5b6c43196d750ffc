// allocate-shared: a place in shared memory for every op that needs scratch (backend/ir/op/scratch.h).
//
//     %3 = convert %2 : tile<64x64xbf16, #1>       ->      %3 = convert scratch=128 %2 : tile<64x64xbf16, #1>
//
// What `alloc` asks for comes first and is never shared. An op's scratch is free again when the op is done, so two ops
// may have one place; but then the second waits, at a barrier, until all threads are done with the first. Hence small
// scratches, of which a reduction or a scalar load needs some dozens of bytes, go round in a ring of places, and large
// ones in a ring of their own behind it that is as long as the largest: two ops in a row share no place where that
// costs little. Where the target has no room for rings, every op gets the same place.
//
// Shared memory is a block's, so this is also where a program of several blocks is refused whose elements would have to
// change theirs.
#include <fmt/format.h>

#include <algorithm>

#include "backend/ir/exchange_plan.h"
#include "backend/ir/op/scratch.h"
#include "backend/ir/op/store_block.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"
#include "backend/pass/skew.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

constexpr std::int64_t kSmall = 2048;      // a scratch up to this goes to the ring of small ones
constexpr std::int64_t kSmallRing = 8192;  // 2048 threads in blocks of 256 leave each block 28 KB
constexpr std::int64_t kLargeRing = 16384;
constexpr std::int64_t kAlign = 128;  // one row of all banks

struct User {
  InstId inst;
  std::int64_t bytes;
  bool stays;  ///< for the whole program
};

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// Places one after the other, from the start again where the ring is full.
class Ring {
 public:
  explicit Ring(std::int64_t size) : size_(size) {}
  std::int64_t take(std::int64_t bytes) {
    if (at_ + bytes > size_) at_ = 0;
    const std::int64_t place = at_;
    at_ += bytes <= 16 ? 16 : aligned(bytes);
    used_ = std::max(used_, place + bytes);
    return place;
  }
  std::int64_t used() const { return aligned(used_); }

 private:
  std::int64_t size_, at_ = 0, used_ = 0;
};

/// Offsets of `users`, those that pass in rings of these sizes, and the end of all.
std::pair<std::vector<std::int64_t>, std::int64_t> place(const std::vector<User>& users, std::int64_t small_ring,
                                                         std::int64_t large_ring) {
  std::int64_t kept = 0, largest = 0;
  for (const User& u : users)
    if (u.stays) kept += aligned(u.bytes);
    else largest = std::max(largest, u.bytes);
  Ring allocs(kept), small(small_ring), large(std::max(large_ring, largest));
  std::vector<std::int64_t> at;
  const auto ring_of = [&](const User& u) -> Ring& {
    return u.stays ? allocs : u.bytes <= std::min(kSmall, small_ring) ? small : large;
  };
  for (const User& u : users) at.push_back(ring_of(u).take(u.bytes));
  for (std::size_t i = 0; i < users.size(); ++i) {
    const Ring& ring = ring_of(users[i]);
    if (&ring != &allocs) at[i] += kept;
    if (&ring == &large) at[i] += small.used();
  }
  return {at, kept + small.used() + large.used()};
}

std::string largest_users(const Function& f, std::vector<User> users) {
  std::stable_sort(users.begin(), users.end(), [](const User& a, const User& b) { return a.bytes > b.bytes; });
  if (users.size() > 3) users.resize(3);
  std::string text;
  for (const User& u : users)
    text += fmt::format("{}{} bytes for {} at {}", text.empty() ? "" : ", ", u.bytes, mnemonic(f.inst(u.inst).op),
                        f.inst(u.inst).loc.str());
  return text;
}

/// Elements change their block in reductions and scans only.
void check_blocks(const Function& f) {
  if (f.exec->cluster == 1) return;
  walk(f, [&](InstId i) {
    const Inst& inst = f.inst(i);
    if (inst.op != Op::Convert) return;
    Type from = f.type(inst.operands[0]);
    if (same_blocks(f.layout(from.layout), f.layout(f.type(inst.results[0]).layout))) return;
    from.layout = kNoLayout;
    throw UserError(inst.loc, fmt::format("{}: cluster is {}, but {} is needed in two layouts, and its elements do not "
                                          "move between blocks: it must be 1",
                                          f.name, f.exec->cluster, from.str()));
  });
}

/// The loop that takes from the ring which other warps fill.
InstId loop_of_ring(const Function& f) {
  InstId loop = kNone;
  walk(f, [&](InstId i) {
    if (f.inst(i).op == Op::Take && f.inst(i).operands.empty()) loop = f.region(f.inst(i).parent).owner;
  });
  return loop;
}

/// The ring comes first, with as many slots as the user wants, or else as the others leave room for; then what results
/// go through, which copies may still read when their op is done, so that it is no other op's.
bool place_ring(Function& f, InstId fill, const std::vector<User>& all, std::int64_t limit,
                const CompileOptions& wish) {
  constexpr std::int64_t kMostSlots = 8;
  std::vector<User> users;
  for (const User& u : all)
    if (f.inst(u.inst).op != Op::StoreBlock) users.push_back(u);
  const auto [at, end] = place(users, 0, 0);
  const std::int64_t staging = staging_bytes(f);
  const auto before = [&](std::int64_t stages) {
    const std::int64_t ring = ring_bytes(f, f.inst(fill), stages);
    return staging == 0 ? ring : (ring + kRingAlign - 1) / kRingAlign * kRingAlign;
  };
  const InstId loop = loop_of_ring(f);
  const std::int64_t wanted = loop == kNone ? 0 : stages_wished(f, loop, wish);
  if (wanted > 0 && before(wanted) + staging + end > limit)
    throw UserError(f.inst(loop).loc,
                    fmt::format("{}: stages({}): as many slots of {} bytes and {} bytes of other shared memory do not "
                                "fit {}",
                                f.name, wanted, slot_bytes(f, f.inst(fill)), staging + end, limit));
  std::int64_t stages = wanted > 0 ? wanted : kMostSlots;
  while (stages > 0 && before(stages) + staging + end > limit) --stages;
  if (stages < 2)
    throw UserError(f.loc,
                    fmt::format("{}: two slots of {} bytes and {} bytes of other shared memory do not fit {}; "
                                "make the blocks smaller; most of it: {}",
                                f.name, slot_bytes(f, f.inst(fill)), staging + end, limit, largest_users(f, all)));
  for (const User& u : all)
    if (f.inst(u.inst).op == Op::StoreBlock) set_attr(f, u.inst, AttrKey::scratch, before(stages));
  for (std::size_t i = 0; i < users.size(); ++i)
    set_attr(f, users[i].inst, AttrKey::scratch, at[i] + before(stages) + staging);
  set_attr(f, fill, AttrKey::stages, stages);
  f.notes.push_back(fmt::format(
      "{}: a ring of {} slots of {} bytes feeds the product: {}", (loop == kNone ? f.loc : f.inst(loop).loc).str(),
      stages, slot_bytes(f, f.inst(fill)),
      wanted > 0 ? "as the kernel or its options ask"
      : stages == kMostSlots
          ? "more would not help"
          : fmt::format("as many as fit {} bytes with {} bytes of other shared memory", limit, staging + end)));
  return true;
}

}  // namespace

bool allocate_shared(PassContext& context, Function& f) {
  check_blocks(f);
  std::vector<User> users;
  walk(f, [&](InstId i) {
    if (const std::int64_t bytes = scratch_bytes(f, f.inst(i)); bytes > 0)
      users.push_back({i, bytes, f.inst(i).op == Op::Alloc});
  });
  const InstId fill = fill_of(f);
  if (users.empty() && fill == kNone) return false;

  const auto limit = std::int64_t(context.target.max_shared_bytes);
  if (fill != kNone) return place_ring(f, fill, users, limit, context.options);
  auto [at, end] = place(users, kSmallRing, kLargeRing);
  if (end * f.exec->programs_per_cta > limit) std::tie(at, end) = place(users, 0, 0);
  if (end * f.exec->programs_per_cta > limit)
    throw UserError(f.loc,
                    fmt::format("{}: needs {} bytes of shared memory, {} has {}; most of it: {}", f.name,
                                end * f.exec->programs_per_cta, context.target.arch, limit, largest_users(f, users)));
  bool changed = false;
  for (std::size_t i = 0; i < users.size(); ++i) changed |= set_attr(f, users[i].inst, AttrKey::scratch, at[i]);
  return changed;
}

}  // namespace kiln::ir
