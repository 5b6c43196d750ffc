// Arrays of more than 2^31 elements: every element of one, and products of an index and a stride beyond 2^31.
#include <cstring>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;

class Huge : public EveryDevice {};
KILN_ON_EVERY_DEVICE(Huge);

// Values repeat after a prime number of elements: one that lands 2^31 or 2^32 elements off is another value there.
constexpr std::int64_t kPeriod = 1021;

constinit auto fill_pattern = kernel("fill_pattern", [](Out<f16> x, Int n, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
  store(x + i, (i % kPeriod).cast<f16>(), mask);
});

/// What the first `n` elements must be.
std::vector<f16> pattern(std::size_t n) {
  std::vector<f16> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = f16(float(i % kPeriod));
  return v;
}

TEST_P(Huge, EveryElementOfAVectorBeyondTwoToThe31IsWritten) {
  if (device().kind() != DeviceKind::Cuda) GTEST_SKIP() << "3.27e9 elements take a GPU";
  const std::int64_t n = 3'270'000'000;
  Buffer<f16> x;
  try {
    x = Buffer<f16>(device(), std::size_t(n));
  } catch (const DeviceError& e) {
    GTEST_SKIP() << "needs 6.5 GB of device memory: " << e.what();
  }
  x.fill_bytes(0xff);  // a NaN, which the kernel never writes
  const Stream s(device());
  fill_pattern.launch(s, cdiv(n, 1024), x, n, 1024);
  s.synchronize();
  const std::vector<f16> want = pattern(std::size_t(kPeriod) << 16);
  std::vector<f16> got(want.size());
  for (std::size_t first = 0; first < std::size_t(n); first += got.size()) {
    got.resize(std::min(got.size(), std::size_t(n) - first));
    x.download(got, first);
    if (std::memcmp(got.data(), want.data(), got.size() * sizeof(f16)) == 0) continue;
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i].bits, want[i].bits) << "element " << first + i << " is " << float(got[i]);
  }
}

// The pattern itself, and the comparison, on sizes that every device runs.
TEST_P(Huge, ThePatternIsWrittenAtSmallSizesToo) {
  for (std::int64_t n : {1, 1021, 5000}) {
    Buffer<f16> x(device(), std::size_t(n));
    x.fill_bytes(0xff);
    fill_pattern.launch(Stream(device()), cdiv(n, 1024), x, n, 1024);
    const std::vector<f16> got = x.to_vector(), want = pattern(std::size_t(n));
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(f16)), 0) << n;
  }
}

// Weights of 512 experts: expert times stride is beyond 2^31 for those in the second half, whatever the integer's type
// that names the expert. Only the rows that are read are touched: the rest is mapped, not filled.
constinit auto read_expert = kernel("read_expert", [](In<f16> w, In<std::int32_t> expert, Out<f16> y, Int stride,
                                                      Const<int> COLS) {
  Scalar e = load(expert + program_id(0));
  Tile j = arange(COLS);
  store(y + program_id(0) * COLS + j, load(w + e * stride + j));
});
TEST_P(Huge, StrideTimesIndexDoesNotWrap) {
  const std::int64_t experts = 512, stride = 2048 * 4096, cols = 64;
  Buffer<f16> w;
  try {
    w = Buffer<f16>(device(), std::size_t(experts * stride));
  } catch (const DeviceError& e) {
    GTEST_SKIP() << "needs 8.6 GB of device memory: " << e.what();
  }
  const std::vector<std::int32_t> chosen = {0, 255, 256, 257, 511};
  for (std::int32_t e : chosen) {
    const std::vector<f16> row(static_cast<std::size_t>(cols), f16{static_cast<float>(e)});
    w.upload(row, std::size_t(e * stride));
  }
  auto expert = buffer_of(device(), chosen);
  Buffer<f16> y(device(), chosen.size() * std::size_t(cols));
  read_expert.launch(Stream(device()), std::int64_t(chosen.size()), w, expert, y, stride, int(cols));
  const std::vector<f16> got = y.to_vector();
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(float(got[i]), float(chosen[i / std::size_t(cols)])) << i;
}

}  // namespace
