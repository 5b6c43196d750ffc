// KernelImage: everything needed to launch one compiled kernel, with no compiler present. A launch *recipe*, because
// grid, tensor maps and hidden parameters are completed at launch.
//
// File format .kimg: magic "KIMG", format version, then length-prefixed sections. Readers skip sections they do not
// know and refuse a newer major version; the format is append-only.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/source_loc.h"
#include "runtime/image/arg_sig.h"
#include "runtime/image/entry_params.h"
#include "runtime/image/report_record.h"
#include "runtime/image/tensor_map_recipe.h"

namespace kiln::rt {

/// How the user's grid (programs) becomes the grid of thread blocks.
enum class GridRule : std::uint8_t {
  // A "team" is a block, or a cluster where the recipe has one.
  Identity,    ///< one team a program
  CeilDiv,     ///< ⌈programs.x / programs_per_cta⌉ teams along x
  Persistent,  ///< min(programs, co-resident teams) teams, all along x; how many fit is asked from the device at load
};

/// Parameters that the launcher appends after the user's, in the order of LaunchRecipe::hidden, naturally aligned.
/// UserGrid is the programs along x, y, z as three i64; ReportBuffer the buffer's address and the launch's number, two
/// u64. TensorMaps is an array of 128 bytes for each of LaunchRecipe::tensor_maps, aligned to 64; it is the last, so that the
/// others lie where they do without it. An image that needs one its device does not provide is refused at load.
enum class HiddenParam : std::uint8_t { UserGrid, TileCounter, Workspace, ReportBuffer, TensorMaps };

/// One launch configuration. An image lists candidates in order of preference; they differ in max_registers alone, and
/// the first by which nothing spills is accepted, else the last.
struct LaunchRecipe {
  GridRule grid = GridRule::Identity;
  std::uint32_t programs_per_cta = 1;
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::array<std::uint32_t, 3> cluster{1, 1, 1};
  std::uint32_t smem_bytes = 0;     ///< dynamic shared memory
  std::uint32_t max_registers = 0;  ///< what the assembler may give a thread; 0: as many as it likes
  bool nonportable_cluster = false;
  bool pdl = false;  ///< programmatic dependent launch allowed
  std::vector<HiddenParam> hidden;
  std::uint64_t workspace_bytes = 0;
  std::vector<TensorMapRecipe> tensor_maps;  ///< with HiddenParam::TensorMaps, and only then
};

/// Facts of the compiled code, for reports; -1 where not known before the driver's assembly.
struct KernelReport {
  int registers = -1, spill_bytes = -1, static_smem_bytes = -1;
  double bytes_read_per_program = -1, bytes_written_per_program = -1;  ///< unmasked; -1 if data-dependent
  std::vector<std::string> facts;                                      ///< what the code relies on, and what it had to do without, in words
};

struct KernelImage {
  std::string name;    ///< entry symbol in the PTX
  std::string target;  ///< "sm_90a"
  std::string ptx;     ///< may be empty when a cubin is present
  std::string cubin;   ///< machine code for exactly `target`; may be empty
  ArgSig signature;
  std::vector<LaunchRecipe> candidates;
  std::uint32_t accepted = 0;  ///< index of the candidate in use
  KernelReport report;
  SourceLoc definition;  ///< where the user defined the kernel
  std::vector<ParamSlot>
      params;  ///< wide_entry_params() of the PTX, for images without it; a device reads the PTX of others
  std::vector<ReportSite> sites;  ///< its prints and asserts

  const LaunchRecipe& recipe() const { return candidates.at(accepted); }
};

/// The PTX with the accepted recipe's max_registers as a directive of the kernel, which image.ptx itself does not have.
std::string capped_ptx(const KernelImage& image);

/// What is wrong with the tensor maps of one of `image`'s recipes, in words: they and the hidden parameter do not belong
/// together, or the signature's facts do not make them possible. Empty: nothing.
std::string tensor_map_fault(const KernelImage& image, const LaunchRecipe& recipe);

/// The .kimg bytes of `image`.
std::string serialise(const KernelImage& image);
/// Reads .kimg bytes; throws Error that names `origin` and what is wrong when they are not a complete valid image.
KernelImage deserialise(const std::string& bytes, const std::string& origin);

}  // namespace kiln::rt
