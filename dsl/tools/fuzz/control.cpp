// Control flow: loops with bounds known to the generator, so that each ends; branches on any scalar.
#include "dsl/tools/fuzz/generator.h"

#include <algorithm>

namespace kiln::fuzz {

using ir::Attr;
using ir::AttrKey;
using ir::InstId;
using ir::Literal;
using ir::Op;
using ir::RegionId;
using ir::Type;
using ir::Value;

template <class F>
void Generator::inside(RegionId r, F&& body) {
  const RegionId outer = b_.region();
  const std::size_t pool = pool_.size(), used = used_.size();
  b_.set_region(r);
  ++depth_;
  body();
  --depth_;
  pool_.resize(pool);
  used_.resize(used);
  b_.set_region(outer);
}

void Generator::yield(const std::vector<Value>& values) { b_.append(Op::Yield, values, {}, {}, kLoc); }

std::vector<Value> Generator::carried() {
  std::vector<Value> out;
  for (std::uint64_t n = below(4); n > 0; --n) out.push_back(value(any_dtype(), any_shape(), 2));
  return out;
}

std::vector<Value> Generator::parameters(RegionId r, const std::vector<Value>& like) {
  std::vector<Value> out;
  for (Value v : like) {
    out.push_back(f_.add_region_param(r, Type(f_.type(v))));
    pool_.push_back(out.back());
  }
  return out;
}

std::vector<Value> Generator::next_of(const std::vector<Value>& like) {
  std::vector<Value> out;
  for (Value v : like) out.push_back(value_of(Type(f_.type(v))));
  return out;
}

void Generator::for_loop() {
  const DType d = chance(50) ? DType::index : any_int();
  const std::int64_t trips = pick({0, 1, 2, 3, 4}),
                     step = is_signed(d) ? pick({1, 1, 1, 2, 3, -1, -2}) : pick({1, 1, 2, 3});
  const std::int64_t lo = is_signed(d) ? pick({0, 0, 1, -3, 5}) : pick({0, 0, 1, 5});
  // A bound between two trips ends the loop as well as one that is met, but must not pass 0 if the type has no sign.
  const std::int64_t hi =
      std::max(lo + trips * step - (step > 1 && trips > 0 ? pick({0, 1}) : 0), is_signed(d) ? -100L : 0L);
  const std::vector<Value> init = carried();
  const bool unrolled = chance(20);  // a hint that asks for bounds that are known
  const auto bound = [&](std::int64_t x) {
    return unrolled ? b_.constant(Literal::of_int(d, x), kLoc) : uniform(x, d);
  };
  std::vector<Value> operands{bound(lo), bound(hi), bound(step)};
  operands.insert(operands.end(), init.begin(), init.end());
  std::vector<Attr> attrs;
  if (unrolled) attrs.push_back(attr(AttrKey::unroll, pick({2, 3, 4, -1})));
  const InstId loop = b_.append(Op::For, operands, {}, attrs, kLoc);
  const RegionId body = f_.add_region(loop);
  inside(body, [&] {
    const Value iv = f_.add_region_param(body, Type::scalar(d));
    pool_.push_back(iv);
    parameters(body, init);
    const std::int64_t last = lo + std::max<std::int64_t>(trips - 1, 0) * step;
    loops_.push_back(
        {d == DType::index ? iv : b_.cast(iv, DType::index, false, kLoc), std::min(lo, last), std::max(lo, last)});
    for (std::uint64_t n = below(4) + 1; n > 0; --n) this->step();
    yield(next_of(init));
    loops_.pop_back();
  });
  keep_all(loop);
}

/// A counter ends the loop; the condition may end it earlier.
void Generator::while_loop() {
  const DType d = any_int();
  const std::int64_t trips = pick({0, 1, 2, 4});
  std::vector<Value> init = carried();
  init.push_back(b_.constant(Literal::of_int(d, 0), kLoc));
  const InstId loop = b_.append(Op::While, init, {}, {}, kLoc);
  const RegionId condition = f_.add_region(loop), body = f_.add_region(loop);
  inside(condition, [&] {
    const Value counter = parameters(condition, init).back();
    Value go = b_.elementwise(Op::Lt, {counter, uniform(trips, d)}, kLoc);
    if (chance(30)) compute();
    if (chance(30)) go = b_.elementwise(Op::And, {go, value(DType::i1, std::nullopt, 2)}, kLoc);
    yield({go});
  });
  inside(body, [&] {
    const Value counter = parameters(body, init).back();
    for (std::uint64_t n = below(4) + 1; n > 0; --n) step();
    std::vector<Value> next = next_of({init.begin(), init.end() - 1});
    next.push_back(b_.elementwise(Op::Add, {counter, b_.constant(Literal::of_int(d, 1), kLoc)}, kLoc));
    yield(next);
  });
  keep_all(loop);
}

void Generator::if_else() {
  const Value condition = value(DType::i1, std::nullopt, 2);
  const std::vector<Value> like = carried();
  std::vector<Type> types;
  for (Value v : like) types.push_back(f_.type(v));
  const InstId branch = b_.append(Op::If, {condition}, types, {}, kLoc);
  for (int side = 0; side < 2; ++side) {
    inside(f_.add_region(branch), [&] {
      for (std::uint64_t n = below(4); n > 0; --n) step();
      yield(next_of(like));
    });
  }
  keep_all(branch);
}

}  // namespace kiln::fuzz
