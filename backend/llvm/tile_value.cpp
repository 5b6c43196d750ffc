#include "backend/llvm/tile_value.h"

#include <algorithm>

namespace kiln::cg {
namespace {

std::int64_t gcd(std::int64_t a, std::int64_t b) { return std::gcd(a, b); }

std::int64_t product_or_one(std::int64_t a, std::int64_t b) {
  std::int64_t p = 0;
  return __builtin_mul_overflow(a, b, &p) ? 1 : p;
}

}  // namespace

Range operator+(Range a, Range b) {
  Range r;
  if (__builtin_add_overflow(a.lo, b.lo, &r.lo) || __builtin_add_overflow(a.hi, b.hi, &r.hi)) return {};
  return r;
}

Range operator-(Range a, Range b) {
  Range r;
  if (__builtin_sub_overflow(a.lo, b.hi, &r.lo) || __builtin_sub_overflow(a.hi, b.lo, &r.hi)) return {};
  return r;
}

Range operator*(Range a, Range b) {
  std::int64_t p[4];
  if (__builtin_mul_overflow(a.lo, b.lo, &p[0]) || __builtin_mul_overflow(a.lo, b.hi, &p[1]) ||
      __builtin_mul_overflow(a.hi, b.lo, &p[2]) || __builtin_mul_overflow(a.hi, b.hi, &p[3]))
    return {};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}

Range join(Range a, Range b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

// A sum or product that may wrap keeps only divisors that divide 2^64.
Known operator+(Known a, Known b) {
  const std::int64_t d = gcd(a.divisor, b.divisor);
  const Range r = a.range + b.range;
  return {r, r.full() && d != 0 ? d & -d : d};
}

Known operator-(Known a, Known b) {
  const std::int64_t d = gcd(a.divisor, b.divisor);
  const Range r = a.range - b.range;
  return {r, r.full() && d != 0 ? d & -d : d};
}

Known operator*(Known a, Known b) {
  const std::int64_t d = product_or_one(a.divisor, b.divisor);
  const Range r = a.range * b.range;
  return {r, r.full() && d != 0 ? d & -d : d};
}

bool TileValue::is_uniform() const {
  return std::all_of(regs.begin(), regs.end(), [&](const Reg& r) { return r.v == nullptr && r.c == regs[0].c; });
}

Known TileValue::constants_known() const {
  Known k = Known::constant(regs[0].c);
  for (const Reg& r : regs) {
    k.range = join(k.range, Range::of(r.c));
    k.divisor = gcd(k.divisor, Known::constant(r.c).divisor);
  }
  return k;
}

}  // namespace kiln::cg
