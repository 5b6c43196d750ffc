#include "bench/pointwise.h"

#include <fmt/format.h>

#include <vector>

#include "bench/kernels.h"
#include "bench/timer.h"

namespace kiln::bench {
namespace {

// Random bits, as values in [-1, 1): data with structure draws less power, which makes a kernel look faster.
template <class T>
std::vector<T> random_values(std::size_t n) {
  std::vector<T> out(n);
  std::uint32_t state = 0x9e3779b9u;
  for (T& v : out) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<T>(static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f);
  }
  return out;
}

template <class T>
std::vector<Buffer<T>> buffers(const Device& device, int count, std::size_t n) {
  std::vector<Buffer<T>> out;
  for (int i = 0; i < count; ++i) out.emplace_back(device, n);
  return out;
}

template <class T>
std::vector<Buffer<T>> random_buffers(const Device& device, int count, std::size_t n) {
  auto out = buffers<T>(device, count, n);
  const auto values = random_values<T>(n);
  for (auto& b : out) b.upload(values);
  return out;
}

std::size_t elements(const Case& what) {
  if (what.shape.size() != 1 || what.shape[0] < 1)
    throw UserError(
        fmt::format("{}: the shape must be one positive number, got [{}]", what.name, fmt::join(what.shape, ", ")));
  return static_cast<std::size_t>(what.shape[0]);
}

void expect_dtype(const Case& what, const char* dtype) {
  if (what.dtype != dtype)
    throw UserError(fmt::format("{}: measured for {} alone, got '{}'", what.name, dtype, what.dtype));
}

// Compiles, and loads what a capture must find loaded.
const Stream& warm(const Stream& stream, const std::function<void(const Stream&, int)>& launch) {
  for (int i = 0; i < 3; ++i) launch(stream, i);
  stream.synchronize();
  return stream;
}

// Every launch of a graph has an output of its own; the inputs rotate.
Prepared prepare_add_relu(const Stream& stream, const Case& what) {
  const std::size_t n = elements(what);
  const Rotation rotation = rotation_for(2 * n * sizeof(float));
  const auto a = random_buffers<float>(stream.device(), rotation.sets, n),
             b = random_buffers<float>(stream.device(), rotation.sets, n);
  auto c = buffers<float>(stream.device(), rotation.launches, n);
  return {stream, what, 3.0 * sizeof(float) * static_cast<double>(n), rotation.launches,
          [a, b, c, n, shape = shape_for(n)](const Stream& s, int i) mutable {
            const auto at = static_cast<std::size_t>(i), set = at % a.size();
            add_relu.with({.num_warps = shape.num_warps})
                .launch(s, cdiv(n, shape.block), a[set], b[set], c[at], n, Const(shape.block));
          }};
}

Prepared prepare_copy(const Stream& stream, const Case& what) {
  const std::size_t n = elements(what);
  const Rotation rotation = rotation_for(2 * n * sizeof(bf16));
  auto from = random_buffers<bf16>(stream.device(), rotation.sets, n),
             to = buffers<bf16>(stream.device(), rotation.sets, n);
  return {stream, what, 2.0 * sizeof(bf16) * static_cast<double>(n), rotation.launches,
          [from, to, n](const Stream& s, int i) mutable {
            const std::size_t set = static_cast<std::size_t>(i) % from.size();
            copy.launch(s, cdiv(n, 2 * kBlock), from[set], to[set], n, Const(2 * kBlock));
          }};
}

}  // namespace

Prepared::Prepared(const Stream& stream, Case what, double bytes, int launches,
                   std::function<void(const Stream&, int)> launch)
    : what_(std::move(what)),
      bytes_(bytes),
      launch_(std::move(launch)),
      timer_(warm(stream, launch_), launches, launch_) {}

Figure Prepared::measure() {
  const double us = timer_.us_per_launch();
  return {.what = what_, .us = us, .gbs = bytes_ / us / 1e3};
}

Prepared prepare_pointwise(const Stream& stream, const Case& what) {
  if (what.name == "add_relu") {
    expect_dtype(what, "f32");
    return prepare_add_relu(stream, what);
  }
  if (what.name == "copy_ceiling") {
    expect_dtype(what, "bf16");
    return prepare_copy(stream, what);
  }
  throw UserError(fmt::format("case '{}' is not known; known: add_relu (f32), copy_ceiling (bf16)", what.name));
}

}  // namespace kiln::bench
