// mma.sync: D = A · B + C by one warp, A row by row and B column by column in registers. matrix.h has the fragments
// and the numerics; f64 is a chain of fused multiply-adds in the order of k.
#include <fmt/format.h>

#include <algorithm>
#include <cfenv>
#include <cmath>

#include "runtime/sim/matrix.h"
#include "runtime/sim/tally.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;

constexpr U32 kMaxM = 16, kMaxK = 32, kN = 8;

/// One form: m, k, and the types of A and B.
struct Shape {
  std::string_view name;
  U32 m, k;
};
constexpr Shape kShapes[] = {{"m8n8k4", 8, 4},   {"m8n8k16", 8, 16},   {"m16n8k4", 16, 4},
                             {"m16n8k8", 16, 8}, {"m16n8k16", 16, 16}, {"m16n8k32", 16, 32}};

enum class Family : std::uint8_t { None, F16, BF16, TF32, F64, Int8, Float8 };

Family family(Ty t) {
  switch (t) {
    case Ty::f16: return Family::F16;
    case Ty::bf16: return Family::BF16;
    case Ty::tf32: return Family::TF32;
    case Ty::f64: return Family::F64;
    case Ty::s8:
    case Ty::u8: return Family::Int8;
    case Ty::e4m3:
    case Ty::e5m2: return Family::Float8;
    default: return Family::None;
  }
}

/// What the instruction set has: which shapes and accumulators go with a family of elements.
bool exists(Family f, const Shape& s, Ty c) {
  const bool f32 = c == Ty::f32, f16 = c == Ty::f16;
  switch (f) {
    case Family::F16: return s.m == 16 && (s.k == 8 || s.k == 16) && (f32 || f16);
    case Family::BF16: return s.m == 16 && (s.k == 8 || s.k == 16) && f32;
    case Family::TF32: return s.m == 16 && (s.k == 4 || s.k == 8) && f32;
    case Family::F64: return (s.m == 16 ? s.k <= 16 : s.k == 4) && c == Ty::f64;
    case Family::Int8: return s.k == 16 || s.k == 32 ? c == Ty::s32 : false;
    case Family::Float8: return s.m == 16 && (s.k == 16 || s.k == 32) && (f32 || f16);
    case Family::None: return false;
  }
  return false;
}

/// What the handler needs besides the operands, in Inst::imm.
struct Kind {
  std::uint8_t m, k;
  Ty a, b, c;
  std::uint8_t unused[3] = {};
};
static_assert(sizeof(Kind) == sizeof(Inst::imm));

/// Rounds as the instruction says; volatile keeps the operation between the two switches of the host's mode.
void multiply_f64(const double* a, const double* b, double* c, U32 m, U32 k, Round round) {
  static constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  const int before = std::fegetround();
  std::fesetround(kModes[static_cast<int>(round)]);
  for (U32 row = 0; row < m; ++row)
    for (U32 col = 0; col < kN; ++col) {
      volatile double sum = c[row * kN + col];
      for (U32 i = 0; i < k; ++i) sum = std::fma(a[row * k + i], b[i * kN + col], sum);
      c[row * kN + col] = sum;
    }
  std::fesetround(before);
}

/// ops: registers of D, A, B, C.
void mma(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  const Kind kind = std::bit_cast<Kind>(in.imm);
  const Element &ea = *element(kind.a), &eb = *element(kind.b);
  const Accumulator& acc = *accumulator(kind.c);
  const U32 m = kind.m, k = kind.k, blocks = m / 8;
  count_matrix(w, in, 2ull * m * kN * k);
  const Ref *d = in.ops, *ra = d + blocks * acc.registers, *rb = ra + blocks * (k / (4 * ea.per_register())),
            *rc = rb + k / (4 * eb.per_register());
  double a[kMaxM * kMaxK], b_rows[kN * kMaxK], b[kN * kMaxK], c[kMaxM * kN];
  load_rows(w, ea, ra, m, k, a);
  load_rows(w, eb, rb, kN, k, b_rows);
  transpose(b_rows, k, b);
  for (U32 i = 0; i < blocks; ++i) acc.load(w, rc + i * acc.registers, c + i * kBlock);
  if (kind.a == Ty::f64) multiply_f64(a, b, c, m, k, in.round);
  else multiply(a, b, c, m, k);
  for (U32 i = 0; i < blocks; ++i) acc.store(w, d + i * acc.registers, c + i * kBlock, (in.flags & kSatFinite) != 0);
}

/// What the instruction set has and the simulator does not, by its name.
void refuse(Form& f) {
  for (const std::string_view narrow : {"s4", "u4", "b1"})
    if (f.has(narrow)) f.fail(fmt::format("matrices of {} elements are not simulated", narrow));
  if (f.has("m8n8k4") && f.type(1) == Ty::f16)
    f.fail("m8n8k4 of f16 is of sm_70 and is not simulated; m16n8k8 and m16n8k16 are");
}

}  // namespace

Handler make_mma(Form& f) {
  refuse(f);
  if (f.count() != 4 || f.types.size() != 4) f.fail("needs four operands and four types");
  if (!f.has("row") || !f.has("col")) f.fail("A must be .row and B .col");
  const Ty c = f.type(0), a = f.type(1), b = f.type(2);
  const Family fa = family(a);
  const Shape* shape = nullptr;
  for (const Shape& s : kShapes)
    if (f.has(s.name)) shape = &s;
  if (!shape || f.type(3) != c || fa != family(b) || !exists(fa, *shape, c)) return nullptr;
  f.float_modifiers();
  if ((f.inst.flags & kSatFinite) && fa != Family::Int8) f.fail(".satfinite is of integers");
  if (f.inst.round != Round::Nearest && fa != Family::F64) f.fail("rounding modifiers are of f64");
  f.inst.imm = std::bit_cast<std::int64_t>(
      Kind{static_cast<std::uint8_t>(shape->m), static_cast<std::uint8_t>(shape->k), a, b, c});
  const U32 blocks = shape->m / 8, n_c = blocks * accumulator(c)->registers, p = element(a)->per_register();
  const Ty word = a == Ty::f64 ? Ty::f64 : Ty::b32;
  if (!fragment(f, 0, n_c, word, true) || !fragment(f, 1, blocks * shape->k / (4 * p), word, false) ||
      !fragment(f, 2, shape->k / (4 * p), word, false) || !fragment(f, 3, n_c, word, false))
    f.fail("a fragment has another number of registers");
  return mma;
}

Handler make_sparse_mma(Form& f) { f.fail("sparse matrices are not simulated"); }

}  // namespace kiln::rt::sim
