// Random numbers by counter: each is a pure function of a seed and an offset, the same on every device.
//
// The generator is Philox4x32-10 (Salmon et al., 2011). The element with offset o uses
//
//     counter = (low 32 bits of o, high 32 bits of o, 0, 0)      key = (low 32 bits of seed, high 32 bits of seed)
//
// and gets four 32-bit words, w0 to w3. There is no state: two elements with one offset get one number, so offsets
// should be different where numbers should be, and the same mask comes again wherever seed and offset do, in another
// kernel with other tiles, too. Dropout: `keep = rand(seed, i) >= p` forward, and again backward, where i is the
// element's place in its array.
//
// Seeds and offsets are integers of any dtype; negative ones count modulo 2^64.
#pragma once
#include <array>

#include "dsl/lang/tile.h"

namespace kiln {

/// w0, w1, w2, w3 of each offset (u32).
[[nodiscard]] std::array<Tile, 4> philox(SArg seed, const Tile& offsets, RawLoc l = RawLoc::current());
[[nodiscard]] std::array<Scalar, 4> philox(SArg seed, const Scalar& offset, RawLoc l = RawLoc::current());
/// Philox4x32-10 itself: of any counter and key, u32 all.
[[nodiscard]] std::array<Tile, 4> philox(const std::array<Tile, 4>& counter, const std::array<Scalar, 2>& key,
                                         RawLoc l = RawLoc::current());

/// w0: uniform over all u32.
[[nodiscard]] Tile randint(SArg seed, const Tile& offsets, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar randint(SArg seed, const Scalar& offset, RawLoc l = RawLoc::current());
/// i32 in [low, high): low + floor(w · (high - low) / 2^64) with w = w0 · 2^32 + w1, so that no value's probability is
/// off by more than 2^-64. low and high are i32 (or fit it); high > low, else low.
[[nodiscard]] Tile randint(SArg seed, const Tile& offsets, SArg low, SArg high, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar randint(SArg seed, const Scalar& offset, SArg low, SArg high, RawLoc l = RawLoc::current());

/// f32, uniform over the multiples of 2^-24 in [0, 1): floor(w0 / 2^8) · 2^-24.
[[nodiscard]] Tile rand(SArg seed, const Tile& offsets, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar rand(SArg seed, const Scalar& offset, RawLoc l = RawLoc::current());
/// Four for the work of one, of w0 to w3: for code that needs several numbers an offset.
[[nodiscard]] std::array<Tile, 4> rand4(SArg seed, const Tile& offsets, RawLoc l = RawLoc::current());

/// f32 with the standard normal distribution, by Box and Muller: sqrt(-2 ln u) cos(2 pi v), where u is (w0 + 1/2) /
/// 2^32 and v is w1 / 2^32 in [-1/2, 1/2), both in f32. Within 2^-17 of that formula; |result| < 6.8.
[[nodiscard]] Tile randn(SArg seed, const Tile& offsets, RawLoc l = RawLoc::current());
[[nodiscard]] Scalar randn(SArg seed, const Scalar& offset, RawLoc l = RawLoc::current());
/// Four: cosine and sine of (w0, w1), cosine and sine of (w2, w3).
[[nodiscard]] std::array<Tile, 4> randn4(SArg seed, const Tile& offsets, RawLoc l = RawLoc::current());

}  // namespace kiln
