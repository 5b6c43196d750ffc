// The simulator's encoding of tensor maps: what they describe, with a mark and a checksum.
#pragma once
#include <cstddef>
#include <optional>

#include "runtime/tensor_map.h"

namespace kiln::rt::sim {

/// Writes TensorMap::kBytes bytes.
void write_tensor_map(const TensorSpec&, std::byte* map);
/// What a map describes; nothing if the bytes are not one that write_tensor_map() made.
std::optional<TensorSpec> read_tensor_map(const std::byte* map);

}  // namespace kiln::rt::sim
