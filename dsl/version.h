// The version of the Kiln library that is loaded.
#pragma once

namespace kiln {

/// "major.minor.patch".
const char* version();

}  // namespace kiln
