// choose-mma: which unit computes each product of matrices.
//
//     %9 = dot %7, %8, %5 : tile<128x128xf32>   ->   %9 = dot unit=bf16 %7, %8, %5 : tile<128x128xf32>
//
// Tensor cores where they multiply the operands without loss: 16-bit floats of one type as they are, 8-bit floats too
// or as f16 where the target has no unit for them, two different floats of at most 16 bits in a type that holds both,
// f64, 8-bit integers. f32 goes to the CUDA cores, whose result is exact, unless the user's precision says otherwise.
#include "backend/ir/op/dot.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"

namespace kiln::ir {
namespace {

constexpr int kPtxOfF8 = 84;  ///< mma of 8-bit floats

bool is_f8(DType d) { return is_float(d) && bits(d) == 8; }
bool has_f8(const Target& t) { return t.compute() >= 89 && t.ptx >= kPtxOfF8; }
/// The consumer chips between have two units a multiprocessor, slower than their CUDA cores.
bool has_f64(const Target& t) { return t.compute() % 10 == 0 && t.compute() <= 100; }

DotUnit unit_of_f32(Precision p) {
  switch (p) {
    case Precision::Exact: return DotUnit::Fma;
    case Precision::Tf32:
    case Precision::Tf32x3: return DotUnit::Tf32;
    case Precision::Bf16x3: return DotUnit::Bf16;
  }
  return DotUnit::Fma;
}

/// Elements of two different types, at most 16 bits wide; `a` the wider.
DotUnit unit_of_mixed(DType a, DType b) {
  if (is_f8(a)) return DotUnit::F16;
  if (is_f8(b)) return a == DType::f16 ? DotUnit::F16 : DotUnit::Bf16;
  return DotUnit::Tf32;  // f16 with bf16
}

DotUnit unit_of_floats(const Target& target, DType a, DType b, Precision precision) {
  if (bits(a) < bits(b)) std::swap(a, b);
  if (a == DType::f64) return b == DType::f64 && has_f64(target) ? DotUnit::F64 : DotUnit::Fma;
  if (a == DType::f32) return b == DType::f32 ? unit_of_f32(precision) : DotUnit::Fma;
  if (is_f8(a)) return has_f8(target) ? DotUnit::F8 : DotUnit::F16;
  if (a == b) return a == DType::f16 ? DotUnit::F16 : DotUnit::Bf16;
  return unit_of_mixed(a, b);
}

DotUnit best_unit(const Target& target, const Function& f, const Inst& dot) {
  const DType a = f.type(dot.operands[0]).dtype, b = f.type(dot.operands[1]).dtype, acc = f.type(dot.results[0]).dtype;
  if (acc == DType::i32 && is_int(a) && is_int(b) && bits(a) == 8 && bits(b) == 8) return DotUnit::I8;
  if (!is_float(acc) || (acc == DType::f64 && (a != DType::f64 || b != DType::f64))) return DotUnit::Fma;
  return unit_of_floats(target, a, b, precision_of(dot));
}

}  // namespace

bool choose_mma(PassContext& context, Function& f) {
  bool changed = false;
  walk(f, [&](InstId i) {
    if (f.inst(i).op != Op::Dot || context.options.cluster > (context.target.has_warpgroups() ? 2 : 1)) return;
    changed |= set_attr(f, i, AttrKey::unit, std::int64_t(best_unit(context.target, f, f.inst(i))));
  });
  return changed;
}

}  // namespace kiln::ir
