// name_values: ties values to the variables of the user's program, for the simulator's debugger.
//
// The statement that a value was made by is found by its place in the user's source file; where it declares or assigns a
// variable, the last value it makes is what the variable gets. Parameters get the names of the lambda's. Nothing happens
// where the source cannot be read. It is no pass of the pipeline: what a function is compiled to without names does not
// depend on it.
//
//   9     Tile x = load(a + i, mask);
//  10     store(c + i, exp(x), mask);
//
//     %7 = load %5, %6                     %7 = load %5, %6
//                                   ->     name text="x" %7
//     %8 = exp %7                          %8 = exp %7
//     store %9, %8, %6                     store %9, %8, %6
#pragma once
#include "backend/ir/function.h"

namespace kiln::ir {

/// Of a function at stage traced; returns whether it changed.
bool name_values(Function&);

}  // namespace kiln::ir
