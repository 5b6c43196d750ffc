// mma.sync of every shape and type against a plain matrix product, its fragments laid out by formulas of their own:
// what element i of a lane's fragment is, written for each shape as the instruction set has it.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "tests/sim/matrix_numbers.h"
#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

struct Place {
  int row, col;
};
/// Of element i in lane group g = lane / 4, t = lane % 4.
using Layout = std::function<Place(int i, int g, int t)>;

struct Shape {
  std::string name;
  int m, k;
  Layout a, b;
};

int odd(int i) { return i & 1; }

std::vector<Shape> shapes_16() {
  return {{"m16n8k8", 16, 8,
           [](int i, int g, int t) {
             return Place{i < 2 ? g : g + 8, t * 2 + odd(i)};
           },
           [](int i, int g, int t) {
             return Place{t * 2 + i, g};
           }},
          {"m16n8k16", 16, 16,
           [](int i, int g, int t) {
             return Place{i < 2 || (i >= 4 && i < 6) ? g : g + 8, i < 4 ? t * 2 + odd(i) : t * 2 + odd(i) + 8};
           },
           [](int i, int g, int t) {
             return Place{i < 2 ? t * 2 + odd(i) : t * 2 + odd(i) + 8, g};
           }}};
}
Shape shape_k4() {
  return {"m16n8k4", 16, 4,
          [](int i, int g, int t) {
            return Place{i == 0 ? g : g + 8, t};
          },
          [](int, int g, int t) {
            return Place{t, g};
          }};
}
Shape shape_k8_wide() {
  return {"m16n8k8", 16, 8,
          [](int i, int g, int t) {
            return Place{i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
          },
          [](int i, int g, int t) {
            return Place{i == 0 ? t : t + 4, g};
          }};
}
std::vector<Shape> shapes_32() { return {shape_k4(), shape_k8_wide()}; }
std::vector<Shape> shapes_64() {
  return {{"m8n8k4", 8, 4,
           [](int, int g, int t) {
             return Place{g, t};
           },
           [](int, int g, int t) {
             return Place{t, g};
           }},
          shape_k4(),
          shape_k8_wide(),
          {"m16n8k16", 16, 16,
           [](int i, int g, int t) {
             return Place{i % 2 ? g + 8 : g, i % 2 ? i * 2 - 2 + t : i * 2 + t};
           },
           [](int i, int g, int t) {
             return Place{t + 4 * i, g};
           }}};
}
std::vector<Shape> shapes_8(bool with_m8) {
  std::vector<Shape> s;
  if (with_m8)
    s.push_back({"m8n8k16", 8, 16,
                 [](int i, int g, int t) {
                   return Place{g, t * 4 + i};
                 },
                 [](int i, int g, int t) {
                   return Place{t * 4 + i, g};
                 }});
  s.push_back({"m16n8k16", 16, 16,
               [](int i, int g, int t) {
                 return Place{i < 4 ? g : g + 8, t * 4 + (i & 3)};
               },
               [](int i, int g, int t) {
                 return Place{t * 4 + i, g};
               }});
  s.push_back({"m16n8k32", 16, 32,
               [](int i, int g, int t) {
                 return Place{i < 4 || (i >= 8 && i < 12) ? g : g + 8, i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16};
               },
               [](int i, int g, int t) {
                 return Place{i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16, g};
               }});
  return s;
}
Place place_of_c(int i, int g, int t) { return {i < 2 ? g : g + 8, t * 2 + odd(i)}; }

struct Matrix {
  int rows, cols;
  std::vector<double> v = std::vector<double>(static_cast<std::size_t>(rows * cols));
  double& at(Place p) { return v[static_cast<std::size_t>(p.row * cols + p.col)]; }
};

/// The fragment's words: of 32 bits, or two for f64; register by register, lane by lane.
std::vector<std::uint32_t> pack(Matrix& x, const std::string& type, const Layout& place) {
  const int bits = bits_of(type), per_lane = x.rows * x.cols / 32, per_word = bits < 32 ? 32 / bits : 1;
  std::vector<std::uint32_t> out;
  for (int r = 0; r < per_lane / per_word; ++r)
    for (int lane = 0; lane < 32; ++lane) {
      if (bits == 64) {
        const auto b = std::bit_cast<std::uint64_t>(x.at(place(r, lane / 4, lane % 4)));
        out.push_back(static_cast<std::uint32_t>(b));
        out.push_back(static_cast<std::uint32_t>(b >> 32));
        continue;
      }
      std::uint32_t w = 0;
      for (int e = 0; e < per_word; ++e)
        w |= encode(type, x.at(place(r * per_word + e, lane / 4, lane % 4))) << (e * bits);
      out.push_back(w);
    }
  return out;
}

std::string registers(const char* prefix, std::size_t n) {
  std::string s = "{";
  for (std::size_t i = 0; i < n; ++i) s += fmt::format("{}%{}{}", i ? ", " : "", prefix, i);
  return s + "}";
}

struct Case {
  std::string d, a, b;
  Shape shape;
  std::string modifiers = {};
};

/// Products one after the other. In data there are of each the fragments of A, B and C, register by register of all
/// lanes, and behind them those of D.
class Program {
 public:
  ThreadProgram program;

  Program() {
    program.version = "8.7";
    program.body =
        " mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3;\n mul.wide.u32 %rd4, %r1, 8; add.s64 %rd4, %rd2, "
        "%rd4;\n";
  }
  void add(const Case& c, Matrix a, Matrix b, Matrix acc) {
    std::string& body = program.body;
    body += " {\n";
    const std::string d_registers = declare("d", c.d, pack(acc, c.d, place_of_c));
    const std::string sources = load("a", c.a, pack(a, c.a, c.shape.a)) + ", " +
                                load("b", c.b, pack(b, c.b, c.shape.b)) + ", " +
                                load("c", c.d, pack(acc, c.d, place_of_c));
    body += fmt::format(" mma.sync.aligned.{}.row.col{}.{}.{}.{}.{} {}, {};\n", c.shape.name, c.modifiers, c.d, c.a,
                        c.b, c.d, d_registers, sources);
    const std::size_t n = pack(acc, c.d, place_of_c).size();
    results_.push_back({program.data.size(), n});
    for (std::size_t r = 0; r < n / lane_words(c.d); ++r)
      body += fmt::format(" st.global.{} [{}+{}], %d{};\n", word(c.d), base(c.d),
                          4 * (program.data.size() + r * lane_words(c.d)), r);
    program.data.resize(program.data.size() + n);
    body += " }\n";
  }
  void run() { program.run(); }
  /// The words of the i-th D, in `data` after a run.
  std::vector<std::uint32_t> result(std::size_t i, const std::vector<std::uint32_t>& data) const {
    const auto begin = data.begin() + static_cast<std::ptrdiff_t>(results_[i].at);
    return {begin, begin + static_cast<std::ptrdiff_t>(results_[i].n)};
  }
  std::vector<std::uint32_t> result(std::size_t i) const { return result(i, program.data); }

 private:
  static std::size_t lane_words(const std::string& type) { return type == "f64" ? 64 : 32; }
  static const char* word(const std::string& type) { return type == "f64" ? "f64" : "b32"; }
  static const char* base(const std::string& type) { return type == "f64" ? "%rd4" : "%rd3"; }

  std::string declare(const char* prefix, const std::string& type, const std::vector<std::uint32_t>& words) {
    const std::size_t n = words.size() / lane_words(type);
    program.body += fmt::format(" .reg .{} %{}<{}>;\n", word(type), prefix, n);
    return registers(prefix, n);
  }
  std::string load(const char* prefix, const std::string& type, const std::vector<std::uint32_t>& words) {
    const std::string names = declare(prefix, type, words);
    for (std::size_t r = 0; r < words.size() / lane_words(type); ++r)
      program.body += fmt::format(" ld.global.{} %{}{}, [{}+{}];\n", word(type), prefix, r, base(type),
                                  4 * (program.data.size() + r * lane_words(type)));
    program.data.insert(program.data.end(), words.begin(), words.end());
    return names;
  }

  struct Range {
    std::size_t at, n;
  };
  std::vector<Range> results_;
};

Matrix product(Matrix& a, Matrix& b, const Matrix& c) {
  Matrix d = c;
  for (int r = 0; r < d.rows; ++r)
    for (int n = 0; n < d.cols; ++n)
      for (int k = 0; k < a.cols; ++k) d.at({r, n}) += a.at({r, k}) * b.at({k, n});
  return d;
}

template <class Value>
Matrix filled(int rows, int cols, Value value) {
  Matrix m{rows, cols};
  for (double& v : m.v) v = value();
  return m;
}

/// Numbers of few bits, so that every sum is exact.
void expect_exact(const std::vector<Case>& cases) {
  std::minstd_rand random(7);
  Program p;
  std::vector<std::vector<std::uint32_t>> want;
  for (const Case& c : cases) {
    const auto number = [&](const std::string& type) {
      return [&random, type] { return exact_number(type, static_cast<std::uint32_t>(random() >> 4)); };
    };
    Matrix a = filled(c.shape.m, c.shape.k, number(c.a)), b = filled(c.shape.k, 8, number(c.b)),
           acc = filled(c.shape.m, 8, number(c.d));
    p.add(c, a, b, acc);
    Matrix d = product(a, b, acc);
    want.push_back(pack(d, c.d, place_of_c));
  }
  p.run();
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(p.result(i), want[i]) << fmt::format("{} {} {} {} {}", cases[i].shape.name, cases[i].modifiers,
                                                   cases[i].d, cases[i].a, cases[i].b);
}

TEST(Mma, Of16Bits) {
  std::vector<Case> cases;
  for (const Shape& s : shapes_16()) {
    cases.push_back({"f32", "f16", "f16", s});
    cases.push_back({"f16", "f16", "f16", s});
    cases.push_back({"f32", "bf16", "bf16", s});
  }
  expect_exact(cases);
}

TEST(Mma, OfTf32AndF64) {
  std::vector<Case> cases;
  for (const Shape& s : shapes_32()) cases.push_back({"f32", "tf32", "tf32", s});
  for (const Shape& s : shapes_64()) cases.push_back({"f64", "f64", "f64", s});
  expect_exact(cases);
}

TEST(Mma, OfBytes) {
  std::vector<Case> cases;
  for (const Shape& s : shapes_8(true))
    for (const char* a : {"s8", "u8"})
      for (const char* b : {"s8", "u8"}) {
        cases.push_back({"s32", a, b, s});
        cases.push_back({"s32", a, b, s, ".satfinite"});
      }
  expect_exact(cases);
}

TEST(Mma, OfFloatsOf8Bits) {
  std::vector<Case> cases;
  for (const Shape& s : shapes_8(false))
    for (const char* a : {"e4m3", "e5m2"})
      for (const char* b : {"e4m3", "e5m2"}) {
        cases.push_back({"f32", a, b, s});
        cases.push_back({"f16", a, b, s});
      }
  expect_exact(cases);
}

TEST(Mma, IntegersWrapOrAreClamped) {
  Program p;
  std::vector<std::uint32_t> want;
  for (const double start : {2147483647.0, -2147483648.0}) {
    const double factor = start < 0 ? -128 : 127;
    Matrix a = filled(16, 32, [=] { return factor; }), b = filled(32, 8, [] { return 127.0; }),
           c = filled(16, 8, [=] { return start; });
    for (const bool saturates : {false, true}) {
      p.add({"s32", "s8", "s8", shapes_8(false)[1], saturates ? ".satfinite" : ""}, a, b, c);
      want.push_back(
          static_cast<std::uint32_t>(static_cast<std::int64_t>(saturates ? start : start + 32 * 127 * factor)));
    }
  }
  p.run();
  for (std::size_t i = 0; i < want.size(); ++i)
    for (const std::uint32_t got : p.result(i)) ASSERT_EQ(got, want[i]) << i;
}

/// In the order of k, one rounding a step.
TEST(Mma, F64IsAChainOfFusedMultiplyAdds) {
  std::minstd_rand random(3);
  std::normal_distribution<double> normal;
  const auto value = [&] { return normal(random); };
  Program p;
  std::vector<std::vector<std::uint32_t>> want;
  for (const Shape& s : shapes_64()) {
    Matrix a = filled(s.m, s.k, value), b = filled(s.k, 8, value), c = filled(s.m, 8, value), d = c;
    for (int r = 0; r < s.m; ++r)
      for (int n = 0; n < 8; ++n)
        for (int k = 0; k < s.k; ++k) d.at({r, n}) = std::fma(a.at({r, k}), b.at({k, n}), d.at({r, n}));
    p.add({"f64", "f64", "f64", s}, a, b, c);
    want.push_back(pack(d, "f64", place_of_c));
  }
  p.run();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(p.result(i), want[i]) << shapes_64()[i].name;
}

TEST(Mma, F64RoundsAsItSays) {
  const Shape s = shapes_64()[1];
  const std::pair<const char*, double> modes[] = {{".rn", 1.0}, {".rz", 1.0}, {".rm", 1.0}, {".rp", 1.0 + 0x1p-52}};
  Matrix a{16, 4}, b{4, 8}, c = filled(16, 8, [] { return 1.0; });
  for (int r = 0; r < 16; ++r) a.at({r, 2}) = 0x1p-30;
  for (int n = 0; n < 8; ++n) b.at({2, n}) = 0x1p-30;
  Program p;
  for (const auto& [modifier, sum] : modes) p.add({"f64", "f64", "f64", s, modifier}, a, b, c);
  p.run();
  for (std::size_t i = 0; i < 4; ++i) {
    Matrix d = filled(16, 8, [&] { return modes[i].second; });
    EXPECT_EQ(p.result(i), pack(d, "f64", place_of_c)) << modes[i].first;
  }
}

/// Sums that are not exact: tensor cores align the terms and cut them off, so a bound is all there is. It is that of
/// k + 1 terms that lose less than 2^-23 of the largest each, and the result's rounding.
TEST(Mma, SumsStayWithinTheBound) {
  struct Run {
    std::string type;
    Shape shape;
    Matrix a, b, c, d;
  };
  std::minstd_rand random(11);
  std::normal_distribution<float> normal;
  std::vector<Run> runs;
  Program p;
  for (const auto& [type, shape] :
       {std::pair<std::string, Shape>{"bf16", shapes_16()[1]}, {"f16", shapes_16()[0]}, {"tf32", shapes_32()[1]}}) {
    const auto value = [&, t = type] { return decode(t, encode(t, normal(random))); };
    Matrix a = filled(16, shape.k, value), b = filled(shape.k, 8, value),
           c = filled(16, 8, [&] { return static_cast<double>(normal(random)); });
    p.add({"f32", type, type, shape}, a, b, c);
    runs.push_back({type, shape, a, b, c, product(a, b, c)});
  }
  p.program.judge = [&](const std::vector<std::uint32_t>& data) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Run& run = runs[i];
      const auto got = p.result(i, data);
      for (std::size_t w = 0; w < got.size(); ++w) {
        const int lane = static_cast<int>(w) % 32;
        const Place at = place_of_c(static_cast<int>(w) / 32, lane / 4, lane % 4);
        double largest = std::fabs(run.c.at(at));
        for (int k = 0; k < run.shape.k; ++k)
          largest = std::max(largest, std::fabs(run.a.at({at.row, k}) * run.b.at({k, at.col})));
        EXPECT_NEAR(std::bit_cast<float>(got[w]), run.d.at(at),
                    (run.shape.k + 1) * 0x1p-23 * largest + 0x1p-23 * std::fabs(run.d.at(at)))
            << run.type;
      }
    }
  };
  p.run();
}

TEST(Mma, InfinityAndNan) {
  Matrix a{16, 16}, b{16, 8}, c{16, 8};
  const double inf = std::numeric_limits<double>::infinity();
  for (int n = 0; n < 8; ++n) b.at({0, n}) = 1;
  a.at({0, 0}) = inf;
  a.at({1, 0}) = -inf;
  a.at({2, 1}) = inf;  // times 0
  a.at({3, 0}) = inf;
  c.at({3, 0}) = -inf;
  Program p;
  p.add({"f32", "f16", "f16", shapes_16()[1]}, a, b, c);
  p.run();
  const auto got = p.result(0);
  EXPECT_EQ(got[0], 0x7F800000u);
  EXPECT_EQ(got[4], 0xFF800000u);
  EXPECT_EQ(got[8], 0x7FFFFFFFu);
  EXPECT_EQ(got[12], 0x7FFFFFFFu);
}

TEST(Mma, FormsThatDoNotExistAreNamed) {
  const auto refusal = [](const std::string& instruction, const std::string& target = "sm_90a") {
    ThreadProgram p{instruction, target};
    return [p]() mutable {
      try {
        (void)load(Device::simulator(p.target), thread_program(p.body, p.target), "k");
      } catch (const DeviceError& e) {
        return std::string(e.what());
      }
      return std::string("taken");
    }();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal("mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32 "
              "{%r0,%r1,%r2,%r3},{%r4,%r5,%r6,%r7},{%r8,%r9},{%r0,%r1,%r2,%r3};"),
      "matrices of s4 elements are not simulated");
  has(refusal("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc "
              "{%r0,%r1,%r2,%r3},{%r4,%r5,%r6,%r7},{%r8,%r9},{%r0,%r1,%r2,%r3};"),
      "matrices of b1 elements are not simulated");
  has(refusal("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 "
              "{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7},{%r0,%r1},{%r2,%r3},{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7};"),
      "m8n8k4 of f16 is of sm_70");
  has(refusal("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
              "{%f0,%f1,%f2,%f3},{%r0,%r1,%r2,%r3},{%r4,%r5,%r6,%r7},{%f0,%f1,%f2,%f3},%r8,0x0;"),
      "sparse matrices are not simulated");
  has(refusal("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
              "{%f0,%f1,%f2,%f3},{%r0,%r1,%r2,%r3},{%r4,%r5},{%f0,%f1,%f2,%f3};",
              "sm_80"),
      "needs sm_89 or later, the module is for sm_80");
  has(refusal(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3},{%r0,%r1},{%r4,%r5},{%f0,%f1,%f2,%f3};"),
      "a fragment has another number of registers");
  has(refusal("mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 "
              "{%f0,%f1,%f2,%f3},{%r0,%r1,%r2,%r3},{%r4,%r5},{%f0,%f1,%f2,%f3};"),
      "this form is not supported");
  has(refusal("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0,%r1}, [%r4];"), "needs sm_100");
}

TEST(Mma, NeedsAllLanes) {
  const std::string instruction =
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3},{%r0,%r2},{%r3},{%f0,%f1,%f2,%f3};\n";
  const std::string error = fault_of(
      {" setp.lt.u32 %p1, %r1, 8;\n mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n"
       " mov.u32 %r0, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;\n @%p1 " +
       instruction});
  EXPECT_NE(error.find("active lanes 0x000000ff; needs all 32"), std::string::npos) << error;
}

}  // namespace
}  // namespace kiln::test
