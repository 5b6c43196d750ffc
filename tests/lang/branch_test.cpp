// if_, return_if, continue_if: values on every device.
#include "tests/lang/run_kernel.h"

namespace kiln::test {
namespace {

Scalar index(int v) { return Scalar(v).cast(DType::index); }
void put(const Scalar& p, const Scalar& x) { store(p, x.cast(f32)); }

TEST(LangBranch, OneArmedKeepsTheValueOtherwise) {
  expect_output({1, 2}, 5, [](Out<float> o, Int n) {
    Scalar a = 1, b = 1;
    if_(n > 7, [&] { a = 2; });
    if_(n > 3, [&] { b = 2; });
    put(o, a);
    put(o + 1, b);
  });
}

TEST(LangBranch, TwoArmsNeedNoValueBefore) {
  for (const int m : {5, 9})
    expect_output({m > 7 ? 10.f : 20.f}, m, [](Out<float> o, Int n) {
      Scalar y;
      if_(n > 7, [&] { y = 10; }, [&] { y = 20; });
      put(o, y);
    });
}

TEST(LangBranch, BothArmsMayAssignTheSameValue) {
  expect_output({4, 4}, 5, [](Out<float> o, Int n) {
    Scalar x = 1, y = 4;
    if_(n > 3, [&] { x = y; store(o, 4.f); }, [&] { x = y; store(o, 3.f); });
    put(o + 1, x);
  });
}

TEST(LangBranch, ElseIf) {
  for (const int m : {1, 5, 20})
    expect_output({m < 3 ? 1.f : m < 9 ? 2.f : 3.f}, m, [](Out<float> o, Int n) {
      Scalar y = 0;
      if_(n < 3, [&] { y = 1; }, [&] { if_(n < 9, [&] { y = 2; }, [&] { y = 3; }); });
      put(o, y);
    });
}

TEST(LangBranch, InLoopsAndAroundThem) {
  expect_output({6, 4, 10, 2, 3, 4}, 5, [](Out<float> o, Int n) {
    Scalar even = index(0), odd = index(0);
    for (auto i : range(n)) if_(i % 2 == 0, [&] { even += i; }, [&] { odd += i; });
    put(o, even);
    put(o + 1, odd);
    Scalar s = index(0);
    if_(n > 2, [&] { for (auto i : range(n)) s += i; });
    put(o + 2, s);
    Scalar a = 0, b = 0;  // the branches touch different variables
    for (auto i : range(n)) if_(i > 2, [&] { a += 1; }, [&] { b += 1; });
    put(o + 3, a);
    put(o + 4, b);
    Scalar t = index(0);
    for (auto i : range(n)) {
      if_(i > 2, [&] {
        Scalar local = i - 1;
        t += local;
      });
      t += 0;
    }
    put(o + 5, t - 1);
  });
}

TEST(LangBranch, YieldsScalarsTilesPairsTuplesAndArrays) {
  for (const int m : {5, 9}) {
    const bool yes = m < 7;
    expect_output({yes ? 25.f : 9.f, yes ? 5.f : 0.f, yes ? 6.f : 0.f, 1, yes ? 2.f : 3.f, yes ? 0.f : 7.f, yes ? 1.f : 7.f,
                   yes ? 4.f : 8.f, yes ? 5.f : 9.f},
                  m, [](Out<float> o, Int n) {
      put(o, if_(n < 7, [&] { return n * n; }, [&] { return n; }));
      auto [a, b] = if_(n < 7, [&] { return std::pair<Scalar, Scalar>(n, n + 1); },
                        [&] { return std::pair<Scalar, Scalar>(index(0), index(0)); });
      put(o + 1, a);
      put(o + 2, b);
      auto [one, two] = if_(n < 7, [&] { return std::array<Scalar, 2>{1, 2}; }, [&] { return std::array<Scalar, 2>{1, 3}; });
      put(o + 3, one);
      put(o + 4, two);
      auto [tile, last] = if_(n < 7, [&] { return std::tuple<Tile, Scalar>(arange(2).cast(f32), 4); },
                              [&] { return std::tuple<Tile, Scalar>(full(f32, {2}, 7), 8); });
      store(o + 5 + arange(2), tile);
      put(o + 7, last);
      put(o + 8, last + 1);
    });
  }
}

TEST(LangBranch, TilesMerge) {
  for (const int m : {0, 1})
    expect_output({m ? 0.f : 4.f, m ? 1.f : 4.f, m ? 2.f : 4.f}, m, [](Out<float> o, Int n) {
      Tile t = full(f32, {3}, 4.f);
      if_(n == 1, [&] { t = arange(3).cast(f32); });
      store(o + arange(3), t);
    });
}

TEST(LangBranch, ReturnIf) {
  for (const int m : {3, 5})
    expect_output({m > 3 ? 1.f : 2.f}, m, [](Out<float> o, Int n) {
      store(o, 1.f);
      return_if(n > 3);
      store(o, 2.f);
    });
  // In a helper with locals; after it, variables go on in the rest.
  for (const int m : {3, 5})
    expect_output({m > 4 ? -1.f : 2.f, m > 4 ? -1.f : 6.f}, m, [](Out<float> o, Int n) {
      Scalar sum = index(0);
      const auto guard = [&] {
        Scalar limit = n - 1;
        return_if(limit > 3);
        sum += limit + 1;
      };
      guard();
      store(o, 2.f);
      for (auto i : range(n)) sum += i;
      put(o + 1, sum);
      return_if(n == 100);
    });
}

TEST(LangBranch, ContinueIf) {
  expect_output({8, 8, 3}, 5, [](Out<float> o, Int n) {
    Scalar s = index(0);
    for (auto i : range(n)) {
      continue_if(i == 2);
      s += i;
    }
    put(o, s);
    Scalar t = index(0), trips = 0;
    for (auto i : range(n)) {  // two of them: what is assigned between them stays
      continue_if(i == 2);
      t += i;
      continue_if(i == 3);
      trips += 1;
    }
    put(o + 1, t);
    put(o + 2, trips);
  });
}

// Each block of the grid does its part, whatever control flow it goes through.
TEST(LangBranch, ProgramsOfOneGridTakeTheirOwnWay) {
  auto k = kernel("rows", [](In<float> x, Out<float> y, Int rows, Const<int> BLOCK) {
    Scalar first = program_id(0) * BLOCK;
    return_if(first >= rows);
    for (auto r : range(first, minimum(first + BLOCK, rows))) store(y + r, load(x + r) + 1.f);
  });
  on_each_device([&](const Device& d) {
    const Stream s(d);
    for (const int rows : {24, 21, 1}) {
      std::vector<float> in(24), want(24, -1.f);
      for (int i = 0; i < 24; ++i) in[std::size_t(i)] = float(i);
      for (int i = 0; i < rows; ++i) want[std::size_t(i)] = float(i + 1);
      Buffer<float> x = buffer_of(d, in), y = buffer_of(d, std::vector<float>(24, -1.f));
      k.launch(s, 4, x, y, rows, 8);
      s.synchronize();
      EXPECT_EQ(y.to_vector(), want);
    }
  });
}

// A guard around a guarded vector store, in a loop: both decide.
TEST(LangBranch, GuardsNest) {
  auto k = kernel("guards", [](In<float> x, Out<float> y, Int rows, Int cols, Const<int> B) {
    Tile c = arange(B);
    for (auto block : range(0, rows, B)) {
      Tile r = expand(block + arange(B), 1);
      Tile at = r * cols + c, inside = r < rows && c < cols;
      if_(block < rows - 1, [&] { store(y + at, load(x + at, inside) + 1.f, inside); });
    }
  });
  on_each_device([&](const Device& d) {
    const Stream s(d);
    for (const auto& [rows, cols] : {std::pair(32, 32), std::pair(33, 32), std::pair(64, 16), std::pair(40, 31)}) {
      std::vector<float> in(std::size_t(rows * cols)), want(in.size(), -1.f);
      for (std::size_t i = 0; i < in.size(); ++i) {
        in[i] = float(i);
        const int block = int(i) / cols / 32 * 32;
        if (block < rows - 1) want[i] = float(i) + 1;
      }
      Buffer<float> x = buffer_of(d, in), y = buffer_of(d, std::vector<float>(in.size(), -1.f));
      k.launch(s, 1, x, y, rows, cols, 32);
      s.synchronize();
      EXPECT_EQ(y.to_vector(), want) << rows << " x " << cols;
    }
  });
}

}  // namespace
}  // namespace kiln::test
