#include "dsl/lang/random.h"

#include <fmt/format.h>

#include <cmath>

#include "dsl/lang/shaping.h"

namespace kiln {
namespace {

using detail::Made;
using detail::Operand;
using detail::Tracer;
using ir::Op;
using ir::Value;
using Words = std::array<Value, 4>;

/// Random numbers for a tile of offsets, or a scalar one, written as ordinary elementwise code.
class Generator {
 public:
  Generator(const char* who, const Operand& seed, const Handle& offsets, SourceLoc at)
      : t_(Tracer::current(at)), at_(at), who_(who) {
    const Value offset = integer(t_.read(offsets, at), "offsets");
    like_ = t_.type(offset);
    words_ = philox({low(offset), high(offset), number(DType::u32, 0), number(DType::u32, 0)}, key_of(seed));
  }
  Generator(const std::array<Tile, 4>& counter, const std::array<Scalar, 2>& key, SourceLoc at)
      : t_(Tracer::current(at)), at_(at), who_("philox") {
    Words x;
    for (std::size_t i = 0; i < 4; ++i) {
      x[i] = word(t_.read(counter[i], at), "counter");
      if (i == 0) like_ = t_.type(x[0]);
      if (t_.type(x[i]) != like_)
        t_.fail(at, fmt::format("philox: counter tiles differ: {} and {}", like_.str(), t_.type(x[i]).str()));
    }
    words_ = philox(x, {word(t_.read(key[0], at), "key"), word(t_.read(key[1], at), "key")});
  }

  Value bits(std::size_t word) const { return words_[word]; }
  Value uniform(std::size_t word);
  /// Two normals of words first and first + 1: cosine, sine.
  Value normal_cos(std::size_t first) { return make(Op::Mul, radius(first), function(Op::Cos, angle(first + 1))); }
  Value normal_sin(std::size_t first) { return make(Op::Mul, radius(first), function(Op::Sin, angle(first + 1))); }
  Value bounded(const Operand& lo, const Operand& hi);

 private:
  Words philox(Words x, std::array<Value, 2> key);

  Value integer(Value v, const char* what) {
    const ir::Type& type = t_.type(v);
    if (!is_int(type.dtype) || type.ptr)
      t_.fail(at_, fmt::format("{}: {} must be an integer, not {}", who_, what, type.str()));
    return detail::cast_to(t_, v, DType::u64, at_);
  }
  Value word(Value v, const char* what) {
    if (t_.type(v).dtype != DType::u32 || t_.type(v).ptr)
      t_.fail(at_, fmt::format("{}: {} must be u32, not {}", who_, what, t_.type(v).str()));
    return v;
  }
  std::array<Value, 2> key_of(const Operand& seed) {
    const Value s = integer(detail::value_of(t_, seed, at_), "seed");
    return {low(s), high(s)};
  }
  Value limit(const Operand& o, const char* what) {
    const Value v = detail::value_as(t_, o, DType::i32, who_, at_);
    if (t_.type(v).dtype != DType::i32 || t_.type(v).ptr)
      t_.fail(at_, fmt::format("{}: {} must be i32, not {}; cast first", who_, what, t_.type(v).str()));
    return v;
  }

  /// `x` as a value of the offsets' shape.
  Value spread(Value x) { return detail::broadcast_like(t_, x, like_, who_, at_); }
  Value number(DType d, std::uint64_t n) { return spread(t_.constant({d, n}, at_)); }
  Value real(double x) { return spread(t_.constant(ir::Literal::of_float(DType::f32, x), at_)); }
  Value make(Op op, Value a, Value b) {
    return t_.emit(at_, [&](ir::Builder& m) { return m.elementwise(op, {a, b}, at_); });
  }
  Value function(Op op, Value a) {
    return t_.emit(at_, [&](ir::Builder& m) { return m.elementwise(op, {a}, at_); });
  }
  Value cast(Value x, DType d) { return detail::cast_to(t_, x, d, at_); }
  Value low(Value x) { return cast(x, DType::u32); }
  Value high(Value x) {
    Value by = t_.constant({DType::u64, 32}, at_);
    return low(make(Op::Shr, x, detail::broadcast_like(t_, by, t_.type(x), who_, at_)));
  }
  Value wide(Value x) { return cast(x, DType::u64); }
  Value radius(std::size_t word);
  Value angle(std::size_t word);

  Tracer& t_;
  SourceLoc at_;
  const char* who_;
  ir::Type like_;
  Words words_;
};

/// The products are 32 x 32 -> 64 bits: of u64 whose high halves are zero, one instruction.
Words Generator::philox(Words x, std::array<Value, 2> key) {
  const Value multipliers[] = {number(DType::u64, 0xD2511F53), number(DType::u64, 0xCD9E8D57)};
  const Value steps[] = {t_.constant({DType::u32, 0x9E3779B9}, at_), t_.constant({DType::u32, 0xBB67AE85}, at_)};
  for (int round = 0; round < 10; ++round) {
    if (round > 0)
      for (std::size_t i = 0; i < 2; ++i) key[i] = make(Op::Add, key[i], steps[i]);
    const Value p = make(Op::Mul, wide(x[0]), multipliers[0]), q = make(Op::Mul, wide(x[2]), multipliers[1]);
    const Value a = make(Op::Xor, make(Op::Xor, high(q), x[1]), spread(key[0]));
    const Value b = make(Op::Xor, make(Op::Xor, high(p), x[3]), spread(key[1]));
    x = {a, low(q), b, low(p)};
  }
  return x;
}

Value Generator::uniform(std::size_t word) {
  const Value digits = make(Op::Shr, words_[word], number(DType::u32, 8));
  return make(Op::Mul, cast(digits, DType::f32), real(0x1p-24));
}

Value Generator::radius(std::size_t word) {
  const Value w = cast(words_[word], DType::f32), scale = real(0x1p-32), half = real(0x1p-33);
  const Value u = t_.emit(at_, [&](ir::Builder& m) { return m.elementwise(Op::Fma, {w, scale, half}, at_); });
  return function(Op::Sqrt, make(Op::Mul, function(Op::Log, u), real(-2)));
}

Value Generator::angle(std::size_t word) {
  return make(Op::Mul, cast(cast(words_[word], DType::i32), DType::f32), real(2 * M_PI * 0x1p-32));
}

Value Generator::bounded(const Operand& lo, const Operand& hi) {
  const Value first = limit(lo, "low"), last = limit(hi, "high");
  const Value above = make(Op::Sub, cast(last, DType::i64), cast(first, DType::i64));
  const Value none = t_.constant({DType::i64, 0}, at_);
  const Value count = spread(cast(make(Op::Max, above, none), DType::u64));
  const Value shift = number(DType::u64, 32);
  const Value carry = make(Op::Shr, make(Op::Mul, wide(words_[1]), count), shift);
  const Value scaled = make(Op::Shr, make(Op::Add, make(Op::Mul, wide(words_[0]), count), carry), shift);
  return make(Op::Add, cast(scaled, DType::i32), spread(first));
}

template <class H>
H made(Value v) {
  return H(Made{v.id});
}

template <class H, class F>
std::array<H, 4> four(F&& f) {
  return {made<H>(f(0)), made<H>(f(1)), made<H>(f(2)), made<H>(f(3))};
}

}  // namespace

std::array<Tile, 4> philox(SArg seed, const Tile& offsets, RawLoc l) {
  const Generator g("philox", seed, offsets, l);
  return four<Tile>([&](std::size_t i) { return g.bits(i); });
}
std::array<Scalar, 4> philox(SArg seed, const Scalar& offset, RawLoc l) {
  const Generator g("philox", seed, offset, l);
  return four<Scalar>([&](std::size_t i) { return g.bits(i); });
}
std::array<Tile, 4> philox(const std::array<Tile, 4>& counter, const std::array<Scalar, 2>& key, RawLoc l) {
  const Generator g(counter, key, l);
  return four<Tile>([&](std::size_t i) { return g.bits(i); });
}

Tile randint(SArg seed, const Tile& offsets, RawLoc l) {
  return made<Tile>(Generator("randint", seed, offsets, l).bits(0));
}
Scalar randint(SArg seed, const Scalar& offset, RawLoc l) {
  return made<Scalar>(Generator("randint", seed, offset, l).bits(0));
}
Tile randint(SArg seed, const Tile& offsets, SArg low, SArg high, RawLoc l) {
  return made<Tile>(Generator("randint", seed, offsets, l).bounded(low, high));
}
Scalar randint(SArg seed, const Scalar& offset, SArg low, SArg high, RawLoc l) {
  return made<Scalar>(Generator("randint", seed, offset, l).bounded(low, high));
}

Tile rand(SArg seed, const Tile& offsets, RawLoc l) {
  return made<Tile>(Generator("rand", seed, offsets, l).uniform(0));
}
Scalar rand(SArg seed, const Scalar& offset, RawLoc l) {
  return made<Scalar>(Generator("rand", seed, offset, l).uniform(0));
}
std::array<Tile, 4> rand4(SArg seed, const Tile& offsets, RawLoc l) {
  Generator g("rand4", seed, offsets, l);
  return four<Tile>([&](std::size_t i) { return g.uniform(i); });
}

Tile randn(SArg seed, const Tile& offsets, RawLoc l) {
  return made<Tile>(Generator("randn", seed, offsets, l).normal_cos(0));
}
Scalar randn(SArg seed, const Scalar& offset, RawLoc l) {
  return made<Scalar>(Generator("randn", seed, offset, l).normal_cos(0));
}
std::array<Tile, 4> randn4(SArg seed, const Tile& offsets, RawLoc l) {
  Generator g("randn4", seed, offsets, l);
  return four<Tile>([&](std::size_t i) { return i % 2 == 0 ? g.normal_cos(i) : g.normal_sin(i - 1); });
}

}  // namespace kiln
