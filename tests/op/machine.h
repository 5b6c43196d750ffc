// The machines that the op sweep runs on: the interpreter, the simulator of two architectures, each GPU.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/ir/builder.h"

namespace kiln::test {

/// Makes one element of the result from one element of each input; of scalars or of tiles.
using Body = std::function<ir::Value(ir::Builder&, const std::vector<ir::Value>&)>;

/// How the elements reach the body: blocks of 256, masked at the end; one scalar a program; constants, which are folded
/// where the operation is exact.
enum class Form { Tiles, Scalars, Constants };

/// A kernel over arrays: out[i] = body(in0[i], in1[i], …).
struct Kernel {
  std::string name;
  std::vector<DType> inputs;
  DType output;
  Body body;
  Form form = Form::Tiles;
};

/// columns[k][i]: pattern of operand k of case i.
using Columns = std::vector<std::vector<std::uint64_t>>;

/// The traced function of `kernel`; of the form Constants, for these operands.
ir::Function trace(const Kernel& kernel, const Columns& columns = {});

class Machine {
 public:
  virtual ~Machine() = default;
  virtual std::string name() const = 0;
  /// Runs `kernel` on equally long columns of patterns and returns the output's patterns.
  virtual std::vector<std::uint64_t> run(const Kernel& kernel, const Columns& columns) = 0;
};

Machine& interpreter_machine();
/// Simulators of sm_80 and sm_90a, and every GPU found.
const std::vector<std::unique_ptr<Machine>>& compiled_machines();

}  // namespace kiln::test
