#include "tests/op/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace kiln::test {
namespace {

struct Format {
  int exponent_bits, mantissa_bits;
  bool infinity;
};

Format format(DType d) {
  switch (d) {
    case DType::f8e4m3: return {4, 3, false};
    case DType::f8e5m2: return {5, 2, true};
    case DType::f16: return {5, 10, true};
    case DType::bf16: return {8, 7, true};
    case DType::f32: return {8, 23, true};
    default: return {11, 52, true};
  }
}

std::uint64_t mask(DType d) { return bits(d) == 64 ? ~0ull : (1ull << bits(d)) - 1; }

std::vector<std::uint64_t> special_floats(DType d) {
  Format f = format(d);
  std::uint64_t one = ((1ull << (f.exponent_bits - 1)) - 1) << f.mantissa_bits;
  std::uint64_t step = 1ull << f.mantissa_bits, half = step / 2,
                top = ((1ull << f.exponent_bits) - 1) << f.mantissa_bits;
  std::uint64_t digits = static_cast<std::uint64_t>(f.mantissa_bits);
  std::vector<std::uint64_t> v = {0,
                                  1,
                                  2,
                                  step - 1,
                                  step,
                                  step + 1,  // zero, denormals, smallest normals
                                  one - step - 1,
                                  one - step,
                                  one - step + 1,
                                  one - 1,
                                  one,
                                  one + 1,  // around 1/2 and 1
                                  one + half,
                                  one + step,
                                  one + step + step / 4,
                                  one + step + half,  // 1.5, 2, 2.5, 3
                                  one + 2 * step,
                                  one + 3 * step + half / 8,  // 4, about 8.5
                                  top - 1,
                                  top,
                                  top + half};  // largest, infinity, NaN
  // Where integers and halves stop being representable: ties of round, the sign of pow's odd powers.
  for (std::uint64_t k = digits > 1 ? digits - 1 : 0; k <= digits + 2; ++k)
    if (one + k * step < top) v.insert(v.end(), {one + k * step - 1, one + k * step, one + k * step + 1});
  // In units of the functions' own landmarks.
  if (d == DType::f32)
    for (float x :
         {0.55f, 0.921875f, 1.5707963f, 3.1415927f, 47000.f, 47001.f, 88.72283f, 88.8f, 103.9f, 104.1f, 127.9f, 1e10f})
      v.push_back(std::bit_cast<std::uint32_t>(x));
  if (!f.infinity) v = {0, 1, 2, 7, 8, 9, 0x38, 0x39, 0x3c, 0x40, 0x7e, 0x7f};
  std::uint64_t sign = 1ull << (bits(d) - 1);
  for (std::size_t i = 0, n = v.size(); i < n; ++i) v.push_back(v[i] | sign);
  return v;
}

std::vector<std::uint64_t> special_integers(DType d) {
  std::int64_t width = bits(d);
  std::vector<std::uint64_t> v;
  for (std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{7},
                         std::int64_t{100}, width - 1, width, width + 1})
    v.insert(v.end(), {static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(-n)});
  std::uint64_t top = 1ull << (width - 1);
  v.insert(v.end(), {top, top + 1, top - 1, top - 2, mask(d) - 1});
  // Where a float of 8, 11, 24 or 53 digits starts to round: the tie and its neighbours.
  for (int digits : {8, 11, 24, 53})
    for (int extra : {1, 3})
      if (digits + extra < width)
        for (int near : {-1, 0, 1}) {
          std::uint64_t tie = (1ull << (digits + extra)) + (1ull << (extra - 1)) + static_cast<std::uint64_t>(near);
          v.insert(v.end(), {tie, 0 - tie});
        }
  for (std::uint64_t& x : v) x &= mask(d);
  return v;
}

std::uint64_t random_value(DType d, std::mt19937_64& random) {
  std::uint64_t pattern = random() & mask(d);
  if (random() & 1) return pattern;
  if (!is_float(d)) return (random() & 255) & mask(d);
  std::uniform_real_distribution<double> moderate(-12, 12);
  double v = moderate(random);
  if (d == DType::f64) return std::bit_cast<std::uint64_t>(v);
  if (d == DType::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(v));
  if (d == DType::f16) return f16(static_cast<float>(v)).bits;
  if (d == DType::bf16) return bf16(static_cast<float>(v)).bits;
  return pattern;
}

}  // namespace

const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> all = {
#define KILN_DTYPE(name, bits, kind, host) DType::name,
#include "runtime/base/dtype.def"
  };
  return all;
}

std::vector<std::uint64_t> special_values(DType d) {
  std::vector<std::uint64_t> v = d == DType::i1 ? std::vector<std::uint64_t>{0, 1}
                                 : is_float(d)  ? special_floats(d)
                                                : special_integers(d);
  std::sort(v.begin(), v.end());
  v.erase(std::unique(v.begin(), v.end()), v.end());
  return v;
}

std::vector<std::uint64_t> sweep_values(DType d, int random_count) {
  std::vector<std::uint64_t> v;
  if (bits(d) <= 16) {
    for (std::uint64_t b = 0; b <= mask(d); ++b) v.push_back(b);
    return v;
  }
  v = special_values(d);
  std::mt19937_64 random(17);
  for (int i = 0; i < random_count; ++i) v.push_back(random_value(d, random));
  return v;
}

std::vector<std::vector<std::uint64_t>> sweep_tuples(DType d, int arity, int random_count) {
  if (arity == 1) return {sweep_values(d, random_count)};
  std::vector<std::vector<std::uint64_t>> columns(static_cast<std::size_t>(arity));
  std::vector<std::uint64_t> special = special_values(d);
  std::mt19937_64 random(23);
  for (std::uint64_t a : special)
    for (std::uint64_t b : special) {
      columns[0].push_back(a);
      columns[1].push_back(b);
      if (arity == 3) columns[2].push_back(special[random() % special.size()]);
    }
  for (int i = 0; i < random_count; ++i)
    for (auto& column : columns) column.push_back(random_value(d, random));
  return columns;
}

double value_of(DType d, std::uint64_t b) {
  switch (d) {
    case DType::f64: return std::bit_cast<double>(b);
    case DType::f32: return std::bit_cast<float>(static_cast<std::uint32_t>(b));
    default: break;
  }
  if (is_float(d)) {
    Format f = format(d);
    double sign = b >> (bits(d) - 1) & 1 ? -1 : 1;
    int exponent = static_cast<int>(b >> f.mantissa_bits & ((1ull << f.exponent_bits) - 1));
    auto fraction = static_cast<double>(b & ((1ull << f.mantissa_bits) - 1));
    int bias = (1 << (f.exponent_bits - 1)) - 1, top = (1 << f.exponent_bits) - 1;
    if (f.infinity && exponent == top) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
    if (!f.infinity && (b & 0x7f) == 0x7f) return std::nan("");
    double significand = exponent ? fraction + static_cast<double>(1ull << f.mantissa_bits) : fraction;
    return sign * std::ldexp(significand, std::max(exponent, 1) - bias - f.mantissa_bits);
  }
  if (!is_signed(d)) return static_cast<double>(b);
  int unused = 64 - bits(d);
  return static_cast<double>(static_cast<std::int64_t>(b << unused) >> unused);
}

bool is_nan(DType d, std::uint64_t b) { return is_float(d) && std::isnan(value_of(d, b)); }
bool same_result(DType d, std::uint64_t a, std::uint64_t b) { return a == b || (is_nan(d, a) && is_nan(d, b)); }

double ulp_of(DType d, double v) {
  Format f = format(d);
  int exponent = 0, lowest = 2 - (1 << (f.exponent_bits - 1));
  std::frexp(v, &exponent);
  return std::ldexp(1.0, std::clamp(exponent - 1, lowest, -lowest + 1) - f.mantissa_bits);
}

double largest(DType d) {
  Format f = format(d);
  if (!f.infinity) return value_of(d, 0x7e);
  return value_of(d, (((1ull << f.exponent_bits) - 1) << f.mantissa_bits) - 1);
}

std::vector<std::byte> to_bytes(DType d, const std::vector<std::uint64_t>& values) {
  auto size = static_cast<std::size_t>(bytes(d));
  std::vector<std::byte> out(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(&out[i * size], &values[i], size);
  return out;
}

std::vector<std::uint64_t> from_bytes(DType d, const std::vector<std::byte>& in) {
  auto size = static_cast<std::size_t>(bytes(d));
  std::vector<std::uint64_t> out(in.size() / size);
  for (std::size_t i = 0; i < out.size(); ++i) std::memcpy(&out[i], &in[i * size], size);
  return out;
}

}  // namespace kiln::test
