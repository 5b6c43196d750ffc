// wgmma: products of a warpgroup, 64×N += 64×K · K×N, asynchronously. Each warp computes the 16 rows that its registers
// hold, as an operation of its own that is carried out when it is waited for.
//
// Accumulators are 8×8 blocks as those of mma (matrix.h): registers of the first 8 columns (rows 0…7, then 8…15), then
// of the next 8. B comes from shared memory, A from there or from four registers as the A of mma.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <memory>
#include <optional>

#include "runtime/sim/decode.h"
#include "runtime/sim/matrix.h"
#include "runtime/sim/order.h"
#include "runtime/sim/tally.h"
#include "runtime/sim/wgmma_descriptor.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr U32 kRows = 16;  // of a warp
constexpr U32 kM = 64;     // of the warpgroup
constexpr U32 kMaxK = 32;
constexpr U32 kARegisters = 4;  // where A is in registers
constexpr U32 kChunk = 16;      // bytes of a row that lie together

enum : std::uint8_t { kARegister = 1, kNegate = 2, kTransA = 4, kTransB = 8, kSaturate = 16 };

/// One form, in Inst::imm.
struct Kind {
  Ty a, b, d;
  std::uint8_t n8;  ///< N / 8
  std::uint8_t k, flags;
  std::uint8_t unused[2] = {};

  U32 n() const { return 8u * n8; }
  U32 d_registers() const { return n8 * 2 * accumulator(d)->registers; }
  U32 a_registers() const { return flags & kARegister ? kARegisters : 0; }
  U32 a_operands() const { return flags & kARegister ? kARegisters : 1; }
};
static_assert(sizeof(Kind) == sizeof(Inst::imm));

/// An operand in shared memory: rows of K, or elements along M or N where `mn_major`.
struct SharedOperand {
  Descriptor at;
  const Element& element;
  bool mn_major;

  /// f(address) of each chunk of rows [first, first + 8·blocks).
  template <class F>
  void each_chunk(U32 first, U32 blocks, F f) const {
    const U32 k = mn_major ? kChunk * 8 / element.bits * 2 : 0;
    for (U32 b = first / 8; b < first / 8 + blocks; ++b)
      for (U32 i = 0; i < (mn_major ? k : 8); ++i) {
        if (mn_major) f(at.mn_major(b, i));
        else f(at.k_major(8 * b + i, 0)), f(at.k_major(8 * b + i, 1));
      }
  }
  /// Rows 8·block … 8·block + 7 as k×8 numbers: to[i·8 + row].
  void columns(const std::byte* shared, U32 block, double* to) const {
    const U32 per_chunk = 8 * kChunk / element.bits;
    if (mn_major) {
      for (U32 i = 0; i < 2 * per_chunk; ++i) element.to_doubles(shared + at.mn_major(block, i), 8, to + 8 * i);
      return;
    }
    double rows[8 * kMaxK];
    for (U32 row = 0; row < 8; ++row)
      for (U32 c = 0; c < 2; ++c)
        convert_chunk(shared + at.k_major(8 * block + row, c), per_chunk, rows + row * 2 * per_chunk + c * per_chunk);
    transpose(rows, 2 * per_chunk, to);
  }

 private:
  /// to_doubles() takes eight at least; a chunk of tf32 has four.
  void convert_chunk(const std::byte* from, U32 n, double* to) const {
    if (n >= 8) return element.to_doubles(from, n, to);
    std::array<std::byte, 2 * kChunk> padded{};
    double wide[8];
    std::copy_n(from, kChunk, padded.begin());
    element.to_doubles(padded.data(), 8, wide);
    std::copy_n(wide, n, to);
  }
};

/// The bytes that an operation reads, in units of 16, so that those that lie together are one access.
class Footprint {
 public:
  explicit Footprint(U32 shared_end) : words_(shared_end / kChunk / 64 + 1) {}
  void add(U32 address) { words_[address / kChunk / 64] |= 1ull << (address / kChunk % 64); }
  /// f(address, bytes) of each run.
  template <class F>
  void each_run(F f) const {
    U32 begin = 0, length = 0;
    for (U32 w = 0; w < words_.size(); ++w) {
      if (words_[w] == 0 && length == 0) continue;
      for (U32 i = 0; i < 64; ++i) {
        if (words_[w] >> i & 1) {
          if (length++ == 0) begin = 64 * w + i;
        } else if (length) {
          f(begin * kChunk, length * kChunk);
          length = 0;
        }
      }
    }
    if (length) f(begin * kChunk, length * kChunk);
  }

 private:
  std::vector<U64> words_;
};

class Wgmma : public Operation {
 public:
  Wgmma(Agent issued, Kind kind, std::optional<Descriptor> a, Descriptor b, bool accumulates)
      : Operation(std::move(issued)), kind_(kind), a_(a), b_(b), accumulates_(accumulates) {}
  void run() override;

 private:
  void check_shared(const SharedOperand* a, const SharedOperand& b);
  U32 first_row() const { return agent.issuer->index % kWarpgroup * kRows; }

  Kind kind_;
  std::optional<Descriptor> a_;  ///< none: in registers
  Descriptor b_;
  bool accumulates_;
};

void Wgmma::check_shared(const SharedOperand* a, const SharedOperand& b) {
  Block& block = *agent.issuer->block;
  Footprint seen(block.shared_end());
  if (a) a->each_chunk(first_row(), kRows / 8, [&](U32 at) { seen.add(at); });
  b.each_chunk(0, kind_.n8, [&](U32 at) { seen.add(at); });
  seen.each_run([&](U32 at, U32 bytes) { shared_read(agent, block, at, bytes); });
}

void Wgmma::run() {
  Warp& w = *agent.issuer;
  const Inst& in = *agent.inst;
  const std::byte* shared = w.block->shared_bytes();
  const Accumulator& acc = *accumulator(kind_.d);
  const SharedOperand b{b_, *element(kind_.b), (kind_.flags & kTransB) != 0};
  double rows[kRows * kMaxK], panel[8 * kMaxK], c[2 * kBlock];
  const U32 k = kind_.k;
  if (a_) {
    const SharedOperand a{*a_, *element(kind_.a), (kind_.flags & kTransA) != 0};
    check_shared(&a, b);
    for (U32 half = 0; half < 2; ++half) {
      a.columns(shared, first_row() / 8 + half, panel);
      for (U32 row = 0; row < 8; ++row)
        for (U32 i = 0; i < k; ++i) rows[(8 * half + row) * k + i] = panel[8 * i + row];
    }
  } else {
    check_shared(nullptr, b);
    load_rows(w, *element(kind_.a), in.ops + kind_.d_registers(), kRows, k, rows);
  }
  if (kind_.flags & kNegate) std::transform(rows, rows + kRows * k, rows, std::negate<>{});
  for (U32 block = 0; block < kind_.n8; ++block) {
    const Ref* registers = in.ops + 2 * acc.registers * block;
    b.columns(shared, block, panel);
    std::fill_n(c, 2 * kBlock, 0.0);
    for (U32 half = 0; accumulates_ && half < 2; ++half)
      acc.load(w, registers + half * acc.registers, c + half * kBlock);
    multiply(rows, panel, c, kRows, k);
    for (U32 half = 0; half < 2; ++half)
      acc.store(w, registers + half * acc.registers, c + half * kBlock, (kind_.flags & kSaturate) != 0);
  }
  if (w.alternative) w.alternative->settle(w, in, kAllLanes);
}

// --- handlers

Warpgroup& warpgroup(Warp& w) { return w.block->warpgroups[w.index / kWarpgroup]; }
Groups& groups(Warp& w) { return w.groups[static_cast<std::size_t>(GroupKind::Wgmma)]; }
bool watches(const Warp& w) { return w.block->launch->checks.registers; }

/// The value that all lanes must have.
U64 uniform(Warp& w, const Inst& in, Ref r, const char* what) {
  const U64* v = w.in<U64>(r);
  for (int l = 1; l < kLanes; ++l)
    if (v[l] != v[0])
      fault(FindingKind::Descriptor, w, in, l,
            fmt::format("the descriptor of {} is 0x{:x}, in lane 0 it is 0x{:x}", what, v[l], v[0]));
  return v[0];
}

Descriptor checked(Warp& w, const Inst& in, U64 bits, const char* what, bool mn_major, U32 rows) {
  if (const std::string why = misuse(bits, mn_major, rows, kSharedBase, w.block->shared_end()); !why.empty())
    fault(FindingKind::Descriptor, w, in, fmt::format("the descriptor 0x{:x} of {}: {}", bits, what, why));
  return Descriptor(bits);
}

/// ops: registers of D; of A, or its descriptor; descriptor of B; predicate: D is added to.
void mma_async(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  const Kind kind = std::bit_cast<Kind>(in.imm);
  const Ref* operands = in.ops + kind.d_registers();
  const bool a_shared = !(kind.flags & kARegister);
  const U64 a_bits = a_shared ? uniform(w, in, operands[0], "A") : 0,
            b_bits = uniform(w, in, operands[kind.a_operands()], "B");
  const U32 scale = w.pred(operands[kind.a_operands() + 1]);
  if (scale != 0 && scale != kAllLanes)
    fault(FindingKind::Divergence, w, in, fmt::format("scale-d is true in lanes 0x{:08x} only", scale));
  if (w.alternative && scale)
    for (U32 i = 0; i < kind.d_registers(); ++i) w.alternative->require(w, in, i, kAllLanes);
  warpgroup(w).step(w, {&in, a_bits, b_bits});
  std::optional<Descriptor> a;
  if (a_shared) a = checked(w, in, a_bits, "A", (kind.flags & kTransA) != 0, kM);
  const Descriptor b = checked(w, in, b_bits, "B", (kind.flags & kTransB) != 0, kind.n());
  if (watches(w)) w.wgmma.issue(w, in, kind.d_registers(), kind.a_registers());
  count_matrix(w, in, 2ull * kRows * kind.n() * kind.k);
  groups(w).add(std::make_unique<Wgmma>(issue(w, in, 0, Proxy::Async), kind, a, b, scale != 0));
}

void fence(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  warpgroup(w).step(w, {&in});
  if (watches(w)) w.wgmma.fence();
}

/// The other warps of the warpgroup.
template <class F>
void each_other(Warp& w, F&& f) {
  std::vector<Warp>& warps = w.block->warps;
  const std::size_t begin = w.index / kWarpgroup * kWarpgroup, end = std::min(begin + kWarpgroup, warps.size());
  for (std::size_t i = begin; i < end; ++i)
    if (i != w.index) f(warps[i]);
}

void commit_group(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  warpgroup(w).step(w, {&in});
  groups(w).commit(kAllLanes);
  each_other(w, [](Warp& other) {
    if (other.state == WarpState::AtWarpgroup) other.state = WarpState::Ready;
  });
  if (watches(w)) w.wgmma.commit();
}

/// in.imm: groups that may stay under way. A product is one of the whole warpgroup, so it is done when all four warps'
/// parts are, and the warp waits for those that have not issued theirs.
void wait_group(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  const U32 committed = groups(w).committed(0), left = static_cast<U32>(in.imm);
  bool all = true;
  each_other(w, [&](Warp& other) {
    all = all && (groups(other).committed(0) >= committed || other.state == WarpState::Done);
  });
  if (!all) {  // again when they have
    uncount(w, in);
    w.state = WarpState::AtWarpgroup;
    --w.pc;
    return;
  }
  warpgroup(w).step(w, {&in});
  Clock done;
  if (committed > left) each_other(w, [&](Warp& other) { groups(other).finish_groups(committed - left, done); });
  acquire(w, done);
  groups(w).wait(w, kAllLanes, left);
  if (watches(w)) w.wgmma.wait(w.block->launch->program, static_cast<U32>(in.imm));
}

// --- makers

/// Reads "m64n256k16"; false if it is no such thing.
bool read_shape(std::string_view word, U32& n, U32& k) {
  if (!word.starts_with("m64n")) return false;
  const char* end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data() + 4, end, n);
  if (error != std::errc{} || at == end || *at != 'k') return false;
  const auto [stop, wrong] = std::from_chars(at + 1, end, k);
  return wrong == std::errc{} && stop == end;
}

bool is_half(Ty t) { return t == Ty::f16 || t == Ty::bf16; }
bool is_float8(Ty t) { return t == Ty::e4m3 || t == Ty::e5m2; }
bool is_int8(Ty t) { return t == Ty::s8 || t == Ty::u8; }

/// Whether the instruction set has it.
bool exists(Ty d, Ty a, Ty b, U32 n, U32 k) {
  if (n < 8 || n > 256 || n % 8 || (is_int8(a) && n > 32 && n % 16)) return false;
  if (is_half(a)) return b == a && k == 16 && (d == Ty::f32 || (d == Ty::f16 && a == Ty::f16));
  if (a == Ty::tf32) return b == a && k == 8 && d == Ty::f32;
  if (is_float8(a)) return is_float8(b) && k == 32 && (d == Ty::f32 || d == Ty::f16);
  return is_int8(a) && is_int8(b) && k == 32 && d == Ty::s32;
}

/// imm-scale-a, imm-scale-b: -1 or 1.
void read_scales(Form& f, std::size_t at, Kind& kind) {
  for (std::size_t i = at; i < at + 2; ++i) {
    const std::int64_t v = f.immediate(i);
    if (v != 1 && v != -1) f.fail(fmt::format("a scale of {}; it must be 1 or -1", v));
    if (v == -1) kind.flags ^= kNegate;
  }
}
void read_transposition(Form& f, std::size_t at, Kind& kind, std::uint8_t flag) {
  const std::int64_t v = f.immediate(at);
  if (v != 0 && v != 1) f.fail(fmt::format("a transposition of {}; it must be 0 or 1", v));
  if (v == 1) kind.flags |= flag;
}

/// D, A, B, scale-d; but for integers the scales of A and B; for 16 bits the transpositions of what is in shared
/// memory.
void read_operands(Form& f, Kind& kind) {
  const bool in_registers = f.count() > 1 && f.operand(1).kind == ptx::Operand::Kind::Vector;
  if (in_registers) kind.flags |= kARegister;
  const bool half = is_half(kind.a);
  const std::size_t count = is_int8(kind.a) ? 4 : half ? (in_registers ? 7 : 8) : 6;
  if (f.count() != count) f.fail(fmt::format("has {} operands, needs {}", f.count(), count));
  if (!fragment(f, 0, kind.d_registers(), Ty::b32, true))
    f.fail(fmt::format("D must be a vector of {} registers", kind.d_registers()));
  if (!in_registers) f.src(1, Ty::b64);
  else if (!fragment(f, 1, kARegisters, Ty::b32, false)) f.fail("A must be a descriptor or a vector of 4 registers");
  f.src(2, Ty::b64);
  f.src(3, Ty::pred);
  if (!is_int8(kind.a)) read_scales(f, 4, kind);
  if (half && !in_registers) read_transposition(f, 6, kind, kTransA);
  if (half) read_transposition(f, count - 1, kind, kTransB);
}

Handler without_operands(Form& f, Handler h) { return f.count() == 0 ? h : nullptr; }

}  // namespace

Handler make_wgmma(Form& f) {
  U32 n = 0, k = 0;
  bool saturates = false;
  for (const std::string_view word : f.mods) {
    if (word == "b1") f.fail("matrices of b1 elements are not simulated");
    if (word == "satfinite") saturates = true;
    else if (n != 0 || !read_shape(word, n, k)) f.fail(fmt::format("{} has no modifier '.{}' here", f.name, word));
  }
  if (f.types.size() != 3) return nullptr;
  Kind kind{f.type(1), f.type(2), f.type(0), 0, 0, 0};
  if (!exists(kind.d, kind.a, kind.b, n, k)) return nullptr;
  if (saturates && !is_int8(kind.a)) f.fail(".satfinite is of integers");
  kind.n8 = static_cast<std::uint8_t>(n / 8);
  kind.k = static_cast<std::uint8_t>(k);
  if (saturates) kind.flags |= kSaturate;
  read_operands(f, kind);
  f.inst.imm = std::bit_cast<std::int64_t>(kind);
  f.decoder.watch(f.operand(0).parts);
  if (kind.flags & kARegister) f.decoder.watch(f.operand(1).parts);
  return mma_async;
}

Handler make_wgmma_fence(Form& f) { return without_operands(f, fence); }
Handler make_wgmma_commit(Form& f) { return without_operands(f, commit_group); }
Handler make_wgmma_wait(Form& f) {
  if (f.count() != 1) return nullptr;
  f.inst.imm = f.immediate(0);
  return f.inst.imm < 0 ? nullptr : wait_group;
}

}  // namespace kiln::rt::sim
