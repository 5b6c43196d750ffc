// The C++ blocks of docs/library.md, compiled and run. tests/layering compares the two, line by line.
#include <gtest/gtest.h>
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <cmath>

namespace kiln::test {
namespace {

TEST(LibraryPage, NormalisesRowsInPlace) {
  const Device device = Device::simulator();
  const Stream stream(device);
  const int rows = 2, cols = 4;
  Buffer<bf16> x(device, 8), y(device, 8), weight(device, 4);
  x.upload(std::vector<bf16>(8, bf16(-5.f)));
  weight.upload(std::vector<bf16>(4, bf16(3.f)));
  lib::softmax<bf16>(stream, {x, {rows, cols}}, {y, {rows, cols}});
  lib::rmsnorm<bf16>(stream, {y, {rows, cols}}, {weight, {cols}}, {y, {rows, cols}});  // in place
  for (bf16 v : y.to_vector()) EXPECT_EQ(float(v), 3.f);                               // of four equal probabilities
}

TEST(LibraryPage, TakesRowsThatLieApart) {
  const Device device = Device::simulator();
  const Stream stream(device);
  const int rows = 2, cols = 2, pitch = 3;
  Buffer<float> logits(device, 6), out(device, 4);
  logits.upload(std::vector<float>{1, 1, 99, -7, -7, 99});
  lib::log_softmax<float>(stream, {logits, {rows, cols}, {pitch, 1}}, {out, {rows, cols}});  // rows `pitch` apart
  for (float v : out.to_vector()) EXPECT_NEAR(v, -std::log(2.f), 1e-6);
}

TEST(LibraryPage, MovesParametersAgainstTheirGradient) {
  const Device device = Device::simulator();
  const Stream stream(device);
  const int n = 2, step = 1;
  Buffer<float> param(device, 2), grad(device, 2), m(device, 2), v(device, 2);
  for (Buffer<float>* b : {&param, &m, &v}) b->fill_bytes(0);
  grad.upload(std::vector<float>{5, -0.25f});
  lib::adam_step<float>(stream, {param, {n}}, {grad, {n}}, {m, {n}}, {v, {n}}, {.lr = 3e-4, .weight_decay = 0}, step);
  EXPECT_NEAR(param.to_vector()[0], -3e-4, 1e-9);  // the first step is as long as lr, whatever the gradient
  EXPECT_NEAR(param.to_vector()[1], 3e-4, 1e-9);
}

TEST(LibraryPage, MultipliesWithWhatComesAfter) {
  const Device device = Device::simulator();
  const Stream stream(device);
  const int M = 3, N = 2, K = 4;
  const float slope = 0.5f;
  const auto filled = [&](int n, float v) {
    Buffer<bf16> b(device, std::size_t(n));
    b.upload(std::vector<bf16>(std::size_t(n), bf16(v)));
    return b;
  };
  const Buffer<bf16> x = filled(M * K, 1), w = filled(N * K, 2), bias = filled(N, -2), residual = filled(M * N, 7);
  Buffer<bf16> y(device, std::size_t(M * N));
  lib::linear<bf16>({x, {M, K}}, {w, {N, K}})
      .then(lib::epilogue::bias<bf16>({bias, {N}}))
      .then(lib::epilogue::relu)
      .then([slope](Tile t, Tile r) { return t * slope + r; }, lib::per_element<bf16>({residual, {M, N}}))
      .run(stream, {y, {M, N}});
  for (bf16 v : y.to_vector()) EXPECT_EQ(float(v), 10.f);
}

TEST(LibraryPage, MultipliesPackedWeights) {
  const Device device = Device::simulator();
  const Stream stream(device);
  const int M = 3, N = 2, K = 64;
  Buffer<bf16> x(device, std::size_t(M * K)), y(device, std::size_t(M * N));
  Buffer<std::uint8_t> packed(device, std::size_t(N * K / 2));
  Buffer<float> scales(device, std::size_t(N * K / 32)), largest(device, std::size_t(M));
  x.upload(std::vector<bf16>(x.size(), bf16(1.f)));
  packed.upload(std::vector<std::uint8_t>(packed.size(), 0xe3));  // 3 and -2
  scales.upload(std::vector<float>(scales.size(), -2));
  lib::linear<bf16, lib::Int4>({x, {M, K}}, {packed, {N, K / 2}}, {.batch_invariant = true})
      .w_scaled({scales, {N, K / 32}}, 32)
      .then(lib::epilogue::row_reduce(lib::Reduction::abs_max, {largest, {M}}))
      .run(stream, {y, {M, N}});
  for (bf16 v : y.to_vector()) EXPECT_EQ(float(v), -64.f);
  for (float v : largest.to_vector()) EXPECT_EQ(v, 64.f);
}

}  // namespace
}  // namespace kiln::test
