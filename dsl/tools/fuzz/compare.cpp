#include "dsl/tools/fuzz/compare.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "backend/compile.h"
#include "backend/ir/eval.h"
#include "runtime/base/error.h"
#include "runtime/launch.h"

namespace kiln::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

/// Bytes in which every element type finds ordinary numbers, extremes and no NaN.
Bytes initial_memory(const Program& p) {
  Bytes bytes(std::size_t(p.bytes()));
  std::uint64_t x = p.seed * 2 + 1;
  for (std::byte& b : bytes) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    b = std::byte(x >> 56) & std::byte(0xbb);  // no exponent of only ones
  }
  return bytes;
}

Bytes interpreted(const Program& p, std::optional<ir::Op> planted) {
  Bytes memory = initial_memory(p);
  const ir::EvalBlock block{memory.data(), memory.size(), 0x10000};
  std::vector<ir::EvalArg> args;
  for (std::size_t i = 0; i < p.args.size(); ++i) {
    const ir::Type& t = p.function.params[i].type;
    args.push_back(t.ptr ? ir::Literal{DType::u64, block.address + p.args[i]} : ir::Literal{t.dtype, p.args[i]});
  }
  ir::eval(planted ? with_planted(p.function, *planted) : p.function, {p.programs}, args, {block});
  return memory;
}

/// On a cluster where the program asks for one and can have it: the target may have none, or a value be needed in two
/// layouts.
rt::KernelImage compiled(const Device& device, const Program& p) {
  const Target target = target_named(device.target(), device.ptx_version());
  CompileOptions one_block = p.options;
  one_block.cluster = 0;
  if (p.options.cluster <= 1 || !target.has_cluster()) return compile(p.function, target, one_block);
  try {
    return compile(p.function, target, p.options);
  } catch (const UserError& e) {
    if (std::string(e.what()).find("cluster is") == std::string::npos) throw;
    return compile(p.function, target, one_block);
  }
}

Bytes executed(const Device& device, const Program& p) {
  const auto kernel = device.load(compiled(device, p));
  const Stream stream(device);
  Bytes bytes = initial_memory(p);
  Buffer<std::uint8_t> memory(device, bytes.size());
  memory.upload(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  rt::ArgPack args;
  for (std::size_t i = 0; i < p.args.size(); ++i) {
    const ir::Param& q = p.function.params[i];
    if (q.type.ptr) args.pointer(q.type.dtype, q.access, memory.ptr() + p.args[i], 0, nullptr);
    else if (q.type.dtype == DType::index) args.index(std::int64_t(p.args[i]));
    else args.scalar(q.type.dtype, &p.args[i]);
  }
  rt::launch(*kernel, stream, {p.programs[0], p.programs[1], p.programs[2]}, args);
  stream.synchronize();
  memory.download(std::span(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()));
  return bytes;
}

float float_at(const Bytes& bytes, std::int64_t at) {
  float v;
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}

/// The bound of ops.def, doubled: the reference is correctly rounded only to within its own last bit; and the rounding
/// to a 16-bit type, which may fall to the other side.
bool within(const Slot& slot, float got, float want, float operand) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (got == want) return true;
  if (std::isinf(want) || std::isinf(got)) {
    // A result that overflows on one side is the largest number, or next to it, on the other.
    const float finite = std::isinf(got) ? want : got;
    const float most = slot.dtype == DType::f16 ? 65504.0f : 3.3e38f;
    return !std::isinf(finite) && std::fabs(finite) >= most * 0.99f && std::signbit(got) == std::signbit(want);
  }
  const double scale =
      slot.accuracy.bound == ir::Bound::Rel ? std::max(std::fabs(operand), std::fabs(want)) : std::fabs(want);
  double bound = 2 * (slot.accuracy.n + 1) * std::ldexp(std::max(scale, 0x1p-126), -23);
  if (slot.dtype == DType::f16) bound += std::max(std::fabs(double(want)) * 0x1p-10, 0x1p-24);
  if (slot.dtype == DType::bf16) bound += std::max(std::fabs(double(want)) * 0x1p-7, 0x1p-133);
  return std::fabs(double(got) - double(want)) <= bound;
}

/// Collects the first differences.
struct Differences {
  std::string text;
  int count = 0;
  void add(const std::string& line) {
    if (count++ < 8) text += line + "\n";
  }
};

void compare_slots(const Program& p, const Bytes& got, const Bytes& want, Differences& out) {
  for (std::int64_t program = 0; program < p.count(); ++program)
    for (std::size_t s = 0; s < p.slots.size(); ++s) {
      const std::int64_t at = p.exact_bytes() + program * kLooseMemory + std::int64_t(s) * kSlotBytes;
      for (std::int64_t i = 0; i < kMaxElements; ++i) {
        const float g = float_at(got, at + 4 * i), w = float_at(want, at + 4 * i);
        const float x = float_at(got, at + kSlotBytes / 2 + 4 * i), y = float_at(want, at + kSlotBytes / 2 + 4 * i);
        if (std::bit_cast<std::uint32_t>(x) != std::bit_cast<std::uint32_t>(y))
          out.add(fmt::format("slot {} element {} (program {}): operand {}, not {}", s, i, program, x, y));
        else if (!within(p.slots[s], g, w, x))
          out.add(fmt::format("slot {} element {} (program {}): {}, not {} (operand {})", s, i, program, g, w, x));
      }
    }
}

/// A small device may refuse what another takes, and a simulator a program that is unrolled without end: a thread of it
/// has 65536 registers, one of a GPU 255.
bool is_refusal(const std::exception& e) {
  const std::string what = e.what();
  if (dynamic_cast<const UserError*>(&e)) return what.find("bytes of shared memory") != std::string::npos;
  return dynamic_cast<const DeviceError*>(&e) && what.find("registers a thread") != std::string::npos;
}

}  // namespace

std::optional<std::string> difference(const Device& device, const Program& p, std::optional<ir::Op> planted) try {
  const Bytes want = interpreted(p, planted), got = executed(device, p);
  Differences out;
  for (std::int64_t i = 0; i < p.exact_bytes(); ++i)
    if (want[std::size_t(i)] != got[std::size_t(i)])
      out.add(fmt::format("byte {} (program {}): {:02x}, not {:02x}", i % kProgramMemory, i / kProgramMemory,
                          int(got[std::size_t(i)]), int(want[std::size_t(i)])));
  compare_slots(p, got, want, out);
  return out.text;
} catch (const std::exception& e) {
  if (is_refusal(e)) return std::nullopt;
  return std::string("threw: ") + e.what() + "\n";
}

}  // namespace kiln::fuzz
