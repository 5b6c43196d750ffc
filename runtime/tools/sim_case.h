// A case: a kernel as PTX text, how it is launched, what its arguments hold before and must hold afterwards.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tensor_map.h"
#include "runtime/tools/element.h"

namespace kiln::rt::tools {

struct Argument {
  enum class Kind : std::uint8_t {
    Buffer,     ///< the address of device memory
    Value,      ///< bytes passed as they are
    Null,       ///< a null pointer
    TensorMap,  ///< a tensor map of a buffer
  };
  Kind kind = Kind::Null;
  std::string name;
  DType dtype = DType::u8;
  std::uint64_t size = 0;            ///< bytes of a buffer
  std::vector<std::uint64_t> shape;  ///< of a buffer, as the file has it
  bool passed = true;                ///< a buffer that is none of the kernel's parameters is reached by a map
  Bytes before;               ///< the buffer's contents, or the value; no bytes: a buffer that nobody has written
  std::optional<Bytes> want;  ///< the buffer's contents afterwards
  TensorSpec map;             ///< of a tensor map; its base counts from the buffer
  std::string of, where;      ///< … the buffer's name; file and key of the argument
};

struct Case {
  std::filesystem::path ptx_file;
  std::string ptx, entry;
  std::string target;  ///< of the device: "sm_90a"
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  std::uint32_t shared_bytes = 0;  ///< dynamic
  std::vector<Argument> args;
  std::vector<std::uint32_t> param_bytes, param_align;  ///< of the entry, in order
};

/// What the command line says; it goes before what the file says.
struct CaseOptions {
  std::optional<std::filesystem::path> ptx;
  std::optional<std::string> entry, target;
  std::optional<std::array<std::uint32_t, 3>> grid, block, cluster;
  std::optional<std::uint32_t> shared_bytes;
};

/// Reads a case; docs/simulator.md has the format. Buffers and PTX are looked for beside the file. Throws UserError
/// that names file, key and what it holds, or DeviceError of PTX that cannot be read.
Case read_case(const std::filesystem::path& json, const CaseOptions& = {});
/// A case without a file: a kernel without arguments. @pre options.ptx
Case bare_case(const CaseOptions&);

/// The parameter buffer, with `addresses` for the buffers and `maps` for the tensor maps, in order. Throws UserError
/// where arguments and parameters of the entry differ; parameters beyond the arguments are 0.
Bytes pack(const Case&, const std::vector<std::uint64_t>& addresses, const std::vector<Bytes>& maps = {});

/// Entries of PTX text with their parameters, a line each.
std::string describe_entries(const std::filesystem::path& ptx);

}  // namespace kiln::rt::tools
