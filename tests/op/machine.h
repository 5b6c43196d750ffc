// The machines that the op sweep runs on: the interpreter, the simulator of two architectures, each GPU.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/ir/builder.h"

namespace kiln::test {

/// Makes one element of the result from one element of each input; works on tiles.
using Body = std::function<ir::Value(ir::Builder&, const std::vector<ir::Value>&)>;

/// A kernel over arrays: out[i] = body(in0[i], in1[i], …).
struct Kernel {
  std::string name;
  std::vector<DType> inputs;
  DType output;
  Body body;
};

/// The traced function of `kernel`: blocks of 256 elements, masked at the end.
ir::Function trace(const Kernel& kernel);

class Machine {
 public:
  virtual ~Machine() = default;
  virtual std::string name() const = 0;
  /// Runs `kernel` on equally long columns of patterns and returns the output's patterns.
  virtual std::vector<std::uint64_t> run(const Kernel& kernel,
                                         const std::vector<std::vector<std::uint64_t>>& columns) = 0;
};

Machine& interpreter_machine();
/// Simulators of sm_80 and sm_90a, and every GPU found.
const std::vector<std::unique_ptr<Machine>>& compiled_machines();

}  // namespace kiln::test
