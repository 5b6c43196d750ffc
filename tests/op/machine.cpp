#include "tests/op/machine.h"

#include <span>

#include "backend/compile.h"
#include "backend/ir/eval.h"
#include "runtime/device.h"
#include "runtime/launch.h"
#include "tests/op/values.h"

namespace kiln::test {
namespace {

constexpr std::int64_t kBlock = 256;

std::int64_t programs(Form form, std::int64_t n) {
  return form == Form::Tiles ? (n + kBlock - 1) / kBlock : form == Form::Scalars ? n : 1;
}

class InterpreterMachine : public Machine {
 public:
  std::string name() const override { return "interpreter"; }
  std::vector<std::uint64_t> run(const Kernel& kernel, const Columns& columns) override {
    auto n = static_cast<std::int64_t>(columns[0].size());
    std::vector<std::vector<std::byte>> memory;
    for (std::size_t k = 0; k < columns.size(); ++k) memory.push_back(to_bytes(kernel.inputs[k], columns[k]));
    memory.emplace_back(static_cast<std::size_t>(n * bytes(kernel.output)));
    std::vector<ir::EvalBlock> blocks;
    std::vector<ir::EvalArg> args;
    std::uint64_t address = 1 << 20;
    for (auto& m : memory) {
      blocks.push_back({m.data(), m.size(), address});
      args.push_back(ir::Literal{DType::u64, address});
      address += (m.size() + 4095) / 4096 * 4096;
    }
    args.push_back(ir::Literal::of_int(DType::index, n));
    ir::eval(trace(kernel, columns), {{programs(kernel.form, n), 1, 1}}, args, blocks);
    return from_bytes(kernel.output, memory.back());
  }
};

class DeviceMachine : public Machine {
 public:
  explicit DeviceMachine(Device device) : device_(std::move(device)), stream_(device_) {}
  std::string name() const override { return device_.name(); }
  std::vector<std::uint64_t> run(const Kernel& kernel, const Columns& columns) override {
    auto n = static_cast<std::int64_t>(columns[0].size());
    rt::KernelImage image = compile(trace(kernel, columns), target_named(device_.target(), device_.ptx_version()), {});
    std::vector<Buffer<std::uint8_t>> memory;
    rt::ArgPack args;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      std::vector<std::byte> data = to_bytes(kernel.inputs[k], columns[k]);
      memory.emplace_back(device_, data.size());
      memory.back().upload({reinterpret_cast<const std::uint8_t*>(data.data()), data.size()});
      args.pointer(kernel.inputs[k], rt::Access::Read, memory.back().ptr(), data.size(), &device_);
    }
    auto out_bytes = static_cast<std::size_t>(n * bytes(kernel.output));
    memory.emplace_back(device_, out_bytes);
    args.pointer(kernel.output, rt::Access::Write, memory.back().ptr(), out_bytes, &device_);
    args.index(n);
    rt::launch(*device_.load(image), stream_, Grid(programs(kernel.form, n)), args);
    stream_.synchronize();
    std::vector<std::byte> out(out_bytes);
    memory.back().download({reinterpret_cast<std::uint8_t*>(out.data()), out.size()});
    return from_bytes(kernel.output, out);
  }

 private:
  Device device_;
  Stream stream_;
};

void trace_tiles(const Kernel& kernel, ir::Builder& b, const std::vector<ir::Value>& params) {
  SourceLoc at;
  ir::Shape shape{kBlock};
  ir::Value block = b.constant(ir::Literal::of_int(DType::index, kBlock), at);
  ir::Value first = b.elementwise(ir::Op::Mul, {b.program_id(0, at), block}, at);
  ir::Value i = b.elementwise(ir::Op::Add, {b.splat(first, shape, at), b.arange(0, kBlock, at)}, at);
  ir::Value mask = b.elementwise(ir::Op::Lt, {i, b.splat(params.back(), shape, at)}, at);
  auto pointers = [&](std::size_t k) { return b.ptr_add(b.splat(params[k], shape, at), i, at); };
  std::vector<ir::Value> values;
  for (std::size_t k = 0; k < kernel.inputs.size(); ++k)
    values.push_back(b.load(pointers(k), mask, {}, ir::CacheHint::Plain, at));
  b.store(pointers(kernel.inputs.size()), kernel.body(b, values), mask, ir::CacheHint::Plain, at);
}

void trace_scalars(const Kernel& kernel, ir::Builder& b, const std::vector<ir::Value>& params) {
  const ir::Value i = b.program_id(0, {});
  std::vector<ir::Value> values;
  for (std::size_t k = 0; k < kernel.inputs.size(); ++k)
    values.push_back(b.load(b.ptr_add(params[k], i, {}), {}, {}, ir::CacheHint::Plain, {}));
  b.store(b.ptr_add(params[kernel.inputs.size()], i, {}), kernel.body(b, values), {}, ir::CacheHint::Plain, {});
}

void trace_constants(const Kernel& kernel, ir::Builder& b, const std::vector<ir::Value>& params,
                     const Columns& columns) {
  for (std::size_t i = 0; i < columns[0].size(); ++i) {
    std::vector<ir::Value> values;
    for (std::size_t k = 0; k < kernel.inputs.size(); ++k)
      values.push_back(b.constant(ir::Literal{kernel.inputs[k], columns[k][i]}, {}));
    const ir::Value at = b.constant(ir::Literal::of_int(DType::index, std::int64_t(i)), {});
    b.store(b.ptr_add(params[kernel.inputs.size()], at, {}), kernel.body(b, values), {}, ir::CacheHint::Plain, {});
  }
}

}  // namespace

ir::Function trace(const Kernel& kernel, const Columns& columns) {
  ir::Function f(kernel.name);
  for (DType d : kernel.inputs) f.params.push_back({ir::Type::pointer(d, true), "", rt::Access::Read, bytes(d), false});
  f.params.push_back({ir::Type::pointer(kernel.output), "out", rt::Access::Write, bytes(kernel.output), false});
  f.params.push_back({ir::Type::scalar(DType::index), "n", rt::Access::Read, 1, false});
  ir::Builder b(f);
  std::vector<ir::Value> params;
  for (std::size_t i = 0; i < f.params.size(); ++i) params.push_back(b.param(static_cast<int>(i), {}));
  switch (kernel.form) {
    case Form::Tiles: trace_tiles(kernel, b, params); break;
    case Form::Scalars: trace_scalars(kernel, b, params); break;
    case Form::Constants: trace_constants(kernel, b, params, columns); break;
  }
  return f;
}

Machine& interpreter_machine() {
  static InterpreterMachine machine;
  return machine;
}

const std::vector<std::unique_ptr<Machine>>& compiled_machines() {
  static const std::vector<std::unique_ptr<Machine>> machines = [] {
    std::vector<std::unique_ptr<Machine>> m;
    for (const char* target : {"sm_80", "sm_90a"})
      m.push_back(std::make_unique<DeviceMachine>(Device::simulator(target)));
    for (int i = 0; i < Device::cuda_count(); ++i) m.push_back(std::make_unique<DeviceMachine>(Device::cuda(i)));
    return m;
  }();
  return machines;
}

}  // namespace kiln::test
