// Arguments of a case, from JSON.
#pragma once
#include "runtime/tools/json_input.h"
#include "runtime/tools/sim_case.h"

namespace kiln::rt::tools {

/// A dtype by name.
DType read_dtype(const Input&);
/// Files are looked for in the folder of the JSON file. Throws UserError.
Argument read_argument(const Input&);
/// Reads a tensor map, which may be of a buffer that comes later among the arguments. Throws UserError.
void finish_tensor_map(Argument&, const Input&, const std::vector<Argument>&);
/// The map's bytes, of the buffer at this address. Throws UserError that names the argument.
Bytes encoded(const Device&, const Argument&, std::uint64_t buffer);

}  // namespace kiln::rt::tools
