#include "tests/kernel/random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <set>

#include "backend/ir/builder.h"
#include "backend/ir/text.h"

namespace kiln::test {
namespace {

using ir::Builder;
using ir::Literal;
using ir::Op;
using ir::Shape;
using ir::Type;
using ir::Value;

constexpr std::int64_t kMaxElements = 2048;
constexpr SourceLoc kLoc{"random.cpp", 1};

/// A tile of the index type, and what it holds for program 0. A gather holds the ends of its range only.
struct Index {
  Value v;
  std::vector<std::int64_t> at;
  bool distinct = true;
  std::int64_t lo() const { return *std::min_element(at.begin(), at.end()); }
  std::int64_t hi() const { return *std::max_element(at.begin(), at.end()); }
};

struct Pointer {
  Value v;
  DType dtype;
  bool read_only;
  std::int64_t first;  ///< its byte offset in a program's memory
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed), f_("random", kLoc), b_(f_) {
    p_.programs = {pick({1, 1, 2, 3}), pick({1, 1, 2}), pick({1, 1, 1, 2})};
    p_.options.num_warps = int(pick({0, 0, 1, 2, 4, 8, 16}));
    program();
    for (int k = int(below(3)) + 1; k > 0; --k) shapes_.push_back(shape());
    for (int k = int(below(4)) + 2; k > 0; --k) pointers_.push_back(pointer());
    for (int k = int(below(4)); k > 0; --k) {
      const DType d = any_dtype();
      pool_.push_back(param(d, literal(d).bits));
    }
  }

  RandomProgram run(int steps) {
    for (int k = 0; k < steps; ++k) step();
    p_.function = f_;
    // A tile of n elements takes n/threads registers, twice that of 64-bit ones; at most 128 are allowed.
    const auto fit = [&](const Shape& s) {
      std::int64_t n = 2;
      for (std::int64_t extent : s) n *= std::int64_t(std::bit_ceil(std::uint64_t(extent)));
      return p_.options.num_warps == 0 || n <= 32 * 128 * p_.options.num_warps;
    };
    if (!std::all_of(shapes_.begin(), shapes_.end(), fit)) p_.options.num_warps = 0;
    return p_;
  }

 private:
  // --- chance --------------------------------------------------------------------------------------------------------
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(int percent) { return below(100) < std::uint64_t(percent); }
  template <class C>
  const typename C::value_type& any(const C& c) {
    return c[below(c.size())];
  }
  std::int64_t pick(const std::vector<std::int64_t>& v) { return any(v); }

  DType any_dtype() {
    static const std::vector<DType> all{DType::i1,   DType::i8,  DType::i16,  DType::i32,    DType::i64,
                                        DType::u8,   DType::u16, DType::u32,  DType::u64,    DType::f16,
                                        DType::bf16, DType::f32, DType::f64,  DType::f8e4m3, DType::f8e5m2,
                                        DType::f32,  DType::i32, DType::index};
    return any(all);
  }
  static bool is_f8(DType d) { return d == DType::f8e4m3 || d == DType::f8e5m2; }

  Shape shape() {
    static const std::vector<std::int64_t> one{1,  2,   3,   5,   7,   8,   16,  31,   32,   33,
                                               64, 100, 128, 129, 256, 500, 512, 1000, 1024, 2048};
    static const std::vector<std::int64_t> more{1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 32, 33, 64, 100, 128};
    const int rank = int(pick({1, 1, 1, 1, 2, 2, 2, 3, 4}));
    if (rank == 1) return {chance(40) ? pick({512, 1024, 2048}) : any(one)};
    for (;;) {
      Shape s;
      std::int64_t n = 1;
      for (int a = 0; a < rank; ++a) s.push_back(any(more)), n *= s.back();
      if (n <= kMaxElements) return s;
    }
  }

  Literal literal(DType d) {
    if (d == DType::i1) return Literal::of_int(d, std::int64_t(below(2)));
    if (is_float(d)) {
      if (chance(60)) return Literal::of_float(d, double(std::int64_t(below(41)) - 20) / 4);
      static const std::vector<double> special{0.,  -0.,   1.,     -1.,  INFINITY, -INFINITY,
                                               NAN, 1e-40, 65504., 448., 3e38,     1e300};
      return Literal::of_float(d, any(special));
    }
    if (chance(60)) return Literal::of_int(d, std::int64_t(below(40)) - 16);
    return Literal::of_int(d, std::int64_t(random_() >> below(64)));
  }

  // --- parameters ----------------------------------------------------------------------------------------------------
  Value param(DType d, std::uint64_t bits) {
    ir::Param p{Type::scalar(d), "", rt::Access::Read, 1, false};
    if (d == DType::index && bits % 16 == 0 && chance(60)) p.align = 16;
    if (d == DType::index && bits == 1 && chance(60)) p.is_one = true;
    f_.params.push_back(p);
    p_.args.push_back(bits);
    return b_.param(int(f_.params.size()) - 1, kLoc);
  }

  Pointer pointer() {
    const DType d = pointers_.empty() || chance(50) ? any_dtype() : any(pointers_).dtype;
    const std::int64_t size = bytes(d);
    Pointer p{{}, d, chance(25), size * std::int64_t(below(std::uint64_t(kProgramMemory / size / 2)))};
    if (chance(50)) p.first &= -16;
    ir::Param param{Type::pointer(d, p.read_only), "", p.read_only ? rt::Access::Read : rt::Access::ReadWrite,
                    int(size), false};
    if (p.first % 16 == 0 && chance(80)) param.align = 16;
    f_.params.push_back(param);
    p_.args.push_back(std::uint64_t(p.first));
    p.v = b_.param(int(f_.params.size()) - 1, kLoc);
    return p;
  }

  /// The number of this program in the grid.
  void program() {
    Value n = b_.program_id(2, kLoc);
    for (int axis : {1, 0}) {
      const Value extent = chance(50) ? b_.num_programs(axis, kLoc) : uniform(p_.programs[std::size_t(axis)]);
      n = op(Op::Add, op(Op::Mul, n, extent), b_.program_id(axis, kLoc));
    }
    program_ = n;
  }

  // --- index values --------------------------------------------------------------------------------------------------
  Value op(Op o, Value x, Value y) {
    if (f_.type(x).tile && !f_.type(y).tile) y = b_.splat(y, f_.type(x).shape, kLoc);
    if (f_.type(y).tile && !f_.type(x).tile) x = b_.splat(x, f_.type(y).shape, kLoc);
    return b_.elementwise(o, {x, y}, kLoc);
  }
  Value constant(std::int64_t x) { return b_.constant(Literal::of_int(DType::index, x), kLoc); }
  /// A uniform index value known to the generator: constant or parameter.
  Value uniform(std::int64_t x) { return chance(60) ? constant(x) : param(DType::index, std::uint64_t(x)); }

  void apply(Index& i, Op o, std::int64_t k, const std::function<std::int64_t(std::int64_t)>& f, bool free = true) {
    i.v = op(o, i.v, free ? uniform(k) : constant(k));
    for (std::int64_t& x : i.at) x = f(x);
  }

  /// Permuted, strided, reversed or repeated 0…n-1.
  Index line(std::int64_t n, bool distinct) {
    Index i;
    const std::int64_t start = chance(30) ? std::int64_t(below(64)) : 0;
    i.v = b_.arange(start, start + n, kLoc);
    for (std::int64_t k = 0; k < n; ++k) i.at.push_back(start + k);
    switch (chance(60) ? 99 : below(distinct ? 5 : 10)) {
      case 0: {
        const std::int64_t k = pick({2, 3, 4, 8, -1, -2, -4});
        apply(
            i, Op::Mul, k, [&](auto x) { return x * k; }, chance(30));
        break;
      }
      case 1: {
        const std::int64_t k = start + n - 1;
        i.v = op(Op::Sub, uniform(k), i.v);
        for (std::int64_t& x : i.at) x = k - x;
        break;
      }
      case 2: {
        const std::int64_t k = std::int64_t(below(64));
        apply(i, Op::Xor, k, [&](auto x) { return x ^ k; });
        break;
      }
      case 3: {
        const std::int64_t k = std::int64_t(below(std::uint64_t(n)));
        apply(i, Op::Add, k, [&](auto x) { return x + k; });
        apply(
            i, Op::Rem, n, [&](auto x) { return x % n; }, chance(20));
        break;
      }
      case 4: {
        const std::int64_t d = pick({1, 2, 3, 4, 7, 8, 16, 32}), e = d + pick({0, 0, 1, 4, 8});
        Index q = i, r = i;
        apply(
            q, Op::Div, d, [&](auto x) { return x / d; }, chance(20));
        apply(q, Op::Mul, e, [&](auto x) { return x * e; });
        apply(
            r, Op::Rem, d, [&](auto x) { return x % d; }, chance(20));
        i.v = op(Op::Add, q.v, r.v);
        for (std::size_t k = 0; k < i.at.size(); ++k) i.at[k] = q.at[k] + r.at[k];
        break;
      }
      case 5: {
        const std::int64_t d = pick({2, 3, 4, 16, 64});
        apply(
            i, Op::Div, d, [&](auto x) { return x / d; }, chance(20));
        break;
      }
      case 6: {
        const std::int64_t d = pick({1, 2, 3, 4, 16, 64});
        apply(
            i, Op::Rem, d, [&](auto x) { return x % d; }, chance(20));
        break;
      }
      case 7: apply(i, Op::Mul, 0, [&](auto) { return 0; }); break;
      case 8: {
        const std::int64_t k = std::int64_t(below(std::uint64_t(n))) + start;
        apply(i, Op::Min, k, [&](auto x) { return std::min(x, k); });
        break;
      }
      case 9: {
        const std::int64_t k = pick({-4, -8, 12, 7, 1});
        apply(i, Op::And, k, [&](auto x) { return x & k; });
        break;
      }
      default: break;
    }
    if (chance(8)) {
      const std::int64_t big = pick({std::int64_t(1) << 31, (std::int64_t(1) << 32) - 8, std::int64_t(1) << 40,
                                     -(std::int64_t(1) << 62), 0x7fffffff});
      i.v = op(Op::Sub, op(Op::Add, i.v, uniform(big)), uniform(big));
    }
    if (chance(15) && i.lo() >= -100 && i.hi() < 30000) {
      i.v = b_.cast(b_.cast(i.v, chance(50) ? DType::i16 : DType::i32, false, kLoc), DType::index, false, kLoc);
    }
    return i;
  }

  /// Axis `axis` of `s` from a one-dimensional tile.
  Value along(Value x, const Shape& s, std::size_t axis) {
    for (std::size_t a = 0; a < s.size(); ++a)
      if (a != axis) x = b_.expand_dims(x, int(a), kLoc);
    return f_.type(x).shape == s ? x : b_.broadcast(x, s, kLoc);
  }

  Index coordinates(const Shape& s, bool distinct) {
    if (s.size() == 1) return line(s[0], distinct);
    std::vector<std::size_t> order(s.size());
    for (std::size_t a = 0; a < order.size(); ++a) order[a] = a;
    if (chance(30)) std::shuffle(order.begin(), order.end(), random_);
    Index sum;
    sum.at.assign(std::size_t(Type::tile_of(DType::i1, s).elements()), 0);
    std::int64_t span = 1;
    for (std::size_t k = order.size(); k-- > 0;) {
      const std::size_t axis = order[k];
      Index x = line(s[axis], distinct);
      const std::int64_t ld = distinct || chance(70) ? span + pick({0, 0, 0, 1, 3, 8}) : pick({0, 1, 2});
      if (ld != 1 || chance(10)) apply(x, Op::Mul, ld, [&](auto v) { return v * ld; });
      span = ld * (x.hi() / std::max<std::int64_t>(ld, 1) - x.lo() / std::max<std::int64_t>(ld, 1) + 1);
      const Value wide = along(x.v, s, axis);
      sum.v = sum.v.valid() ? op(Op::Add, sum.v, wide) : wide;
      std::int64_t inner = 1;
      for (std::size_t a = axis + 1; a < s.size(); ++a) inner *= s[a];
      for (std::size_t e = 0; e < sum.at.size(); ++e) sum.at[e] += x.at[std::size_t(std::int64_t(e) / inner % s[axis])];
    }
    return sum;
  }

  /// Addresses of one value data says; only for loads.
  Index gather(const Shape& s) {
    const std::int64_t k = pick({0, 1, 3, 7, 31, 255, 1023});
    const Value data = value(any_int(), s, 2);
    return {op(Op::And, b_.cast(data, DType::index, false, kLoc), constant(k)), {0, k}, false};
  }
  DType any_int() {
    static const std::vector<DType> ints{DType::i8, DType::i16, DType::i32,  DType::i64,
                                         DType::u8, DType::u32, DType::index};
    return any(ints);
  }

  /// An access so far: `first` is the byte where its index 0 lies.
  struct Used {
    Shape shape;
    Index index;
    std::int64_t first;
  };
  /// Half the time one of that shape, so that accesses of one pattern overlap.
  const Used* recent(const Shape& s, bool distinct) {
    std::vector<const Used*> out;
    for (const Used& u : used_)
      if (u.shape == s && (u.index.distinct || !distinct)) out.push_back(&u);
    return out.empty() || chance(35) ? nullptr : any(out);
  }

  /// Pointers to elements of `p` inside a program's memory; invalid if none fit.
  Value address(const Pointer& p, const Shape& s, bool distinct) {
    const std::int64_t size = bytes(p.dtype), least = -(p.first / size), most = (kProgramMemory - p.first) / size - 1;
    const Used* near = recent(s, distinct);
    Index i = near != nullptr ? near->index : !distinct && chance(10) ? gather(s) : coordinates(s, distinct);
    if (distinct && std::set<std::int64_t>(i.at.begin(), i.at.end()).size() != i.at.size()) return {};
    const std::int64_t from = least - i.lo(), to = most - i.hi();
    if (from > to) return {};
    std::int64_t shift = from + std::int64_t(below(std::uint64_t(to - from + 1)));
    if (chance(50)) shift = std::clamp<std::int64_t>(shift & -16, from, to);
    if (from <= 0 && to >= 0 && chance(40)) shift = 0;
    if (near != nullptr)
      shift = std::clamp((near->first - p.first) / size + pick({0, 0, 1, -1, 2, 4, -4, 16, 33, -128}), from, to);
    used_.push_back({s, i, p.first + shift * size});
    return placed(p, i, shift);
  }

  struct Guarded {
    Value at, mask;
  };
  /// Pointers that leave the memory, and the mask of those that do not.
  Guarded guarded(const Pointer& p, const Shape& s, bool distinct) {
    const std::int64_t size = bytes(p.dtype), least = -(p.first / size), most = (kProgramMemory - p.first) / size - 1;
    Index i = distinct || chance(70)
                  ? coordinates(s, distinct)
                  : Index{b_.cast(value(any_int(), s, 2), DType::index, false, kLoc), {0, 1000}, false};
    if (distinct && std::set<std::int64_t>(i.at.begin(), i.at.end()).size() != i.at.size()) return {};
    std::int64_t shift =
        pick({least - i.lo(), most - i.hi()}) + pick({-200, -64, -16, -3, -1, 0, 1, 5, 16, 48, 128, 300});
    if (chance(50)) shift &= -16;
    if (chance(10)) shift += pick({std::int64_t(1) << 31, -(std::int64_t(1) << 32), std::int64_t(1) << 40});
    i.v = op(Op::Add, i.v, uniform(shift));
    const std::int64_t from = least + pick({0, 0, 1, 2, 4, 7}), to = most - pick({0, 0, 1, 3, 4, 16});
    const Value low = op(chance(50) ? Op::Ge : Op::Gt, i.v, uniform(from));
    const Value high = chance(50) ? op(Op::Le, i.v, uniform(to)) : op(Op::Lt, i.v, uniform(to + 1));
    return {placed(p, i, 0), op(Op::And, low, high)};
  }

  Value placed(const Pointer& p, const Index& i, std::int64_t shift) {
    const Shape s = f_.type(i.v).shape;
    const Value mine = op(Op::Mul, program_, constant(kProgramMemory / bytes(p.dtype)));
    switch (below(5)) {
      case 0: {
        const Value q = b_.ptr_add(b_.ptr_add(p.v, mine, kLoc), uniform(shift), kLoc);
        return b_.ptr_add(b_.splat(q, s, kLoc), i.v, kLoc);
      }
      case 1: return b_.ptr_add(b_.splat(p.v, s, kLoc), op(Op::Add, op(Op::Add, i.v, mine), uniform(shift)), kLoc);
      case 2: {
        const Value q = b_.ptr_add(p.v, op(Op::Add, mine, uniform(shift)), kLoc);
        return b_.ptr_add(b_.splat(q, s, kLoc), i.v, kLoc);
      }
      case 3: {
        const Value narrow = b_.cast(op(Op::Add, i.v, uniform(shift)), DType::i32, false, kLoc);
        return b_.ptr_add(b_.splat(b_.ptr_add(p.v, mine, kLoc), s, kLoc), narrow, kLoc);
      }
      default: {
        const Value q = b_.ptr_add(b_.splat(p.v, s, kLoc), i.v, kLoc);
        return b_.ptr_add(q, b_.splat(op(Op::Add, mine, uniform(shift)), s, kLoc), kLoc);
      }
    }
  }

  Value scalar_address(const Pointer& p) {
    const std::int64_t size = bytes(p.dtype), least = -(p.first / size), most = (kProgramMemory - p.first) / size - 1;
    const std::int64_t at = least + std::int64_t(below(std::uint64_t(most - least + 1)));
    const Value mine = op(Op::Mul, program_, constant(kProgramMemory / size));
    return b_.ptr_add(b_.ptr_add(p.v, mine, kLoc), uniform(at), kLoc);
  }

  // --- values --------------------------------------------------------------------------------------------------------
  bool has(Value v, const std::optional<Shape>& s) const {
    const Type& t = f_.type(v);
    return s ? t.tile && t.shape == *s : !t.tile;
  }
  std::vector<Value> known(const std::optional<Shape>& s, std::optional<DType> d) const {
    std::vector<Value> out;
    for (Value v : pool_)
      if (has(v, s) && (!d || f_.type(v).dtype == *d)) out.push_back(v);
    return out;
  }

  /// A value of that dtype and shape (nullopt: scalar): an old one, or made from others.
  Value value(DType d, const std::optional<Shape>& s, int depth) {
    const auto one_of = [&](const std::vector<Value>& v) { return chance(50) ? v.back() : any(v); };
    if (const auto same = known(s, d); !same.empty() && chance(60)) return one_of(same);
    if (const auto other = known(s, std::nullopt); !other.empty() && chance(70)) return cast(one_of(other), d);
    if (!s) return chance(30) || depth == 0 ? b_.constant(literal(d), kLoc) : cast(program_, d);
    switch (below(4)) {
      case 0: return b_.splat(value(d, std::nullopt, 0), *s, kLoc);
      case 1: {
        const std::size_t axis = below(s->size());
        if (depth > 0 && s->size() > 1) return along(value(d, Shape{(*s)[axis]}, depth - 1), *s, axis);
        [[fallthrough]];
      }
      case 2: return cast(coordinates(*s, false).v, d);
      default: return b_.splat(b_.constant(literal(d), kLoc), *s, kLoc);
    }
  }

  Value cast(Value v, DType d) {
    const DType from = f_.type(v).dtype;
    return from == d ? v : b_.cast(v, d, is_float(d) && chance(20), kLoc);
  }

  Value mask(const Shape& s) {
    switch (below(5)) {
      case 0: {
        const Index i = coordinates(s, false);
        const std::int64_t bound = i.lo() + std::int64_t(below(std::uint64_t(i.hi() - i.lo() + 3)));
        return op(any(std::vector<Op>{Op::Lt, Op::Le, Op::Ge, Op::Gt, Op::Ne, Op::Eq}), i.v, uniform(bound));
      }
      case 1: {
        const std::size_t axis = below(s.size());
        const Value i = b_.arange(0, s[axis], kLoc), bound = uniform(std::int64_t(below(std::uint64_t(s[axis] + 2))));
        return along(op(Op::Lt, i, bound), s, axis);
      }
      case 2: {
        const Value x = mask(s), y = mask(s);
        return op(any(std::vector<Op>{Op::And, Op::Or, Op::Xor}), x, y);
      }
      case 3: return b_.elementwise(Op::Not, {mask(s)}, kLoc);
      default: return value(DType::i1, s, 2);
    }
  }

  // --- steps ---------------------------------------------------------------------------------------------------------
  std::optional<Shape> any_shape() { return chance(15) ? std::nullopt : std::optional(any(shapes_)); }

  void step() {
    switch (below(6)) {
      case 5: shifted(); break;
      case 0: load(); break;
      case 1: store(); break;
      case 2: load(), store(); break;
      default: compute(); break;
    }
  }

  void load() {
    const Pointer& p = any(pointers_);
    const std::optional<Shape> s = any_shape();
    if (!s) return pool_.push_back(b_.load(scalar_address(p), {}, {}, ir::CacheHint::Plain, kLoc));
    Guarded g;
    if (chance(30)) g = guarded(p, *s, false);
    else g = {address(p, *s, false), chance(50) ? mask(*s) : Value{}};
    if (!g.at.valid()) return;
    const auto [at, m] = g;
    const Value other = m.valid() && chance(50) ? value(p.dtype, s, 2) : Value{};
    pool_.push_back(b_.load(at, m, other, ir::CacheHint(below(4)), kLoc));
  }

  void store() {
    const Pointer& p = any(pointers_);
    if (p.read_only) return;
    const std::optional<Shape> s = any_shape();
    Guarded g;
    if (s && chance(30)) g = guarded(p, *s, true);
    else g = {s ? address(p, *s, true) : scalar_address(p), s && chance(50) ? mask(*s) : Value{}};
    if (!g.at.valid()) return;
    if (g.mask.valid() && chance(20)) g.mask = op(Op::And, g.mask, mask(*s));
    const Value v = storable(p.dtype, s);
    b_.store(g.at, v, g.mask, ir::CacheHint(below(4)), kLoc);
  }

  /// Neighbours stored and loaded in one pattern at bases that overlap by run-time distances: who waits for whom?
  void shifted() {
    const Pointer& p = any(pointers_);
    const Shape s{pick({100, 256, 512, 1000, 1024, 2048})};
    const std::int64_t size = bytes(p.dtype), room = kProgramMemory / size - s[0] - 64;
    if (p.read_only || room < 0) return;
    const Value i = b_.arange(0, s[0], kLoc), mine = op(Op::Mul, program_, constant(kProgramMemory / size));
    const std::int64_t near = std::int64_t(below(std::uint64_t(room + 1))) - p.first / size;
    const auto at = [&] {
      const std::int64_t shift = near + pick({0, 0, 1, 2, 4, 16, 33, 63});
      const Value base = b_.ptr_add(p.v, op(Op::Add, mine, param(DType::index, std::uint64_t(shift))), kLoc);
      return b_.ptr_add(b_.splat(base, s, kLoc), i, kLoc);
    };
    for (int k = 0; k < 3; ++k) {
      pool_.push_back(b_.load(at(), {}, {}, ir::CacheHint::Plain, kLoc));
      b_.store(at(), storable(p.dtype, s), chance(20) ? mask(s) : Value{}, ir::CacheHint::Plain, kLoc);
    }
  }

  /// A value without a NaN.
  Value storable(DType d, const std::optional<Shape>& s) {
    if (is_f8(d)) return b_.cast(storable(DType::f32, s), d, true, kLoc);
    const Value v = value(d, s, 2);
    if (!is_float(d)) return v;
    Value nine = b_.constant(Literal::of_int(d, 9), kLoc);
    if (s) nine = b_.splat(nine, *s, kLoc);
    return b_.select(b_.elementwise(Op::Ne, {v, v}, kLoc), nine, v, kLoc);
  }

  void compute() {
    const std::optional<Shape> s = any_shape();
    DType d = any_dtype();
    if (chance(12)) return pool_.push_back(b_.select(value(DType::i1, s, 2), value(d, s, 2), value(d, s, 2), kLoc));
    if (chance(10)) return pool_.push_back(cast(value(any_dtype(), s, 2), d));
    if (chance(4)) return bitcast(s);
    static const std::vector<Op> all = [] {
      std::vector<Op> ops;
      for (int k = 0; k < ir::kOpCount; ++k)
        if (ir::info(Op(k)).elementwise && ir::info(Op(k)).accuracy.bound == ir::Bound::Exact) ops.push_back(Op(k));
      return ops;
    }();
    const Op o = any(all);
    while (!takes(ir::info(o).rule, d)) d = any_dtype();
    std::vector<Value> operands;
    for (int k = 0; k < ir::info(o).arity; ++k) operands.push_back(value(d, s, 2));
    pool_.push_back(b_.elementwise(o, operands, kLoc));
  }

  static bool takes(ir::TypeRule rule, DType d) {
    if (is_f8(d)) return false;
    switch (rule) {
      case ir::TypeRule::Num: return d != DType::i1;
      case ir::TypeRule::Float:
      case ir::TypeRule::Math: return is_float(d);
      case ir::TypeRule::Int: return is_int(d);
      case ir::TypeRule::Bits: return !is_float(d);
      default: return true;
    }
  }

  /// Integer to float: the other way would show the payload of a NaN.
  void bitcast(const std::optional<Shape>& s) {
    static const std::vector<std::pair<DType, DType>> pairs{
        {DType::i32, DType::f32}, {DType::u32, DType::i32}, {DType::i16, DType::f16},  {DType::u16, DType::bf16},
        {DType::u64, DType::f64}, {DType::u8, DType::i8},   {DType::u8, DType::f8e5m2}};
    const auto [from, to] = any(pairs);
    pool_.push_back(b_.bitcast(value(from, s, 2), to, kLoc));
  }

  std::mt19937_64 random_;
  ir::Function f_;
  Builder b_;
  RandomProgram p_;
  Value program_;
  std::vector<Shape> shapes_;
  std::vector<Pointer> pointers_;
  std::vector<Used> used_;
  std::vector<Value> pool_;
};

}  // namespace

std::string RandomProgram::text() const {
  std::string s = fmt::format("programs {}x{}x{}, num_warps {}, arguments", programs[0], programs[1], programs[2],
                              options.num_warps);
  for (std::uint64_t a : args) s += fmt::format(" {}", std::int64_t(a));
  return s + "\n" + ir::print(function, {.locations = false});
}

RandomProgram random_program(std::uint64_t seed, int steps) { return Generator(seed).run(steps); }

}  // namespace kiln::test
