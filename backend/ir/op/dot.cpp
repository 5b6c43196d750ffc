// Products of matrices: the last two axes of a, b and acc, batched over those before.
#include "backend/ir/op/dot.h"

#include <bit>
#include <cmath>

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "backend/ir/op/numeric.h"
#include "backend/ir/op/scratch.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

bool accumulates(DType d) {
  return d == DType::f32 || d == DType::f64 || d == DType::i32 || d == DType::u32 || d == DType::i64 || d == DType::u64;
}

/// Whether every element of type `x` is one of the accumulator's.
bool fits(DType x, DType acc) {
  if (is_float(acc)) return is_float(x) && bits(x) <= bits(acc);
  return is_int(x) && x != DType::index && bits(x) <= bits(acc);
}

void check_dtypes(const InferInput& in) {
  const Type &a = in.type(0), &b = in.type(1), &acc = in.type(2);
  if (!accumulates(acc.dtype)) in.fail("accumulates in f32, f64, i32, u32, i64 or u64, not " + acc.str());
  if (fits(a.dtype, acc.dtype) && fits(b.dtype, acc.dtype)) return;
  in.fail(std::string("operands must be ") + (is_float(acc.dtype) ? "floats" : "integers") + " that " +
          name(acc.dtype) + " holds: " + a.str() + " times " + b.str() + " into " + acc.str());
}

/// The elements of `v` as numbers of the accumulator's type, as `precision` multiplies them.
template <class T>
std::vector<T> converted(Evaluator& e, Value v, Precision precision = Precision::Exact) {
  std::vector<T> out(e.elements(v));
  num::dispatch(e.type(v).dtype, [&]<class From>(std::type_identity<From>) {
    const From* in = e.in<From>(v);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = num::convert<T>(in[i], false);
  });
  if constexpr (std::same_as<T, float>)
    if (precision == Precision::Tf32 && e.type(v).dtype == DType::f32)
      for (T& x : out) x = as_tf32(x);
  return out;
}

/// One step: one rounding of floats, integers wrap.
template <class T>
T multiply_add(T a, T b, T c) {
  if constexpr (std::floating_point<T>) return std::fma(a, b, c);
  else return T(std::uint64_t(a) * std::uint64_t(b) + std::uint64_t(c));
}

template <class T>
void product(Evaluator& e, const Inst& inst) {
  const Shape &left = e.type(inst.operands[0]).shape, &right = e.type(inst.operands[1]).shape;
  const auto rows = std::size_t(left[left.size() - 2]), depth = std::size_t(left.back());
  const auto columns = std::size_t(right.back());
  const std::vector<T> a = converted<T>(e, inst.operands[0], precision_of(inst)),
                       b = converted<T>(e, inst.operands[1], precision_of(inst));
  std::vector<T> sums = converted<T>(e, inst.operands[2]);
  for (std::size_t row = 0; row < sums.size() / columns; ++row) {
    const T* right_of_batch = b.data() + row / rows * depth * columns;
    for (std::size_t k = 0; k < depth; ++k)
      for (std::size_t n = 0; n < columns; ++n) {
        T& sum = sums[row * columns + n];
        sum = multiply_add(a[row * depth + k], right_of_batch[k * columns + n], sum);
      }
  }
  std::copy(sums.begin(), sums.end(), e.out<T>(inst.results[0]));
}

/// Bytes of one part of an operand for each position along k.
std::int64_t position_bytes(const Function& f, const Inst& dot, std::size_t operand) {
  const Shape shape = operand_shape(f, dot, operand);
  const std::size_t depth = shape.size() - (operand == 0 ? 1 : 2);
  return padded_elements(shape) / padded(shape[depth]) * bytes(staged_dtype(f, dot, operand));
}

bool is_f32(const Function& f, Value v) { return f.type(v).dtype == DType::f32; }

}  // namespace

Shape operand_shape(const Function& f, const Inst& dot, std::size_t operand) {
  if (dot.op == Op::Dot) return f.type(dot.operands[operand]).shape;
  const std::vector<std::int64_t>& mnk = dot.ints(AttrKey::extents);
  return operand == 0 ? Shape{mnk[0], mnk[2]} : Shape{mnk[2], mnk[1]};
}

float as_tf32(float x) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  return std::isfinite(x) ? std::bit_cast<float>((word + 0x1000) & ~0x1fffu) : x;
}

MatrixShape matrix_shape(DotUnit unit) {
  switch (unit) {
    case DotUnit::Fma: break;
    case DotUnit::F16:
    case DotUnit::Bf16: return {16, 8, 16, 2};
    case DotUnit::Tf32: return {16, 8, 8, 4};
    case DotUnit::F64: return {8, 8, 4, 8};
    case DotUnit::I8:
    case DotUnit::F8: return {16, 8, 32, 1};
  }
  return {};
}

int dot_parts(const Function& f, const Inst& dot) {
  const Precision p = precision_of(dot);
  const bool split = (p == Precision::Tf32x3 || p == Precision::Bf16x3) && unit_of(dot) != DotUnit::Fma;
  return split && is_f32(f, dot.operands[0]) && is_f32(f, dot.operands[1]) ? 2 : 1;
}

DType staged_dtype(const Function& f, const Inst& dot, std::size_t operand) {
  switch (unit_of(dot)) {
    case DotUnit::Fma: return f.type(dot.results[0]).dtype;
    case DotUnit::F16: return DType::f16;
    case DotUnit::Bf16: return DType::bf16;
    case DotUnit::Tf32: return DType::f32;
    case DotUnit::F64: return DType::f64;
    case DotUnit::I8:
    case DotUnit::F8: return f.type(dot.operands[operand]).dtype;
  }
  return {};
}

std::int64_t dot_slice(const Function& f, const Inst& dot) {
  const DotUnit unit = unit_of(dot);
  const std::int64_t step = matrix_shape(unit).k, most = unit == DotUnit::Fma ? kDotScratch : kMatrixScratch;
  std::int64_t slice = std::max(padded(operand_shape(f, dot, 0).back()), step);
  if (dot.op == Op::RingDot) return slice;  // what was taken is there as a whole
  const std::int64_t each = (position_bytes(f, dot, 0) + position_bytes(f, dot, 1)) * dot_parts(f, dot);
  while (slice > step && slice * each > most) slice /= 2;
  return slice;
}

std::int64_t dot_slice_bytes(const Function& f, const Inst& dot, std::size_t operand) {
  return dot_slice(f, dot) * position_bytes(f, dot, operand);
}

std::int64_t scratch_dot(const Function& f, const Inst& dot) {
  std::int64_t n = 0;
  for (std::size_t k : {0, 1})
    if (f.type(dot.operands[k]).tile) n += dot_slice_bytes(f, dot, k) * dot_parts(f, dot);
  return n;
}

Types infer_Dot(const InferInput& in) {
  const Type &a = in.type(0), &b = in.type(1), &acc = in.type(2);
  const std::size_t rank = a.shape.size();
  if (!a.tile || !b.tile || !acc.tile || a.ptr || b.ptr || acc.ptr || rank < 2 || b.shape.size() != rank ||
      acc.shape.size() != rank)
    in.fail("takes tiles of one rank, at least 2: " + a.str() + ", " + b.str() + ", " + acc.str());
  Shape wanted = a.shape;
  wanted.back() = b.shape.back();
  bool fit = a.shape[rank - 1] == b.shape[rank - 2] && acc.shape == wanted;
  for (std::size_t i = 0; i + 2 < rank; ++i) fit = fit && a.shape[i] == b.shape[i];
  if (!fit) in.fail("extents do not fit: " + a.str() + " times " + b.str() + " into " + acc.str());
  check_dtypes(in);
  return {acc};
}

void eval_Dot(Evaluator& e, const Inst& inst) {
  num::dispatch(e.type(inst.results[0]).dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) product<T>(e, inst);
  });
}

}  // namespace kiln::ir
