// Arguments of a case, from JSON.
#pragma once
#include "runtime/tools/json_input.h"
#include "runtime/tools/sim_case.h"

namespace kiln::rt::tools {

/// Files are looked for in the folder of the JSON file. Throws UserError.
Argument read_argument(const Input&);

}  // namespace kiln::rt::tools
