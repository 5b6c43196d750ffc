// The reference evaluation of every elementwise op against expectations computed another way: 128-bit integers for
// integers, long double and an own rounding for floats, long double functions for math.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "backend/ir/eval.h"
#include "runtime/base/error.h"
#include "tests/ir/op_samples.h"

namespace kiln::ir::test {
namespace {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;
using Real = long double;

Literal of(DType d, std::uint64_t bits) { return {d, bits}; }
Literal real(DType d, double v) { return Literal::of_float(d, v); }
Literal whole(DType d, std::int64_t v) { return Literal::of_int(d, v); }
template <class... L>
Literal ev(Op op, L... l) {
  return eval_elementwise(op, {l...});
}

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DType kFloats[] = {DType::f16, DType::bf16, DType::f32, DType::f64};

/// Precision in bits, exponent of the smallest normal number, largest finite value.
struct Format {
  int precision, min_exponent;
  Real largest;
};
Format format_of(DType d) {
  switch (bits(d)) {
    case 16: return d == DType::f16 ? Format{11, -14, 65504} : Format{8, -126, 0x1.fep127};
    case 32: return {24, -126, std::numeric_limits<float>::max()};
    default: return {53, -1022, std::numeric_limits<double>::max()};
  }
}
Real ulp(DType d, Real v) {
  const Format f = format_of(d);
  int e = 0;
  std::frexp(v, &e);
  return std::ldexp(Real(1), std::max(e - f.precision, f.min_exponent + 1 - f.precision));
}
/// v rounded to nearest even in the format.
Real rounded(DType d, Real v) {
  if (v == 0 || !std::isfinite(v)) return v;
  const Real unit = ulp(d, v), r = std::nearbyint(v / unit) * unit;
  return std::abs(r) > format_of(d).largest ? std::copysign(Real(kInf), v) : r;
}
bool same(Real a, Real b) { return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)); }

// --- integers
// ----------------------------------------------------------------------------------------------------------
Wide value(const Literal& l) { return l.dtype == DType::u64 ? Wide(l.bits) : Wide(l.as_int()); }
std::uint64_t wrapped(DType d, Wide v) {
  const int n = bits(d);
  return std::uint64_t(v) & (n == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << n) - 1);
}

Wide expected(Op op, DType d, Wide a, Wide b) {
  const int n = bits(d);
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return Wide(UnsignedWide(a) * UnsignedWide(b));
    case Op::Div: return b == 0 ? 0 : a / b;
    case Op::Rem: return b == 0 ? 0 : a % b;
    case Op::Min: return a < b ? a : b;
    case Op::Max: return a < b ? b : a;
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Xor: return a ^ b;
    case Op::Shl: return b < 0 || b >= n ? 0 : Wide(UnsignedWide(a) << int(b));
    case Op::Shr: return b < 0 || b >= n ? (a < 0 ? -1 : 0) : a >> int(b);
    default: ADD_FAILURE() << mnemonic(op); return 0;
  }
}

std::vector<Literal> integers(DType d) {
  std::vector<Literal> all;
  if (bits(d) == 8)
    for (std::uint64_t b = 0; b < 256; ++b) all.push_back(of(d, b));
  for (std::uint64_t b : {0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100})
    for (std::uint64_t top : {std::uint64_t(0), std::uint64_t(1) << (bits(d) - 1), ~std::uint64_t(0)}) {
      all.push_back(of(d, wrapped(d, Wide(top + b))));
      all.push_back(of(d, wrapped(d, Wide(top - b))));
    }
  return all;
}

TEST(EvalIntegers, BinaryOpsOfEveryWidthWrapAndNeverTrap) {
  for (DType d : all_dtypes()) {
    if (!is_int(d)) continue;
    const std::vector<Literal> values = integers(d);
    for (Op op :
         {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Rem, Op::Min, Op::Max, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr})
      for (const Literal& a : values)
        for (const Literal& b : values)
          ASSERT_EQ(ev(op, a, b), of(d, wrapped(d, expected(op, d, value(a), value(b)))))
              << mnemonic(op) << " " << name(d) << " " << a.bits << " " << b.bits;
  }
}

TEST(EvalIntegers, UnaryOpsAndComparisons) {
  for (DType d : all_dtypes()) {
    if (!is_int(d)) continue;
    const std::vector<Literal> values = integers(d);
    for (const Literal& a : values) {
      const Wide v = value(a);
      EXPECT_EQ(ev(Op::Neg, a), of(d, wrapped(d, -v)));
      EXPECT_EQ(ev(Op::Abs, a), of(d, wrapped(d, v < 0 ? -v : v)));
      EXPECT_EQ(ev(Op::Relu, a), of(d, wrapped(d, v < 0 ? 0 : v)));
      EXPECT_EQ(ev(Op::Not, a), of(d, wrapped(d, ~v)));
      for (const Literal& b : values) {
        const Wide w = value(b);
        ASSERT_EQ(ev(Op::Lt, a, b), of(DType::i1, v < w));
        ASSERT_EQ(ev(Op::Le, a, b), of(DType::i1, v <= w));
        ASSERT_EQ(ev(Op::Gt, a, b), of(DType::i1, v > w));
        ASSERT_EQ(ev(Op::Ge, a, b), of(DType::i1, v >= w));
        ASSERT_EQ(ev(Op::Eq, a, b), of(DType::i1, v == w));
        ASSERT_EQ(ev(Op::Ne, a, b), of(DType::i1, v != w));
      }
    }
  }
}

TEST(EvalIntegers, LogicOfI1) {
  for (std::uint64_t a : {0, 1})
    for (std::uint64_t b : {0, 1}) {
      const Literal x = of(DType::i1, a), y = of(DType::i1, b);
      EXPECT_EQ(ev(Op::And, x, y).bits, a & b);
      EXPECT_EQ(ev(Op::Or, x, y).bits, a | b);
      EXPECT_EQ(ev(Op::Xor, x, y).bits, a ^ b);
      EXPECT_EQ(ev(Op::Not, x).bits, 1 - a);
      EXPECT_EQ(ev(Op::Lt, x, y).bits, std::uint64_t(a < b));
      EXPECT_EQ(ev(Op::Eq, x, y).bits, std::uint64_t(a == b));
    }
}

TEST(EvalIntegers, DivisionByZeroAndOverflow) {
  const Literal min = whole(i32, INT32_MIN);
  EXPECT_EQ(ev(Op::Div, min, whole(i32, -1)), min);
  EXPECT_EQ(ev(Op::Rem, min, whole(i32, -1)), whole(i32, 0));
  EXPECT_EQ(ev(Op::Div, whole(DType::index, INT64_MIN), whole(DType::index, -1)), whole(DType::index, INT64_MIN));
  for (std::int64_t x : {2, -2, 0}) {  // docs/pitfalls.md A47: / and % by 0, together or alone
    EXPECT_EQ(ev(Op::Div, whole(i32, x), whole(i32, 0)), whole(i32, 0));
    EXPECT_EQ(ev(Op::Rem, whole(i32, x), whole(i32, 0)), whole(i32, 0));
  }
}

TEST(EvalIntegers, DivisionTruncatesTowardZero) {  // docs/pitfalls.md A13
  for (std::int64_t x = 0; x < 16; ++x) {
    EXPECT_EQ(ev(Op::Div, whole(i64, x), whole(i64, -2)), whole(i64, -(x / 2)));
    EXPECT_EQ(ev(Op::Rem, whole(i64, -x), whole(i64, 3)), whole(i64, -(x % 3)));
  }
}

// --- float arithmetic
// --------------------------------------------------------------------------------------------------
/// All values of the 16-bit types; special and scattered ones of the others.
std::vector<Literal> floats(DType d) {
  std::vector<Literal> all;
  if (bits(d) == 16)
    for (std::uint64_t b = 0; b < 65536; ++b) all.push_back(of(d, b));
  const std::uint64_t mask = bits(d) == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << bits(d)) - 1;
  for (std::uint64_t x = 0x9e3779b97f4a7c15; all.size() < 3000; x *= 0xda942042e4dd58b5)
    all.push_back(of(d, (x >> 3) & mask));
  return all;
}
std::vector<Literal> special(DType d) {
  std::vector<Literal> all;
  for (double v :
       {0.0, 1.0, 1.5, 2.0, 3.0, 0.1, 7.25, 1024.0, 65504.0, 1e-5, 6e-8, 1e38, 3e38, 1e-38, 1e-40, kInf, kNaN}) {
    all.push_back(real(d, v));
    all.push_back(real(d, -v));
  }
  for (std::uint64_t b : {1, 2, 3, 0x83}) all.push_back(of(d, b));  // denormals
  return all;
}

TEST(EvalFloats, ArithmeticRoundsOnce) {
  const std::map<Op, std::function<Real(Real, Real)>> ops{{Op::Add, [](Real a, Real b) { return a + b; }},
                                                          {Op::Sub, [](Real a, Real b) { return a - b; }},
                                                          {Op::Mul, [](Real a, Real b) { return a * b; }},
                                                          {Op::Div, [](Real a, Real b) { return a / b; }},
                                                          {Op::Rem, [](Real a, Real b) { return std::fmod(a, b); }}};
  for (DType d : {DType::f16, DType::bf16, DType::f32})  // long double rounds f64 twice
    for (const auto& [op, f] : ops)
      for (const Literal& b : special(d))
        for (const Literal& a : floats(d)) {
          if (bits(d) == 16 && (a.bits + b.bits) % 7 != 0) continue;  // a seventh of all, another for each b
          const Real want = rounded(d, f(a.as_double(), b.as_double()));
          ASSERT_TRUE(same(ev(op, a, b).as_double(), want))
              << mnemonic(op) << " " << name(d) << " " << a.as_double() << " " << b.as_double() << ": "
              << ev(op, a, b).as_double() << ", not " << double(want);
        }
}

TEST(EvalFloats, F64IsTheHostsOwn) {
  volatile double a = 0.1, b = 0.3;  // not folded by the C++ compiler
  EXPECT_EQ(ev(Op::Add, real(f64, a), real(f64, b)).as_double(), a + b);
  EXPECT_EQ(ev(Op::Sub, real(f64, a), real(f64, b)).as_double(), a - b);
  EXPECT_EQ(ev(Op::Mul, real(f64, a), real(f64, b)).as_double(), a * b);
  EXPECT_EQ(ev(Op::Div, real(f64, a), real(f64, b)).as_double(), a / b);
  EXPECT_EQ(ev(Op::Rem, real(f64, 1e300), real(f64, 3)).as_double(), std::fmod(1e300, 3));
  EXPECT_EQ(ev(Op::Fma, real(f64, a), real(f64, b), real(f64, -a * b)).as_double(), std::fma(0.1, 0.3, -(a * b)));
  EXPECT_EQ(ev(Op::Sqrt, real(f64, 2)).as_double(), std::sqrt(2.0));
}

TEST(EvalFloats, FmaRoundsOnce) {
  // Exponents near 0, so that long double holds a * b + c exactly.
  for (DType d : {DType::f16, DType::bf16, DType::f32}) {
    const int spread = d == DType::f32 ? 2 : 6;
    std::uint64_t x = 88172645463325252u;
    const auto next = [&] {
      x ^= x << 13, x ^= x >> 7, x ^= x << 17;
      const double m = 1 + double(x % (1u << 20)) / (1u << 20);
      return real(d, std::ldexp(x & (1u << 30) ? -m : m, int(x >> 40) % spread));
    };
    for (int i = 0; i < 100000; ++i) {
      const Literal a = next(), b = next(), c = next();
      const Real want = rounded(d, Real(a.as_double()) * Real(b.as_double()) + Real(c.as_double()));
      ASSERT_TRUE(same(ev(Op::Fma, a, b, c).as_double(), want))
          << name(d) << " " << a.as_double() << " " << b.as_double() << " " << c.as_double();
    }
  }
}

TEST(EvalFloats, FmaOfBf16SeesAnAddendFarBelowDouble) {
  // 17/16 squared is half way between 1.125 and the next bf16; the addend alone decides, however small.
  const Literal a = real(DType::bf16, 1.0625);
  const auto fma = [&](double c) { return ev(Op::Fma, a, a, real(DType::bf16, c)).as_double(); };
  EXPECT_EQ(fma(0), 1.125);
  EXPECT_EQ(fma(0x1p-100), 1.1328125);
  EXPECT_EQ(fma(-0x1p-100), 1.125);
  EXPECT_EQ(ev(Op::Fma, real(f32, 0x1.000002p0), real(f32, 0x1.000002p0), real(f32, -0x1.000004p0)).as_double(),
            0x1p-46);
}

TEST(EvalFloats, ModeFreeRounding) {
  const std::map<Op, std::function<Real(Real)>> ops{{Op::Floor, [](Real a) { return std::floor(a); }},
                                                    {Op::Ceil, [](Real a) { return std::ceil(a); }},
                                                    {Op::Trunc, [](Real a) { return std::trunc(a); }},
                                                    {Op::Round, [](Real a) { return std::rint(a); }},
                                                    {Op::Sqrt, [](Real a) { return std::sqrt(a); }}};
  for (DType d : {DType::f16, DType::bf16, DType::f32})
    for (const auto& [op, f] : ops)
      for (const Literal& a : floats(d)) {
        const Real want = rounded(d, f(a.as_double()));
        ASSERT_TRUE(same(ev(op, a).as_double(), want)) << mnemonic(op) << " " << name(d) << " " << a.as_double();
      }
  for (DType d : kFloats) {
    EXPECT_EQ(ev(Op::Round, real(d, 2.5)).as_double(), 2);
    EXPECT_EQ(ev(Op::Round, real(d, 3.5)).as_double(), 4);
    EXPECT_EQ(ev(Op::Floor, real(d, -0.5)).as_double(), -1);
    EXPECT_TRUE(std::signbit(ev(Op::Ceil, real(d, -0.5)).as_double()));
  }
}

TEST(EvalFloats, MinMaxReluWithNaNAndZeros) {
  for (DType d : kFloats) {
    const Literal nan = real(d, kNaN), one = real(d, 1), zero = real(d, 0), minus = real(d, -0.0), inf = real(d, kInf);
    for (Op op : {Op::Min, Op::Max}) {
      for (const Literal& other : {one, zero, inf, real(d, -kInf)}) {
        EXPECT_TRUE(std::isnan(ev(op, nan, other).as_double()));
        EXPECT_TRUE(std::isnan(ev(op, other, nan).as_double()));
      }
    }
    EXPECT_EQ(ev(Op::Min, zero, minus), minus);
    EXPECT_EQ(ev(Op::Min, minus, zero), minus);
    EXPECT_EQ(ev(Op::Max, zero, minus), zero);
    EXPECT_EQ(ev(Op::Max, minus, zero), zero);
    EXPECT_EQ(ev(Op::Max, one, inf), inf);
    EXPECT_EQ(ev(Op::Min, one, inf), one);
    EXPECT_EQ(ev(Op::Relu, minus), zero);
    EXPECT_EQ(ev(Op::Relu, real(d, -3)), zero);
    EXPECT_EQ(ev(Op::Relu, one), one);
    EXPECT_TRUE(std::isnan(ev(Op::Relu, nan).as_double()));
  }
}

TEST(EvalFloats, SignOps) {
  for (DType d : kFloats)
    for (double v : {0.0, 1.5, kInf, kNaN}) {
      const Literal a = real(d, v);
      const std::uint64_t sign = std::uint64_t(1) << (bits(d) - 1);
      EXPECT_EQ(ev(Op::Neg, a).bits, a.bits ^ sign);
      EXPECT_EQ(ev(Op::Abs, ev(Op::Neg, a)).bits, a.bits & ~sign);
    }
}

TEST(EvalFloats, ComparisonsWithNaNAndZeros) {
  for (DType d : kFloats) {
    const Literal nan = real(d, kNaN), one = real(d, 1), two = real(d, 2), zero = real(d, 0), minus = real(d, -0.0);
    for (Op op : {Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq}) {
      EXPECT_EQ(ev(op, nan, one).bits, 0u);
      EXPECT_EQ(ev(op, one, nan).bits, 0u);
      EXPECT_EQ(ev(op, nan, nan).bits, 0u);
    }
    EXPECT_EQ(ev(Op::Ne, nan, nan).bits, 1u);
    EXPECT_EQ(ev(Op::Eq, zero, minus).bits, 1u);
    EXPECT_EQ(ev(Op::Lt, minus, zero).bits, 0u);
    EXPECT_EQ(ev(Op::Lt, one, two).bits, 1u);
    EXPECT_EQ(ev(Op::Ge, one, two).bits, 0u);
    EXPECT_EQ(ev(Op::Gt, two, one).bits, 1u);
    EXPECT_EQ(ev(Op::Le, two, two).bits, 1u);
  }
}

TEST(EvalFloats, DenormalsAreKept) {
  EXPECT_EQ(ev(Op::Mul, of(f32, 1), real(f32, 2)).bits, 2u);
  EXPECT_EQ(ev(Op::Add, of(DType::f16, 1), of(DType::f16, 1)).bits, 2u);
  EXPECT_EQ(ev(Op::Div, real(f32, 0x1p-126), real(f32, 2)).as_double(), 0x1p-127);
}

// --- math
// --------------------------------------------------------------------------------------------------------------
Real math(Op op, Real a, Real b) {
  const Real half_root = 0.70710678118654752440084436210484904L, root = 0.79788456080286535587989211986876373L;
  switch (op) {
    case Op::Rsqrt: return 1 / std::sqrt(a);
    case Op::Exp: return std::exp(a);
    case Op::Exp2: return std::exp2(a);
    case Op::Log: return std::log(a);
    case Op::Log2: return std::log2(a);
    case Op::Sin: return std::sin(a);
    case Op::Cos: return std::cos(a);
    case Op::Tanh: return std::tanh(a);
    case Op::Erf: return std::erf(a);
    case Op::Pow: return std::pow(a, b);
    case Op::Sigmoid: return 1 / (1 + std::exp(-a));
    case Op::Silu: return a == -Real(kInf) ? -0.0L : a * (1 / (1 + std::exp(-a)));
    case Op::Gelu: return a == -Real(kInf) ? -0.0L : a * (std::erfc(-a * half_root) / 2);
    case Op::GeluTanh: return a == -Real(kInf) ? -0.0L : a / (1 + std::exp(-2 * root * (a + 0.044715L * a * a * a)));
    default: ADD_FAILURE() << "no reference for " << mnemonic(op); return 0;
  }
}

class EvalMath : public testing::TestWithParam<Op> {};
std::vector<Op> math_ops() {
  std::vector<Op> ops;
  for (Op op : all_ops())
    if (info(op).rule == TypeRule::Math) ops.push_back(op);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Table, EvalMath, testing::ValuesIn(math_ops()),
                         [](const auto& p) { return std::string(mnemonic(p.param)); });

void expect_rounded(Op op, const Literal& a, const Literal& b) {
  const DType d = a.dtype;
  const Real got = (info(op).arity == 2 ? ev(op, a, b) : ev(op, a)).as_double();
  const Real want = math(op, a.as_double(), b.as_double());
  if (same(got, rounded(d, want))) return;
  // Double is rounded before the result type is: a hair more than half a unit.
  ASSERT_LE(std::abs(got - want), 0.5001L * ulp(d, want))
      << mnemonic(op) << " " << name(d) << " " << a.as_double() << " " << b.as_double();
}

TEST_P(EvalMath, IsRoundedFromDoubleOnce) {
  for (DType d : {DType::f16, DType::bf16, DType::f32}) {
    const std::vector<Literal> second = info(GetParam()).arity == 2 ? special(d) : std::vector{real(d, 0)};
    for (const Literal& b : second) {
      for (const Literal& a : special(d)) expect_rounded(GetParam(), a, b);
      for (const Literal& a : floats(d))
        if (info(GetParam()).arity == 1 || a.bits % 16 == 5) expect_rounded(GetParam(), a, b);
      for (double x = -20; x < 20; x += 0.0371) expect_rounded(GetParam(), real(d, x), b);
    }
  }
}

TEST(EvalMathValues, SpecialCasesOfTheTable) {
  const auto f = [](Op op, double a) { return ev(op, real(f32, a)).as_double(); };
  const auto pow = [](double a, double b) { return ev(Op::Pow, real(f32, a), real(f32, b)).as_double(); };
  EXPECT_EQ(f(Op::Log, 0), -kInf);
  EXPECT_TRUE(std::isnan(f(Op::Log, -1)));
  EXPECT_EQ(f(Op::Log2, 0), -kInf);
  EXPECT_TRUE(std::isnan(f(Op::Sqrt, -1)));
  EXPECT_TRUE(std::signbit(f(Op::Sqrt, -0.0)));
  EXPECT_TRUE(std::isnan(f(Op::Sin, kInf)));
  EXPECT_TRUE(std::isnan(f(Op::Cos, -kInf)));
  for (Op op : {Op::Silu, Op::Gelu, Op::GeluTanh}) {
    EXPECT_TRUE(same(f(op, -kInf), -0.0)) << mnemonic(op);
    EXPECT_TRUE(same(f(op, -0.0), -0.0)) << mnemonic(op);
    EXPECT_EQ(f(op, kInf), kInf) << mnemonic(op);
    EXPECT_TRUE(std::isnan(f(op, kNaN))) << mnemonic(op);
  }
  EXPECT_EQ(pow(3, 0), 1);  // docs/pitfalls.md A46
  EXPECT_EQ(pow(3, -1), double(1.0f / 3.0f));
  EXPECT_EQ(pow(3, -2), double(1.0f / 9.0f));
  EXPECT_EQ(pow(kNaN, 0), 1);
  EXPECT_EQ(pow(1, kNaN), 1);
  EXPECT_EQ(pow(-2, 3), -8);
  EXPECT_TRUE(std::isnan(pow(-2, 0.5)));
  EXPECT_EQ(pow(0, -1), kInf);
  EXPECT_EQ(pow(-0.0, -3), -kInf);
}

TEST(EvalElementwise, EveryOpTakesExactlyTheDtypesOfItsRule) {
  for (Op op : all_ops()) {
    if (!info(op).elementwise) continue;
    for (DType d : all_dtypes()) {
      const bool f8 = d == DType::f8e4m3 || d == DType::f8e5m2, i1 = d == DType::i1;
      bool takes = false;
      switch (info(op).rule) {
        case TypeRule::None: break;
        case TypeRule::Num: takes = !i1 && !f8; break;
        case TypeRule::Float: takes = is_float(d) && !f8; break;
        case TypeRule::Math: takes = is_float(d) && !f8 && d != f64; break;
        case TypeRule::Int: takes = is_int(d); break;
        case TypeRule::Bits: takes = is_int(d) || i1; break;
        case TypeRule::Cmp: takes = !f8; break;
      }
      const std::vector<Literal> operands(std::size_t(info(op).arity), of(d, 1));
      if (takes) {
        EXPECT_EQ(eval_elementwise(op, operands).dtype, info(op).rule == TypeRule::Cmp ? DType::i1 : d) << mnemonic(op);
      } else {
        EXPECT_THROW(eval_elementwise(op, operands), InternalError) << mnemonic(op) << " " << name(d);
      }
    }
  }
}

}  // namespace
}  // namespace kiln::ir::test
