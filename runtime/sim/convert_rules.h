// Which roundings and modifiers a conversion between two scalar types takes.
#pragma once
#include <string>

namespace kiln::rt::sim {

struct Form;

/// Why cvt has no such form, or empty; conversions from and to packed types are not looked at.
std::string wrong_conversion(const Form&);

}  // namespace kiln::rt::sim
