#include "backend/pass/eval_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "backend/ir/eval.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

constexpr std::size_t kBufferBytes = 1 << 18;
constexpr std::uint64_t kAddressStep = 1 << 24;  // buffers lie far apart, so a stray access is outside all of them

/// Small values, and now and then a special one; bits of any dtype.
Literal random_literal(DType d, std::mt19937& rng) {
  if (d == DType::i1) return {d, rng() % 2};
  if (!is_float(d)) return Literal::of_int(d, std::int64_t(rng() % 64) - (is_signed(d) ? 16 : 0));
  static constexpr double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN};
  return Literal::of_float(d, rng() % 16 == 0 ? special[rng() % 5] : double(std::int64_t(rng() % 257) - 128) / 16);
}

struct Memory {
  std::vector<std::vector<std::byte>> buffers;  ///< one per pointer parameter
  std::vector<std::size_t> parameter;
};

/// Arguments that satisfy every fact of the parameters, and the buffers behind the pointers.
std::vector<EvalArg> make_arguments(const Function& f, Memory& memory) {
  std::mt19937 rng(20);
  std::vector<EvalArg> args;
  for (std::size_t p = 0; p < f.params.size(); ++p) {
    const Param& param = f.params[p];
    if (param.type.ptr) {
      std::vector<std::byte> buffer(kBufferBytes);
      const auto size = std::size_t(bytes(param.type.dtype));
      for (std::size_t at = 0; at < kBufferBytes; at += size) {
        const Literal l = random_literal(param.type.dtype, rng);
        std::memcpy(&buffer[at], &l.bits, size);
      }
      memory.buffers.push_back(std::move(buffer));
      memory.parameter.push_back(p);
      args.push_back({DType::u64, kAddressStep * memory.buffers.size()});
    } else if (param.is_one) {
      args.push_back(Literal::of_int(param.type.dtype, 1));
    } else if (param.type.dtype == DType::index) {
      args.push_back(Literal::of_int(DType::index, param.align > 1 ? 6 * param.align : 101));
    } else {
      args.push_back(random_literal(param.type.dtype, rng));
    }
  }
  return args;
}

void run(const Function& f, const std::vector<EvalArg>& args, Memory& memory) {
  std::vector<EvalBlock> blocks;
  for (std::size_t i = 0; i < memory.buffers.size(); ++i)
    blocks.push_back({memory.buffers[i].data(), memory.buffers[i].size(), kAddressStep * (i + 1)});
  EvalGrid grid;
  grid.programs = {2, 1, 1};
  eval(f, grid, args, blocks);
}

/// Whether some reduction or scan of floats does more than choose among them: layouts change the order of its steps.
bool order_matters(const Function& f) {
  bool found = false;
  walk(f, [&](InstId i) {
    const Inst& inst = f.inst(i);
    if (inst.op != Op::Reduce && inst.op != Op::Scan) return;
    for (InstId step : f.region(inst.regions[0]).insts)
      for (Value v : f.inst(step).results)
        found = found || (is_float(f.type(v).dtype) && f.inst(step).op != Op::Min && f.inst(step).op != Op::Max &&
                          f.inst(step).op != Op::Select);
  });
  return found;
}

/// `loose`: floats may differ as much as a sum of a tile in another order.
bool same(const Literal& a, const Literal& b, bool loose) {
  if (a == b || !is_float(a.dtype)) return a == b;
  const double x = a.as_double(), y = b.as_double();
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  const double relative = bits(a.dtype) <= 16 ? 1.0 / 16 : 1.0 / 1024;
  return loose && std::fabs(x - y) <= relative * std::max({1.0, std::fabs(x), std::fabs(y)});
}

}  // namespace

std::string eval_difference(const Function& before, const Function& after) {
  Memory expected;
  const std::vector<EvalArg> args = make_arguments(before, expected);
  Memory got = expected;
  try {
    run(before, args, expected);
  } catch (const UserError&) {
    return {};
  }
  try {
    run(after, args, got);
  } catch (const UserError& e) {
    return e.what();
  }
  const bool loose = order_matters(before);
  for (std::size_t i = 0; i < expected.buffers.size(); ++i) {
    if (expected.buffers[i] == got.buffers[i]) continue;
    const std::size_t p = expected.parameter[i];
    const DType d = before.params[p].type.dtype;
    const auto size = std::size_t(bytes(d));
    for (std::size_t at = 0; at < kBufferBytes; at += size) {
      Literal e{d, 0}, g{d, 0};
      std::memcpy(&e.bits, &expected.buffers[i][at], size);
      std::memcpy(&g.bits, &got.buffers[i][at], size);
      if (!same(e, g, loose))
        return fmt::format("parameter {} element {} is {:#x}, was {:#x}", p, at / size, g.bits, e.bits);
    }
  }
  return {};
}

}  // namespace kiln::ir
