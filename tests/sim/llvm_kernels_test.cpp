// Every scalar operation LLVM's NVPTX backend emits (llvm/make_kernels.py), on special and random values, against a
// reference that computes exactly in 128-bit floats or wide integers and rounds by looking for the nearest value.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "tests/sim/data_files.h"
#include "tests/sim/ptx_fixture.h"

namespace kiln::test {
namespace {

__extension__ typedef __float128 Quad;
__extension__ typedef __int128 Wide;
using U64 = std::uint64_t;
using I64 = std::int64_t;

constexpr std::size_t kThreads = 1024;

struct Type {
  char kind = 'i';  // i, f, b (bf16)
  int bits = 0;
  int mantissa = 0, exponent = 0;

  static Type parse(const std::string& s) {
    if (s == "f16") return {'f', 16, 10, 5};
    if (s == "bf16") return {'b', 16, 7, 8};
    if (s == "f32") return {'f', 32, 23, 8};
    if (s == "f64") return {'f', 64, 52, 11};
    return {'i', std::stoi(s.substr(1)), 0, 0};
  }
  bool is_float() const { return kind != 'i'; }
  int bytes() const { return bits / 8; }
  U64 mask() const { return bits == 64 ? ~U64{0} : (U64{1} << bits) - 1; }
  U64 sign() const { return U64{1} << (bits - 1); }
  U64 infinity() const { return ((U64{1} << exponent) - 1) << mantissa; }
  bool nan(U64 v) const { return (v & ~sign() & mask()) > infinity(); }
  int bias() const { return (1 << (exponent - 1)) - 1; }
};

Quad power(int e) { return Quad(std::ldexp(1.0, e)); }

/// Value of finite bits.
Quad decode(const Type& t, U64 v) {
  const U64 fraction = v & ((U64{1} << t.mantissa) - 1);
  const int e = static_cast<int>(v >> t.mantissa & ((U64{1} << t.exponent) - 1));
  const Quad m = e ? Quad(static_cast<double>(fraction)) + power(t.mantissa) : Quad(static_cast<double>(fraction));
  const Quad value = m * power(std::max(e, 1) - t.bias() - t.mantissa);
  return v & t.sign() ? -value : value;
}

/// The nearest value of x + rest, ties to even, by bisection over the ordered bit patterns; rest only breaks ties.
U64 encode(const Type& t, Quad x, Quad rest = 0) {
  const bool negative = x < 0;
  if (negative) x = -x, rest = -rest;
  U64 low = 0, high = t.infinity();  // decode(low) <= x < "decode"(high)
  const Quad top = decode(t, t.infinity() - 1), beyond = top + (top - decode(t, t.infinity() - 2));
  if (x >= beyond) return (negative ? t.sign() : 0) | t.infinity();
  while (high - low > 1) {
    const U64 middle = low + (high - low) / 2;
    (decode(t, middle) <= x ? low : high) = middle;
  }
  const Quad above = high == t.infinity() ? beyond : decode(t, high);
  const Quad down = x - decode(t, low), up = above - x;
  U64 r = low;
  if (up < down || (up == down && (rest > 0 || (rest == 0 && (low & 1))))) r = high;
  return (negative ? t.sign() : 0) | r;
}

I64 as_signed(const Type& t, U64 v) { return static_cast<I64>(v << (64 - t.bits)) >> (64 - t.bits); }

// --- references
// ---------------------------------------------------------------------------------------------------------

U64 clamp_bits(const Type& t, Wide v, bool sign) {
  const Wide low = sign ? -(Wide{1} << (t.bits - 1)) : 0,
             high = sign ? (Wide{1} << (t.bits - 1)) - 1 : (Wide{1} << t.bits) - 1;
  return static_cast<U64>(v < low ? low : v > high ? high : v) & t.mask();
}

U64 int_reference(const std::string& op, const Type& t, U64 x, U64 y) {
  const I64 a = as_signed(t, x), b = as_signed(t, y);
  const int n = t.bits;
  const auto bit = [&](U64 v, int i) { return v >> i & 1; };
  U64 r = 0;
  if (op == "add") return (x + y) & t.mask();
  if (op == "sub") return (x - y) & t.mask();
  if (op == "mul") return (x * y) & t.mask();
  if (op == "sdiv") return static_cast<U64>(Wide{a} / b) & t.mask();
  if (op == "udiv") return x / y;
  if (op == "srem") return static_cast<U64>(Wide{a} % b) & t.mask();
  if (op == "urem") return x % y;
  if (op == "and") return x & y;
  if (op == "or") return x | y;
  if (op == "xor") return x ^ y;
  const int shift = static_cast<int>(y & static_cast<U64>(n - 1));
  if (op == "shl") return x << shift & t.mask();
  if (op == "lshr") return x >> shift;
  if (op == "ashr") return static_cast<U64>(a >> shift) & t.mask();
  if (op == "smin") return a < b ? x : y;
  if (op == "smax") return a > b ? x : y;
  if (op == "umin") return x < y ? x : y;
  if (op == "umax") return x > y ? x : y;
  if (op == "uaddsat") return clamp_bits(t, Wide{x} + y, false);
  if (op == "saddsat") return clamp_bits(t, Wide{a} + b, true);
  if (op == "usubsat") return clamp_bits(t, Wide{x} - Wide{y}, false);
  if (op == "ssubsat") return clamp_bits(t, Wide{a} - b, true);
  const int rotate = static_cast<int>(y % static_cast<U64>(n));
  if (op == "fshl") return rotate ? (x << rotate | x >> (n - rotate)) & t.mask() : x;
  if (op == "fshr") return rotate ? (x >> rotate | x << (n - rotate)) & t.mask() : x;
  if (op == "abs") return static_cast<U64>(a < 0 ? -Wide{a} : Wide{a}) & t.mask();
  if (op == "bswap") {
    for (int i = 0; i < n / 8; ++i) r |= (x >> (8 * i) & 0xFF) << (n - 8 - 8 * i);
    return r;
  }
  if (op == "bitreverse") {
    for (int i = 0; i < n; ++i) r |= bit(x, i) << (n - 1 - i);
    return r;
  }
  if (op == "ctpop") {
    for (int i = 0; i < n; ++i) r += bit(x, i);
    return r;
  }
  if (op == "ctlz") {
    while (r < static_cast<U64>(n) && !bit(x, n - 1 - static_cast<int>(r))) ++r;
    return r;
  }
  if (op == "cttz") {
    while (r < static_cast<U64>(n) && !bit(x, static_cast<int>(r))) ++r;
    return r;
  }
  const std::string p = op.substr(4);  // icmp…
  if (p == "eq") return x == y;
  if (p == "ne") return x != y;
  if (p == "slt") return a < b;
  if (p == "sle") return a <= b;
  if (p == "sgt") return a > b;
  if (p == "sge") return a >= b;
  if (p == "ult") return x < y;
  if (p == "ule") return x <= y;
  if (p == "ugt") return x > y;
  if (p == "uge") return x >= y;
  ADD_FAILURE() << "no reference for " << op;
  return 0;
}

bool compare_reference(const std::string& p, double x, double y) {
  const bool unordered = std::isnan(x) || std::isnan(y);
  if (p == "ord") return !unordered;
  if (p == "uno") return unordered;
  if (unordered) return p[0] == 'u';
  const std::string q = p.substr(1);
  return q == "eq" ? x == y : q == "ne" ? x != y : q == "lt" ? x < y : q == "le" ? x <= y : q == "gt" ? x > y : x >= y;
}

/// Values of finite results with signed zeros taken from the host's double arithmetic.
U64 rounded(const Type& t, Quad exact, Quad rest, double sign_source) {
  const U64 r = encode(t, exact, rest);
  if (exact == 0 && std::signbit(sign_source)) return r | t.sign();
  return r;
}

double as_double(const Type& t, U64 v) {
  if (t.nan(v)) return std::nan("");
  if ((v & ~t.sign()) == t.infinity()) return v & t.sign() ? -HUGE_VAL : HUGE_VAL;
  return v == t.sign() ? -0.0 : static_cast<double>(decode(t, v));
}

U64 from_exact_double(const Type& t, double v) {
  if (std::isnan(v)) return t.infinity() + 1;
  if (std::isinf(v)) return (v < 0 ? t.sign() : 0) | t.infinity();
  return rounded(t, Quad(v), 0, v);
}

U64 float_arithmetic(const std::string& op, const Type& t, U64 xb, U64 yb) {
  const double x = as_double(t, xb), y = as_double(t, yb);
  const double host = op == "fadd"   ? x + y
                      : op == "fsub" ? x - y
                      : op == "fmul" ? x * y
                      : op == "fdiv" ? x / y
                                     : std::fma(x, y, y);
  const bool special = std::isnan(x) || std::isnan(y) || std::isinf(x) || std::isinf(y) || (op == "fdiv" && y == 0);
  if (special) return from_exact_double(t, host);
  if (t.bits == 64) return std::bit_cast<U64>(host);
  if (t.bits == 32 && op != "fma") {
    const float a = static_cast<float>(x), b = static_cast<float>(y);
    return std::bit_cast<std::uint32_t>(op == "fadd" ? a + b : op == "fsub" ? a - b : op == "fmul" ? a * b : a / b);
  }
  const Quad a = decode(t, xb), b = decode(t, yb);
  if (op == "fadd") return rounded(t, a + b, 0, host);
  if (op == "fsub") return rounded(t, a - b, 0, host);
  if (op == "fmul") return rounded(t, a * b, 0, host);
  if (op == "fdiv") return rounded(t, a / b, 0, host);
  const Quad p = a * b, s = p + b, z = s - p;
  return rounded(t, s, (p - (s - z)) + (b - z), host);
}

U64 float_reference(const std::string& op, const Type& t, U64 xb, U64 yb) {
  const double x = as_double(t, xb), y = as_double(t, yb);
  const bool less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
  if (op == "fadd" || op == "fsub" || op == "fmul" || op == "fdiv" || op == "fma")
    return float_arithmetic(op, t, xb, yb);
  if (op == "minnum") return std::isnan(x) ? yb : std::isnan(y) || less ? xb : yb;
  if (op == "maxnum") return std::isnan(x) ? yb : std::isnan(y) || !less ? xb : yb;
  if (op == "minimum") return std::isnan(x) || std::isnan(y) ? t.infinity() + 1 : less ? xb : yb;
  if (op == "maximum") return std::isnan(x) || std::isnan(y) ? t.infinity() + 1 : less ? yb : xb;
  if (op == "copysign") return (xb & ~t.sign() & t.mask()) | (yb & t.sign());
  if (op == "fabs") return xb & ~t.sign() & t.mask();
  if (op == "fneg") return xb ^ t.sign();
  if (op == "sqrt")
    return t.bits == 32 && x >= 0 ? std::bit_cast<std::uint32_t>(std::sqrt(static_cast<float>(x)))
                                  : from_exact_double(t, std::sqrt(x));
  if (op == "floor") return from_exact_double(t, std::floor(x));
  if (op == "ceil") return from_exact_double(t, std::ceil(x));
  if (op == "ftrunc") return from_exact_double(t, std::trunc(x));
  if (op == "rint" || op == "roundeven") return from_exact_double(t, std::nearbyint(x));
  if (op == "round") return from_exact_double(t, std::round(x));
  if (op.starts_with("fcmp")) return compare_reference(op.substr(4), x, y);
  ADD_FAILURE() << "no reference for " << op;
  return 0;
}

U64 conversion_reference(const std::string& op, const Type& from, const Type& to, U64 x) {
  if (op == "trunc" || op == "zext") return x & to.mask();
  if (op == "sext") return static_cast<U64>(as_signed(from, x)) & to.mask();
  if (op == "sitofp") return encode(to, static_cast<Quad>(as_signed(from, x)));
  if (op == "uitofp") return encode(to, static_cast<Quad>(x));
  if (op == "fptrunc" || op == "fpext") return from_exact_double(to, as_double(from, x));
  const double v = as_double(from, x);  // fptosi, fptoui saturate
  if (std::isnan(v)) return 0;
  return clamp_bits(to, static_cast<Wide>(std::fmax(std::fmin(std::trunc(v), 0x1p100), -0x1p100)), op == "fptosi");
}

// --- inputs
// -------------------------------------------------------------------------------------------------------------

std::vector<U64> specials(const Type& t) {
  std::vector<U64> out;
  if (!t.is_float()) {
    for (const I64 v : {0, 1, 2, 3, 7, 8, 31, 100, -1, -2, -3, -7, -8, -100})
      out.push_back(static_cast<U64>(v) & t.mask());
    out.insert(out.end(), {t.sign(), t.sign() - 1, t.sign() + 1, t.mask() / 3});
    return out;
  }
  const U64 one = static_cast<U64>(t.bias()) << t.mantissa, half = one - (U64{1} << t.mantissa);
  for (const U64 v : {U64{0}, U64{1}, U64{2}, (U64{1} << t.mantissa) - 1, U64{1} << t.mantissa, one, one + 1, one - 1,
                      half, half + 1, one + (U64{1} << (t.mantissa - 1)), one + (U64{1} << t.mantissa),
                      t.infinity() - 1, t.infinity(), t.infinity() + 1, one + (U64{5} << t.mantissa) + 1})
    out.insert(out.end(), {v, v | t.sign()});
  return out;
}

struct Inputs {
  std::vector<U64> x, y;
};
Inputs inputs(const Type& t, bool divides) {
  const std::vector<U64> s = specials(t);
  Inputs in;
  for (const U64 a : s)
    for (const U64 b : s)
      if (in.x.size() < kThreads / 2 + 200) in.x.push_back(a), in.y.push_back(b);
  std::mt19937_64 random(7);
  while (in.x.size() < kThreads) {
    in.x.push_back(random() & t.mask());
    in.y.push_back(random() & t.mask());
    // A third of the float pairs are close in exponent, so that sums round.
    if (t.is_float() && random() % 3 == 0)
      in.y.back() = (in.x.back() ^ (random() & ((U64{1} << (t.mantissa + 3)) - 1))) & t.mask();
  }
  if (divides)
    for (std::size_t i = 0; i < kThreads; ++i)
      if (in.y[i] == 0 || (in.x[i] == t.sign() && in.y[i] == t.mask())) in.y[i] = 1;
  return in;
}

std::vector<std::uint8_t> packed(const Type& t, const std::vector<U64>& v) {
  std::vector<std::uint8_t> out(v.size() * static_cast<std::size_t>(t.bytes()));
  for (std::size_t i = 0; i < v.size(); ++i)
    std::memcpy(out.data() + i * static_cast<std::size_t>(t.bytes()), &v[i], static_cast<std::size_t>(t.bytes()));
  return out;
}

std::vector<std::string> split(const std::string& s) {
  std::vector<std::string> out(1);
  for (const char c : s) {
    if (c == '_') out.emplace_back();
    else out.back() += c;
  }
  return out;
}

class LlvmKernels : public ::testing::TestWithParam<std::string> {};

TEST_P(LlvmKernels, GiveTheExactResult) {
  const Device device = Device::simulator(GetParam());
  const std::string ptx = read_file(data_folder() / "llvm-kernels" / ("kernels_" + GetParam() + ".ptx"));
  int kernels = 0;
  for (const std::string& name : entries(ptx)) {
    SCOPED_TRACE(name);
    ++kernels;
    const std::vector<std::string> parts = split(name);
    const std::string op = parts[0];
    const Type from = Type::parse(parts[1]);
    const bool converts = parts.size() == 3, compares = op.find("cmp") == 1;
    const Type to = converts ? Type::parse(parts[2]) : compares ? Type::parse("i8") : from;
    // Below sm_90 LLVM goes through f32 from an integer to bf16, which rounds twice.
    const bool twice = GetParam() == "sm_80" && op.ends_with("itofp") && parts[2] == "bf16";
    const Type f32 = Type::parse("f32");
    const Inputs in = inputs(from, !from.is_float() && (op.find("div") == 1 || op.find("rem") == 1));
    const std::size_t size = kThreads * static_cast<std::size_t>(from.bytes());
    Buffer<std::uint8_t> a(device, size), b(device, size), c(device, kThreads * static_cast<std::size_t>(to.bytes()));
    a.upload(packed(from, in.x));
    b.upload(packed(from, in.y));
    run(device, ptx, name, {{1, 1, 1}, {kThreads, 1, 1}, 0}, Params().add(a).add(b).add(c));
    const std::vector<std::uint8_t> got = c.to_vector();
    int shown = 0;
    for (std::size_t i = 0; i < kThreads && shown < 3; ++i) {
      U64 g = 0;
      std::memcpy(&g, got.data() + i * static_cast<std::size_t>(to.bytes()), static_cast<std::size_t>(to.bytes()));
      const U64 w = twice      ? conversion_reference("fptrunc", f32, to, conversion_reference(op, from, f32, in.x[i]))
                    : converts ? conversion_reference(op, from, to, in.x[i])
                    : from.is_float() ? float_reference(op, from, in.x[i], in.y[i])
                                      : int_reference(op, from, in.x[i], in.y[i]);
      if (g == w || (to.is_float() && to.nan(g) && to.nan(w))) continue;
      ++shown;
      ADD_FAILURE() << std::hex << "x 0x" << in.x[i] << " y 0x" << in.y[i] << ": got 0x" << g << ", want 0x" << w;
    }
  }
  EXPECT_EQ(kernels, 379);
}
INSTANTIATE_TEST_SUITE_P(Targets, LlvmKernels, ::testing::Values("sm_80", "sm_90a"),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace kiln::test
