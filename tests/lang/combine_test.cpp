// Combine lambdas as regions of an operation: what they may do, and what is refused at the user's line.
#include "dsl/lang/bundle.h"
#include "dsl/lang/tracer.h"
#include "tests/lang/run_kernel.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

using detail::Tracer;
using detail::ValueId;

/// The elements of x, a tile of one axis, combined by `f`.
template <class F>
Scalar combined(const Tile& x, F f, RawLoc at = RawLoc::current()) {
  Tracer& t = Tracer::current(at);
  const ir::Value v = t.read(x, at);
  ir::InstId reduce = ir::kNone;
  t.emit_effect(at, [&](ir::Builder& b) {
    const ir::Attr axis{ir::AttrKey::axis, std::int64_t(0)};
    reduce = b.append(ir::Op::Reduce, {v}, {}, {axis}, at);
  });
  const ir::Type element = ir::Type::scalar(t.type(v).dtype);
  t.combine(reduce, "reduce", {element, element}, {element},
            [&](const std::vector<ValueId>& in, std::vector<ValueId>& out) { detail::combine_values<2>(f, in, out); }, at);
  return Scalar(detail::Made{t.function().inst(reduce).results[0].id});
}

TEST(LangCombine, ScalarsOfTheOutsideMayBeRead) {
  expect_output({10, 7, 5}, 4, [](Out<float> o, Int n) {
    Tile x = arange(5).cast(f32);
    Scalar limit = n.cast(f32) + 3.f;
    store(o, combined(x, [](Scalar a, Scalar b) { return a + b; }));
    store(o + 1, combined(x * 2.f, [&](Scalar a, Scalar b) {
            Scalar local = maximum(a, b);
            local = minimum(local, limit);
            return local;
          }));
    Scalar total = 0;  // and reductions stand in loops
    for (auto i : range(n + 1)) {
      (void)i;
      total += combined(full(i32, {4}, 1), [](Scalar a, Scalar b) { return maximum(a, b); });
    }
    store(o + 2, total.cast(f32));
  });
}

// clang-format off: each expectation counts lines

template <class F>
void expect_refused(const char* part, int line, F f) {
  auto k = kernel("bad", f);
  expect_user_error([&] { (void)k.trace(device_ptr<float>(256), 5); }, part, __FILE__, line);
}

TEST(LangCombine, WhatTheyMayNotDo) {
  expect_refused("a combine lambda assigns a variable of the outside", __LINE__ + 3, [](Out<float> o, Int) {
    Scalar count = 0;
    store(o, combined(zeros(f32, {4}), [&](Scalar a, Scalar b) {
      count += 1;
      return a + b;
    }));
  });
  expect_refused("reduce: a combine lambda computes with scalars only: no store in it", __LINE__ + 2, [](Out<float> o, Int) {
    store(o, combined(zeros(f32, {4}), [&](Scalar a, Scalar b) {
      store(o, a);
      return a + b;
    }));
  });
  expect_refused("reduce: a combine lambda computes with scalars only: no splat in it", __LINE__ + 2, [](Out<float> o, Int) {
    store(o, combined(zeros(f32, {4}), [&](Scalar a, Scalar b) {
      Tile t = full(f32, {2}, a);
      return a + b;
    }));
  });
  expect_refused("reduce: a combine lambda computes with scalars only: no if in it", __LINE__ + 2, [](Out<float> o, Int) {
    store(o, combined(zeros(f32, {4}), [&](Scalar a, Scalar b) {
      return if_(a > b, [&] { return a; }, [&] { return b; });
    }));
  });
  expect_refused("reduce: the combine lambda gives i32 where f32 is needed; cast it", __LINE__ + 2, [](Out<float> o, Int) {
    store(o, combined(zeros(f32, {4}), [&](Scalar, Scalar) {
      return Scalar(1);
    }));
  });
  expect_refused("reduce: the combine lambda gives 2 values, 1 are needed", __LINE__ + 1, [](Out<float> o, Int) {
    store(o, combined(zeros(f32, {4}), [&](Scalar a, Scalar b) { return std::pair(a, b); }));
  });
  expect_refused("return_if must stand at the top level of the kernel", __LINE__ + 2, [](Out<float> o, Int) {
    store(o, combined(zeros(f32, {4}), [&](Scalar a, Scalar b) {
      return_if(a > b);
      return a;
    }));
  });
  expect_refused("depends on C++ state that a traced loop or branch changes", __LINE__ + 4, [](Out<float> o, Int) {
    float k = 0;
    store(o, combined(zeros(f32, {4}), [&](Scalar a, Scalar b) {
      k += 1;
      return a + b * k;
    }));
  });
}

// clang-format on

}  // namespace
}  // namespace kiln::test
