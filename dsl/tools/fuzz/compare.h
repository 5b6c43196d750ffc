// Running a program on the interpreter and on devices, and what differs.
#pragma once
#include <optional>
#include <string>

#include "dsl/tools/fuzz/program.h"
#include "runtime/device.h"

namespace kiln::fuzz {

/// What `device` does otherwise than the interpreter, a few lines; empty when both leave the same memory, nullopt when
/// the device has too little shared memory or too few registers for the program. Results in slots may differ by their
/// function's bound. `planted`: an op whose results the interpreter gets wrong.
std::optional<std::string> difference(const Device& device, const Program&, std::optional<ir::Op> planted = {});

/// The program without what its difference on `device` does not need: effects and values are taken away, values
/// replaced by operands or zeros, branches by a side, as long as a difference of the same kind is left.
Program minimised(const Device& device, Program, std::optional<ir::Op> planted = {});

/// `f` with each result of `op` changed (a store or another op without results: left out).
ir::Function with_planted(ir::Function f, ir::Op op);

}  // namespace kiln::fuzz
