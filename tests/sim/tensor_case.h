// A kernel that copies one box by a tensor map, and a plain model of the box.
#pragma once
#include <algorithm>
#include <cstring>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "runtime/tensor_map.h"
#include "tests/sim/thread_program.h"

namespace kiln::test::tensors {

using U8 = std::uint8_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr U32 kTile = 16384;
constexpr U8 kUntouched = 0xEE;
inline const std::string kTarget = "sm_90a";

inline std::vector<Device> devices() {
  std::vector<Device> out{Device::simulator(kTarget)};
  if (const auto gpu = gpu_for(kTarget)) out.push_back(*gpu);
  return out;
}

/// A kernel of 128 threads that reads `data` into `tile`; then thread 0 does `copy` with the tile's address + shift in
/// %r2, the mbarrier's in %r3, coordinates in %r10 to %r14, the map's in %rd2. `load`: all wait for the mbarrier and
/// write the tile back to `data`.
inline std::string kernel(const std::string& copy, bool load) {
  const std::string begin =
      ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 data, .param .align 64 .b8 "
      "map[128], .param .u32 shift, .param .u32 bytes, .param .u32 c0, .param .u32 c1, .param .u32 c2, .param .u32 c3, "
      ".param .u32 c4)\n{\n"
      ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;\n"
      ".shared .align 1024 .b8 tile[16384]; .shared .align 8 .b8 bar[8];\n"
      "ld.param.u64 %rd1, [data]; mov.b64 %rd2, map; cvta.param.u64 %rd2, %rd2; ld.param.u32 %r2, [shift]; "
      "ld.param.u32 %r9, [bytes]; ld.param.u32 %r10, [c0]; ld.param.u32 %r11, [c1]; ld.param.u32 %r12, [c2]; "
      "ld.param.u32 %r13, [c3]; ld.param.u32 %r14, [c4];\n"
      "mov.u32 %r1, %tid.x; mov.u32 %r5, tile; add.u32 %r2, %r2, %r5; mov.u32 %r3, bar; setp.ne.u32 %p2, %r1, 0; "
      "shl.b32 %r4, %r1, 2; @%p2 bra FILL; mbarrier.init.shared::cta.b64 [%r3], 1; "
      "fence.mbarrier_init.release.cluster;\n"
      "FILL: cvt.u64.u32 %rd4, %r4; add.s64 %rd4, %rd4, %rd1; ld.global.b32 %r6, [%rd4]; add.u32 %r7, %r5, %r4; "
      "st.shared.b32 [%r7], %r6; add.u32 %r4, %r4, 512; setp.lt.u32 %p1, %r4, 16384; @%p1 bra FILL;\n"
      "fence.proxy.async.shared::cta; bar.sync 0; @%p2 bra DONE;\n";
  const std::string write_back =
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0; @!%p3 bra W;\n"
      "shl.b32 %r4, %r1, 2;\n"
      "BACK: add.u32 %r7, %r5, %r4; ld.shared.b32 %r6, [%r7]; cvt.u64.u32 %rd4, %r4; add.s64 %rd4, %rd4, %rd1; "
      "st.global.b32 [%rd4], %r6; add.u32 %r4, %r4, 512; setp.lt.u32 %p1, %r4, 16384; @%p1 bra BACK;\n";
  return begin + copy + "\nDONE:\n" + (load ? write_back : "") + "ret;\n}\n";
}

inline std::string coordinates(U32 rank) {
  std::string out = "{%r10";
  for (U32 i = 1; i < rank; ++i) out += ", %r1" + std::to_string(i);
  return out + "}";
}
inline std::string load_text(U32 rank) {
  const std::string n = std::to_string(rank);
  return "prefetch.tensormap [%rd2]; cp.async.bulk.prefetch.tensor." + n + "d.L2.global.tile [%rd2, " +
         coordinates(rank) + "]; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], %r9; cp.async.bulk.tensor." + n +
         "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd2, " + coordinates(rank) + "], [%r3];";
}
inline std::string store_text(U32 rank, const std::string& reduce = "") {
  return std::string(reduce.empty() ? "cp.async" : "cp.reduce.async") + ".bulk.tensor." + std::to_string(rank) +
         "d.global.shared::cta" + (reduce.empty() ? "" : "." + reduce) + ".tile.bulk_group [%rd2, " +
         coordinates(rank) + "], [%r2]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;";
}

/// One tensor in memory with space around it, and one box.
struct Case {
  DType dtype = DType::u8;
  std::vector<U64> sizes;
  std::vector<U32> box;
  std::vector<int> at;
  TensorSwizzle swizzle = TensorSwizzle::None;
  std::vector<U32> steps = {};
  TensorFill fill = TensorFill::Zero;
  U32 shift = 0;    ///< of the tile in shared memory
  U64 padding = 0;  ///< bytes behind each row

  U32 rank() const { return static_cast<U32>(sizes.size()); }
  U64 element() const { return static_cast<U64>(bytes(dtype)); }
  std::vector<U64> strides() const {  ///< bytes, of every dimension
    std::vector<U64> out{element()};
    U64 next = (sizes[0] * element() + padding + 15) / 16 * 16;
    for (U32 i = 1; i < rank(); ++i) out.push_back(next), next *= sizes[i];
    return out;
  }
  U64 memory() const {
    U64 n = (sizes[0] * element() + padding + 15) / 16 * 16;
    for (U32 i = 1; i < rank(); ++i) n *= sizes[i];
    return n;
  }
  TensorSpec spec(DevicePtr base) const {
    TensorSpec s;
    s.dtype = dtype;
    s.base = base;
    s.rank = rank();
    for (U32 i = 0; i < rank(); ++i) {
      s.sizes[i] = sizes[i];
      s.box[i] = box[i];
      if (i > 0) s.strides[i - 1] = strides()[i];
      if (!steps.empty()) s.steps[i] = steps[i];
    }
    s.swizzle = swizzle;
    s.fill = fill;
    return s;
  }
  /// f(place in the tile, place in memory or −1) for each element of the box. `stored`: rows of the tensor end at whole
  /// units of 16 bytes, which is what the copy engine writes.
  template <class F>
  void each(F&& f, bool stored = false) const {
    std::vector<U64> ends = sizes;
    if (stored) ends[0] = (sizes[0] * element() + 15) / 16 * 16 / element();
    std::vector<U32> i(rank(), 0);
    for (U64 n = 0;; ++n) {
      std::int64_t memory_at = 0;
      for (U32 d = 0; d < rank(); ++d) {
        const std::int64_t c = at[d] + std::int64_t{i[d]} * (steps.empty() ? 1 : steps[d]);
        if (c < 0 || c >= static_cast<std::int64_t>(ends[d])) memory_at = INT64_MIN / 2;
        memory_at += c * static_cast<std::int64_t>(strides()[d]);
      }
      const U64 row = box[0] * element(),
                span = swizzle == TensorSwizzle::None ? 0 : U64{16} << static_cast<unsigned>(swizzle);
      const U64 linear = shift + n * element() / row * std::max(row, span) + n * element() % row;
      const U64 line = linear / 128, chunk = linear / 16 % 8, inside = linear % 16;
      const U64 cycle = swizzle == TensorSwizzle::None ? 1 : U64{1} << static_cast<unsigned>(swizzle);
      f(line * 128 + (chunk ^ line % cycle) * 16 + inside, memory_at < 0 ? -1 : memory_at);
      U32 d = 0;
      while (d < rank() && ++i[d] == (box[d] + (steps.empty() ? 0 : steps[d] - 1)) / (steps.empty() ? 1 : steps[d]))
        i[d++] = 0;
      if (d == rank()) return;
    }
  }
};

inline std::ostream& operator<<(std::ostream& out, const Case& c) {
  out << name(c.dtype) << " rank " << c.rank() << " box";
  for (U32 b : c.box) out << ' ' << b;
  out << " at";
  for (int a : c.at) out << ' ' << a;
  return out << " swizzle " << static_cast<int>(c.swizzle) << " fill " << static_cast<int>(c.fill) << " shift "
             << c.shift;
}

inline std::vector<U8> noise(std::size_t n, U32 seed) {
  std::mt19937 random(seed);
  std::vector<U8> v(n);
  for (U8& b : v) b = static_cast<U8>(random() % 251);
  return v;
}

inline Params params(const Buffer<U8>& data, const TensorMap& map, const Case& c, U32 bytes) {
  Params p;
  p.add(data).add(map).add(c.shift).add(bytes);
  for (U32 i = 0; i < 5; ++i) p.add(static_cast<std::int32_t>(i < c.rank() ? c.at[i] : 0));
  return p;
}

const Shape kBlock{{1, 1, 1}, {128, 1, 1}, 0, {1, 1, 1}};

}  // namespace kiln::test::tensors
