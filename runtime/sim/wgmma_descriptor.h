// Descriptor of a wgmma operand in shared memory: where each 16 bytes of the matrix lie.
//
// The 64 bits:  13…0 start address / 16,  29…16 leading byte offset / 16,  45…32 stride byte offset / 16,  51…49 base
// offset,  63…62 swizzle (0: none, 1: 128 bytes, 2: 64, 3: 32); the others are zero.
//
// A tile has rows of `width` bytes (128, 64, 32; 16 without swizzle), eight of which are an atom. K-major: row r of the
// matrix is row r % 8 of atom r / 8, the atoms `stride` apart; its 32 bytes of k lie in the row (without swizzle its
// two halves are `leading` apart). MN-major: a row of an atom has the same k for width/16 blocks of eight elements; the
// atom of the next eight k is `stride` away, that of the next blocks `leading` (without swizzle the other way round).
//
// With swizzle, 16-byte chunk c of a row lies at chunk c ^ row % (width/16), where the row is that of the address: bits
// 9…7 count rows of 128 bytes from a multiple of 1024, minus the base offset. Example: K-major bf16, 128 bytes, start
// 0x2020 (k from 16 on): row 3, elements 24…31 of k: 0x2000 + 3·128 + (3 ^ 3)·16 = 0x2180.
#pragma once
#include <cstdint>
#include <string>

namespace kiln::rt::sim {

struct Descriptor {
  std::uint32_t start, leading, stride, base_offset;
  std::uint32_t width;  ///< bytes of a row of the swizzle pattern; 16: none

  explicit Descriptor(std::uint64_t bits);

  /// Address of chunk 0 or 1 of the 32 bytes of k of a row.
  std::uint32_t k_major(std::uint32_t row, std::uint32_t chunk) const;
  /// Address of the 16 bytes of elements 8·block … 8·block + 7 at k.
  std::uint32_t mn_major(std::uint32_t block, std::uint32_t k) const;

 private:
  std::uint32_t swizzled(std::uint32_t address) const;
};

/// What is wrong with a descriptor of `rows` rows (K-major) or elements along M or N (MN-major) in shared memory that
/// ends at `shared_end`: the field, its value and what it must be. Empty if nothing is.
std::string misuse(std::uint64_t bits, bool mn_major, std::uint32_t rows, std::uint32_t shared_begin,
                   std::uint32_t shared_end);

}  // namespace kiln::rt::sim
