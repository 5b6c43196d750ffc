// Blocks of arrays, and the ring in which they travel.
#include "backend/ir/op/ring.h"

#include <cmath>
#include <cstring>

#include "backend/ir/fold.h"
#include "backend/ir/op/dot.h"
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "backend/ir/op/numeric.h"
#include "backend/ir/op/ring_array.h"
#include "runtime/base/error.h"

namespace kiln::ir {
// --- block -----------------------------------------------------------------------------------------------------------

Types infer_Block(const InferInput& in) {
  const Type& base = in.type(0);
  const std::vector<std::int64_t>& extents = in.ints(AttrKey::extents);
  if (!base.ptr || base.tile || base.shared) in.fail("base must be a pointer to global memory, not " + base.str());
  if (in.operands.size() != 1 + 3 * extents.size() || extents.empty())
    in.fail(std::to_string(in.operands.size()) + " operands for a block of rank " + std::to_string(extents.size()));
  check_shape(in, extents);
  for (std::size_t i = 1; i < in.operands.size(); ++i)
    if (in.type(i) != Type::scalar(DType::index))
      in.fail("sizes, strides and coordinates are index, not " + in.type(i).str());
  return {laid_out(in, base.with_shape(extents), 0), laid_out(in, Type::tile_of(DType::i1, extents), 1)};
}
void eval_Block(Evaluator& e, const Inst& inst) {
  auto* pointers = e.out<std::uint64_t>(inst.results[0]);
  bool* mask = e.out<bool>(inst.results[1]);
  for_block(e, inst, 0, inst.ints(AttrKey::extents), [&](std::size_t i, std::uint64_t address, bool inside) {
    pointers[i] = address;
    mask[i] = inside;
  });
}

// --- rings -----------------------------------------------------------------------------------------------------------

std::vector<RingBlock> ring_blocks(const Function& f, const Inst& fill) {
  std::vector<RingBlock> blocks;
  const std::vector<std::int64_t>&extents = fill.ints(AttrKey::extents), &along = fill.ints(AttrKey::along);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < along.size(); ++i) {
    RingBlock b{
        f.type(fill.operands[i * kFillOperands]).dtype, {extents[2 * i], extents[2 * i + 1]}, int(along[i]), offset};
    b.both = (fill.i64(AttrKey::both) >> i & 1) != 0;
    offset += (b.size() + kRingAlign - 1) / kRingAlign * kRingAlign;
    blocks.push_back(b);
  }
  return blocks;
}

std::int64_t slot_bytes(const Function& f, const Inst& fill) {
  const RingBlock last = ring_blocks(f, fill).back();
  return last.offset + (last.size() + kRingAlign - 1) / kRingAlign * kRingAlign;
}

std::int64_t ring_bytes(const Function& f, const Inst& fill, std::int64_t stages) {
  constexpr std::int64_t kMbarriers = 2 * 8;
  return (stages * (slot_bytes(f, fill) + kMbarriers) + kLine - 1) / kLine * kLine;
}

namespace {

std::optional<std::uint32_t> parameter(const Function& f, Value v) {
  const InstId i = f.def(v);
  if (i == kNone || f.inst(i).op != Op::Param) return std::nullopt;
  return std::uint32_t(f.inst(i).i64(AttrKey::index));
}

std::optional<rt::TensorExtent> extent(const Function& f, Value v) {
  if (const auto p = parameter(f, v)) return rt::TensorExtent{*p, 1};
  if (const auto known = literal_of(f, v)) return rt::TensorExtent{rt::TensorExtent::kNumber, known->as_int()};
  return std::nullopt;
}

}  // namespace

std::optional<rt::TensorMapRecipe> block_map(const Function& f, std::span<const Value> array, const RingBlock& block) {
  const auto base = parameter(f, array[0]);
  if (!base) return std::nullopt;
  rt::TensorMapRecipe map;
  map.base = *base;
  map.dtype = block.dtype;
  map.rank = 2;
  for (std::size_t d = 0; d < 2; ++d) {
    const std::size_t axis = std::size_t(d == 0 ? block.along : 1 - block.along);
    const auto size = extent(f, array[1 + axis]), stride = extent(f, array[3 + axis]);
    if (!size || !stride) return std::nullopt;
    map.sizes[d] = *size;
    map.strides[d] = *stride;
  }
  map.box[0] = std::uint32_t(kLine / bytes(block.dtype));
  map.box[1] = std::uint32_t(block.copy_lines());
  map.swizzle = TensorSwizzle::Bytes128;
  return map;
}

std::vector<rt::TensorMapRecipe> fill_maps(const Function& f, const Inst& fill) {
  std::vector<rt::TensorMapRecipe> maps;
  const std::vector<RingBlock> blocks = ring_blocks(f, fill);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto map = block_map(f, std::span(fill.operands).subspan(i * kFillOperands, kFillOperands), blocks[i]);
    if (!map) throw UserError(fill.loc, "fill: a matrix is no parameter");
    maps.push_back(*map);
    // Only products of tf32 take f32 from a ring, and they would cut the bits off.
    if (blocks[i].dtype == DType::f32) maps.back().floats = TensorFloat::Tf32;
  }
  return maps;
}

namespace {

InstId find(const Function& f, Op op) {
  InstId found = kNone;
  walk(f, [&](InstId i) {
    if (f.inst(i).op == op) found = i;
  });
  return found;
}

}  // namespace

InstId fill_of(const Function& f) { return find(f, Op::Fill); }
InstId walk_of(const Function& f) { return find(f, Op::Walk); }

Types infer_Fill(const InferInput& in) {
  const std::vector<std::int64_t>&extents = in.ints(AttrKey::extents), &along = in.ints(AttrKey::along);
  if (along.empty() || extents.size() != 2 * along.size() || in.operands.size() != kFillOperands * along.size())
    in.fail(std::to_string(in.operands.size()) + " operands for " + std::to_string(along.size()) + " blocks");
  for (std::size_t i = 0; i < in.operands.size(); ++i) {
    const Type& t = in.type(i);
    const bool base = i % kFillOperands == 0;
    if (base ? !t.ptr || t.tile || t.shared : t != Type::scalar(DType::index))
      in.fail("operand " + std::to_string(i) + " is " + t.str());
  }
  for (std::size_t i = 0; i < along.size(); ++i) {
    const std::int64_t axis = along[i], run = axis == 0 || axis == 1 ? extents[2 * i + std::size_t(axis)] : 0;
    if (run * bytes(in.type(i * kFillOperands).dtype) % kLine != 0 || run <= 0 ||
        extents[2 * i + 1 - std::size_t(axis)] % 8)
      in.fail("block " + std::to_string(i) + " is not made of whole lines");
  }
  return {};
}
void eval_Fill(Evaluator& e, const Inst& inst) {
  const std::vector<std::int64_t>& extents = inst.ints(AttrKey::extents);
  std::vector<std::vector<std::byte>> blocks;
  for (std::size_t b = 0; 2 * b < extents.size(); ++b) {
    const std::size_t first = b * kFillOperands, bytes = std::size_t(kiln::bytes(e.type(inst.operands[first]).dtype));
    const std::span<const std::int64_t> shape = std::span(extents).subspan(2 * b, 2);
    std::vector<std::byte> block(std::size_t(shape[0] * shape[1]) * bytes);
    for_block(e, inst, first, shape, [&](std::size_t i, std::uint64_t address, bool inside) {
      if (inside) std::memcpy(block.data() + i * bytes, e.access(address, bytes, inst, i), bytes);
    });
    blocks.push_back(std::move(block));
  }
  e.push_slot(std::move(blocks));
}

Types infer_Take(const InferInput& in) {
  if (in.stated.size() * 2 != in.ints(AttrKey::extents).size()) in.fail("as many pointers as blocks");
  for (const Type& t : in.stated)
    if (!t.ptr || !t.shared || t.tile) in.fail("gives pointers to shared memory, not " + t.str());
  return {in.stated.begin(), in.stated.end()};
}
void eval_Take(Evaluator& e, const Inst& inst) {
  const std::vector<std::uint64_t> blocks = e.take_slot(inst);
  for (std::size_t i = 0; i < blocks.size(); ++i) *e.out<std::uint64_t>(inst.results[i]) = blocks[i];
}

Types infer_Release(const InferInput&) { return {}; }
void eval_Release(Evaluator& e, const Inst&) { e.release_slot(); }

// --- products of what was taken --------------------------------------------------------------------------------------

Types infer_RingDot(const InferInput& in) {
  const std::vector<std::int64_t>& mnk = in.ints(AttrKey::extents);
  const Type& acc = in.type(2);
  if (mnk.size() != 3 || in.ints(AttrKey::along).size() != 2) in.fail("extents are M, N and K");
  const Shape wanted[2] = {{mnk[0], mnk[2]}, {mnk[2], mnk[1]}};
  for (std::size_t i = 0; i < 2; ++i) {
    const Type& t = in.type(i);
    if (t.tile ? t.ptr || t.shape != wanted[i] : !t.ptr || !t.shared)
      in.fail("takes pointers to shared memory, or a tile of the block's extents, not " + t.str());
  }
  if (in.type(0).tile && in.type(1).tile) in.fail("has no operand that was taken");
  if (!acc.tile || acc.ptr || acc.shape != Shape{mnk[0], mnk[1]}) in.fail("accumulator is " + acc.str());
  return {acc};
}

namespace {

/// Elements of a block, or of a tile in its place, as they are multiplied.
template <class T>
std::vector<T> block_elements(Evaluator& e, const Inst& inst, std::size_t operand, std::size_t count) {
  const Value v = inst.operands[operand];
  const Type& type = e.type(v);
  std::vector<T> out(count);
  num::dispatch(type.dtype, [&]<class From>(std::type_identity<From>) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = i * sizeof(From);
      From x;
      std::memcpy(&x, type.tile ? e.data(v) + at : e.access(*e.in<std::uint64_t>(v) + at, sizeof(From), inst, i),
                  sizeof x);
      out[i] = num::convert<T>(x, false);
    }
  });
  if constexpr (std::same_as<T, float>)
    if (unit_of(inst) == DotUnit::Tf32 && type.dtype == DType::f32)
      for (T& x : out) x = as_tf32(x);
  return out;
}

template <class T>
void ring_product(Evaluator& e, const Inst& inst) {
  const std::vector<std::int64_t>& mnk = inst.ints(AttrKey::extents);
  const auto m = std::size_t(mnk[0]), n = std::size_t(mnk[1]), depth = std::size_t(mnk[2]);
  const std::vector<T> a = block_elements<T>(e, inst, 0, m * depth), b = block_elements<T>(e, inst, 1, depth * n);
  const T* start = e.in<T>(inst.operands[2]);
  std::vector<T> sums(start, start + m * n);
  for (std::size_t row = 0; row < m; ++row)
    for (std::size_t k = 0; k < depth; ++k)
      for (std::size_t column = 0; column < n; ++column) {
        T& sum = sums[row * n + column];
        if constexpr (std::floating_point<T>) sum = std::fma(a[row * depth + k], b[k * n + column], sum);
        else sum = T(std::uint32_t(a[row * depth + k]) * std::uint32_t(b[k * n + column]) + std::uint32_t(sum));
      }
  std::copy(sums.begin(), sums.end(), e.out<T>(inst.results[0]));
}

}  // namespace

void eval_RingDot(Evaluator& e, const Inst& inst) {
  switch (e.type(inst.results[0]).dtype) {
    case DType::f32: return ring_product<float>(e, inst);
    case DType::f64: return ring_product<double>(e, inst);
    default: return ring_product<std::int32_t>(e, inst);
  }
}

Types infer_Settle(const InferInput& in) { return {in.type(0)}; }
void eval_Settle(Evaluator& e, const Inst& inst) { e.assign(inst.results, inst.operands); }

// --- programs of a team ----------------------------------------------------------------------------------------------

Types infer_Walk(const InferInput&) { return {}; }
// Every program is evaluated by itself.
void eval_Walk(Evaluator& e, const Inst& inst) {
  const std::vector<Value>& params = e.function().region(inst.regions[0]).params;
  for (std::size_t axis = 0; axis < 3; ++axis) *e.out<std::int64_t>(params[axis]) = e.pid()[axis];
  *e.out<bool>(params[3]) = true;
  e.run_region(inst.regions[0]);
}

// --- roles -----------------------------------------------------------------------------------------------------------

Types infer_Partitions(const InferInput&) { return {}; }
// Slots are as many as are filled here, so the roles may run one after the other.
void eval_Partitions(Evaluator& e, const Inst& inst) {
  for (RegionId r : inst.regions) e.run_region(r);
}

}  // namespace kiln::ir
