#include "backend/ir/exchange_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "backend/ir/gf2.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

using Vectors = std::vector<std::uint64_t>;

int log2_of(std::int64_t n) { return std::countr_zero(std::uint64_t(n)); }

/// A layout as packed vectors.
struct Packed {
  Vectors reg, lane, warp, block;
  int bits;

  explicit Packed(const LinearLayout& l) : bits(l.total_out_bits()) {
    const auto all = [&](Hw h) {
      Vectors v;
      for (int b = 0; b < l.in_bits(h); ++b) v.push_back(pack(l, l.basis(h, b)));
      return v;
    };
    reg = all(Hw::Register);
    lane = all(Hw::Lane);
    warp = all(Hw::Warp);
    block = all(Hw::Block);
  }
  Vectors threads() const {
    Vectors v = lane;
    v.insert(v.end(), warp.begin(), warp.end());
    v.insert(v.end(), block.begin(), block.end());
    return v;
  }

 private:
  // The last axis lowest, so that low bits are those of neighbours.
  static std::uint64_t pack(const LinearLayout& l, const LinearLayout::Coord& c) {
    std::uint64_t v = 0;
    for (int k = 0; k < l.rank(); ++k)
      v = v << log2_of(l.out_shape()[std::size_t(k)]) | std::uint64_t(c[std::size_t(k)]);
    return v;
  }
};

/// Solves over register bits (and lane bits) of a layout.
class Source {
 public:
  Source(const Packed& p, bool lanes) : regs_(int(p.reg.size())) {
    int j = 0;
    for (std::uint64_t v : p.reg) add(v, j++);
    if (lanes)
      for (std::uint64_t v : p.lane) add(v, j++);
  }
  struct Place {
    std::uint64_t reg, lane;
  };
  std::optional<Place> find(std::uint64_t v) const {
    const auto all = eliminator_.solve(v);
    if (!all) return std::nullopt;
    return split(*all);
  }
  /// Places that hold the element at coordinate 0.
  const std::vector<Place>& kernel() const { return kernel_; }

 private:
  void add(std::uint64_t v, int j) {
    if (!eliminator_.add(v, j)) kernel_.push_back(split(*eliminator_.solve(v) ^ std::uint64_t(1) << j));
  }
  Place split(std::uint64_t all) const { return {all & ((std::uint64_t(1) << regs_) - 1), all >> regs_}; }

  int regs_;
  Eliminator eliminator_;
  std::vector<Place> kernel_;
};

/// For each bit of the destination, where it comes from; thread bits beyond the lanes stand still.
bool find_sources(const Packed& a, const Packed& b, bool lanes, std::vector<Source::Place>& of_register,
                  std::vector<Source::Place>& of_thread) {
  const Source source(a, lanes);
  const auto find = [&](std::uint64_t v, std::vector<Source::Place>& out) {
    const auto place = source.find(v);
    if (place) out.push_back(*place);
    return place.has_value();
  };
  for (std::uint64_t v : b.reg)
    if (!find(v, of_register)) return false;
  const Vectors ta = a.threads(), tb = b.threads();
  for (std::size_t k = 0; k < tb.size(); ++k)
    if (!find(lanes && k < b.lane.size() ? tb[k] : tb[k] ^ ta[k], of_thread)) return false;
  return true;
}

void check_threads(const Packed& a, const Packed& b) {
  KILN_CHECK(a.bits == b.bits && a.lane.size() == b.lane.size() && a.warp.size() == b.warp.size() && a.block == b.block,
             "exchange between layouts of other extents, threads or blocks");
}

}  // namespace

bool same_blocks(const LinearLayout& a, const LinearLayout& b) { return Packed(a).block == Packed(b).block; }

std::vector<std::uint64_t> intersection(const Basis& a, const Basis& b) {
  // Zassenhaus: rows (u, u) and (w, 0); what is left of rows whose first half vanishes spans the intersection.
  std::vector<std::uint64_t> rows, shared;
  for (std::uint64_t u : a.vectors()) rows.push_back(u << 32 | u);
  for (std::uint64_t w : b.vectors()) rows.push_back(w << 32);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >> 32 == 0) {
      if (rows[i] != 0) shared.push_back(rows[i]);
      continue;
    }
    const int pivot = int(std::bit_width(rows[i])) - 1;
    for (std::size_t k = i + 1; k < rows.size(); ++k)
      if (rows[k] >> pivot & 1) rows[k] ^= rows[i];
  }
  // Fewest bits first: vectors of one bit where there are some.
  for (std::size_t i = 0; i < shared.size(); ++i)
    for (std::size_t k = 0; k < shared.size(); ++k)
      if (k != i && std::popcount(shared[k] ^ shared[i]) < std::popcount(shared[k])) shared[k] ^= shared[i];
  std::sort(shared.begin(), shared.end());
  return shared;
}

std::optional<ExchangePlan> plan_registers(const LinearLayout& from, const LinearLayout& to) {
  const Packed a(from), b(to);
  check_threads(a, b);
  std::vector<Source::Place> registers, threads;
  if (!find_sources(a, b, /*lanes=*/false, registers, threads)) return std::nullopt;
  ExchangePlan plan;
  for (const Source::Place& p : registers) plan.of_register.push_back(p.reg);
  for (const Source::Place& p : threads) plan.of_thread.push_back(p.reg);
  return plan;
}

// --- shuffle ---------------------------------------------------------------------------------------------------------
namespace {

/// Makes K of full rank where that is possible: D, and other replicas of the element read.
/// False if lanes that read one lane want different registers of it.
bool choose_rounds(const Packed& a, const std::vector<Source::Place>& registers, std::vector<Source::Place>& threads,
                   Vectors& d) {
  const std::vector<Source::Place> replicas = Source(a, true).kernel();
  Basis k;
  std::vector<std::size_t> kept, left;
  for (std::size_t j = 0; j < a.lane.size(); ++j) (k.add(threads[j].lane) ? kept : left).push_back(j);
  for (std::size_t j : left) {
    bool found = false;
    for (std::size_t z = 0; z < replicas.size() && !found; ++z)
      if (k.add(threads[j].lane ^ replicas[z].lane)) {
        threads[j].lane ^= replicas[z].lane;
        threads[j].reg ^= replicas[z].reg;
        found = true;
      }
    for (std::size_t i = 0; i < registers.size() && !found; ++i)
      if (k.add(threads[j].lane ^ registers[i].lane)) {
        d[j] = std::uint64_t(1) << i;
        found = true;
      }
    if (found) {
      kept.push_back(j);
      continue;
    }
    // Column j is the XOR of columns kept: then its register must be theirs, too.
    std::uint64_t reg = threads[j].reg;
    const std::uint64_t others = *k.solve(threads[j].lane);
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (others >> i & 1) {
        reg ^= threads[kept[i]].reg;
        if (d[kept[i]] != 0) reg ^= registers[std::size_t(std::countr_zero(d[kept[i]]))].reg;
      }
    if (reg != 0) return false;
  }
  return true;
}

}  // namespace

std::optional<ExchangePlan> plan_shuffle(const LinearLayout& from, const LinearLayout& to, int element_bytes) {
  const Packed a(from), b(to);
  check_threads(a, b);
  std::vector<Source::Place> registers, threads;
  if (!find_sources(a, b, /*lanes=*/true, registers, threads)) return std::nullopt;
  ExchangePlan plan;
  plan.way = ExchangePlan::Way::Shuffle;
  plan.to_register.assign(threads.size(), 0);
  if (!choose_rounds(a, registers, threads, plan.to_register)) return std::nullopt;

  const std::size_t lanes = a.lane.size();
  const auto through_d = [&](std::size_t j, auto member) {
    std::uint64_t v = 0;
    for (std::uint64_t m = plan.to_register[j]; m != 0; m &= m - 1)
      v ^= registers[std::size_t(std::countr_zero(m))].*member;
    return v;
  };
  Vectors register_of;  // E: per destination thread bit, register wanted
  for (std::size_t j = 0; j < threads.size(); ++j) {
    plan.source_lane.push_back(threads[j].lane ^ through_d(j, &Source::Place::lane));
    register_of.push_back(threads[j].reg ^ through_d(j, &Source::Place::reg));
    plan.reached |= plan.to_register[j];
  }
  // P = E K^-1; lanes that nobody reads may supply anything.
  Basis k;
  Vectors wanted;
  for (std::size_t j = 0; j < lanes; ++j)
    if (k.add(plan.source_lane[j])) wanted.push_back(register_of[j]);
  for (std::size_t bit = 0; bit < lanes; ++bit)
    if (k.add(std::uint64_t(1) << bit)) wanted.push_back(0);
  const auto served = [&](std::uint64_t lane) { return combine(wanted, *k.solve(lane)); };
  for (std::size_t bit = 0; bit < lanes; ++bit) plan.from_register.push_back(served(std::uint64_t(1) << bit));
  for (std::size_t j = lanes; j < threads.size(); ++j)
    plan.from_register.push_back(register_of[j] ^ served(plan.source_lane[j]));
  int words = 4 / std::min(element_bytes, 4);
  for (std::size_t i = 0; i < registers.size(); ++i) {
    plan.round_lane.push_back(registers[i].lane);
    plan.round_register.push_back(registers[i].reg ^ served(registers[i].lane));
    const bool free_bit = registers[i].lane == 0 && registers[i].reg != 0 && (plan.reached >> i & 1) == 0;
    if (free_bit && words > 1) {
      plan.packable |= std::uint64_t(1) << i;
      words /= 2;
    }
  }
  return plan;
}

// --- shared ----------------------------------------------------------------------------------------------------------
namespace {

constexpr int kRowBytes = 128, kWordBytes = 4, kMaxVectorBytes = 16;

/// One side of an exchange through shared memory.
struct Side {
  Vectors regs;                      ///< independent
  std::vector<std::uint64_t> lanes;  ///< bases of the lanes
  std::vector<std::uint64_t> threads;
  std::vector<std::uint64_t> vector;  ///< what one access moves
  int element_bytes;

  Side(const Packed& p, int bytes) : lanes(p.lane), threads(p.threads()), element_bytes(bytes) {
    regs = Basis(p.reg).vectors();
  }
  int access_bytes() const { return element_bytes << vector.size(); }
  /// Lanes that one wavefront serves.
  std::vector<std::uint64_t> together() const {
    const int bytes = std::max(access_bytes(), kWordBytes);
    const auto n = std::min<std::size_t>(lanes.size(), std::size_t(log2_of(kRowBytes / bytes)));
    return {lanes.begin(), lanes.begin() + std::ptrdiff_t(n)};
  }
  /// Wavefronts and instructions of all registers, weighed.
  double cost() const {
    const double accesses = double(std::uint64_t(1) << (regs.size() - vector.size()));
    return accesses * (std::max(access_bytes(), kWordBytes) / double(kWordBytes) + 0.5);
  }
};

/// Adds vectors of the side's registers until one access moves 16 bytes.
void widen(Side& side, const std::vector<std::uint64_t>& common) {
  Basis v(common);
  for (std::uint64_t r : side.regs)
    if (side.element_bytes << v.size() < kMaxVectorBytes) v.add(r);
  side.vector = v.vectors();
}

/// The vectors that both sides hold in registers, and more on one side if `widened` and it pays.
void choose_vectors(Side& a, Side& b, bool widened) {
  std::vector<std::uint64_t> common = intersection(Basis(a.regs), Basis(b.regs));
  const auto limit = std::size_t(log2_of(kMaxVectorBytes / a.element_bytes));
  if (common.size() > limit) common.resize(limit);
  a.vector = b.vector = common;
  if (!widened) return;
  Side wide_a = a, wide_b = b;
  widen(wide_a, common);
  widen(wide_b, common);
  const double both = a.cost() + b.cost(), first = wide_a.cost() + b.cost(), second = a.cost() + wide_b.cost();
  if (first < both && first <= second) a = wide_a;
  else if (second < both) b = wide_b;
}

/// Columns of the map from offsets to coordinates.
std::vector<std::uint64_t> offset_columns(const Side& a, const Side& b, int bits) {
  const Side& wide = a.vector.size() >= b.vector.size() ? a : b;
  Basis low(wide.vector);  // the narrower side's vector is the start of it
  for (const Side* s : {&a, &b})
    for (std::uint64_t lane : s->together())
      if (a.element_bytes << low.size() < kWordBytes) low.add(lane);
  // Lanes that touch one word meet in no bank; a narrow access counts with the word around it.
  const auto wavefront = [&](const Side& s) {
    const auto word = std::size_t(log2_of(std::max(kWordBytes / s.element_bytes, 1)));
    const auto n = std::ptrdiff_t(std::min(std::max(s.vector.size(), word), low.vectors().size()));
    Basis w({low.vectors().begin(), low.vectors().begin() + n});
    w.add_all(s.together());
    return w;
  };
  Basis wa = wavefront(a), wb = wavefront(b);
  while (wa.size() != wb.size()) {
    Basis &small = wa.size() < wb.size() ? wa : wb, &large = wa.size() < wb.size() ? wb : wa;
    for (std::uint64_t v : large.vectors())
      if (small.size() < large.size()) small.add(v);
  }
  const Basis common(intersection(wa, wb));
  const auto beyond = [&](const Basis& w) {
    Basis all = common;
    std::vector<std::uint64_t> more;
    for (std::uint64_t v : w.vectors())
      if (all.add(v)) more.push_back(v);
    return more;
  };
  // A thread's own offset must not reach into the wider side's vectors, or that side could not move them whole. It does
  // where e + f pairs a vector bit with a thread bit of that side; so vector bits go with what its registers hold.
  std::vector<std::uint64_t> e = beyond(wa), f = beyond(wb);
  const Basis vector(wide.vector), threads(wide.threads);
  const bool a_is_wide = &wide == &a;
  const auto first = [](std::vector<std::uint64_t>& v, auto&& which) {
    std::stable_partition(v.begin(), v.end(), which);
  };
  first(a_is_wide ? e : f, [&](std::uint64_t v) { return vector.contains(v); });
  first(a_is_wide ? f : e, [&](std::uint64_t v) { return !threads.contains(v); });
  Basis columns = low;
  columns.add_all((&wide == &a ? wa : wb).vectors());
  Basis covered = wa;
  covered.add_all(wb.vectors());
  for (std::size_t i = 0; i < e.size(); ++i) columns.add(e[i] ^ f[i]);
  const auto complement = [&](std::uint64_t v) {
    if (covered.add(v)) columns.add(v);
  };
  for (const Side* s : {&a, &b})
    for (std::uint64_t v : s->threads) complement(v);
  for (int bit = 0; bit < bits; ++bit) complement(std::uint64_t(1) << bit);
  KILN_CHECK(columns.size() == bits, "exchange: the offsets do not cover the tile");
  return columns.vectors();
}

/// Elements an access of this side can move: the low bits of its offsets must not depend on the thread.
int vector_of(const Side& side, const BitMap& threads) {
  std::uint64_t used = 0;
  for (std::uint64_t t : threads) used |= t;
  const int free_low = used == 0 ? 63 : std::countr_zero(used);
  return 1 << std::min(int(side.vector.size()), free_low);
}

/// Offsets of both sides; false if one cannot move the vectors that were chosen for it.
bool place(const Packed& a, const Packed& b, int element_bytes, bool widened, ExchangePlan& plan) {
  Side write(a, element_bytes), read(b, element_bytes);
  choose_vectors(write, read, widened);
  const Basis offsets(offset_columns(write, read, a.bits));
  const auto map = [&](const Vectors& bases) {
    BitMap m;
    for (std::uint64_t v : bases) m.push_back(*offsets.solve(v));
    return m;
  };
  plan.write_register = map(a.reg);
  plan.write_thread = map(write.threads);
  plan.read_register = map(b.reg);
  plan.read_thread = map(read.threads);
  plan.write_vector = vector_of(write, plan.write_thread);
  plan.read_vector = vector_of(read, plan.read_thread);
  return plan.write_vector == 1 << write.vector.size() && plan.read_vector == 1 << read.vector.size();
}

}  // namespace

ExchangePlan plan_shared(const LinearLayout& from, const LinearLayout& to, int element_bytes) {
  const Packed a(from), b(to);
  check_threads(a, b);
  ExchangePlan plan;
  plan.way = ExchangePlan::Way::Shared;
  if (!place(a, b, element_bytes, /*widened=*/true, plan)) place(a, b, element_bytes, /*widened=*/false, plan);
  plan.bytes = std::int64_t(element_bytes) << a.bits;
  plan.owner_mask = from.free_bits(Hw::Lane) | from.free_bits(Hw::Warp) << a.lane.size();
  std::vector<Source::Place> unused_registers, unused_threads;
  plan.in_warp =
      plan.owner_mask >> a.lane.size() == 0 && find_sources(a, b, /*lanes=*/true, unused_registers, unused_threads);
  return plan;
}

// --- the choice ------------------------------------------------------------------------------------------------------
namespace {

int rank(const BitMap& m) { return Basis(m).size(); }

/// Cycles of a warp's exchange per multiprocessor: a shuffle and a row of shared memory one each, a select a quarter.
double shuffle_cost(const ExchangePlan& p, int registers, int element_bytes) {
  const double rounds = double(registers) / (1 << std::popcount(p.packable)), words = element_bytes == 8 ? 2 : 1;
  return rounds * words * (1 + 0.25 * (rank(p.from_register) + rank(p.to_register)));
}

double shared_cost(const ExchangePlan& p, int written, int read, int element_bytes) {
  constexpr double kBarrier = 16;
  const auto side = [&](int registers, int vector) {
    return double(registers) / vector * std::max(1.0, vector * element_bytes / 4.0);
  };
  return kBarrier + side(written, p.write_vector) + side(read, p.read_vector);
}

}  // namespace

std::int64_t exchange_bytes(const LinearLayout& from, const LinearLayout& to, int element_bytes) {
  return plan_exchange(from, to, element_bytes).bytes;
}

ExchangePlan plan_exchange(const LinearLayout& from, const LinearLayout& to, int element_bytes) {
  if (auto plan = plan_registers(from, to)) return *plan;
  const auto shuffle = plan_shuffle(from, to, element_bytes);
  ExchangePlan shared = plan_shared(from, to, element_bytes);
  const auto written = int(from.without_free_registers().in_size(Hw::Register)), read = int(to.in_size(Hw::Register));
  if (shuffle && shuffle_cost(*shuffle, read, element_bytes) <= shared_cost(shared, written, read, element_bytes))
    return *shuffle;
  return shared;
}

}  // namespace kiln::ir
