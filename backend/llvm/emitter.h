// Emitter: the state of one kernel's emission, passed to the emit_<Op> functions of backend/llvm/op/.
//
// ops.def generates the declarations at the end of this file and the dispatch over them; an op without its emit_
// function is an undefined reference that names it.
#pragma once
#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>

#include <map>
#include <optional>
#include <vector>

#include "backend/ir/function.h"
#include "backend/llvm/debug_info.h"
#include "backend/llvm/emit_context.h"
#include "backend/llvm/geometry.h"
#include "backend/llvm/hazards.h"
#include "backend/llvm/tile_value.h"
#include "backend/pass/axis_info.h"

namespace kiln::cg {

/// A piece of the program's shared memory.
struct Scratch {
  llvm::Value* address = nullptr;  ///< i32, for ld.shared and st.shared; null if there is none
  ir::SharedRange range;           ///< what Hazards is told

  /// `bytes` of it from byte `from` on.
  Scratch part(llvm::IRBuilder<>& b, std::int64_t from, std::int64_t bytes) const {
    return {b.CreateAdd(address, b.getInt32(std::uint32_t(from)), "", true, true),
            {range.lo + from, range.lo + from + bytes}};
  }
};

/// Where a role stands in the function's ring; both roles start at slot 0 of round 0.
struct RingPosition {
  llvm::AllocaInst *slot = nullptr, *phase = nullptr;  ///< i32; phase: the parity of the round
  llvm::AllocaInst* behind = nullptr;                  ///< i1: the slot before is still read
};

/// Where a ring that fetches fill stands: i32, bytes from its start to a slot.
struct FetchPosition {
  llvm::AllocaInst *fill = nullptr, *take = nullptr;
};

class Emitter {
 public:
  /// `kernel` has an entry block, which `entry` fills, and the block `body` writes to.
  Emitter(const ir::Function&, const Target&, llvm::Function* kernel, llvm::IRBuilder<>& entry, llvm::IRBuilder<>& body,
          DebugInfo&);

  const ir::Function& f;
  EmitContext c;
  llvm::IRBuilder<>& b;
  llvm::Function* kernel;
  GeometryCache geometry;
  Hazards hazards;
  /// What is known of integers and addresses; computed on first use.
  const ir::AxisAnalysis& facts();

  const TileValue& get(ir::Value v) const;
  void set(ir::Value v, TileValue t) { values_[v.id] = std::move(t); }
  /// As set, from whole elements: i64 of an index and addresses of pointers find their form.
  void set_plain(ir::Value v, TileValue plain);
  void set_plain(ir::Value v, llvm::Value* scalar);
  const ir::Type& type(ir::Value v) const { return f.type(v); }
  const Geometry& geometry_of(ir::Value v) { return geometry.of(f.type(v)); }
  const ir::Exec& exec() const { return *f.exec; }

  /// Shared memory of an op while it runs, as large as ir::scratch_bytes says; none if that is 0.
  Scratch scratch(const ir::Inst&);

  RingPosition ring;
  std::map<std::uint32_t, FetchPosition> fetched;  ///< by the ring's value

  /// What is emitted from here on stands at `loc` in the user's program.
  void at(SourceLoc loc);
  /// Emits every instruction of a region; its yield leaves the yielded values in `yielded`.
  void region(ir::RegionId);
  std::vector<ir::Value> yielded;

  /// Elements as plain LLVM values: i64 for index, ptr for pointers. Dead registers are null.
  TileValue as_plain(ir::Value v);
  TileValue pointer_scalar(llvm::Value* pointer, DType element) const;
  /// The plain scalar v.
  llvm::Value* scalar(ir::Value v) { return as_plain(v).regs[0].v; }

 private:
  void instruction(const ir::Inst&);
  void elementwise(const ir::Inst&);

  llvm::Value* shared_base();

  DebugInfo& debug_;
  std::vector<TileValue> values_;
  std::optional<ir::AxisAnalysis> facts_;
  llvm::Value* shared_base_ = nullptr;  ///< i32: where the program's shared memory starts
};

/// The value of a literal.
llvm::Constant* literal(const EmitContext& c, const ir::Literal& l);

/// PTX address spaces as LLVM numbers them.
inline constexpr unsigned kGlobal = 1, kShared = 3;

/// A plain tile of `fn(register)` over live registers, one result for equal parts of an index or pointer tile.
template <class Fn>
TileValue map_elements(const Geometry& g, const TileValue& t, Fn&& fn) {
  TileValue out;
  out.regs.resize(std::size_t(g.regs()));
  for (int r = 0; r < g.regs(); ++r) {
    if (!g.live[std::size_t(r)]) continue;
    llvm::Value*& v = out.regs[std::size_t(r)].v;
    for (int q = 0; q < r && v == nullptr; ++q)
      if (g.live[std::size_t(q)] && t.regs[std::size_t(q)] == t.regs[std::size_t(r)]) v = out.regs[std::size_t(q)].v;
    if (v == nullptr) v = fn(r);
  }
  return out;
}

using Regs = llvm::ArrayRef<llvm::Value*>;

/// Applies `fn(operands of one register) → element` to every live register of plain tiles. Registers whose operands are
/// the same LLVM values share one result, so that replicated and broadcast elements are computed once and stay
/// recognisably equal.
template <class Fn>
TileValue map_registers(const Geometry& g, llvm::ArrayRef<TileValue> operands, Fn&& fn) {
  TileValue out;
  out.regs.resize(std::size_t(g.regs()));
  std::vector<std::pair<llvm::SmallVector<llvm::Value*, 4>, llvm::Value*>> done;
  for (int r = 0; r < g.regs(); ++r) {
    if (!g.live[std::size_t(r)]) continue;
    llvm::SmallVector<llvm::Value*, 4> in;
    for (const TileValue& t : operands) in.push_back(t.regs[std::size_t(r)].v);
    llvm::Value*& v = out.regs[std::size_t(r)].v;
    for (const auto& [key, value] : done)
      if (key == in) v = value;
    if (v == nullptr) {
      v = fn(Regs(in));
      done.emplace_back(in, v);
    }
  }
  return out;
}

#define KILN_OP(Enum, ...) void emit_##Enum(Emitter&, const ir::Inst&);
#include "backend/ir/ops.def"

}  // namespace kiln::cg
