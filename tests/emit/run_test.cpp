// The samples' PTX computes what the interpreter computes, byte for byte, on every device.
#include <cstring>

#include "backend/ir/eval.h"
#include "runtime/device.h"
#include "runtime/device_impl.h"
#include "tests/emit/emit_fixture.h"
#include "tests/emit/samples.h"

namespace kiln::test {
namespace {

/// Small floats of either sign: no NaN as f32, and every byte pattern is a number of the integers.
std::vector<std::byte> initial_memory() {
  std::vector<std::byte> bytes(kSampleMemory);
  for (std::size_t i = 0; i < bytes.size() / 4; ++i) {
    const float v = float(std::int64_t(i * 2654435761u % 2001) - 1000) / 8;
    std::memcpy(bytes.data() + 4 * i, &v, 4);
  }
  return bytes;
}

std::vector<ir::EvalArg> arguments(const Sample& s, std::uint64_t base) {
  std::vector<ir::EvalArg> args;
  for (std::size_t i = 0; i < s.args.size(); ++i) {
    const ir::Param& p = s.function.params[i];
    args.push_back(p.type.ptr ? ir::Literal{DType::u64, base + std::uint64_t(s.args[i])}
                              : ir::Literal::of_int(p.type.dtype, s.args[i]));
  }
  return args;
}

std::vector<std::byte> interpreted(const Sample& s) {
  std::vector<std::byte> memory = initial_memory();
  const ir::EvalBlock block{memory.data(), memory.size(), 0x10000};
  ir::eval(s.function, {s.programs}, arguments(s, block.address), {block});
  return memory;
}

std::vector<std::byte> executed(const Device& device, const Sample& s) {
  const rt::KernelImage image = compile(s.function, target_named(device.target(), device.ptx_version()), {});
  const auto kernel = device.load(image);
  Stream stream(device);
  Buffer<std::uint8_t> memory(device, kSampleMemory);
  std::vector<std::byte> bytes = initial_memory();
  memory.upload(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  std::vector<std::byte> params(image.signature.bytes);
  const std::vector<ir::EvalArg> args = arguments(s, memory.ptr());
  for (std::size_t i = 0; i < args.size(); ++i)
    std::memcpy(params.data() + image.signature.args[i].offset, &args[i].bits, image.signature.args[i].size);
  rt::LaunchDims dims;
  for (std::size_t a = 0; a < 3; ++a) dims.grid[a] = std::uint32_t(s.programs[a]);
  kernel->launch(stream.impl(), dims, params.data(), params.size());
  stream.synchronize();
  memory.download(std::span(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()));
  return bytes;
}

void expect_agreement(const std::vector<Sample>& samples) {
  for (const Device& device : Device::all())
    for (const Sample& s : samples) {
      const std::vector<std::byte> want = interpreted(s), got = executed(device, s);
      const auto differ = std::mismatch(want.begin(), want.end(), got.begin()).first - want.begin();
      EXPECT_EQ(std::size_t(differ), want.size())
          << s.name << " on " << device.name() << ": first difference at byte " << differ;
    }
}

TEST(Run, CopiesOfEveryTypeLengthAndAlignment) { expect_agreement(copy_samples()); }
TEST(Run, IndexArithmeticAndShapes) { expect_agreement(shape_samples()); }
TEST(Run, OverlappingArraysInProgramOrder) { expect_agreement(overlap_samples()); }
TEST(Run, ControlFlow) { expect_agreement(control_samples()); }

}  // namespace
}  // namespace kiln::test
