// store_block: a block of a result goes to memory.
#include "backend/ir/op/store_block.h"

#include <algorithm>
#include <cstring>

#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "backend/ir/op/ring_array.h"
#include "backend/ir/op/scratch.h"
#include "runtime/base/error.h"

namespace kiln::ir {

RingBlock staged_piece(DType dtype) { return {dtype, {kStagedRows, kLine / bytes(dtype)}, 1, 0}; }

bool can_stage(const Type& value, int warps) {
  if (!value.tile || value.ptr || value.shape.size() != 2 || value.dtype == DType::i1 || bytes(value.dtype) > 4)
    return false;
  return value.shape[0] % (kStagedRows * (warps / 4)) == 0 && value.shape[1] * bytes(value.dtype) % kLine == 0 &&
         value.shape[1] <= 256;
}

std::span<const Value> stored_array(const Inst& store) { return std::span(store.operands).subspan(1); }

namespace {

std::optional<rt::TensorMapRecipe> map_of_store(const Function& f, const Inst& store) {
  if (!store.flag(AttrKey::mapped)) return std::nullopt;
  return block_map(f, stored_array(store), staged_piece(f.type(store.operands[0]).dtype));
}

}  // namespace

std::vector<rt::TensorMapRecipe> kernel_maps(const Function& f) {
  std::vector<rt::TensorMapRecipe> maps;
  if (const InstId fill = fill_of(f); fill != kNone) maps = fill_maps(f, f.inst(fill));
  const std::size_t filled = maps.size();
  walk(f, [&](InstId i) {
    if (f.inst(i).op != Op::StoreBlock) return;
    const auto map = map_of_store(f, f.inst(i));
    if (map && std::find(maps.begin() + std::ptrdiff_t(filled), maps.end(), *map) == maps.end()) maps.push_back(*map);
  });
  return maps;
}

std::size_t map_of(const Function& f, const Inst& store) {
  const std::vector<rt::TensorMapRecipe> maps = kernel_maps(f);
  const auto map = map_of_store(f, store);
  KILN_CHECK(map.has_value(), "store_block: goes by no tensor map");
  return std::size_t(std::find(maps.rbegin(), maps.rend(), *map).base() - maps.begin() - 1);
}

bool copies_results(const Function& f) {
  bool copies = false;
  walk(f, [&](InstId i) { copies = copies || (f.inst(i).op == Op::StoreBlock && f.inst(i).flag(AttrKey::mapped)); });
  return copies;
}

int pending_copies(const Function& f) {
  bool even = true;
  walk(f, [&](InstId i) {
    if (f.inst(i).op != Op::StoreBlock) return;
    const Type& t = f.type(f.inst(i).operands[0]);
    const std::int64_t pieces = t.shape[0] / (kStagedRows * f.exec->warps / 4) * (t.shape[1] * bytes(t.dtype) / kLine);
    even = even && f.inst(i).flag(AttrKey::mapped) && pieces % kStagingBuffers == 0;
  });
  return even ? int(kStagingBuffers) - 1 : 0;
}

std::int64_t staging_bytes(const Function& f) {
  std::int64_t most = 0;
  walk(f, [&](InstId i) {
    if (f.inst(i).op == Op::StoreBlock) most = std::max(most, scratch_store_block(f, f.inst(i)));
  });
  return most;
}

std::int64_t scratch_store_block(const Function& f, const Inst&) {
  return f.exec ? f.exec->warps / 4 * kStagingBuffers * kStagingBytes : 0;
}

Types infer_StoreBlock(const InferInput& in) {
  if (in.operands.size() != 1 + kFillOperands) in.fail(std::to_string(in.operands.size()) + " operands, must be 8");
  const Type &value = in.type(0), &base = in.type(1);
  if (!base.ptr || base.tile || base.shared) in.fail("base must be a pointer to global memory, not " + base.str());
  if (!value.tile || value.ptr || value.shape.size() != 2 || value.dtype != base.dtype)
    in.fail("value is " + value.str() + " for " + base.str());
  for (std::size_t i = 2; i < in.operands.size(); ++i)
    if (in.type(i) != Type::scalar(DType::index))
      in.fail("sizes, strides and coordinates are index, not " + in.type(i).str());
  return {};
}
void eval_StoreBlock(Evaluator& e, const Inst& inst) {
  const std::byte* value = e.data(inst.operands[0]);
  const std::size_t bytes = element_bytes(e.type(inst.operands[0]));
  for_block(e, inst, 1, e.type(inst.operands[0]).shape, [&](std::size_t i, std::uint64_t address, bool inside) {
    if (inside) std::memcpy(e.access(address, bytes, inst, i), value + i * bytes, bytes);
  });
}

}  // namespace kiln::ir
