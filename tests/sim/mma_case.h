// Shapes of mma with the places of their elements, and programs of products checked against plain ones.
#pragma once
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "tests/sim/matrix_numbers.h"
#include "tests/sim/thread_program.h"

namespace kiln::test::mma {

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

inline int odd(int i) { return i & 1; }

inline std::vector<Shape> shapes_16() {
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
inline Shape shape_k4() {
  return {"m16n8k4", 16, 4,
          [](int i, int g, int t) {
            return Place{i == 0 ? g : g + 8, t};
          },
          [](int, int g, int t) {
            return Place{t, g};
          }};
}
inline Shape shape_k8_wide() {
  return {"m16n8k8", 16, 8,
          [](int i, int g, int t) {
            return Place{i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
          },
          [](int i, int g, int t) {
            return Place{i == 0 ? t : t + 4, g};
          }};
}
inline std::vector<Shape> shapes_32() { return {shape_k4(), shape_k8_wide()}; }
inline std::vector<Shape> shapes_64() {
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
inline std::vector<Shape> shapes_8(bool with_m8) {
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
inline Place place_of_c(int i, int g, int t) { return {i < 2 ? g : g + 8, t * 2 + odd(i)}; }

struct Matrix {
  int rows, cols;
  std::vector<double> v = std::vector<double>(static_cast<std::size_t>(rows * cols));
  double& at(Place p) { return v[static_cast<std::size_t>(p.row * cols + p.col)]; }
};

/// The fragment's words: of 32 bits, or two for f64; register by register, lane by lane.
inline std::vector<std::uint32_t> pack(Matrix& x, const std::string& type, const Layout& place) {
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

inline std::string registers(const char* prefix, std::size_t n) {
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

inline Matrix product(Matrix& a, Matrix& b, const Matrix& c) {
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
inline void expect_exact(const std::vector<Case>& cases) {
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

}  // namespace kiln::test::mma
