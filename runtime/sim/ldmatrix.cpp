// 8×8 matrices of 16-bit elements between shared memory and fragments: ldmatrix, stmatrix, and movmatrix, which
// transposes one that is in registers.
//
// Lane l holds of a matrix the elements 2·(l%4) and 2·(l%4) + 1 of row l/4, or of column l/4 with .trans.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "runtime/sim/matrix.h"
#include "runtime/sim/memory.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using Tile = std::array<std::array<std::uint16_t, 8>, 8>;

template <bool kTrans>
void to_lanes(const Tile& tile, U32* d) {
  for (U32 l = 0; l < kLanes; ++l) {
    const U32 major = l / 4, minor = l % 4 * 2;
    const U32 low = kTrans ? tile[minor][major] : tile[major][minor];
    const U32 high = kTrans ? tile[minor + 1][major] : tile[major][minor + 1];
    d[l] = high << 16 | low;
  }
}

template <bool kTrans>
Tile from_lanes(const U32* d) {
  Tile tile;
  for (U32 l = 0; l < kLanes; ++l)
    for (U32 e = 0; e < 2; ++e) {
      const U32 major = l / 4, minor = l % 4 * 2 + e;
      (kTrans ? tile[minor][major] : tile[major][minor]) = static_cast<std::uint16_t>(d[l] >> 16 * e);
    }
  return tile;
}

/// Lanes 8i … 8i+7 give the rows of matrix i, 16 bytes each; the addresses of further lanes are not looked at.
LaneAddresses rows_of(Warp& w, const Inst& in, Use use) {
  const U32 lanes = 8u * in.count;
  w.mask = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
  LaneAddresses rows = access(w, in, in.space, address_lanes(w, in, in.ops[0]), 16, use);
  if (rows.global_lanes)
    fault(FindingKind::Invalid, w, in, std::countr_zero(rows.global_lanes), "the row is not in shared memory");
  return rows;
}

/// ops: address, then one register a matrix.
template <bool kTrans>
void ldmatrix(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  const LaneAddresses rows = rows_of(w, in, Use::Load);
  for (U32 m = 0; m < in.count; ++m) {
    Tile tile;
    for (U32 r = 0; r < 8; ++r) std::memcpy(tile[r].data(), rows.at[8 * m + r], 16);
    to_lanes<kTrans>(tile, w.out<U32>(in.ops[m + 1]));
  }
}

template <bool kTrans>
void stmatrix(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  const LaneAddresses rows = rows_of(w, in, Use::Store);
  ++*w.block->changes;
  for (U32 m = 0; m < in.count; ++m) {
    const Tile tile = from_lanes<kTrans>(w.in<U32>(in.ops[m + 1]));
    for (U32 r = 0; r < 8; ++r) std::memcpy(rows.at[8 * m + r], tile[r].data(), 16);
  }
}

void movmatrix(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  to_lanes<true>(from_lanes<false>(w.in<U32>(in.ops[1])), w.out<U32>(in.ops[0]));
}

/// Number of matrices, and the address in `operand`; 0 if the form is not one.
std::size_t matrices(Form& f, std::size_t operand) {
  if (f.has("m16n16") || f.has("m8n16") || f.has("m16n8"))
    f.fail(fmt::format("{} of 8-bit elements needs sm_100", f.name));
  const std::size_t n = f.has("x4") ? 4 : f.has("x2") ? 2 : f.has("x1") ? 1 : 0;
  if (n == 0 || f.count() != 2 || f.types.size() != 1 || f.type() != Ty::b16 || !f.has("m8n8")) return 0;
  f.inst.count = static_cast<std::uint8_t>(n);
  f.inst.space = f.has("shared") || f.has("shared::cta") ? Space::Shared : Space::Generic;
  f.address(f.operand(operand));
  return n;
}

}  // namespace

Handler make_ldmatrix(Form& f) {
  const std::size_t n = matrices(f, 1);
  if (n == 0 || !fragment(f, 0, n, Ty::b32, true)) return nullptr;
  return f.has("trans") ? ldmatrix<true> : ldmatrix<false>;
}

Handler make_stmatrix(Form& f) {
  const std::size_t n = matrices(f, 0);
  if (n == 0 || !fragment(f, 1, n, Ty::b32, false)) return nullptr;
  return f.has("trans") ? stmatrix<true> : stmatrix<false>;
}

Handler make_movmatrix(Form& f) {
  if (f.count() != 2 || f.types.size() != 1 || f.type() != Ty::b16 || !f.has("m8n8") || !f.has("trans")) return nullptr;
  f.dst(0, Ty::b32);
  f.src(1, Ty::b32);
  return movmatrix;
}

}  // namespace kiln::rt::sim
