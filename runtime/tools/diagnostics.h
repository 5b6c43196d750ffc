// Findings as a compiler shows its errors: place, what is wrong, the line itself.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/finding.h"

namespace kiln::rt::tools {

/// Findings of one kind at one instruction are shown once, with how many there are. `ptx` is quoted where the user's
/// file is not at hand.
std::string diagnostics(const std::vector<Finding>&, const std::filesystem::path& ptx);

/// The sentence of a finding without its place and its thread, which it begins and ends with.
std::string what(const Finding&);

}  // namespace kiln::rt::tools
