// Variables, C++ around them, and the values they end with.
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>

#include "tests/lang/run_kernel.h"

namespace kiln::test {
namespace {

Tile square(Tile x) {
  x = x * x;
  return x;
}
Scalar power(Scalar x, int n) { return n == 0 ? Scalar(1) : x * power(x, n - 1); }
struct Stats {
  Scalar sum = 0, count = 0;
  void add(const Scalar& x) {
    sum += x;
    count += 1;
  }
};

TEST(LangValues, CopyIsANewVariable) {
  expect_output({3, 8}, 5, [](Out<float> o, Int n) {
    Scalar x = 3, y = x;
    y += n;
    store(o, x.cast(f32));
    store(o + 1, y.cast(f32));
  });
}

TEST(LangValues, ReferencesAndPointersAreTheSameVariable) {
  expect_output({8, 9}, 5, [](Out<float> o, Int n) {
    Scalar x = 3;
    Scalar& y = x;
    const Scalar& z = x;
    y = z + n;
    store(o, x.cast(f32));
    Scalar* p = &x;
    *p += 1;
    store(o + 1, x.cast(f32));
  });
}

TEST(LangValues, SwapRotateAndTie) {
  expect_output({2, 1, 5, 8, 2, 3, 1}, 3, [](Out<float> o, Int n) {
    Scalar a = 1, b = 2;
    std::swap(a, b);
    store(o, a.cast(f32));
    store(o + 1, b.cast(f32));
    Scalar p = n, q = 5;
    std::tie(p, q) = std::pair<Scalar, Scalar>(q, p + q);
    store(o + 2, p.cast(f32));
    store(o + 3, q.cast(f32));
    Scalar x = 1, y = 2, z = 3, t = x;
    x = y;
    y = z;
    z = t;
    store(o + 4, x.cast(f32));
    store(o + 5, y.cast(f32));
    store(o + 6, z.cast(f32));
  });
}

TEST(LangValues, LiveInContainers) {
  expect_output({6, 3, 7, 13}, 2, [](Out<float> o, Int n) {
    std::array<Scalar, 3> a{1, 2, 3};
    std::vector<Scalar> v;
    for (int k = 0; k < 9; ++k) v.push_back(k);
    v.erase(v.begin(), v.begin() + 2);
    v.resize(40);
    std::map<int, Scalar> m;
    m[3] = n + 5;
    std::optional<Scalar> maybe = Scalar(10);
    auto owned = std::make_unique<Scalar>(3);
    Scalar sum = 0;
    for (const Scalar& x : a) sum += x;
    store(o, sum.cast(f32));
    store(o + 1, v[1].cast(f32));
    store(o + 2, m.at(3).cast(f32));
    maybe = *maybe + *owned;
    store(o + 3, maybe->cast(f32));
  });
}

TEST(LangValues, StructsOfVariables) {
  expect_output({5, 1, 6, 2}, 5, [](Out<float> o, Int n) {
    Stats s;
    s.add(n);
    Stats t = s;
    t.add(1);
    store(o, s.sum.cast(f32));
    store(o + 1, s.count.cast(f32));
    store(o + 2, t.sum.cast(f32));
    store(o + 3, t.count.cast(f32));
  });
}

TEST(LangValues, StructuredBindings) {
  expect_output({2, 1}, 5, [](Out<float> o, Int n) {
    auto [q, r] = divmod(n, 2);
    store(o, q.cast(f32));
    store(o + 1, r.cast(f32));
  });
}

TEST(LangValues, LambdasCaptureVariablesOrCopies) {
  expect_output({7, 5}, 7, [](Out<float> o, Int n) {
    Scalar s = 0, k = 5;
    auto add = [&](const Scalar& x) { s += x; };
    auto get = [k] { return k + 0; };
    k = 100;
    add(n);
    store(o, s.cast(f32));
    store(o + 1, get().cast(f32));
  });
}

TEST(LangValues, DefaultConstructedThenAssigned) {
  expect_output({5, 0, 1}, 5, [](Out<float> o, Int n) {
    Scalar s;
    Tile t;
    s = n;
    t = arange(2).cast(f32);
    store(o, s.cast(f32));
    store(o + 1 + arange(2), t);
  });
}

TEST(LangValues, MoveKeepsTheSource) {
  expect_output({3, 3}, 5, [](Out<float> o, Int) {
    Scalar x = 3;
    Scalar y = std::move(x);
    store(o, x.cast(f32));
    store(o + 1, y.cast(f32));
  });
}

TEST(LangValues, FunctionsTakeFreshCopies) {
  expect_output({9, 3}, 3, [](Out<float> o, Int n) {
    Tile t = full(f32, {1}, n.cast(f32)), u = square(t);
    store(o + arange(1), u);
    store(o + 1 + arange(1), t);
  });
}

TEST(LangValues, CppLoopsRecursionAndAlgorithmsUnroll) {
  expect_output({15, 81, 12}, 3, [](Out<float> o, Int n) {
    Scalar s = 0;
    for (int k = 0; k < 5; ++k) s += n;
    store(o, s.cast(f32));
    store(o + 1, power(n, 4).cast(f32));
    std::vector<Scalar> v(4, n);
    store(o + 2, std::accumulate(v.begin(), v.end(), Scalar(0)).cast(f32));
  });
}

TEST(LangValues, CppConditionsChooseAtTraceTime) {
  auto k = kernel("choose", [](Out<float> o, Const<bool> negate) {
    Scalar a = 1, b = 2;
    Scalar r = negate ? a : b;
    if (negate) r = -r;
    for (int i = 0; i < 3; ++i) {
      if (i == 1) continue;
      r += i;
    }
    store(o, r.cast(f32));
  });
  on_each_device([&](const Device& d) {
    const Stream s(d);
    Buffer<float> o(d, 1);
    k.launch(s, 1, o, true);
    EXPECT_EQ(o.to_vector()[0], 1.f);
    k.launch(s, 1, o, false);
    EXPECT_EQ(o.to_vector()[0], 4.f);
  });
}

TEST(LangValues, PointersAndParametersAreVariables) {
  expect_output({1, 2, 7}, 5, [](Out<float> o, Int n) {
    auto p = o;
    store(p, 1.f);
    p += 1;
    store(p, 2.f);
    p = o + 2;
    n += 2;
    store(p, n.cast(f32));
  });
}

TEST(LangValues, StoresAndLoadsKeepTheirOrder) {
  expect_output({3}, 5, [](InOut<float> o, Int) {
    store(o, 1.f);
    Scalar x = load(o);
    store(o, 2.f);
    store(o, load(o) + x);
  });
}

}  // namespace
}  // namespace kiln::test
