// The box of a tensor that one copy moves: where its rows are in global and in shared memory.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/sim/order.h"
#include "runtime/sim/tally.h"
#include "runtime/tensor_map.h"

namespace kiln::rt::sim {

/// Bytes that the copy engine moves at once: the first coordinate is a multiple of it.
inline constexpr std::uint32_t kTensorUnit = 16;

struct TensorBox {
  TensorSpec spec;
  std::array<std::int32_t, TensorSpec::kMaxRank> at{};  ///< coordinates of its first element; may be outside
  /// Stored: rows of the tensor then end at the next multiple of kTensorUnit bytes, as on the hardware.
  bool stored = false;

  /// One row along dimension 0: `count` of its elements are in the tensor, from number `first` on, and lie at
  /// `address`.
  struct Row {
    std::uint32_t offset = 0;  ///< of the whole row, in bytes of the box
    std::uint32_t first = 0, count = 0;
    std::uint64_t address = 0;
  };
  std::vector<Row> rows() const;
  std::uint32_t element_bytes() const;
  std::uint32_t row_bytes() const { return spec.box[0] * element_bytes(); }
  /// From row to row in shared memory: rows shorter than the swizzle's span leave the rest of it as it is.
  std::uint32_t pitch() const;

  /// The parts of global memory that belong to it.
  std::vector<GlobalRun> runs() const;

  /// Shared address of the byte with this offset in a box that begins at `base`: 16-byte chunks are exchanged within
  /// lines of 128 bytes, by bits of their address above those.
  std::uint32_t place(std::uint32_t base, std::uint32_t offset) const;

  /// Reads the box from global memory, elements outside filled, into `data`, box_bytes() bytes without swizzle.
  void load(Agent&, std::vector<std::byte>& data) const;
  /// Moves `data` into shared memory from `base` on, or back.
  void to_shared(Agent&, Block&, std::uint32_t base, const std::vector<std::byte>& data) const;
  void from_shared(Agent&, Block&, std::uint32_t base, std::vector<std::byte>& data) const;
};

}  // namespace kiln::rt::sim
