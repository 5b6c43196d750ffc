// The class of an instruction, for counting.
#pragma once
#include "runtime/inst_class.h"
#include "runtime/sim/form.h"

namespace kiln::rt::sim {

/// After the maker has filled the form.
InstClass classify(const Form&);
/// Type of the elements that a matrix instruction multiplies, Ty::none for others.
Ty multiplied(const Form&);

/// What the instruction makes of operands that depend on bytes nobody wrote.
Unknowns unknowns(const Form&, InstClass);

}  // namespace kiln::rt::sim
