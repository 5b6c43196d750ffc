#include "backend/ir/reduce_order.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include "backend/ir/fold.h"
#include "backend/ir/layout_zoo.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

constexpr Hw kPlaces[] = {Hw::Register, Hw::Lane, Hw::Warp, Hw::Block};

/// A text for the value of `v` in a region, operands of commutative ops in one order; `params` names its parameters.
std::string expression(const Function& f, Value v, const std::map<std::uint32_t, std::string>& params) {
  if (const auto at = params.find(v.id); at != params.end()) return at->second;
  const InstId def = f.def(v);
  if (def == kNone) return "v" + std::to_string(v.id);
  const Inst& inst = f.inst(def);
  if (inst.op == Op::Constant) {
    const Literal& l = inst.literal();
    return std::string("c") + name(l.dtype) + std::to_string(l.bits);
  }
  std::vector<std::string> operands;
  for (Value o : inst.operands) operands.push_back(expression(f, o, params));
  if (commutes(inst.op) || inst.op == Op::Fma)  // a fused product commutes, its sum is one operand
    std::sort(operands.begin(), operands.begin() + std::min<std::ptrdiff_t>(2, std::ptrdiff_t(operands.size())));
  std::string text = std::string(mnemonic(inst.op)) + "." + f.type(v).str();
  for (const Attr& a : inst.attrs)
    if (const auto* i = std::get_if<std::int64_t>(&a.value)) text += std::string(name(a.key)) + std::to_string(*i);
  text += "(";
  for (const std::string& o : operands) text += o + ",";
  return text + ")";
}

const std::vector<Value>& yields(const Function& f, RegionId region) {
  return f.inst(f.region(region).insts.back()).operands;
}

std::optional<Literal> identity(Op op, DType d) {
  const bool real = is_float(d);
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto integer = [&](bool largest) {
    if (d == DType::i1) return Literal{d, largest};
    const int n = bits(d) - int(is_signed(d));
    const std::uint64_t most = n == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << n) - 1;
    return Literal::of_int(d, largest ? std::int64_t(most) : is_signed(d) ? -std::int64_t(most) - 1 : 0);
  };
  switch (op) {
    case Op::Add: return real ? Literal::of_float(d, -0.0) : Literal::of_int(d, 0);
    case Op::Mul: return Literal::of_int(d, 1);
    case Op::Min: return real ? Literal::of_float(d, inf) : integer(true);
    case Op::Max: return real ? Literal::of_float(d, -inf) : integer(false);
    case Op::And: return d == DType::i1 ? Literal{d, 1} : Literal::of_int(d, -1);
    case Op::Or:
    case Op::Xor: return Literal::of_int(d, 0);
    default: return {};
  }
}

}  // namespace

std::optional<std::vector<AxisBit>> axis_bits(const LinearLayout& l, int axis) {
  std::vector<AxisBit> found;
  std::int64_t covered = 0;
  for (Hw hw : kPlaces)
    for (int k = 0; k < l.in_bits(hw); ++k) {
      const LinearLayout::Coord& basis = l.basis(hw, k);
      const std::int64_t along = basis[std::size_t(axis)];
      if (along == 0) continue;
      const auto axes = std::count_if(basis.begin(), basis.end(), [](std::int64_t c) { return c != 0; });
      if (axes != 1 || !std::has_single_bit(std::uint64_t(along)) || (covered & along) != 0) return {};
      covered |= along;
      found.push_back({hw, k, std::countr_zero(std::uint64_t(along))});
    }
  std::sort(found.begin(), found.end(), [](const AxisBit& a, const AxisBit& b) { return a.position < b.position; });
  return found;
}

std::vector<AxisBit> reduce_order(const LinearLayout& l, int axis, bool commutes) {
  auto bits = axis_bits(l, axis);
  KILN_CHECK(bits.has_value(), "no order for a reduction in " + l.str());
  if (commutes)
    std::stable_sort(bits->begin(), bits->end(), [](const AxisBit& a, const AxisBit& b) { return a.hw < b.hw; });
  return *bits;
}

std::vector<std::vector<AxisBit>> scan_order(const LinearLayout& l, int axis) {
  const auto bits = axis_bits(l, axis);
  KILN_CHECK(bits.has_value(), "no order for a scan in " + l.str());
  std::vector<std::vector<AxisBit>> runs;
  for (const AxisBit& b : *bits)
    if (b.hw == Hw::Lane || runs.empty() || runs.back().back().hw != b.hw) runs.push_back({b});
    else runs.back().push_back(b);
  return runs;
}

LinearLayout reducible_layout(const Function& f, const LinearLayout& l, const Shape& shape, int axis) {
  if (axis_bits(l, axis)) return l;
  return blocked(shape, 1, row_major(int(shape.size())), f.exec->warps, f.exec->cluster);
}

bool commutes(const Function& f, RegionId region) {
  const std::vector<Value>& params = f.region(region).params;
  const std::size_t n = params.size() / 2;
  std::map<std::uint32_t, std::string> straight, swapped;
  for (std::size_t i = 0; i < params.size(); ++i) {
    straight[params[i].id] = "p" + std::to_string(i);
    swapped[params[i].id] = "p" + std::to_string(i < n ? i + n : i - n);
  }
  const std::vector<Value>& results = yields(f, region);
  return std::all_of(results.begin(), results.end(),
                     [&](Value v) { return expression(f, v, straight) == expression(f, v, swapped); });
}

std::optional<std::vector<Literal>> identity_of(const Function& f, RegionId region) {
  const std::vector<Value>& params = f.region(region).params;
  const std::vector<Value>& results = yields(f, region);
  std::vector<Literal> all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const InstId def = f.def(results[i]);
    if (def == kNone) return {};
    const Inst& inst = f.inst(def);
    const Value a = params[i], b = params[i + results.size()];
    if (inst.operands != std::vector{a, b} && inst.operands != std::vector{b, a}) return {};
    const auto e = identity(inst.op, f.type(results[i]).dtype);
    if (!e) return {};
    all.push_back(*e);
  }
  return all;
}

WarpExchange warp_exchange(const Function& f, const Type& tile, const std::vector<AxisBit>& done,
                           const std::vector<AxisBit>& run) {
  const LinearLayout& l = f.layout(tile.layout);
  WarpExchange x;
  x.bits = run;
  x.warps = l.in_size(Hw::Warp);
  std::int64_t gone = l.free_bits(Hw::Register);
  x.lane_mask = (l.in_size(Hw::Lane) - 1) & ~l.free_bits(Hw::Lane);
  for (const AxisBit& b : done) {
    if (b.hw == Hw::Register) gone |= std::int64_t(1) << b.bit;
    if (b.hw == Hw::Lane) x.lane_mask &= ~(std::int64_t(1) << b.bit);
  }
  for (std::int64_t r = 0; r < l.in_size(Hw::Register); ++r)
    if ((r & gone) == 0 && register_use(l, r, tile.shape) != RegisterUse::Dead) x.registers.push_back(r);
  return x;
}

WarpExchange block_exchange(const Function& f, const Type& tile, const std::vector<AxisBit>& done,
                            const std::vector<AxisBit>& run) {
  WarpExchange x = warp_exchange(f, tile, done, run);
  x.lane_mask = f.layout(tile.layout).in_size(Hw::Lane) - 1;
  return x;
}

std::int64_t slot_bytes(DType d) { return std::max(bytes(d), 4); }

std::vector<std::int64_t> slot_offsets(const WarpExchange& x, const std::vector<DType>& components) {
  std::vector<std::int64_t> offsets{0};
  for (DType d : components) offsets.push_back((offsets.back() + x.slots() * slot_bytes(d) + 15) / 16 * 16);
  return offsets;
}

std::int64_t exchanged_bytes(const Function& f, const Type& tile, const std::vector<AxisBit>& done,
                             const std::vector<AxisBit>& run, const std::vector<DType>& components) {
  switch (run[0].hw) {
    case Hw::Warp: return slot_offsets(warp_exchange(f, tile, done, run), components).back();
    case Hw::Block: return slot_offsets(block_exchange(f, tile, done, run), components).back();
    default: return 0;
  }
}

}  // namespace kiln::ir
