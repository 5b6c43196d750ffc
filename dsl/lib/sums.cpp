#include "dsl/lib/sums.h"

#include <fmt/format.h>

#include "dsl/lang/control.h"
#include "dsl/lib/blocks.h"
#include "dsl/lib/chunk.h"
#include "runtime/base/error.h"

namespace kiln::lib {
namespace {

// --- of a whole array ----------------------------------------------------------------------------------------------
// One wave of programs, each of which goes over the array with the strides of all, then one program that adds their
// sums. On one H200, 2^28 f32: 4601 GB/s; the last program to arrive adding them 4620, but that needs a counter which
// is 0 at first.

constexpr std::int64_t kProgramsPerMultiprocessor = 8;  ///< of 256 threads: all that it has room for

template <class T>
constinit auto parts = kernel("sum_all", [](View<const T, 1> x, View<float, 1> part) {
                         Scalar first = program_id(0) * kChunk<T>, step = num_programs(0) * kChunk<T>;
                         Tile c = chunk_positions<T>(), p = x.pointer() + (first + c), s = zeros(f32, {kLanes});
                         Scalar left = x.size(0) - first;
                         for (auto at : range(first, x.size(0), step)) {
                           (void)at;  // p and left follow it, by one addition each
                           s += lane_sum(load(p, c < left).cast(f32));
                           p += step;
                           left -= step;
                         }
                         store(part.pointer() + program_id(0), sum(s));
                       }).names("x workspace");

constinit auto total = kernel("sum_all_total", [](View<float, 1> part, View<float, 1> out) {
                         Tile i = arange(kLanes), s = zeros(f32, {kLanes});
                         for (auto at : range(0, part.size(0), kLanes))
                           s += load(part.pointer() + (at + i), at + i < part.size(0));
                         store(out.pointer(), sum(s));
                       }).names("workspace out");

/// How many programs share the array: 1 at least, so that an empty one has a sum.
template <class T>
std::int64_t programs(const Device& device, std::int64_t n) {
  return std::clamp<std::int64_t>(cdiv(n, kChunk<T>), 1, sum_workspace(device));
}

template <class T>
void check(SourceLoc at, const Vector<const T>& x, const Vector<float>& out) {
  check_vector("sum_all", at, "x", x.size[0], x.stride[0], x.size[0]);
  check_vector("sum_all", at, "out", out.size[0], out.stride[0], 1);
}

// --- along rows ----------------------------------------------------------------------------------------------------

struct Scan {
  int chunk = 2048;
};

template <class T>
constinit auto running = kernel("cumsum", [](View<const T, 2> x, View<T, 2> y, Tune<Scan> t) {
                           Scalar width = x.size(1), from = x.pointer() + program_id(0) * x.stride(0),
                                  to = y.pointer() + program_id(0) * y.stride(0), before = 0.f;
                           for (auto at : range(0, width, t.chunk)) {
                             Tile c = at + arange(t.chunk), v = load(from + c, c < width).cast(f32);
                             store(to + c, (before + cumsum(v, 0)).template cast<T>(), c < width);
                             before += sum(v);
                           }
                         }).names("x y scan");

}  // namespace

std::int64_t sum_workspace(const Device& device) { return kProgramsPerMultiprocessor * device.sm_count(); }

template <Real T>
void sum_all(On on, Vector<const T> x, Vector<float> out, Vector<float> workspace) {
  check<T>(on.at, x, out);
  const Device device = on.stream.device();
  if (workspace.size[0] < sum_workspace(device))
    throw UserError(on.at, fmt::format("sum_all: workspace has {} elements, must have {} on {}", workspace.size[0],
                                       sum_workspace(device), device.name()));
  check_vector("sum_all", on.at, "workspace", workspace.size[0], workspace.stride[0], workspace.size[0]);
  workspace.size[0] = programs<T>(device, x.size[0]);
  parts<T>.launch(on, workspace.size[0], x, workspace);
  total.launch(on, 1, workspace, out);
}

template <Real T>
void sum_all(On on, Vector<const T> x, Vector<float> out) {
  check<T>(on.at, x, out);
  const std::int64_t n = sum_workspace(on.stream.device());
  if (on.stream.capturing())
    throw UserError(on.at,
                    fmt::format("sum_all: the stream is being captured, so a workspace of {} floats is needed", n));
  Buffer<float> workspace(on.stream, std::size_t(n), on.at);
  sum_all<T>(on, x, out, {workspace, {n}});
}

template <Real T>
void cumsum(On on, Matrix<const T> x, Matrix<T> y) {
  check_rows("cumsum", on.at, {named<const T>("x", x), named<T>("y", y)});
  if (x.size[1] == 0) return;
  running<T>.launch(on, x.size[0], x, y, {block_for(x.size[1], Scan{}.chunk)});
}

#define KILN_INSTANTIATE(T)                                                    \
  template void sum_all<T>(On, Vector<const T>, Vector<float>, Vector<float>); \
  template void sum_all<T>(On, Vector<const T>, Vector<float>);                \
  template void cumsum<T>(On, Matrix<const T>, Matrix<T>);
KILN_INSTANTIATE(float)
KILN_INSTANTIATE(f16)
KILN_INSTANTIATE(bf16)
#undef KILN_INSTANTIATE

}  // namespace kiln::lib
