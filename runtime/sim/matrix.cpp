// Matrix fragments of a warp: ldmatrix and mma.sync on 16-bit floats.
//
// mma computes every element as the exact sum of products and accumulator in double, rounded once to f32. Hardware
// aligns and truncates inside a step, so both agree exactly only on data whose sums are exact; elsewhere a bound is
// needed.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "runtime/sim/makers.h"
#include "runtime/sim/memory.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;

/// These need all 32 lanes; false: some are on their way and the instruction comes again.
bool whole_warp(Warp& w, const Inst& in) {
  if (!w.gather(in, w.live)) return false;
  if (w.mask != kAllLanes)
    fault(w, in, fmt::format("a matrix instruction with active lanes 0x{:08x}; needs all 32", w.mask));
  return true;
}

/// ops: address, then one register a matrix. Lanes 8i…8i+7 give the rows of matrix i, 16 bytes each.
template <bool kTrans>
void ldmatrix(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  const U32 lanes = 8u * in.count;
  w.mask = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
  const LaneAddresses rows = access(w, in, in.space, address_lanes(w, in, in.ops[0]), 16, Use::Load);
  for (U32 m = 0; m < in.count; ++m) {
    std::array<std::array<std::uint16_t, 8>, 8> tile;
    for (U32 r = 0; r < 8; ++r) std::memcpy(tile[r].data(), rows.at[8 * m + r], 16);
    U32* d = w.out<U32>(in.ops[m + 1]);
    for (U32 l = 0; l < kLanes; ++l) {
      const U32 major = l / 4, minor = l % 4 * 2;
      const U32 low = kTrans ? tile[minor][major] : tile[major][minor];
      const U32 high = kTrans ? tile[minor + 1][major] : tile[major][minor + 1];
      d[l] = high << 16 | low;
    }
  }
}

template <class T>
double half(U32 word, U32 which) {
  return to_float(T{static_cast<std::uint16_t>(word >> (16 * which))});
}

/// D (16×8) = A (16×K) · B (K×8) + C. Lane l holds of each 8×8 part the row l/4 (of B the column) and the elements
/// 2·(l%4), +1. in.count: K. ops: 4 of D, K/4 of A, K/8 of B, 4 of C.
template <class T>
void mma(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  const U32 k = in.count, n_a = k / 4, n_b = k / 8;
  count_matrix(w, in, 2ull * 16 * 8 * k);
  double a[16][16], b[16][8];
  for (U32 l = 0; l < kLanes; ++l)
    for (U32 e = 0; e < 2; ++e) {
      const U32 at = l % 4 * 2 + e;
      for (U32 r = 0; r < n_a; ++r) a[l / 4 + 8 * (r % 2)][at + 8 * (r / 2)] = half<T>(w.in<U32>(in.ops[4 + r])[l], e);
      for (U32 r = 0; r < n_b; ++r) b[at + 8 * r][l / 4] = half<T>(w.in<U32>(in.ops[4 + n_a + r])[l], e);
    }
  for (U32 r = 0; r < 4; ++r) {
    const U32* c = w.in<U32>(in.ops[4 + n_a + n_b + r]);
    U32* d = w.out<U32>(in.ops[r]);
    for (U32 l = 0; l < kLanes; ++l) {
      const U32 row = l / 4 + 8 * (r / 2), column = l % 4 * 2 + r % 2;
      double sum = std::bit_cast<float>(c[l]);
      for (U32 i = 0; i < k; ++i) sum += a[row][i] * b[i][column];
      d[l] = std::bit_cast<U32>(canonical(static_cast<float>(sum)));
    }
  }
}

/// Appends the registers of a {…} operand; false unless there are n.
bool fragment(Form& f, std::size_t i, std::size_t n, bool result) {
  const ptx::Operand& o = f.operand(i);
  if (o.kind != ptx::Operand::Kind::Vector || o.parts.size() != n) return false;
  for (const ptx::Operand& p : o.parts) {
    if (result) f.dst(p, Ty::b32);
    else f.src(p, Ty::b32);
  }
  return true;
}

}  // namespace

Handler make_ldmatrix(Form& f) {
  const std::size_t n = f.has("x4") ? 4 : f.has("x2") ? 2 : 1;
  if (f.count() != 2 || f.type() != Ty::b16 || !f.has("m8n8")) return nullptr;
  f.inst.count = static_cast<std::uint8_t>(n);
  f.inst.space = f.has("shared") || f.has("shared::cta") ? Space::Shared : Space::Generic;
  f.address(f.operand(1));
  if (!fragment(f, 0, n, true)) return nullptr;
  return f.has("trans") ? ldmatrix<true> : ldmatrix<false>;
}

Handler make_mma(Form& f) {
  if (f.count() != 4 || f.types.size() != 4 || !f.has("row") || !f.has("col")) return nullptr;
  if (f.type(0) != Ty::f32 || f.type(3) != Ty::f32 || f.type(1) != f.type(2)) return nullptr;
  const std::size_t k = f.has("m16n8k16") ? 16 : f.has("m16n8k8") ? 8 : 0;
  f.inst.count = static_cast<std::uint8_t>(k);
  if (k == 0 || !fragment(f, 0, 4, true) || !fragment(f, 1, k / 4, false) || !fragment(f, 2, k / 8, false) ||
      !fragment(f, 3, 4, false))
    return nullptr;
  return f.type(1) == Ty::f16 ? mma<F16> : f.type(1) == Ty::bf16 ? mma<BF16> : nullptr;
}

}  // namespace kiln::rt::sim
