#include "tests/ir/op_samples.h"

#include "backend/ir/builder.h"
#include "backend/ir/op/numeric.h"
#include "backend/ir/text.h"

namespace kiln::ir::test {
namespace {

void elementwise_sample(Op op, Builder& b) {
  Function& f = b.function();
  int line = 1;
  for (DType d : all_dtypes()) {
    if (!num::takes(info(op).rule, d)) continue;
    const SourceLoc at("sample.cpp", unsigned(line++), 3);
    f.params.push_back({Type::scalar(d), "x", rt::Access::Read, 1, false});
    const Value x = b.param(int(f.params.size()) - 1, at);
    const bool fast = info(op).accuracy.fast && is_float(d) && line % 2;
    b.elementwise(op, std::vector<Value>(std::size_t(info(op).arity), b.splat(x, {4, 3}, at)), at, fast);
    b.elementwise(op, std::vector<Value>(std::size_t(info(op).arity), x), at);
  }
}

const char* structural_sample(Op op) {
  switch (op) {
#define KILN_EW(Enum, ...) case Op::Enum:
#include "backend/ir/ops.def"
    return nullptr;
    case Op::Constant:
      return R"({
  %0 = constant value=i1(1) : i1
  %1 = constant value=i8(-128) : i8
  %2 = constant value=u64(18446744073709551615) : u64
  %3 = constant value=index(-9223372036854775808) : index
  %4 = constant value=f32(0.1) : f32 loc("a b\"c\\d.cpp":12:0)
  %5 = constant value=f32(-0) : f32
  %6 = constant value=f32(0x7fc00001) : f32
  %7 = constant value=f16(0xfc00) : f16
  %8 = constant value=bf16(1.0078125) : bf16
  %9 = constant value=f8e4m3(448) : f8e4m3
  %10 = constant value=f8e5m2(0x7c) : f8e5m2
  %11 = constant value=f64(1e+300) : f64
  %12 = constant value=f32(1e-45) : f32
})";
    case Op::Param:
      return R"(param "x" : ptr<const f32> access=read align=16 disjoint
param "y" : ptr<bf16> access=readwrite
param : index access=read align=16
param "one" : index access=read one
param "flag" : i1 access=read
{
  %0 = param index=0 : ptr<const f32>
  %1 = param index=1 : ptr<bf16> loc("k.cpp":3:1)
  %2 = param index=2 : index
  %3 = param index=4 : i1
})";
    case Op::ProgramId: return "{\n  %0 = program_id axis=2 : index\n}";
    case Op::NumPrograms: return "{\n  %0 = num_programs axis=1 : index\n}";
    case Op::Arange: return "{\n  %0 = arange start=-3 end=21 : tile<24xindex>\n}";
    case Op::Splat:
      return R"({
  %0 = constant value=f8e5m2(2) : f8e5m2
  %1 = splat %0 : tile<f8e5m2>
  %2 = splat %0 : tile<3x1x5xf8e5m2>
})";
    case Op::ExpandDims:
      return R"({
  %0 = arange start=0 end=8 : tile<8xindex>
  %1 = expand_dims axis=0 %0 : tile<1x8xindex>
  %2 = expand_dims axis=2 %1 : tile<1x8x1xindex>
})";
    case Op::Broadcast:
      return R"({
  %0 = arange start=0 end=8 : tile<8xindex>
  %1 = expand_dims axis=1 %0 : tile<8x1xindex>
  %2 = broadcast %1 : tile<8x3xindex>
})";
    case Op::Cast:
      return R"({
  %0 = arange start=0 end=8 : tile<8xindex>
  %1 = cast %0 : tile<8xf32>
  %2 = cast saturate=1 %1 : tile<8xf8e4m3>
  %3 = program_id axis=0 : index
  %4 = cast %3 : i1
})";
    case Op::Bitcast:
      return R"({
  %0 = arange start=0 end=8 : tile<8xindex>
  %1 = bitcast %0 : tile<8xf64>
})";
    case Op::Select:
      return R"(param "p" : ptr<f32> access=write
param "c" : i1 access=read
{
  %0 = param index=0 : ptr<f32>
  %1 = param index=1 : i1
  %2 = select %1, %0, %0 : ptr<f32>
})";
    case Op::PtrAdd:
      return R"(param "p" : ptr<f32> access=write
{
  %0 = param index=0 : ptr<f32>
  %1 = constant value=i32(-4) : i32
  %2 = ptr_add %0, %1 : ptr<f32>
})";
    case Op::Convert:
      return R"(exec team=cta warps=2 programs_per_cta=1 cluster=1 max_registers=0 register_goal=0
layout #0 = [lane=(1)(2)(4)(8)(16) warp=(32)] -> 64
layout #1 = [register=(1) lane=(2)(4)(8)(16)(32) warp=(0)] -> 64
{
  %0 = arange start=0 end=64 : tile<64xindex, #0>
  %1 = convert %0 : tile<64xindex, #1>
})";
    case Op::Load:
      return R"(param "p" : ptr<const i8> access=read
{
  %0 = param index=0 : ptr<const i8>
  %1 = load cache=no_allocate %0 : i8
  %2 = constant value=i1(0) : i1
  %3 = load %0, %2 : i8
  %4 = load cache=streaming %0, %2, %1 : i8
})";
    case Op::Store:
      return R"(param "p" : ptr<f16> access=write
{
  %0 = param index=0 : ptr<f16>
  %1 = load %0 : f16
  store %0, %1
  %2 = constant value=i1(1) : i1
  store cache=evict_first %0, %1, %2
})";
    case Op::For:
      return R"({
  %0 = program_id axis=0 : index
  %1 = constant value=f32(0) : f32
  %2, %3 = for %0, %0, %0, %1, %1 : f32, f32 loc("l.cpp":4:3) {(%4 : index, %5 : f32, %6 : f32)
    for %4, %0, %0 {(%7 : index)
      yield
    }
    yield %6, %5 loc("l.cpp":5:3)
  }
})";
    case Op::While:
      return R"({
  %0 = program_id axis=0 : index
  %1 = while %0 : index {(%2 : index)
    %3 = gt %2, %0 : i1
    yield %3
  } {(%4 : index)
    yield %4
  }
})";
    case Op::If:
      return R"({
  %0 = constant value=i1(1) : i1
  %1, %2 = if %0 : i1, i32 {
    %3 = constant value=i32(3) : i32
    yield %0, %3
  } {
    %4 = constant value=i32(4) : i32
    yield %0, %4
  }
  if %0 {
    yield
  } {
    yield
  }
})";
    case Op::Yield: return structural_sample(Op::If);
    case Op::Opaque: return "{\n  %0 = arange start=0 end=6 : tile<6xindex>\n  %1 = opaque %0 : tile<6xindex>\n}";
    case Op::Reshape: return "{\n  %0 = arange start=0 end=6 : tile<6xindex>\n  %1 = reshape %0 : tile<2x1x3xindex>\n}";
    case Op::Permute:
      return R"({
  %0 = constant value=f32(1) : f32
  %1 = splat %0 : tile<2x3x5xf32>
  %2 = permute order=[2,0,1] %1 : tile<5x2x3xf32>
})";
    case Op::Join:
      return R"({
  %0 = arange start=0 end=6 : tile<6xindex>
  %1 = join %0, %0 : tile<6x2xindex>
})";
    case Op::Split:
      return R"({
  %0 = arange start=0 end=6 : tile<6xindex>
  %1 = join %0, %0 : tile<6x2xindex>
  %2, %3 = split %1 : tile<6xindex>, tile<6xindex>
})";
    case Op::Slice:
      return R"({
  %0 = arange start=0 end=6 : tile<6xindex>
  %1 = slice axis=0 start=1 end=4 %0 : tile<3xindex>
})";
    case Op::Cat:
      return R"({
  %0 = arange start=0 end=6 : tile<6xindex>
  %1 = arange start=0 end=5 : tile<5xindex>
  %2 = cat axis=0 %0, %1 : tile<11xindex>
})";
    case Op::Flip: return "{\n  %0 = arange start=0 end=6 : tile<6xindex>\n  %1 = flip axis=0 %0 : tile<6xindex>\n}";
    case Op::Gather:
      return R"({
  %0 = constant value=f32(1) : f32
  %1 = splat %0 : tile<9xf32>
  %2 = arange start=0 end=6 : tile<6xindex>
  %3 = gather axis=0 %1, %2 : tile<6xf32>
})";
    case Op::Reduce:
      return R"({
  %0 = constant value=f32(1) : f32
  %1 = splat %0 : tile<3x5xf32>
  %2 = reduce axis=1 %1 : tile<3xf32> {(%3 : f32, %4 : f32)
    %5 = add %3, %4 : f32
    yield %5
  }
  %6 = arange start=0 end=6 : tile<6xindex>
  %7, %8 = reduce axis=0 %6, %6 : index, index {(%9 : index, %10 : index, %11 : index, %12 : index)
    yield %11, %10
  }
})";
    case Op::Scan:
      return R"({
  %0 = arange start=0 end=6 : tile<6xindex>
  %1 = scan axis=0 reverse=1 %0 : tile<6xindex> {(%2 : index, %3 : index)
    %4 = add %2, %3 : index
    yield %4
  }
  %5 = program_id axis=0 : index
  %6 = scan axis=0 exclusive=1 %0, %5 : tile<6xindex> {(%7 : index, %8 : index)
    %9 = max %7, %8 : index
    yield %9
  }
})";
    case Op::Sort:
      return R"({
  %0 = arange start=0 end=6 : tile<6xindex>
  %1, %2 = sort axis=0 descending=1 %0, %0 : tile<6xindex>, tile<6xindex>
})";
    case Op::Histogram:
      return R"({
  %0 = arange start=0 end=6 : tile<6xindex>
  %1 = lt %0, %0 : tile<6xi1>
  %2 = histogram %0, %1 : tile<4xi32>
})";
    case Op::Block:
      return R"(param "x" : ptr<const bf16> access=read
param "n" : index access=read
{
  %0 = param index=0 : ptr<const bf16>
  %1 = param index=1 : index
  %2, %3 = block extents=[4,16] %0, %1, %1, %1, %1, %1, %1 : tile<4x16xptr<const bf16>>, tile<4x16xi1>
})";
    case Op::Fill:
      return R"(param "x" : ptr<const bf16> access=read
param "n" : index access=read
{
  %0 = param index=0 : ptr<const bf16>
  %1 = param index=1 : index
  fill extents=[64,64,128,16] along=[1,0] stages=3 both=1 scratch=1024 %0, %1, %1, %1, %1, %1, %1, %0, %1, %1, %1, %1, %1, %1
})";
    case Op::Fetch:
      return R"(param "x" : ptr<const bf16> access=read
{
  %0 = param index=0 : ptr<const bf16>
  %1 = alloc count=4096 : ptr<shared u8>
  %2 = constant value=i1(1) : i1
  %3 = splat %0 : tile<16x16xptr<const bf16>>
  %4 = splat %2 : tile<16x16xi1>
  fetch along=[1] position=1 %1, %2, %3, %4
  fetch along=[0] %1, %2, %3, %4
})";
    case Op::Take:
      return R"({
  %0, %1 = take extents=[64,64,128,16] : ptr<shared bf16>, ptr<shared f16>
  %2 = alloc count=4096 : ptr<shared u8>
  %3 = take extents=[16,16] %2 : ptr<shared bf16>
})";
    case Op::Release:
      return "{\n  release\n  release behind=1\n  %0 = alloc count=4096 : ptr<shared u8>\n  release %0\n}";
    case Op::StoreBlock:
      return R"(param "y" : ptr<f32> access=readwrite
param "n" : index access=read
{
  %0 = param index=0 : ptr<f32>
  %1 = param index=1 : index
  %2 = constant value=f32(0) : f32
  %3 = splat %2 : tile<64x32xf32>
  store_block mapped=1 scratch=1024 %3, %0, %1, %1, %1, %1, %1, %1
})";
    case Op::Settle:
      return "{\n  %0 = constant value=f32(0) : f32\n  %1 = splat %0 : tile<64x8xf32>\n  %2 = settle %1 : "
             "tile<64x8xf32>\n}";
    case Op::RingDot:
      return R"({
  %0, %1 = take extents=[64,64,64,128] : ptr<shared bf16>, ptr<shared bf16>
  %2 = constant value=f32(0) : f32
  %3 = splat %2 : tile<64x128xf32>
  %4 = ring_dot extents=[64,128,64] along=[1,0] unit=bf16 %0, %1, %3 : tile<64x128xf32>
})";
    case Op::Walk:
      return R"({
  walk group=16 pair=1 {(%0 : index, %1 : index, %2 : index, %3 : i1)
    yield
  }
})";
    case Op::Partitions:
      return R"({
  partitions {
    %0 = constant value=i32(1) : i32
    yield
  } {
    yield
  }
})";
    case Op::Dot:
      return R"({
  %0 = constant value=f16(1) : f16
  %1 = splat %0 : tile<2x3x4xf16>
  %2 = splat %0 : tile<2x4x5xf16>
  %3 = constant value=f32(0) : f32
  %4 = splat %3 : tile<2x3x5xf32>
  %5 = dot %1, %2, %4 : tile<2x3x5xf32>
})";
    case Op::AtomicRmw:
      return R"(param "p" : ptr<i32> access=readwrite
{
  %0 = param index=0 : ptr<i32>
  %1 = constant value=i32(1) : i32
  %2 = atomic_rmw rmw=add %0, %1 : i32
  %3 = constant value=i1(1) : i1
  %4 = atomic_rmw rmw=exchange semantics=acq_rel scope=system %0, %1, %3 : i32
})";
    case Op::AtomicCas:
      return R"(param "p" : ptr<i32> access=readwrite
{
  %0 = param index=0 : ptr<i32>
  %1 = constant value=i32(1) : i32
  %2 = atomic_cas semantics=acquire %0, %1, %1 : i32
})";
    case Op::Alloc: return "{\n  %0 = alloc count=32 : ptr<shared f32>\n}";
    case Op::Barrier: return "{\n  barrier\n  barrier id=3 threads=64\n  %0 = constant value=i32(1) : i32\n}";
    case Op::InlinePtx:
      return R"({
  %0 = constant value=i32(1) : i32
  %1, %2 = inline_ptx text="add.s32 $0, $2, $2; neg.s32 $1, $2;" %0 : i32, i32
})";
    case Op::Print: return "{\n  %0 = arange start=0 end=6 : tile<6xindex>\n  print text=\"i = {}, {}\" %0, %0\n}";
    case Op::Name: return "{\n  %0 = arange start=0 end=6 : tile<6xindex>\n  name text=\"i\" %0\n}";
    case Op::Assert:
      return R"({
  %0 = constant value=i1(1) : i1
  assert text="never \\n" %0, %0
})";
  }
  return nullptr;
}

}  // namespace

std::vector<DType> all_dtypes() {
  return {
#define KILN_DTYPE(name, bits, kind, host) DType::name,
#include "runtime/base/dtype.def"
  };
}

std::vector<Op> all_ops() {
  std::vector<Op> ops;
  for (int i = 0; i < kOpCount; ++i) ops.push_back(Op(i));
  return ops;
}

Function sample(Op op) {
  if (!info(op).elementwise) {
    const char* stage = op == Op::Convert ? "laid" : "traced";
    return parse(std::string("kernel \"sample\" stage=") + stage + " loc(\"sample.cpp\":1:1)\n" +
                 structural_sample(op));
  }
  Function f("sample", SourceLoc("sample.cpp", 1, 1));
  Builder b(f);
  elementwise_sample(op, b);
  return f;
}

}  // namespace kiln::ir::test
