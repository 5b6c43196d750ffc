// Products by wgmma: operands in each layout that a descriptor can say, placed by formulas of their own, and plain
// products to compare with.
#pragma once
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "tests/sim/matrix_numbers.h"
#include "tests/sim/thread_program.h"
#include "tests/support/knob.h"

namespace kiln::test::wgmma {

constexpr int kM = 64;

struct Matrix {
  int rows, cols;
  std::vector<double> v = std::vector<double>(static_cast<std::size_t>(rows * cols));
  double& at(int r, int c) { return v[static_cast<std::size_t>(r * cols + c)]; }
  double at(int r, int c) const { return v[static_cast<std::size_t>(r * cols + c)]; }
};

/// How an operand lies in shared memory: `width` bytes of a swizzle row (16: none), K or M and N along it.
struct Layout {
  int width = 128;
  bool mn_major = false;
  int base_offset = 0;  ///< the swizzle pattern starts so many rows of 128 bytes behind a multiple of 1024
  int gap = 0;          ///< bytes between atoms, without swizzle
};

/// Offsets of a matrix of `rows` rows (along M or N) by `k` elements of `bytes` bytes from where its pattern starts.
class Placement {
 public:
  Placement(Layout l, int rows, int k, int bytes) : l_(l), bytes_(bytes) {
    const int along = l.width / bytes, atom = 8 * l.width + l.gap;
    if (!l.mn_major && l.width == 16) {
      stride = atom;
      leading = stride * (rows / 8);
      size = leading * (k * bytes / 16);
    } else if (!l.mn_major) {
      stride = atom;
      leading = 16;
      size = stride * (rows / 8);
    } else if (l.width == 16) {
      leading = atom;
      stride = leading * (k / 8);
      size = stride * (rows / 8);
    } else {
      stride = atom;
      leading = stride * (k / 8);
      size = leading * ((rows + along - 1) / along);
    }
  }
  int at(int row, int k) const {
    const int kb = k * bytes_, along = l_.width / bytes_;
    int offset = 0;
    if (!l_.mn_major && l_.width == 16) offset = row / 8 * stride + kb / 16 * leading + row % 8 * 16 + kb % 16;
    else if (!l_.mn_major) offset = row / 8 * stride + row % 8 * l_.width + kb;
    else if (l_.width == 16) offset = row / 8 * stride + k / 8 * leading + k % 8 * 16 + row % 8 * bytes_;
    else offset = row / along * leading + k / 8 * stride + k % 8 * l_.width + row % along * bytes_;
    return l_.width == 16 ? offset : offset ^ (offset / 128 % (l_.width / 16)) * 16;
  }
  /// Bytes from the start of one step of k to that of the next.
  int step(int k) const {
    if (!l_.mn_major) return l_.width == 16 ? 2 * leading : 32;
    return (l_.width == 16 ? leading : stride) * (k / 8);
  }
  /// The descriptor's bits but for the start address.
  std::uint64_t descriptor() const {
    const std::uint64_t swizzle = l_.width == 128 ? 1 : l_.width == 64 ? 2 : l_.width == 32 ? 3 : 0;
    return swizzle << 62 | static_cast<std::uint64_t>(l_.base_offset) << 49 |
           static_cast<std::uint64_t>(stride / 16) << 32 | static_cast<std::uint64_t>(leading / 16) << 16;
  }
  int leading = 0, stride = 0, size = 0;

 private:
  Layout l_;
  int bytes_;
};

struct Case {
  std::string d, a, b;
  int n;
  Layout la = {}, lb = {};
  bool a_in_registers = false;
  int steps = 1;  ///< of k, one wgmma each
  bool scale_d = true;
  int scale_a = 1, scale_b = 1;
  std::string modifiers = {};

  int k() const { return 256 / bits_of(a); }
  int d_registers() const { return d == "f16" ? n / 4 : n / 2; }
  std::string name() const {
    return fmt::format("m64n{}k{} {} {} {} {} widths {} {} mn {} {} registers {} steps {}", n, k(), modifiers, d, a, b,
                       la.width, lb.width, la.mn_major, lb.mn_major, a_in_registers, steps);
  }
};

inline std::string registers(const std::string& prefix, int n) {
  std::string s = "{";
  for (int i = 0; i < n; ++i) s += fmt::format("{}%{}{}", i ? "," : "", prefix, i);
  return s + "}";
}

/// Row and column of element e of register r of D.
struct Position {
  int row, col;
};
inline Position place_of_d(bool half, int r, int e, int thread) {
  const int w = thread / 32, g = thread % 32 / 4, t = thread % 4;
  if (half) return {16 * w + g + r % 2 * 8, r / 2 * 8 + 2 * t + e};
  return {16 * w + g + r / 2 % 2 * 8, r / 4 * 8 + 2 * t + r % 2};
}
/// … and of A: as that of mma, in the rows of the warp.
inline Position place_of_a(int per_register, int r, int e, int thread) {
  const int w = thread / 32, g = thread % 32 / 4, t = thread % 4;
  return {16 * w + g + r % 2 * 8, per_register * t + e + r / 2 * 4 * per_register};
}

inline void put(std::vector<std::uint32_t>& words, std::size_t byte, std::uint32_t bits) {
  words[byte / 4] |= bits << (byte % 4 * 8);
}

/// Products one after the other, each with shared memory of its own content. Words of data: for each case the image of
/// shared memory, A's registers, then D's, register by register of all threads.
class Program {
 public:
  ThreadProgram program;

  Program() {
    program.shape.block = {128, 1, 1};
    program.version = "8.7";
    program.body = R"(
 .shared .align 1024 .b8 tile[47104];
 mov.u32 %r3, tile;
 shl.b32 %r4, %r1, 2;
 mul.wide.u32 %rd3, %r1, 4;
 add.s64 %rd3, %rd2, %rd3;
)";
  }

  void add(const Case& c, const Matrix& a, const Matrix& b, const Matrix& d) {
    cases_.push_back(c);
    const int k = c.k() * c.steps;
    const Placement pa(c.la, kM, k, bits_of(c.a) / 8), pb(c.lb, c.n, k, bits_of(c.b) / 8);
    const int a_at = 128 * c.la.base_offset, b_at = round_up(a_at + pa.size) + 128 * c.lb.base_offset;
    std::vector<std::uint32_t> image(static_cast<std::size_t>(round_up(b_at + pb.size)) / 4);
    write(image, a_at, pa, c.a, a);
    write(image, b_at, pb, c.b, b);
    body(" {\n");
    copy_to_shared(image);
    if (c.a_in_registers) load_a(c, a);
    load_d(c, d);
    body(" wgmma.fence.sync.aligned;\n");
    for (int s = 0; s < c.steps; ++s) issue(c, pa, pb, a_at, b_at, s);
    body(" wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n");
    for (int r = 0; r < c.d_registers(); ++r)
      body(" st.global.b32 [%rd3+{}], %d{};\n", 4 * (d_at_.back() + 128u * r), r);
    body(" bar.sync 0;\n }\n");
  }
  void run() { program.run(); }

  Matrix result(std::size_t i, const std::vector<std::uint32_t>& data) const {
    const Case& c = cases_[i];
    Matrix m{kM, c.n};
    const bool half = c.d == "f16";
    for (int r = 0; r < c.d_registers(); ++r)
      for (int t = 0; t < 128; ++t)
        for (int e = 0; e < (half ? 2 : 1); ++e) {
          const auto [row, col] = place_of_d(half, r, e, t);
          m.at(row, col) =
              decode(c.d, data[d_at_[i] + static_cast<std::size_t>(128 * r + t)] >> 16 * e & (half ? 0xFFFFu : ~0u));
        }
    return m;
  }
  Matrix result(std::size_t i) const { return result(i, program.data); }

 private:
  static int round_up(int v) { return (v + 1023) / 1024 * 1024; }
  template <class... A>
  void body(fmt::string_view text, const A&... a) {
    program.body += fmt::vformat(text, fmt::make_format_args(a...));
  }
  void body(const char* text) { program.body += text; }

  static void write(std::vector<std::uint32_t>& image, int at, const Placement& p, const std::string& type,
                    const Matrix& m) {
    for (int r = 0; r < m.rows; ++r)
      for (int k = 0; k < m.cols; ++k) put(image, static_cast<std::size_t>(at + p.at(r, k)), encode(type, m.at(r, k)));
  }
  void copy_to_shared(const std::vector<std::uint32_t>& image) {
    const std::size_t at = program.data.size();
    body(R"(
 mov.u32 %r5, 0;
copy{0}:
 add.u32 %r6, %r4, %r5;
 cvt.u64.u32 %rd4, %r6;
 add.s64 %rd4, %rd2, %rd4;
 ld.global.b32 %r7, [%rd4+{1}];
 add.u32 %r6, %r3, %r6;
 st.shared.b32 [%r6], %r7;
 add.u32 %r5, %r5, 512;
 setp.lt.u32 %p1, %r5, {2};
 @%p1 bra copy{0};
 fence.proxy.async;
 bar.sync 0;
)",
         cases_.size(), 4 * at, 4 * image.size());
    program.data.insert(program.data.end(), image.begin(), image.end());
  }
  void load(const char* prefix, int n) {
    body(" .reg .b32 %{}<{}>;\n", prefix, n);
    for (int r = 0; r < n; ++r)
      body(" ld.global.b32 %{}{}, [%rd3+{}];\n", prefix, r, 4 * (program.data.size() + 128u * r));
  }
  void load_a(const Case& c, const Matrix& a) {
    load("a", 4 * c.steps);
    const int bits = bits_of(c.a), per_register = 32 / bits;
    for (int s = 0; s < c.steps; ++s)
      for (int r = 0; r < 4; ++r)
        for (int t = 0; t < 128; ++t) {
          std::uint32_t word = 0;
          for (int e = 0; e < per_register; ++e) {
            const auto [row, col] = place_of_a(per_register, r, e, t);
            word |= encode(c.a, a.at(row, col + s * c.k())) << (bits * e);
          }
          program.data.push_back(word);
        }
  }
  void load_d(const Case& c, const Matrix& d) {
    load("d", c.d_registers());
    d_at_.push_back(program.data.size());
    const bool half = c.d == "f16";
    for (int r = 0; r < c.d_registers(); ++r)
      for (int t = 0; t < 128; ++t) {
        std::uint32_t word = 0;
        for (int e = 0; e < (half ? 2 : 1); ++e) {
          const auto [row, col] = place_of_d(half, r, e, t);
          word |= encode(c.d, d.at(row, col)) << 16 * e;
        }
        program.data.push_back(word);
      }
  }
  void descriptor(const char* name, const Placement& p, int at) {
    body(" add.u32 %r6, %r3, {}; shr.u32 %r6, %r6, 4; cvt.u64.u32 {}, %r6; or.b64 {}, {}, 0x{:x};\n", at, name, name,
         name, p.descriptor());
  }
  void issue(const Case& c, const Placement& pa, const Placement& pb, int a_at, int b_at, int s) {
    const int k = c.k();
    std::string a = "%rd5";
    if (c.a_in_registers) a = fmt::format("{{%a{},%a{},%a{},%a{}}}", 4 * s, 4 * s + 1, 4 * s + 2, 4 * s + 3);
    else descriptor("%rd5", pa, a_at + s * pa.step(k));
    descriptor("%rd6", pb, b_at + s * pb.step(k));
    body(" setp.ne.u32 %p1, {}, 0;\n", s > 0 || c.scale_d ? 1 : 0);
    body(" wgmma.mma_async.sync.aligned.m64n{}k{}{}.{}.{}.{} {}, {}, %rd6, %p1", c.n, k, c.modifiers, c.d, c.a, c.b,
         registers("d", c.d_registers()), a);
    if (!is_integer_type(c.a)) body(", {}, {}", c.scale_a, c.scale_b);
    if (bits_of(c.a) == 16 && !c.a_in_registers) body(", {}", c.la.mn_major ? 1 : 0);
    if (bits_of(c.a) == 16) body(", {}", c.lb.mn_major ? 1 : 0);
    body(";\n");
  }

  std::vector<Case> cases_;
  std::vector<std::size_t> d_at_;
};

template <class Value>
Matrix filled(int rows, int cols, Value value) {
  Matrix m{rows, cols};
  for (double& v : m.v) v = value();
  return m;
}

inline Matrix product(const Case& c, const Matrix& a, const Matrix& b, const Matrix& d) {
  Matrix out = d;
  for (int r = 0; r < kM; ++r)
    for (int n = 0; n < c.n; ++n) {
      double& sum = out.at(r, n);
      if (!c.scale_d) sum = 0;
      for (int k = 0; k < a.cols; ++k) sum += c.scale_a * a.at(r, k) * c.scale_b * b.at(n, k);
    }
  return out;
}

/// Numbers of few bits, so that every sum is exact.
inline void expect_exact(const std::vector<Case>& cases) {
  std::minstd_rand random(5);
  Program p;
  std::vector<Matrix> want;
  for (const Case& c : cases) {
    const auto number = [&](const std::string& type) {
      return [&random, type] { return exact_number(type, static_cast<std::uint32_t>(random() >> 4)); };
    };
    const int k = c.k() * c.steps;
    const Matrix a = filled(kM, k, number(c.a)), b = filled(c.n, k, number(c.b)), d = filled(kM, c.n, number(c.d));
    p.add(c, a, b, d);
    want.push_back(product(c, a, b, d));
  }
  p.run();
  for (std::size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(p.result(i).v, want[i].v) << cases[i].name();
}

}  // namespace kiln::test::wgmma
