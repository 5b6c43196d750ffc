// Programs that must be refused while they are traced, each at the user's line.
#include <gtest/gtest.h>

#include <optional>

#include "dsl/kiln.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

// clang-format off: each expectation counts lines

/// Tracing `f`(o, in, n) fails with `part` at `line` of this file.
template <class F>
void expect_refused(const char* part, int line, F f) {
  auto k = kernel("bad", f);
  expect_user_error([&] { (void)k.trace(device_ptr<float>(256), device_ptr<float>(512), 5); }, part, __FILE__, line);
}

// --- handles and their kernels ----------------------------------------------------------------------------------------

TEST(LangError, HandleKeptAfterItsKernel) {
  static std::optional<Scalar> kept;
  auto k = kernel("keeper", [](Out<float> o) {
    kept = Scalar(1);
    store(o, 1.f);
  });
  constexpr int kLine = __LINE__ - 3;
  expect_user_error([&] { (void)k.trace(device_ptr<float>(256)); }, "a Tile or Scalar outlives the kernel 'keeper' that made it", __FILE__, kLine);
  expect_refused("a Tile or Scalar of another kernel's trace is used here", __LINE__ + 1, [](Out<float> o, In<float>, Int) {
    store(o, (*kept + 1).cast(f32));
  });
  kept.reset();
}

TEST(LangError, HandleMadeOutsideAnyKernel) {
  static Scalar outside;
  expect_refused("a Tile or Scalar made outside any kernel is used here", __LINE__ + 1, [](Out<float> o, In<float>, Int) {
    store(o, (outside + 1).cast(f32));
  });
  expect_refused("a Tile or Scalar made outside any kernel is used here", __LINE__ + 1, [](Out<float>, In<float>, Int) {
    outside = Scalar(1);
  });
  expect_user_error([] { Scalar s = 1; }, "no kernel is being traced on this thread", __FILE__, __LINE__);
  expect_user_error([] { (void)arange(4); }, "no kernel is being traced on this thread", __FILE__, __LINE__);
}

TEST(LangError, UsedBeforeItIsAssigned) {
  expect_refused("this variable is used before it is assigned", __LINE__ + 2, [](Out<float> o, In<float>, Int) {
    Scalar s;
    s += 1;
    store(o, s.cast(f32));
  });
  expect_refused("this variable is used before it is assigned", __LINE__ + 2, [](Out<float> o, In<float>, Int) {
    Tile a, b = a;
    store(o + arange(4), b);
  });
}

TEST(LangError, SwallowedErrorIsReportedAtTheEnd) {
  expect_refused("this variable is used before it is assigned", __LINE__ + 3, [](Out<float> o, In<float>, Int) {
    try {
      Scalar s;
      (void)(s + 1);
    } catch (const std::exception&) {
    }
    (void)o;
  });
}

// --- types ------------------------------------------------------------------------------------------------------------

TEST(LangError, TruthValuesTakePartInNoArithmetic) {
  expect_refused("i1 takes part in no arithmetic; write a <= b && b < c", __LINE__ + 1, [](Out<float> o, In<float>, Int n) {
    Scalar c = 0 <= n < 7;
    store(o, 1.f, c);
  });
  expect_refused("i1 takes part in no arithmetic", __LINE__ + 1, [](Out<float> o, In<float>, Int n) {
    store(o, ((n > 1) + (n > 2)).cast(f32));
  });
  expect_refused("'&&' needs two i1 operands, not index and i1", __LINE__ + 1, [](Out<float> o, In<float>, Int n) {
    Scalar m = n + 1;
    store(o, 1.f, m && true);
  });
  expect_refused("'!' needs an i1 operand, not index", __LINE__ + 1, [](Out<float>, In<float>, Int n) {
    Scalar m = n + 1; (void)!m;
  });
}

TEST(LangError, NumberThatDoesNotFit) {
  expect_refused("add: the constant 3000000000 does not fit i32", __LINE__ + 2, [](Out<float> o, In<float>, Int n) {
    Scalar m = n.cast(i32);
    store(o, (m + 3000000000u).cast(f32));
  });
  expect_refused("the constant 300 does not fit u8", __LINE__ + 1, [](Out<float> o, In<float>, Int n) {
    store(o, (n.cast(u8) < 300).cast(f32));
  });
  expect_refused("full: the constant 70000 does not fit f16", __LINE__ + 1, [](Out<float>, In<float>, Int) {
    (void)full(DType::f16, {4}, 70000);
  });
}

TEST(LangError, NoCommonType) {
  expect_refused("'add' of i32 and u32: no dtype holds both; cast one of them", __LINE__ + 1, [](Out<float>, In<float>, Int n) {
    (void)(n.cast(i32) + n.cast(u32));
  });
  expect_refused("select: no dtype holds both i1 and f32; cast one of them", __LINE__ + 1, [](Out<float>, In<float>, Int n) {
    (void)select(n > 1, n > 2, Scalar(1.f));
  });
  expect_refused("select: condition must be i1, not index", __LINE__ + 1, [](Out<float>, In<float>, Int n) {
    (void)select(n, 1, 2);
  });
}

TEST(LangError, MathNeedsFloats) {
  expect_refused("exp", __LINE__ + 1, [](Out<float>, In<float>, Int n) {
    (void)exp(n);
  });
  expect_refused("exp", __LINE__ + 1, [](Out<float>, In<float>, Int n) {
    (void)exp(n.cast(f64));
  });
}

// --- shapes -----------------------------------------------------------------------------------------------------------

TEST(LangError, ShapesThatDoNotBroadcast) {
  expect_refused("add: shapes do not broadcast: tile<4xindex> and tile<3xindex>", __LINE__ + 1, [](Out<float>, In<float>, Int) {
    (void)(arange(4) + arange(3));
  });
  expect_refused("broadcast_to: tile<4xindex> does not broadcast to the shape of tile<4x1xindex>", __LINE__ + 1, [](Out<float>, In<float>, Int) {
    (void)broadcast_to(arange(4), {4, 1});
  });
  expect_refused("expand: axis 3 of a tile of rank 2", __LINE__ + 1, [](Out<float>, In<float>, Int) {
    (void)expand(arange(4), 3);
  });
  expect_refused("extent: axis 1 of a tile of rank 1", __LINE__ + 1, [](Out<float>, In<float>, Int) {
    (void)arange(4).extent(1);
  });
}

TEST(LangError, ExtentsMustBePositive) {
  expect_refused("arange", __LINE__ + 1, [](Out<float>, In<float>, Int) {
    (void)arange(0);
  });
  expect_refused("a tile's extents are positive, shape is [4,0]", __LINE__ + 1, [](Out<float>, In<float>, Int) {
    (void)zeros(f32, {4, 0});
  });
  expect_refused("program_id", __LINE__ + 1, [](Out<float>, In<float>, Int) {
    (void)program_id(3);
  });
}

// --- memory -----------------------------------------------------------------------------------------------------------

TEST(LangError, StoreOfAnotherType) {
  expect_refused("store: value is tile<4xindex>, pointer is tile<4xptr<f32>>; cast first", __LINE__ + 1, [](Out<float> o, In<float>, Int) {
    store(o + arange(4), arange(4));
  });
  expect_refused("store: the constant 1e+40 does not fit f32", __LINE__ + 1, [](Out<float> o, In<float>, Int) {
    store(o, 1e40);
  });
}

TEST(LangError, StoreThroughIn) {
  expect_refused("store: through the read-only pointer ptr<const f32> of an In parameter", __LINE__ + 1, [](Out<float>, In<float> x, Int) {
    store(x, 1.f);
  });
  expect_refused("read-only pointer", __LINE__ + 1, [](Out<float>, In<float> x, Int n) {
    store(select(n > 1, x + 1, x) + arange(4), 1.f);
  });
}

TEST(LangError, MasksAndShapesOfAccesses) {
  expect_refused("load: mask must be i1, not tile<4xindex>", __LINE__ + 1, [](Out<float>, In<float> x, Int) {
    (void)load(x + arange(4), arange(4));
  });
  expect_refused("load: mask must be i1, not f32", __LINE__ + 1, [](Out<float>, In<float> x, Int) {
    (void)load(x + arange(4), 0.f);
  });
  expect_refused("load: other is tile<4xindex>, pointer is tile<4xptr<const f32>>; cast first", __LINE__ + 1, [](Out<float>, In<float> x, Int n) {
    (void)load(x + arange(4), arange(4) < n, arange(4));
  });
  expect_refused("store: tile<4x4xf32> does not broadcast to the shape of tile<4xptr<f32>>", __LINE__ + 1, [](Out<float> o, In<float>, Int) {
    store(o + arange(4), zeros(f32, {4, 4}));
  });
  expect_refused("load: needs a pointer, not index", __LINE__ + 1, [](Out<float>, In<float>, Int n) {
    (void)load(n);
  });
}

TEST(LangError, PointersOnlyMove) {
  expect_refused("pointers allow only pointer + integer and pointer - integer, not mul of ptr<f32> and index", __LINE__ + 1, [](Out<float> o, In<float>, Int n) {
    (void)(o * n);
  });
  expect_refused("a pointer offset must be an integer, not f32", __LINE__ + 1, [](Out<float> o, In<float>, Int) {
    (void)(o + Scalar(1.f));
  });
  expect_refused("cast of ptr<f32>: a pointer has no conversion", __LINE__ + 1, [](Out<float> o, In<float>, Int) {
    (void)o.cast(i64);
  });
  expect_refused("full: value is ptr<f32>, not f32", __LINE__ + 1, [](Out<float> o, In<float>, Int) {
    (void)full(f32, {4}, o);
  });
}

// --- size -------------------------------------------------------------------------------------------------------------

TEST(LangError, EndlessUnrolling) {
  expect_refused("the trace has more values than 262144; is a C++ loop unrolling without end?", __LINE__ + 2, [](Out<float>, In<float>, Int n) {
    Scalar s = n;
    for (;;) s += n;
  });
}

// clang-format on

}  // namespace
}  // namespace kiln::test
