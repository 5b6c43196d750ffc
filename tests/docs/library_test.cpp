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

}  // namespace
}  // namespace kiln::test
