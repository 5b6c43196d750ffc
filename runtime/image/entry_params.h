// Where the parameters of a kernel lie, read from the header of its entry in the PTX:
//
//     .visible .entry gemm(.param .u64 .ptr .align 16 bias, .param .align 64 .b8 maps[384], .param .u32 n)
//
// gives {0, 8, 8}, {64, 384, 64}, {448, 4, 4}: each parameter follows the one before, at the next multiple of its
// alignment. These *natural* offsets are those of the launcher and of the simulator. ptxas has the same up to an
// alignment of 16; a parameter with more lies so that its address in the constant bank is aligned, where parameters
// begin at an address that depends on the architecture (0x210 for sm_90: the maps above lie at offset 0x30). So code
// for a GPU is given each parameter by itself where one of them is aligned to more.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace kiln::rt {

/// One parameter of a kernel.
struct ParamSlot {
  std::uint32_t offset = 0;  ///< bytes, natural: a multiple of `align`
  std::uint32_t bytes = 0;
  std::uint32_t align = 1;  ///< a power of two
  bool operator==(const ParamSlot&) const = default;
};

/// Largest alignment with which natural offsets are ptxas' own, and what all parameters of a kernel may take in bytes.
inline constexpr std::uint32_t kPackedAlignment = 16, kMostParamBytes = 32764;

/// The parameters of `entry`, in order; nothing if `ptx` has no such entry. Throws Error that names the entry where its
/// header is not one that PTX allows.
std::vector<ParamSlot> entry_params(std::string_view ptx, std::string_view entry);

/// The same if one of them is aligned to more than kPackedAlignment, else nothing: what KernelImage::params holds.
std::vector<ParamSlot> wide_entry_params(std::string_view ptx, std::string_view entry);

}  // namespace kiln::rt
