// Numbers of a profile as text, the same in tables and listings.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/profile.h"

namespace kiln::rt {

/// "1 234 567" for a reader; 0 is empty.
std::string grouped(std::uint64_t n);
/// "87 %" of a ratio; empty where there is nothing.
std::string percent(double ratio, bool any = true);
/// "(4, 1, 1)"
std::string triple(const std::array<std::uint32_t, 3>&);
/// "16 KB"
std::string byte_text(std::uint64_t n);

/// The facts of a kernel as name and value; those without work are left out.
std::vector<std::pair<std::string, std::string>> kernel_facts(const Profile::Kernel&);
/// Classes with instructions, most first.
std::vector<std::pair<std::string, std::uint64_t>> sorted_mix(const InstMix&);

}  // namespace kiln::rt
