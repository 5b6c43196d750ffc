// Programs that must not compile. compile_fail_test compiles this file once a case with -DCASE=n; the output must contain
// one of the texts (separated by |) after EXPECT:. Case 0 is the control: it must compile.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <algorithm>
#include <cassert>
#include <string>

using namespace kiln;

[[maybe_unused]] static void body(Out<float> o, In<float> p, Int n, View<const float, 2> v, View<float, 2> w, Const<int> B) {
  Scalar s = 0;
  Tile t = zeros(f32, {B});
  (void)o, (void)p, (void)v, (void)w, (void)n;
#if CASE == 0
  s += n;
  for (auto i : range(0, n, 2).unroll(1)) s += i;
  if_(n > 3, [&] { s = n; }, [&] { s = s + 1; });
  while_([&] { return s < n; }, [&] { s += 1; });
  auto [u, k] = if_(n > 3, [&] { return std::pair(t, s); }, [&] { return std::pair(t + 1, s); });
  t = u * k.cast(f32);
  t = t * s.cast(f32);
  w.store({0, n}, v.load({B, s}, {B, 4}));
  store(o + arange(B), t, arange(B) < n);
#elif CASE == 1  // EXPECT: kiln: a traced value has no C++ truth value
  if (n > 3) s = 1;
#elif CASE == 2  // EXPECT: kiln: a traced value has no C++ truth value
  while (s < n) s += 1;
#elif CASE == 3  // EXPECT: kiln: a traced value has no C++ truth value
  for (Scalar i = 0; i < n; i += 1) s += i;
#elif CASE == 4  // EXPECT: kiln: a traced value has no C++ truth value
  s = n > 3 ? Scalar(1) : Scalar(2);
#elif CASE == 5  // EXPECT: kiln: a traced value has no C++ truth value
  s = std::max<Scalar>(s, n);
#elif CASE == 6  // EXPECT: kiln: a traced value has no C++ truth value
  assert(n > 0);
#elif CASE == 7  // EXPECT: switch quantity not an integer|statement requires expression of integer type
  switch (n) { default: break; }
#elif CASE == 8  // EXPECT: cannot convert|no viable conversion
  int k = n;
  (void)k;
#elif CASE == 9  // EXPECT: invalid types|no match for|is not an integer|array subscript
  int table[3] = {};
  (void)table[n];
#elif CASE == 10  // EXPECT: passing 'const kiln::Scalar' as 'this'|no viable overloaded '='
  auto set = [=] { s = 1; };
  set();
#elif CASE == 11  // EXPECT: passing 'kiln::Tile' as 'this'|no viable overloaded '='
  load(p + arange(4)) = t;
#elif CASE == 12  // EXPECT: no matching function|constraints not satisfied
  v.store({0, 0}, t);
#elif CASE == 13  // EXPECT: no matching function|constraints not satisfied
  v.put({0, 0}, 1.f);
#elif CASE == 14  // EXPECT: could not convert|no matching|cannot convert
  (void)v.load({0}, {4, 4});
#elif CASE == 15  // EXPECT: cannot convert|no matching|excess elements|cannot initialize
  (void)v.load({0, 0, 0}, {4, 4});
#elif CASE == 16  // EXPECT: no matching|cannot convert|no viable conversion
  (void)v.load({0, 0}, {n, 4});
#elif CASE == 17  // EXPECT: invalid initialization of reference|no matching|cannot convert|could not convert|no viable conversion
  (void)zeros(f32, {n, 4});
#elif CASE == 18  // EXPECT: no match for 'operator='|no viable overloaded '='
  t = 0.f;
#elif CASE == 19  // EXPECT: conversion from|no viable conversion
  Tile u = n;
  (void)u;
#elif CASE == 20  // EXPECT: ignoring return value
#pragma GCC diagnostic error "-Wunused-result"
  s + 1;
#elif CASE == 21  // EXPECT: ignoring return value
#pragma GCC diagnostic error "-Wunused-result"
  exp(t);
#elif CASE == 22  // EXPECT: no match for 'operator[]'|does not provide a subscript operator
  (void)v[0];
#elif CASE == 23  // EXPECT: kiln: the extent of a tile is a C++ value
  (void)arange(n);
#elif CASE == 24  // EXPECT: kiln: a pointer to one element stores one Scalar
  store(o, t);
#elif CASE == 25  // EXPECT: kiln: a pointer to one element stores one Scalar
  store(o + s, sum(t + zeros(f32, {1, B}), 0), n > 3);
#elif CASE == 26  // EXPECT: kiln: max and min reduce a tile
  t = max(t, 0.f);
#elif CASE == 27  // EXPECT: kiln: max and min reduce a tile
  t = min(t, t);
#elif CASE == 28  // EXPECT: kiln: max and min reduce a tile
  s = max(s, n);
#elif CASE == 60  // EXPECT: use of deleted function|selected deleted operator
  for (auto i : range(n)) i = i + 1;
#elif CASE == 61  // EXPECT: use of deleted function|selected deleted operator
  for (auto i : range(n)) i += 2;
#elif CASE == 62  // EXPECT: cannot convert|no viable conversion
  for (int i : range(n)) s += i;
#elif CASE == 63  // EXPECT: cannot bind non-const lvalue|non-const lvalue reference
  for (auto& i : range(n)) s += i;
#elif CASE == 64  // EXPECT: discards qualifiers|no viable overloaded '='
  if_(n > 3, [=] { s = 1; });
#elif CASE == 65  // EXPECT: use of deleted function|invokes a deleted function
  if_(true, [&] { s = 1; });
#elif CASE == 66  // EXPECT: kiln: if_ without an else branch cannot return a value
  if_(n > 3, [&] { return s; });
#elif CASE == 67  // EXPECT: kiln: the two branches of if_ return different C++ types
  (void)if_(n > 3, [&] { return s; }, [&] { return t; });
#elif CASE == 68  // EXPECT: kiln: a branch of if_ and a combine lambda may return
  (void)if_(n > 3, [&] { return 1; }, [&] { return 2; });
#elif CASE == 69  // EXPECT: kiln: while_ takes its condition as a lambda
  while_(s < n, [&] { s += 1; });
#elif CASE == 70  // EXPECT: kiln: the condition lambda of while_ must return a Scalar
  while_([&] { return true; }, [&] { s += 1; });
#elif CASE == 71  // EXPECT: continue statement not within a loop|'continue' statement not in loop
  for (auto i : range(n)) if_(i > 2, [&] { continue; });
#elif CASE == 72  // EXPECT: ignoring return
#pragma GCC diagnostic error "-Wunused-result"
  range(n);
#elif CASE == 73  // EXPECT: use of deleted function|deleted
  auto r = range(n);
  auto q = r;
  (void)q;
#elif CASE == 74  // EXPECT: kiln: the two branches of if_ return different C++ types
  (void)if_(n > 3, [&] { return s; }, [&] { s = 1; });
#elif CASE == 75  // EXPECT: kiln: a traced value has no C++ truth value
  for (; n > 0;) s += 1;
#endif
}

enum class Color { Red };
struct Deep {
  std::string name;
};

[[maybe_unused]] static void host(const Device& device) {
  const Stream st(device);
  Buffer<float> f(device, 4);
  Buffer<std::int32_t> i(device, 4);
  std::string str;
  float x = 1;
  (void)x;
  auto k = kernel("k", [](In<float> a, Out<float> c, Int n, Const<int> B) { store(c + arange(B), load(a + arange(B)), arange(B) < n); });
#if CASE == 0
  const Buffer<float> read_only(device, 4);
  k.launch(st, 1, read_only, f, 4, Const(4));
  const auto named = k.names("a c n B");
  named.with({.num_warps = 4}).launch(st, {1, 2}, f, device_ptr<float>(256), 4u, 4);
  k.launch(st, 1, device_ptr<const float>(256), f, std::int64_t(4), 4);
#elif CASE == 30  // EXPECT: kiln: this argument must be a Buffer<T>
  k.launch(st, 1, i, f, 4, Const(4));
#elif CASE == 31  // EXPECT: kiln: this argument must be a number of the parameter's kind
  k.launch(st, 1, f, f, 4.5, Const(4));
#elif CASE == 32  // EXPECT: kiln: this argument must be a number
  k.launch(st, 1, f, f, str, Const(4));
#elif CASE == 33  // EXPECT: no matching function for call|too few arguments
  k.launch(st, 1, f, f, 4);
#elif CASE == 34  // EXPECT: kiln: this argument must be a Buffer<T>
  const Buffer<float> cf(device, 4);
  k.launch(st, 1, f, cf, 4, 4);
#elif CASE == 35  // EXPECT: kiln: a kernel lambda must name its parameter types
  (void)kernel("g", [](auto a) { (void)a; });
#elif CASE == 36  // EXPECT: kiln: a kernel lambda must not capture by reference
  (void)kernel("g", [&x](Out<float> c) { store(c, x); });
#elif CASE == 37  // EXPECT: kiln: a kernel lambda must not capture by reference
  (void)kernel("g", [&](Out<float> c) { store(c, x); });
#elif CASE == 38  // EXPECT: kiln: a kernel lambda must not be mutable
  (void)kernel("g", [x](Out<float> c) mutable { store(c, x++); });
#elif CASE == 39  // EXPECT: kiln: a kernel returns void
  (void)kernel("g", [](Out<float> c) { return c; });
#elif CASE == 40  // EXPECT: kiln: not a kernel parameter type
  auto g = kernel("g", [](int n) { (void)n; });
  g.launch(st, 1, {});
#elif CASE == 41  // EXPECT: cannot convert|no matching|does not refer to any field|could not convert|has no non-static data member
  struct T { int BM = 1; };
  auto g = kernel("g", [](Out<float> c, Tune<T> t) { store(c, t.BM); });
  g.launch(st, 1, f, {.BK = 3});
#elif CASE == 42  // EXPECT: kiln: a kernel lambda must not be noexcept
  (void)kernel("g", [](Out<float> c) noexcept { store(c, 1.f); });
#elif CASE == 43  // EXPECT: kiln: a kernel lambda must not capture by reference
  auto inner = [&x] { return x; };
  (void)kernel("g", [inner](Out<float> c) { store(c, inner()); });
#elif CASE == 44  // EXPECT: kiln: a kernel lambda must not capture by reference
  const float* px = &x;
  (void)kernel("g", [px](Out<float> c) { store(c, *px); });
#elif CASE == 45  // EXPECT: kiln: In<T>: T is not an element type
  auto g = kernel("g", [](In<std::string> c) { (void)c; });
#elif CASE == 46  // EXPECT: names_takes_one_word_for_each_parameter
  (void)k.names("a c n");
#elif CASE == 47  // EXPECT: kiln: take kernel parameters by value or by const reference
  (void)kernel("g", [](Out<float>& c) { store(c, 1.f); });
#elif CASE == 48  // EXPECT: kiln: the fields of Tune<S> must be integers, bools, enums or floating-point numbers
  auto g = kernel("g", [](Out<float> c, Tune<Deep>) { store(c, 1.f); });
  g.launch(st, 1, f, {});
#elif CASE == 49  // EXPECT: kiln: this view must be over a Buffer<T>
  auto g = kernel("g", [](View<float, 2> c) { c.put({0, 0}, 1.f); });
  g.launch(st, 1, {i, {2, 2}});
#elif CASE == 50  // EXPECT: kiln: this argument must be a number of the parameter's kind
  auto g = kernel("g", [](Out<float> c, Float v) { store(c, v); });
  g.launch(st, 1, f, 1);
#elif CASE == 51  // EXPECT: use of deleted function|deleted
  auto tuned = kernel("g", [](Out<float> c) { store(c, 1.f); }).with({.num_warps = 2});
#elif CASE == 52  // EXPECT: too many arguments|no matching function for call
  k.launch(st, 1, f, f, 4, 4, 4);
#endif
}

[[maybe_unused]] static void epilogues(const Device& device) {
  const Stream st(device);
  Buffer<float> x(device, 16), y(device, 16);
  const auto linear = lib::linear<float>({x, {4, 4}}, {x, {4, 4}});
  float slope = 2;
  (void)slope;
  std::string word = "word";
#if CASE == 0
  Buffer<double> z(device, 16);
  linear.then([slope](Tile t) { return t * slope; })
      .then([](Tile t, Tile b) { return std::pair(t, b); }, lib::per_column<float>({x, {4}}))
      .then([](const lib::Place&, Tile t, Tile) { return t; })
      .run<double>(st, {z, {4, 4}});
#elif CASE == 80  // EXPECT: kiln: a function of then takes the tiles of the stage before it
  (void)linear.then([](Tile t, Tile u) { return t + u; });
#elif CASE == 81  // EXPECT: kiln: a function of then takes the tiles of the stage before it
  (void)linear.then([](Tile t) { return t; }, lib::per_column<float>({x, {4}}));
#elif CASE == 82  // EXPECT: kiln: a function of then returns a Tile
  (void)linear.then([](Tile) { return 1; });
#elif CASE == 83  // EXPECT: kiln: a function of then must not capture by reference
  (void)linear.then([&slope](Tile t) { return t * slope; });
#elif CASE == 84  // EXPECT: kiln: a function of then must not capture by reference
  (void)linear.then([word](Tile t) { return t * float(word.size()); });
#elif CASE == 85  // EXPECT: kiln: what follows the function in then are extra tensors
  (void)linear.then([](Tile t, Tile u) { return t + u; }, x);
#elif CASE == 86  // EXPECT: kiln: run takes one matrix for each result of the chain
  linear.then([](Tile t) { return std::pair(t, t); }).run(st, {y, {4, 4}});
#elif CASE == 87  // EXPECT: kiln: a function of before returns one Tile
  (void)linear.before([](Tile t) { return std::pair(t, t); });
#elif CASE == 88  // EXPECT: kiln: this stage writes one matrix, so it cannot stand behind products in batches
  (void)lib::linear_batched<float>({x, {1, 4, 4}}, {x, {1, 4, 4}}).then(lib::epilogue::save<float>({y, {4, 4}}));
#elif CASE == 89  // EXPECT: kiln: this view must be over a Buffer<T>
  linear.run<double>(st, {y, {4, 4}});
#elif CASE == 90  // EXPECT: kiln: a function of then takes the tiles of the stage before it
  (void)linear.then([slope](Tile t) mutable { return t * slope++; });
#endif
}
