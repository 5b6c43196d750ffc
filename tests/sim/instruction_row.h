// One instruction run on rows of operands, a thread each.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/ptx_fixture.h"

namespace kiln::test::instructions {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using I32 = std::int32_t;
using I64 = std::int64_t;

inline U32 f(float v) { return std::bit_cast<U32>(v); }
inline float f(U64 v) { return std::bit_cast<float>(static_cast<U32>(v)); }

struct Args {
  U64 a = 0, b = 0, c = 0;
};

/// Results of `text` for each row of operands. It reads ra rb rc (32 bits), la lb lc (64 bits), ha hb hc (16 bits) and
/// writes rd, ld or hd, whose first letter is `result`.
inline std::vector<U64> run_each(const std::string& text, char result, const std::vector<Args>& rows) {
  const std::string store = result == 'l' ? "" : result == 'r' ? "cvt.u64.u32 ld, rd;" : "cvt.u64.u16 ld, hd;";
  const std::string ptx = R"(.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .pred p, q; .reg .b16 ha, hb, hc, hd; .reg .b32 ra, rb, rc, rd, re, t; .reg .b64 la, lb, lc, ld, le, x, y, i, o;
  ld.param.u64 i, [in]; ld.param.u64 o, [out]; mov.u32 t, %tid.x;
  mul.wide.u32 x, t, 24; add.s64 i, i, x; mul.wide.u32 y, t, 8; add.s64 o, o, y;
  ld.global.u64 la, [i]; ld.global.u64 lb, [i+8]; ld.global.u64 lc, [i+16];
  cvt.u32.u64 ra, la; cvt.u32.u64 rb, lb; cvt.u32.u64 rc, lc; cvt.u16.u64 ha, la; cvt.u16.u64 hb, lb; cvt.u16.u64 hc, lc;
)" + text + "\n" + store + R"(
  st.global.u64 [o], ld;
  ret;
}
)";
  const Device device = Device::simulator("sm_100a");
  Buffer<U64> in(device, rows.size() * 3), out(device, rows.size());
  std::vector<U64> flat;
  for (const Args& r : rows) flat.insert(flat.end(), {r.a, r.b, r.c});
  in.upload(flat);
  run(device, ptx, "k", {{1, 1, 1}, {static_cast<U32>(rows.size()), 1, 1}, 0}, Params().add(in).add(out));
  return out.to_vector();
}

inline void expect(const std::string& text, char result, const Args& in, U64 want) {
  EXPECT_EQ(run_each(text, result, {in})[0], want)
      << text << std::hex << " of 0x" << in.a << ", 0x" << in.b << ", 0x" << in.c;
}

/// `text` on 1000 random rows against a function of the three operands; NaN equals NaN if `nan` says so of both.
inline void sweep(const std::string& text, char result, const std::function<U64(U64, U64, U64)>& want,
                  const std::function<bool(U64)>& nan = {}) {
  std::mt19937_64 random(3);
  std::vector<Args> rows(1000);
  for (Args& r : rows) r = {random(), random(), random()};
  const U64 mask = result == 'l' ? ~U64{0} : result == 'r' ? 0xFFFFFFFF : 0xFFFF;
  const auto got = run_each(text, result, rows);
  int shown = 0;
  for (std::size_t i = 0; i < rows.size() && shown < 3; ++i) {
    const U64 w = want(rows[i].a, rows[i].b, rows[i].c) & mask;
    if (got[i] == w || (nan && nan(got[i]) && nan(w))) continue;
    ++shown;
    ADD_FAILURE() << text << std::hex << " of 0x" << rows[i].a << ", 0x" << rows[i].b << ", 0x" << rows[i].c
                  << ": got 0x" << got[i] << ", want 0x" << w;
  }
}
inline bool nan32(U64 v) { return (v & 0x7FFFFFFF) > 0x7F800000; }

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UWide;

}  // namespace kiln::test::instructions
