// What all functions of the library share: sizes that are refused, arrays of no elements, capture into a graph.
#include <functional>

#include "tests/lib/rows.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

/// What the functions are called with.
struct Arrays {
  explicit Arrays(const Device& d, std::size_t n)
      : a(d, n), b(d, n), y(d, n), out(d, n), vector(d, n), counts(d, n), positions(d, n), workspace(d, 4096) {}
  Buffer<float> a, b, y, out, vector;
  Buffer<std::int64_t> counts;
  Buffer<std::int32_t> positions;
  Buffer<float> workspace;
};
using Call = std::function<void(const Stream&, Arrays&, std::int64_t rows, std::int64_t cols)>;
struct Named {
  std::string name;
  Call call;
};

/// Dense arrays of `rows` x `cols`; vectors of one number a row, or a column.
const std::vector<Named>& functions() {
  using N = std::int64_t;
  static const std::vector<Named> all = {
      {"softmax",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::softmax<float>(s, {m.a, {r, c}}, {m.y, {r, c}});
       }},
      {"log_softmax",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::log_softmax<float>(s, {m.a, {r, c}}, {m.y, {r, c}});
       }},
      {"layernorm",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::layernorm<float>(s, {m.a, {r, c}}, {m.b, {c}}, {m.vector, {c}}, {m.y, {r, c}});
       }},
      {"rmsnorm",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::rmsnorm<float>(s, {m.a, {r, c}}, {m.b, {c}}, {m.y, {r, c}});
       }},
      {"add_rmsnorm",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::add_rmsnorm<float>(s, {m.a, {r, c}}, {m.b, {r, c}}, {m.vector, {c}}, {m.out, {r, c}}, {m.y, {r, c}});
       }},
      {"cross_entropy",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::cross_entropy<float>(s, {m.a, {r, c}}, {m.counts, {r}}, {m.y, {r}});
       }},
      {"cross_entropy_gradient",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::cross_entropy_gradient<float>(s, {m.y, {r, c}}, {m.counts, {r}}, {m.out, {r}}, 1.f);
       }},
      {"transpose",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::transpose<float>(s, {m.a, {r, c}}, {m.y, {c, r}});
       }},
      {"cumsum",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::cumsum<float>(s, {m.a, {r, c}}, {m.y, {r, c}});
       }},
      {"dropout",
       [](const Stream& s, Arrays& m, N r, N) {
         lib::dropout<float>(s, {m.a, {r}}, {m.y, {r}}, 0.5, 7);
       }},
      {"swiglu",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::swiglu<float>(s, {m.a, {r, c}}, {m.b, {r, c}}, {m.y, {r, c}});
       }},
      {"gelu_bias_scale_residual",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::gelu_bias_scale_residual<float>(s, {m.a, {r, c}}, {m.vector, {c}}, {m.vector, {r}}, {m.b, {r, c}},
                                              {m.y, {r, c}});
       }},
      {"adam_step",
       [](const Stream& s, Arrays& m, N r, N) {
         lib::adam_step<float>(s, {m.y, {r}}, {m.a, {r}}, {m.out, {r}}, {m.vector, {r}}, {}, 1);
       }},
      {"rope",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::rope<float>(s, {m.a, {r, 2, c}}, {m.b, {8, c / 2}}, {m.vector, {8, c / 2}}, {m.positions, {r}},
                          {m.y, {r, 2, c}});
       }},
      {"embedding",
       [](const Stream& s, Arrays& m, N r, N c) {
         lib::embedding<float>(s, {m.a, {4, c}}, {m.counts, {r}}, {m.y, {r, c}});
       }},
      {"sum_all",
       [](const Stream& s, Arrays& m, N r, N) {
         lib::sum_all<float>(s, {m.a, {r}}, {m.y, {1}}, {m.workspace, {lib::kSumWorkspace}});
       }},
  };
  return all;
}

TEST(LibraryArguments, NegativeSizesAreRefused) {
  const Device d = interpreter();
  const Stream s(d);
  Arrays m(d, 256);
  for (const Named& f : functions())
    for (const auto& [rows, cols] : {std::pair{-1, 0}, {-3, -4}, {-3, 4}})
      EXPECT_THAT(error_of<UserError>([&] { f.call(s, m, rows, cols); }),
                  testing::AllOf(testing::HasSubstr("error: " + f.name + ": "),
                                 testing::HasSubstr(", must have no negative size")))
          << f.name << " of " << rows << "x" << cols;
  expect_user_error(
      [&] {
        lib::softmax<float>(s, {m.a, {0, -1}}, {m.y, {0, -1}});
      },
      "softmax: x is 0x-1, must have no negative size", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::rope<float>(s, {m.a, {2, -1, 0}}, {m.b, {4, 0}}, {m.b, {4, 0}}, {m.y, {2, -1, 0}});
      },
      "rope: x is 2x-1x0, must have no negative size", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::dropout<float>(s, {m.a, {-1}}, {m.y, {-1}}, 0.5, 1);
      },
      "dropout: x is -1, must have no negative size", __FILE__, __LINE__ - 2);
}

TEST(LibraryArguments, MoreElementsThanNumbersAreRefused) {
  const Device d = interpreter();
  const Stream s(d);
  Arrays m(d, 256);
  const std::int64_t n = std::int64_t(1) << 32;
  expect_user_error(
      [&] {
        lib::swiglu<float>(s, {m.a, {n, n}}, {m.b, {n, n}}, {m.y, {n, n}});
      },
      "reach beyond the buffer's 256 elements", __FILE__, __LINE__ - 2);
}

TEST(LibraryArguments, ArraysOfNoElementsLaunchNothing) {
  on_each_device([](const Device& d) {
    const Stream s(d);
    Arrays none(d, 0);
    d.reset_counters();
    for (const Named& f : functions())
      if (f.name != "sum_all") f.call(s, none, 0, 0);
    s.synchronize();
    EXPECT_EQ(d.counters().launches, 0u);
  });
}

// What a graph replays is what a call does; a call before the capture is what it needs.
TEST(LibraryArguments, EveryFunctionIsReplayedFromAGraph) {
  const std::int64_t rows = 6, cols = 10;
  for (const Device& d : Device::all()) {
    SCOPED_TRACE(d.name());
    const Stream s(d);
    for (const Named& f : functions()) {
      SCOPED_TRACE(f.name);
      Arrays m(d, 256);
      const auto start = [&](std::uint32_t seed) {
        std::vector<float> v(256);
        for (Buffer<float>* b : {&m.a, &m.b, &m.y, &m.out, &m.vector}) {
          const auto x = numbers<float>(256, seed++, 1, 1.5);
          std::copy(x.begin(), x.end(), v.begin());
          b->upload(v);
        }
        m.counts.fill_bytes(0);
        m.positions.fill_bytes(0);
      };
      start(1);
      f.call(s, m, rows, cols);
      start(20);
      f.call(s, m, rows, cols);
      s.synchronize();
      const auto y = m.y.to_vector(), out = m.out.to_vector();
      const Graph graph = Graph::capture(s, [&] { f.call(s, m, rows, cols); });
      start(1);
      graph.replay(s);
      s.synchronize();
      EXPECT_NE(m.y.to_vector(), y);
      start(20);
      graph.replay(s);
      s.synchronize();
      EXPECT_EQ(m.y.to_vector(), y);
      EXPECT_EQ(m.out.to_vector(), out);
    }
  }
}

TEST(LibraryArguments, AFirstCallInACaptureSaysWhatToDo) {
  const Device d = Device::simulator();
  const Stream s(d);
  Buffer<float> x(d, 23 * 7), y(d, 23 * 7);
  x.fill_bytes(0);
  const auto call = [&] { lib::softmax<float>(s, {x, {7, 23}}, {y, {7, 23}}); };
  EXPECT_THAT(error_of<UserError>([&] { (void)Graph::capture(s, call); }),
              testing::AllOf(testing::HasSubstr("kernel 'softmax' is not loaded for these arguments"),
                             testing::HasSubstr("or launch it once, before the capture")));
  call();
  Graph::capture(s, call).replay(s);
  s.synchronize();
}

// Arrays of different alignment: a row that changes its threads for it must find room in shared memory, or stay.
TEST(LibraryArguments, WidestRowsFitEveryTargetWhateverTheirAlignment) {
  const std::int64_t cols = lib::kLongestTile;
  for (const char* target : {"sm_86", "sm_90a", "sm_120a"}) {
    SCOPED_TRACE(target);
    const Device d = Device::simulator(target);
    const Stream s(d);
    const auto rows = [&](auto zero) {
      using T = decltype(zero);
      Buffer<T> x(d, std::size_t(cols) + 1), y(d, std::size_t(cols) + 1), w(d, std::size_t(cols) + 1);
      const std::vector<T> ones(x.size(), T(1.f));
      for (Buffer<T>* b : {&x, &w}) b->upload(ones);
      const auto at = [](const Buffer<T>& b, int i) {
        return device_ptr<T>(b.ptr() + std::size_t(i) * sizeof(T), b.size() - std::size_t(i));
      };
      for (const auto& [i, j, k] : {std::array{0, 1, 0}, {1, 0, 0}, {0, 0, 1}}) {
        const std::array<std::int64_t, 2> shape{1, cols};
        const auto expect = [&](float value) {
          s.synchronize();
          EXPECT_EQ(float(y.to_vector()[std::size_t(j + cols - 1)]), float(T(value)));
        };
        lib::softmax<T>(s, {at(x, i), shape}, {at(y, j), shape});
        expect(1.f / float(cols));
        lib::layernorm<T>(s, {at(x, i), shape}, {at(w, k), {cols}}, {at(w, k), {cols}}, {at(y, j), shape});
        expect(1);
        lib::rmsnorm<T>(s, {at(x, i), shape}, {at(w, k), {cols}}, {at(y, j), shape}, 0);
        expect(1);
        lib::add_rmsnorm<T>(s, {at(x, i), shape}, {at(w, k), shape}, {at(w, k), {cols}}, {at(x, i), shape},
                            {at(y, j), shape}, 0);
        expect(1);
        x.upload(ones);
      }
    };
    rows(0.f);
    rows(bf16(0.f));
  }
}

}  // namespace
}  // namespace kiln::test
