// Random straight-line kernels: interpreter, simulators and GPUs must leave the same bytes in memory.
//
//   kernel_random                       the fixed seeds of a test run
//   KILN_RANDOM=FIRST,COUNT …           other seeds
//   KILN_RANDOM_TEXT=1 …                prints each program before it runs
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

#include "backend/compile.h"
#include "backend/ir/eval.h"
#include "backend/pass/rewrite.h"
#include "runtime/device.h"
#include "runtime/device_impl.h"
#include "tests/kernel/random_program.h"

namespace kiln::test {
namespace {

constexpr int kSteps = 24;

/// Bytes in which every element type finds ordinary numbers, extremes and no NaN.
std::vector<std::byte> initial_memory(const RandomProgram& p, std::uint64_t seed) {
  std::vector<std::byte> bytes(std::size_t(p.program_count() * kProgramMemory));
  std::uint64_t x = seed * 2 + 1;
  for (std::byte& b : bytes) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    b = std::byte(x >> 56) & std::byte(0xbb);  // no exponent of only ones
  }
  return bytes;
}

std::vector<ir::EvalArg> arguments(const RandomProgram& p, std::uint64_t base) {
  std::vector<ir::EvalArg> args;
  for (std::size_t i = 0; i < p.args.size(); ++i) {
    const ir::Param& q = p.function.params[i];
    args.push_back(q.type.ptr ? ir::Literal{DType::u64, base + p.args[i]} : ir::Literal{q.type.dtype, p.args[i]});
  }
  return args;
}

std::vector<std::byte> interpreted(const RandomProgram& p, std::uint64_t seed) {
  std::vector<std::byte> memory = initial_memory(p, seed);
  const ir::EvalBlock block{memory.data(), memory.size(), 0x10000};
  ir::eval(p.function, {p.programs}, arguments(p, block.address), {block});
  return memory;
}

std::vector<std::byte> executed(const Device& device, const RandomProgram& p, std::uint64_t seed) {
  const rt::KernelImage image = compile(p.function, target_named(device.target(), device.ptx_version()), p.options);
  const auto kernel = device.load(image);
  Stream stream(device);
  std::vector<std::byte> bytes = initial_memory(p, seed);
  Buffer<std::uint8_t> memory(device, bytes.size());
  memory.upload(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  std::vector<std::byte> params(image.signature.bytes);
  const std::vector<ir::EvalArg> args = arguments(p, memory.ptr());
  for (std::size_t i = 0; i < args.size(); ++i)
    std::memcpy(params.data() + image.signature.args[i].offset, &args[i].bits, image.signature.args[i].size);
  rt::LaunchDims dims;
  for (std::size_t a = 0; a < 3; ++a) dims.grid[a] = std::uint32_t(p.programs[a]);
  kernel->launch(stream.impl(), dims, params.data(), params.size());
  stream.synchronize();
  memory.download(std::span(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()));
  return bytes;
}

/// Empty when `device` agrees with the interpreter.
std::string difference(const Device& device, const RandomProgram& p, std::uint64_t seed) try {
  const std::vector<std::byte> want = interpreted(p, seed), got = executed(device, p, seed);
  std::string text;
  int count = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    if (want[i] != got[i] && count++ < 8)
      text += fmt::format("byte {} (program {}): {:02x}, not {:02x}\n", std::int64_t(i) % kProgramMemory,
                          std::int64_t(i) / kProgramMemory, int(got[i]), int(want[i]));
  return text;
} catch (const std::exception& e) {
  return std::string("threw: ") + e.what() + "\n";
}

/// The stores and loads that the difference does not need are taken away, and what only they used.
RandomProgram reduced(const Device& device, RandomProgram p, std::uint64_t seed) {
  for (bool again = true; again;) {
    again = false;
    const std::vector<ir::InstId> insts = p.function.region(p.function.body()).insts;
    for (std::size_t k = insts.size(); k-- > 0;) {
      RandomProgram less = p;
      const ir::Inst& inst = less.function.inst(insts[k]);
      bool used = false;
      for (ir::Value v : inst.results) used = used || less.function.has_uses(v);
      if (used) continue;
      less.function.remove(insts[k]);
      if (!ir::removable(inst.op) && difference(device, less, seed).empty()) continue;
      p = less;
      again = true;
    }
  }
  return p;
}

void expect_agreement(const Device& device, std::uint64_t seed) {
  const RandomProgram p = random_program(seed, kSteps);
  if (std::getenv("KILN_RANDOM_TEXT") != nullptr)
    std::fprintf(stderr, "seed %llu\n%s", static_cast<unsigned long long>(seed), p.text().c_str());
  if (difference(device, p, seed).empty()) return;
  const RandomProgram less = reduced(device, p, seed);
  ADD_FAILURE() << "seed " << seed << " on " << device.name() << " " << device.target() << "\n"
                << difference(device, less, seed) << less.text();
}

TEST(Random, EveryMachineAgreesWithTheInterpreter) {
  unsigned long long first = 1, count = 200;
  if (const char* knob = std::getenv("KILN_RANDOM")) {
    ASSERT_EQ(std::sscanf(knob, "%llu,%llu", &first, &count), 2);
  }
  const char* const rare[] = {"sm_86", "sm_89", "sm_100a", "sm_120a"};
  std::vector<Device> devices = Device::all();
  devices.push_back(Device::simulator("sm_80"));
  std::vector<Device> others;
  for (const char* arch : rare) others.push_back(Device::simulator(arch));
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    for (const Device& d : devices) expect_agreement(d, seed);
    if (seed % 4 == 0) expect_agreement(others[seed / 4 % others.size()], seed);
  }
}

}  // namespace
}  // namespace kiln::test
