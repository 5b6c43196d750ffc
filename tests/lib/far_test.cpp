// Arrays that reach beyond 2^31 elements: rows that lie far apart give what the same rows give side by side, and the
// end of a long vector is worked off.
#include <algorithm>
#include <cstring>

#include "tests/lib/rows.h"

namespace kiln::test {
namespace {

constexpr std::int64_t kFar = (std::int64_t(1) << 31) + 16;  ///< elements between the beginnings of two rows
constexpr std::int64_t kCols = 1000;

/// Two rows of kCols elements, side by side or far apart. What lies between is mapped, not filled.
class TwoRows {
 public:
  TwoRows(const Device& device, std::int64_t pitch, std::uint32_t seed)
      : pitch_(pitch), memory_(device, std::size_t(pitch + kCols)) {
    const std::vector<double> x = numbers<bf16>(2 * kCols, seed);
    std::vector<bf16> row(kCols);
    for (std::size_t r = 0; r < 2; ++r) {
      for (std::size_t c = 0; c < row.size(); ++c) row[c] = bf16(float(x[r * kCols + c]));
      memory_.upload(row, r * std::size_t(pitch));
    }
  }
  operator lib::Matrix<bf16>() { return {memory_, {2, kCols}, {pitch_, 1}}; }
  operator lib::Matrix<const bf16>() const { return {memory_, {2, kCols}, {pitch_, 1}}; }
  lib::Heads<bf16> heads() { return {memory_, {2, 10, 100}, {pitch_, 100, 1}}; }

  std::vector<float> values() const {
    std::vector<float> v;
    std::vector<bf16> row(kCols);
    for (std::size_t r = 0; r < 2; ++r) {
      memory_.download(row, r * std::size_t(pitch_));
      for (bf16 x : row) v.push_back(float(x));
    }
    return v;
  }

 private:
  std::int64_t pitch_;
  Buffer<bf16> memory_;
};

/// `call(stream, x, y)` on rows side by side and far apart leaves the same in both.
template <class F>
void expect_same(const Device& d, F call) {
  const Stream s(d);
  const auto results = [&](std::int64_t pitch) {
    TwoRows x(d, pitch, 1), y(d, pitch, 2);
    const std::vector<float> before = y.values();
    call(s, x, y);
    std::vector<float> v = x.values();
    const std::vector<float> after = y.values();
    v.insert(v.end(), after.begin(), after.end());
    return v;
  };
  try {
    const std::vector<float> near = results(kCols), far = results(kFar);
    EXPECT_EQ(near, far);
    EXPECT_TRUE(std::none_of(near.begin(), near.end(), [](float x) { return std::isnan(x); }));
  } catch (const DeviceError& e) {
    GTEST_SKIP() << "needs 9 GB of device memory: " << e.what();
  }
}

TEST(Far, RowsOfMatrices) {
  on_each_device([](const Device& d) {
    const Weights<bf16> w(d, numbers<bf16>(kCols, 3)), per_row(d, {0.5, 2});
    const Buffer<std::int64_t> target = buffer_of(d, std::vector<std::int64_t>{999, 3});
    Buffer<float> loss(d, 2);
    expect_same(d, [](const Stream& s, TwoRows& x, TwoRows& y) { lib::softmax<bf16>(s, x, y); });
    expect_same(d, [&](const Stream& s, TwoRows& x, TwoRows& y) { lib::rmsnorm<bf16>(s, x, w, y); });
    expect_same(d, [](const Stream& s, TwoRows& x, TwoRows& y) { lib::cumsum<bf16>(s, x, y); });
    expect_same(d, [](const Stream& s, TwoRows& x, TwoRows& y) { lib::swiglu<bf16>(s, x, y, y); });
    expect_same(d, [&](const Stream& s, TwoRows& x, TwoRows& y) {
      lib::gelu_bias_scale_residual<bf16>(s, x, w, per_row, y, y);
    });
    expect_same(d, [&](const Stream& s, TwoRows& x, TwoRows&) {
      lib::cross_entropy_gradient<bf16>(s, x, {target, {2}}, {loss, {2}}, 1);
    });
  });
}

TEST(Far, RowsThatArePickedTurnedAndTransposed) {
  on_each_device([](const Device& d) {
    const Buffer<std::int64_t> ids = buffer_of(d, std::vector<std::int64_t>{1, 0});
    const std::vector<double> angles = numbers<float>(100, 4, 1);
    const Rows<float> table(d, {2, 50}, angles);
    expect_same(d, [&](const Stream& s, TwoRows& x, TwoRows& y) { lib::embedding<bf16>(s, x, {ids, {2}}, y); });
    expect_same(d, [&](const Stream& s, TwoRows& x, TwoRows& y) {
      const lib::Heads<bf16> from = x.heads();
      lib::Heads<const bf16> in(TypedPtr<bf16>{from.data.address, from.data.bytes / sizeof(bf16)}, from.size,
                                from.stride);
      lib::rope<bf16>(s, in, table, table, y.heads());
    });
    expect_same(d, [&](const Stream& s, TwoRows& x, TwoRows& y) {
      Buffer<bf16> between(d, 2 * kCols);
      lib::transpose<bf16>(s, x, {between, {kCols, 2}});
      lib::transpose<bf16>(s, {between, {kCols, 2}}, y);
      s.synchronize();
    });
  });
}

// The simulator would take hours.
TEST(Far, TheEndOfALongVector) {
  for (const Device& d : Device::all()) {
    if (d.is_simulator()) continue;
    SCOPED_TRACE(d.name());
    const std::int64_t n = (std::int64_t(1) << 31) + 4099, shown = 4099;
    try {
      const Stream s(d);
      Buffer<bf16> x(d, std::size_t(n));
      Buffer<float> sum(d, 1);
      x.fill_bytes(0);
      x.upload(std::vector<bf16>(std::size_t(shown), bf16(1.f)), std::size_t(n - shown));
      lib::sum_all<bf16>(s, {x, {n}}, {sum, {1}});
      EXPECT_EQ(sum.to_vector()[0], float(shown));
      lib::dropout<bf16>(s, {x, {n}}, {x, {n}}, 0.5, 1);
      lib::sum_all<bf16>(s, {x, {n}}, {sum, {1}});
      std::vector<bf16> end(std::size_t(shown), bf16(0.f));
      x.download(end, std::size_t(n - shown));
      float kept = 0;
      for (bf16 v : end) kept += float(v);
      EXPECT_EQ(sum.to_vector()[0], kept);
      EXPECT_NEAR(kept, double(shown), 300);  // twice as many as are kept: 4.7 standard deviations
    } catch (const DeviceError& e) {
      GTEST_SKIP() << "needs 5 GB of device memory: " << e.what();
    }
    return;
  }
  GTEST_SKIP() << "2^31 elements take a GPU";
}

}  // namespace
}  // namespace kiln::test
