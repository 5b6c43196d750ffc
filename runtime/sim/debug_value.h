// Variables of the user's program as a debugger writes them.
#pragma once
#include <string>

#include "runtime/debugger.h"

namespace kiln::rt::sim {

/// "f32[16, 64]", "index".
std::string type_text(const debug::Value&);
/// Name, type and value; of a tile its corners, and the smallest and largest element.
std::string value_text(const debug::Value&);

}  // namespace kiln::rt::sim
