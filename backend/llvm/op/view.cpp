// Ops that only rename coordinates. No data moves between threads: the layouts of operand and result were chosen so
// that each result element already stands in its thread, and only registers are picked.
#include <fmt/format.h>

#include <functional>

#include "backend/llvm/exchange.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using Coordinate = std::vector<std::int64_t>;

/// Picks for every result register the operand register that holds the element at `source(coordinate)`. A coordinate
/// map that is linear over bits holds for register and thread parts alike, so both are checked with it.
void pick(Emitter& e, const ir::Inst& inst, const std::function<Coordinate(Coordinate)>& source) {
  const ir::Value x = inst.operands[0], result = inst.results[0];
  const ir::LinearLayout &from = e.f.layout(e.type(x).layout), &to = e.f.layout(e.type(result).layout);
  for (ir::Hw h : {ir::Hw::Lane, ir::Hw::Warp})
    for (int k = 0; k < std::max(from.in_bits(h), to.in_bits(h)); ++k) {
      const Coordinate zero_from(std::size_t(from.rank()), 0), zero_to(std::size_t(to.rank()), 0);
      const Coordinate have = k < from.in_bits(h) ? from.basis(h, k) : zero_from;
      const Coordinate want = source(k < to.in_bits(h) ? to.basis(h, k) : zero_to);
      KILN_CHECK(
          have == want,
          fmt::format("{}: {} is in layout {}, which does not fit {}; conversions between threads are not emitted",
                      ir::mnemonic(inst.op), e.type(x).str(), from.str(), to.str()));
    }
  const Geometry &gx = e.geometry_of(x), &g = e.geometry_of(result);
  TileValue t = e.get(x);
  const auto regs = t.regs;
  t.regs.clear();
  for (int r = 0; r < g.regs(); ++r) {
    const Coordinate wanted = source(g.parts[std::size_t(r)]);
    int found = -1;
    for (int q = 0; q < gx.regs() && found < 0; ++q)
      if (gx.parts[std::size_t(q)] == wanted) found = q;
    KILN_CHECK(found >= 0 || !g.live[std::size_t(r)], fmt::format("{}: no register of layout {} holds an element of {}",
                                                                  ir::mnemonic(inst.op), from.str(), to.str()));
    t.regs.push_back(found >= 0 ? regs[std::size_t(found)] : TileValue::Reg{});
  }
  t.distinct = t.distinct && e.type(x).elements() == e.type(result).elements();
  e.set(result, t);
}

}  // namespace

void emit_ExpandDims(Emitter& e, const ir::Inst& inst) {
  const std::int64_t axis = inst.i64(ir::AttrKey::axis);
  pick(e, inst, [axis](Coordinate at) {
    at.erase(at.begin() + axis);
    return at;
  });
}

void emit_Broadcast(Emitter& e, const ir::Inst& inst) {
  const ir::Shape &from = e.type(inst.operands[0]).shape, &to = e.type(inst.results[0]).shape;
  pick(e, inst, [&](Coordinate at) {
    for (std::size_t a = 0; a < to.size(); ++a)
      if (from[a] == 1 && to[a] != 1) at[a] = 0;
    return at;
  });
}

// Where every thread has its elements, index and pointer tiles keep their parts.
void emit_Convert(Emitter& e, const ir::Inst& inst) {
  const ir::Value x = inst.operands[0], result = inst.results[0];
  const ir::Type &from = e.type(x), &to = e.type(result);
  if (ir::same_thread_registers(e.f.layout(from.layout), e.f.layout(to.layout)))
    return pick(e, inst, [](Coordinate at) { return at; });
  e.set_plain(result, relayout(e, e.as_plain(x), from, to, e.scratch(inst)));
}

}  // namespace kiln::cg
