// SharedPlace: where the elements of a tile stand in shared memory, as a linear map over GF(2).
//
// The byte offset of an element is the exclusive or of one basis for each bit of its coordinates that is 1. Plain rows
// are the case in which the bases are the strides' powers of two; a swizzle adds low bits to some of them, so that the
// eight 16-byte units that one wavefront moves lie in eight different groups of four banks:
//
//     a 32x16 tile of f32, vectors along its rows, read by lanes that stand below each other:
//     column bits 0…3 -> 4, 8, 16, 32      row bits 0…4 -> 64, 128 ^ 16, 256 ^ 32, 512, …
//
// Because the map is linear, a thread's part and a register's part of a coordinate are looked up apart: the former
// once, the latter while compiling.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <vector>

#include "backend/ir/layout.h"

namespace kiln::cg {

class SharedPlace {
 public:
  using Bases = std::vector<std::int64_t>;  ///< of one axis: bytes, by bit

  SharedPlace() = default;
  /// Elements of `bytes` bytes, a power of two; the first of `order` runs fastest, and each axis has as many bits as
  /// `bits` says: higher ones have no influence.
  SharedPlace(std::int64_t bytes, const std::vector<int>& order, const std::vector<int>& bits);

  /// Elements of `bytes` bytes in the order of the layout's lanes, then registers, then the rest, so that lanes that
  /// each access one of their elements touch neighbours.
  SharedPlace(std::int64_t bytes, const ir::LinearLayout& l);

  /// Elements of `bytes` bytes in lines of at most 128 bytes along `fast`, one for each position along `slow`, panel
  /// after panel; then the other axes. The 16-byte units of a line are swizzled by the position, as tensor maps and the
  /// matrix units of a warpgroup have it for lines of 128, 64 and 32 bytes: eight units of one column lie in eight
  /// groups of banks. `bits`: as above. `turned`: bit i of the position swizzles bit i + 1 of the unit, so that it is
  /// two units of each of four lines that lie in eight groups: for lanes that read 4 or 8 bytes each.
  static SharedPlace lines(std::int64_t bytes, int fast, int slow, const std::vector<int>& bits, bool turned = false);

  /// Swizzles 16-byte units so that neither readers nor writers meet in a group of banks, if there is a way. Each is a
  /// list of coordinates by which the lanes of one wavefront differ, at most three that count.
  void swizzle(const std::vector<ir::LinearLayout::Coord>& readers,
               const std::vector<ir::LinearLayout::Coord>& writers);

  std::int64_t bytes() const { return bytes_; }
  /// Offset of the element at this coordinate; axes beyond the given ones are at 0.
  std::int64_t at(const ir::LinearLayout::Coord& coordinate) const;
  /// What position `x` along `axis` adds (by exclusive or).
  llvm::Value* at(llvm::IRBuilder<>& b, int axis, llvm::Value* x) const;
  /// All bits that positions along `axis` whose bits are in `mask` may set.
  std::int64_t reach(int axis, std::int64_t mask) const;

 private:
  std::vector<Bases> axes_;
  std::int64_t bytes_ = 0;
};

/// Pointer to the element of a thread whose offset is `thread` ^ `part`, in a tile at the shared address `tile` (i32).
/// `reach`: all bits that `thread` may have; the others of `part` end in the address field of the access.
llvm::Value* shared_address(llvm::IRBuilder<>& b, llvm::Value* tile, llvm::Value* thread, std::int64_t reach,
                            std::int64_t part);

}  // namespace kiln::cg
