// Files read and written whole.
#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::rt {

/// Contents of a regular file. Throws UserError that names it: it cannot be read, or has more than `most` bytes.
std::string read_whole(const std::filesystem::path&, std::size_t most = std::size_t{1} << 32);
/// Text of the user's source file of this name, if it can be found. A relative name, as some builds give, is one from
/// the build folder: it is looked for from the working directory, then from the program's folder and those above it.
std::optional<std::string> read_source(const std::string& name);
/// A reader sees all of it or what was there before. Throws UserError that names it.
void write_whole(const std::filesystem::path&, std::string_view contents);

}  // namespace kiln::rt
