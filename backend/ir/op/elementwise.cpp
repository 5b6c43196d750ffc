// The elementwise ops: type inference, and the reference evaluation that instantiates ops.def's eval column over the
// C++ element types. f16 and bf16 are computed in double and rounded once; where double itself can be inexact by more
// than a harmless double rounding (fma), the intermediate is rounded to odd. f32 and f64 arithmetic is the host's own
// IEEE arithmetic (no contraction), f32 functions are the host's double function rounded once.
#include <array>

#include "backend/ir/eval.h"
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "backend/ir/op/numeric.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace ev {

using num::narrow, num::is_half, num::widen;
using U64 = std::uint64_t;

/// Type that float arithmetic on T is done in: T itself, or double for the 16-bit types.
template <class T>
using Wide = std::conditional_t<is_half<T>, double, T>;
template <class T>
Wide<T> wide(T v) {
  if constexpr (is_half<T>) return widen(v);
  else return v;
}
template <class T>
T back(Wide<T> v) {
  if constexpr (is_half<T>) return narrow<T>(v);
  else return v;
}
template <class T>
bool nan(T v) {
  if constexpr (std::integral<T>) return false;
  else return std::isnan(wide(v));
}
template <class T>
T with_bits(U64 bits) {
  return num::from_bits<T>(bits);
}
template <class T>
inline constexpr U64 kSign = U64(1) << (sizeof(T) * 8 - 1);
template <class T>
inline constexpr int kBits = std::same_as<T, bool> ? 1 : int(sizeof(T) * 8);

// Integer arithmetic goes through 64-bit unsigned, which wraps and keeps the low bits of every width.
template <class T>
T add(T a, T b) {
  if constexpr (std::integral<T>) return T(U64(a) + U64(b));
  else return back<T>(wide(a) + wide(b));
}
template <class T>
T sub(T a, T b) {
  if constexpr (std::integral<T>) return T(U64(a) - U64(b));
  else return back<T>(wide(a) - wide(b));
}
template <class T>
T mul(T a, T b) {
  if constexpr (std::integral<T>) return T(U64(a) * U64(b));
  else return back<T>(wide(a) * wide(b));
}
template <class T>
T neg(T a) {
  if constexpr (std::integral<T>) return T(0 - U64(a));
  else return with_bits<T>(num::to_bits(a) ^ kSign<T>);
}
template <class T>
T div(T a, T b) {
  if constexpr (std::integral<T>) {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == T(-1)) return neg(a);
    return T(a / b);
  } else {
    return back<T>(wide(a) / wide(b));
  }
}
template <class T>
T rem(T a, T b) {
  if constexpr (std::integral<T>) {
    if (b == 0 || (std::is_signed_v<T> && b == T(-1))) return 0;
    return T(a % b);
  } else {
    return back<T>(std::fmod(wide(a), wide(b)));
  }
}
template <class T>
T fma(T a, T b, T c) {
  if constexpr (is_half<T>) {
    const double product = widen(a) * widen(b), addend = widen(c);  // the product is exact
    const double sum = product + addend, virtual_addend = sum - product;
    const double error = (product - (sum - virtual_addend)) + (addend - virtual_addend);
    return narrow<T>(num::to_odd(sum, error));
  } else {
    return std::fma(a, b, c);
  }
}
template <class T>
T abs(T a) {
  if constexpr (std::unsigned_integral<T>) return a;
  else if constexpr (std::integral<T>) return a < 0 ? neg(a) : a;
  else return with_bits<T>(num::to_bits(a) & ~kSign<T>);
}
template <class T>
bool less_with_zeros(T a, T b) {  // a < b, and -0 < +0
  if constexpr (std::integral<T>) return a < b;
  else return wide(a) < wide(b) || (wide(a) == wide(b) && std::signbit(wide(a)) && !std::signbit(wide(b)));
}
template <class T>
T min(T a, T b) {
  if (nan(a)) return a;
  if (nan(b)) return b;
  return less_with_zeros(b, a) ? b : a;
}
template <class T>
T max(T a, T b) {
  if (nan(a)) return a;
  if (nan(b)) return b;
  return less_with_zeros(a, b) ? b : a;
}
template <class T>
T relu(T a) {
  return max(a, T{});
}
template <class T>
T floor(T a) {
  return back<T>(std::floor(wide(a)));
}
template <class T>
T ceil(T a) {
  return back<T>(std::ceil(wide(a)));
}
template <class T>
T trunc(T a) {
  return back<T>(std::trunc(wide(a)));
}
template <class T>
T round(T a) {
  return back<T>(std::nearbyint(wide(a)));
}

template <class T>
T and_(T a, T b) {
  return T(a & b);
}
template <class T>
T or_(T a, T b) {
  return T(a | b);
}
template <class T>
T xor_(T a, T b) {
  return T(a ^ b);
}
template <class T>
T not_(T a) {
  if constexpr (std::same_as<T, bool>) return !a;
  else return T(~a);
}
template <class T>
bool in_width(T b) {
  return U64(b) < U64(kBits<T>);
}  // a negative count is a large unsigned one
template <class T>
T shl(T a, T b) {
  return in_width(b) ? T(U64(a) << U64(b)) : T(0);
}
template <class T>
T shr(T a, T b) {
  if (in_width(b)) return T(a >> b);
  return std::is_signed_v<T> && a < 0 ? T(-1) : T(0);
}

template <class T>
bool lt(T a, T b) {
  return wide(a) < wide(b);
}
template <class T>
bool le(T a, T b) {
  return wide(a) <= wide(b);
}
template <class T>
bool gt(T a, T b) {
  return wide(a) > wide(b);
}
template <class T>
bool ge(T a, T b) {
  return wide(a) >= wide(b);
}
template <class T>
bool eq(T a, T b) {
  return wide(a) == wide(b);
}
template <class T>
bool ne(T a, T b) {
  return wide(a) != wide(b);
}

template <class T>
T sqrt(T a) {
  return back<T>(std::sqrt(wide(a)));
}

/// The functions below: in double, rounded once.
template <class T>
T rsqrt(T a) {
  return narrow<T>(1 / std::sqrt(widen(a)));
}
template <class T>
T exp(T a) {
  return narrow<T>(std::exp(widen(a)));
}
template <class T>
T exp2(T a) {
  return narrow<T>(std::exp2(widen(a)));
}
template <class T>
T log(T a) {
  return narrow<T>(std::log(widen(a)));
}
template <class T>
T log2(T a) {
  return narrow<T>(std::log2(widen(a)));
}
template <class T>
T sin(T a) {
  return narrow<T>(std::sin(widen(a)));
}
template <class T>
T cos(T a) {
  return narrow<T>(std::cos(widen(a)));
}
template <class T>
T tanh(T a) {
  return narrow<T>(std::tanh(widen(a)));
}
template <class T>
T erf(T a) {
  return narrow<T>(std::erf(widen(a)));
}
template <class T>
T pow(T a, T b) {
  return narrow<T>(std::pow(widen(a), widen(b)));
}
template <class T>
T sigmoid(T a) {
  return narrow<T>(1 / (1 + std::exp(-widen(a))));
}

/// x / (1 + e^-y): x·sigmoid(y) without cancellation; the limit -0 at -inf, where the quotient is inf / inf.
inline double gated(double x, double y) { return x == -HUGE_VAL ? -0.0 : x / (1 + std::exp(-y)); }
template <class T>
T silu(T a) {
  return narrow<T>(gated(widen(a), widen(a)));
}
template <class T>
T gelu(T a) {  // 1 + erf(z) = erfc(-z), which does not cancel
  const double x = widen(a);
  return narrow<T>(x == -HUGE_VAL ? -0.0 : x / 2 * std::erfc(-x * 0.70710678118654752440));
}
template <class T>
T gelu_tanh(T a) {  // 1 + tanh(u) = 2 / (1 + e^-2u)
  const double x = widen(a);
  return narrow<T>(gated(x, 2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

}  // namespace ev

namespace {

/// Applies f to n elements. Absent operands repeat the first: f ignores them.
template <class T, class F>
void each(const void* const* in, std::size_t operands, void* out, std::size_t n, F f) {
  const auto* a = static_cast<const T*>(in[0]);
  const auto* b = operands > 1 ? static_cast<const T*>(in[1]) : a;
  const auto* c = operands > 2 ? static_cast<const T*>(in[2]) : a;
  auto* o = static_cast<decltype(f(*a, *b, *c))*>(out);
  for (std::size_t i = 0; i < n; ++i) o[i] = f(a[i], b[i], c[i]);
}

template <class T>
bool evaluate_as(Op op, const void* const* in, void* out, std::size_t n) {
  switch (op) {
// clang-format off
#define KILN_EW(Enum, mnemonic, arity, rule, accuracy, eval, doc)                                       \
  case Op::Enum:                                                                                        \
    if constexpr (num::takes<T>(TypeRule::rule)) {                                                      \
      each<T>(in, arity, out, n, [](T a, [[maybe_unused]] T b, [[maybe_unused]] T c) { return eval; }); \
      return true;                                                                                      \
    }                                                                                                   \
    return false;
#define KILN_OP(Enum, ...) case Op::Enum: return false;
#include "backend/ir/ops.def"
    // clang-format on
  }
  return false;
}

std::string operand_list(const InferInput& in) {
  std::string s;
  for (std::size_t i = 0; i < in.operands.size(); ++i) s += (i ? ", " : "") + in.type(i).str();
  return s;
}

const char* allowed(TypeRule rule) {
  switch (rule) {
    case TypeRule::None: return "";
    case TypeRule::Num: return "integers, index, f16, bf16, f32, f64";
    case TypeRule::Float: return "f16, bf16, f32, f64";
    case TypeRule::Math: return "f16, bf16, f32";
    case TypeRule::Int: return "integers, index";
    case TypeRule::Bits: return "i1, integers, index";
    case TypeRule::Cmp: return "i1, integers, index, f16, bf16, f32, f64";
  }
  return "";
}

}  // namespace

void elementwise_kernel(Op op, DType d, const void* const* in, void* out, std::size_t n) {
  const bool done = num::dispatch(d, [&]<class T>(std::type_identity<T>) { return evaluate_as<T>(op, in, out, n); });
  KILN_CHECK(done, std::string(mnemonic(op)) + " does not take " + name(d));
}

void eval_elementwise(Evaluator& e, const Inst& inst) {
  std::array<const void*, 3> in{};
  for (std::size_t i = 0; i < inst.operands.size(); ++i) in[i] = e.data(inst.operands[i]);
  elementwise_kernel(inst.op, e.type(inst.operands[0]).dtype, in.data(), e.define(inst.results[0]),
                     e.elements(inst.results[0]));
}

Types infer_elementwise(const InferInput& in) {
  const Type& first = in.type(0);
  for (std::size_t i = 1; i < in.operands.size(); ++i)
    if (in.type(i) != first) in.fail("operand types differ: " + operand_list(in));
  const OpInfo& op = info(in.op);
  if (first.ptr || !num::takes(op.rule, first.dtype))
    in.fail("takes " + std::string(allowed(op.rule)) + ", not " + first.str());
  if (in.i64(AttrKey::fast) && !is_float(first.dtype))
    in.fail("has a fast form for f16, bf16, f32, f64, not for " + first.str());
  return {op.rule == TypeRule::Cmp ? first.with(DType::i1) : first};
}

}  // namespace kiln::ir
