// Fetching tiles into a ring.
#include "backend/ir/op/fetch.h"

#include <algorithm>
#include <cstring>

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

constexpr std::int64_t kBlockAlign = 128;

/// Whether block number `number` of `ring` lies along the axis that is not k in the product that it is an operand of.
bool lies_along_rows(const Function& f, Value ring, std::size_t number) {
  for (InstId take : f.users(ring)) {
    if (f.inst(take).op != Op::Take) continue;
    const Value block = f.inst(take).results[number];
    for (InstId user : f.users(block))
      for (std::size_t k : {0, 1})
        if (f.inst(user).op == Op::RingDot && f.inst(user).operands[k] == block)
          return f.inst(user).ints(AttrKey::along)[k] == std::int64_t(k);
  }
  return false;
}

}  // namespace

std::vector<std::int64_t> slot_offsets(std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> at{0};
  for (std::int64_t size : sizes) at.push_back(at.back() + (size + kBlockAlign - 1) / kBlockAlign * kBlockAlign);
  return at;
}

std::vector<FetchBlock> fetch_blocks(const Function& f, const Inst& fetch) {
  std::vector<FetchBlock> blocks;
  std::vector<std::int64_t> sizes;
  const std::vector<std::int64_t>& along = fetch.ints(AttrKey::along);
  for (std::size_t b = 0; b < along.size(); ++b) {
    const Type& t = f.type(fetch.operands[kFetchFirst + b * kFetchOperands]);
    const int size = bytes(t.dtype);
    const bool singly = size == 8 || (size == 4 && lies_along_rows(f, fetch.operands[0], b));
    blocks.push_back({t.dtype, padded(t.shape), int(along[b]), 0, singly});
    sizes.push_back(blocks.back().size());
  }
  const std::vector<std::int64_t> at = slot_offsets(sizes);
  for (std::size_t b = 0; b < blocks.size(); ++b) blocks[b].offset = at[b];
  return blocks;
}

const Inst& fetch_into(const Function& f, Value ring) {
  for (InstId i : f.users(ring))
    if (f.inst(i).op == Op::Fetch) return f.inst(i);
  throw InternalError("a ring without fetches");
}

std::int64_t fetch_slot_bytes(const Function& f, Value ring) {
  std::vector<std::int64_t> sizes;
  for (const FetchBlock& b : fetch_blocks(f, fetch_into(f, ring))) sizes.push_back(b.size());
  return slot_offsets(sizes).back();
}

std::int64_t fetch_slots(const Function& f, Value ring) {
  return f.inst(f.def(ring)).i64(AttrKey::count) * bytes(f.type(ring).dtype) / fetch_slot_bytes(f, ring);
}

Types infer_Fetch(const InferInput& in) {
  const std::vector<std::int64_t>& along = in.ints(AttrKey::along);
  const Type& ring = in.type(0);
  if (!ring.ptr || !ring.shared || ring.tile) in.fail("the ring is shared memory, not " + ring.str());
  if (in.type(1) != Type::scalar(DType::i1)) in.fail("whether it is active is i1, not " + in.type(1).str());
  if (along.empty() || in.operands.size() != kFetchFirst + kFetchOperands * along.size())
    in.fail(std::to_string(in.operands.size()) + " operands for " + std::to_string(along.size()) + " blocks");
  for (std::size_t b = 0; b < along.size(); ++b) {
    const Type &pointer = in.type(kFetchFirst + b * kFetchOperands),
               &mask = in.type(kFetchFirst + b * kFetchOperands + 1);
    if (!pointer.tile || !pointer.ptr || pointer.shared || pointer.shape.size() != 2)
      in.fail("block " + std::to_string(b) + " is " + pointer.str());
    if (mask != pointer.with(DType::i1)) in.fail("the mask of " + pointer.str() + " is " + mask.str());
    if (along[b] != 0 && along[b] != 1) in.fail("block " + std::to_string(b) + " lies along 0 or 1");
  }
  return {};
}

void eval_Fetch(Evaluator& e, const Inst& inst) {
  if (inst.i64(AttrKey::position) == 1) e.forget_slots();
  if (!*e.in<bool>(inst.operands[1])) return;
  std::vector<std::vector<std::byte>> blocks;
  for (std::size_t o = kFetchFirst; o < inst.operands.size(); o += kFetchOperands) {
    const Value pointer = inst.operands[o];
    const auto size = std::size_t(bytes(e.type(pointer).dtype));
    const auto* from = e.in<std::uint64_t>(pointer);
    const bool* mask = e.in<bool>(inst.operands[o + 1]);
    std::vector<std::byte> block(e.elements(pointer) * size);
    for (std::size_t i = 0; i < e.elements(pointer); ++i)
      if (mask[i]) std::memcpy(block.data() + i * size, e.access(from[i], size, inst, i), size);
    blocks.push_back(std::move(block));
  }
  e.push_slot(std::move(blocks));
}

}  // namespace kiln::ir
