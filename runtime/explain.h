// What a compiled kernel is, for people: how it is launched, what it takes of a multiprocessor, and by which
// instructions it moves and multiplies.
//
//   std::puts(explain(gemm.image(device, x, w, y), device).text().c_str());
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/image/kernel_image.h"

namespace kiln {

struct Explanation {
  std::string kernel, target;
  std::string definition;  ///< the user's file:line
  std::string grid;        ///< how programs become blocks, in words
  std::uint32_t threads = 0, cluster = 1;
  std::uint32_t registers = 0;   ///< a thread's; an upper bound where nothing assembled the kernel
  bool registers_known = false;  ///< by the assembler
  int spill_bytes = -1;          ///< a thread's; -1: nothing assembled the kernel
  std::uint64_t shared_bytes = 0, most_shared_bytes = 0;  ///< of a block, and what one may have
  std::uint32_t blocks_per_sm = 0, warps_per_sm = 0, most_warps_per_sm = 0;
  std::string limited_by;               ///< why there are not more blocks: "shared memory", "registers", "threads"
  std::vector<std::string> multiplies;  ///< instructions of matrix units, each once: "wgmma m64n256k16 f32.bf16.bf16"
  std::vector<std::string> moves;       ///< how memory is reached: "tensor maps: 2", "ld.global.v4", …
  std::vector<std::string> facts;       ///< the report: decisions of the compiler, then what of the arguments the code relies on

  std::string text() const;
  /// One object; the members' names are its keys.
  std::string json() const;
};

/// Reads the image's recipe, report and PTX; nothing is loaded or launched. Of an image that the device's kernels were
/// loaded from (LoadedKernel::image()) registers and spills are the assembler's.
Explanation explain(const rt::KernelImage& image, const Device& device);

}  // namespace kiln
