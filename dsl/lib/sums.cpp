#include "dsl/lib/sums.h"

#include <fmt/format.h>

#include "dsl/lang/control.h"
#include "dsl/lib/blocks.h"
#include "dsl/lib/chunk.h"
#include "runtime/base/error.h"

namespace kiln::lib {
namespace {

// --- of a whole array ----------------------------------------------------------------------------------------------
// Each program sums a piece, then one program adds their sums. 2^28 f32 on one H200, all in one run: pieces of four chunks
// of 512 lanes 4614 GB/s, of 256 lanes 4571; one wave of programs that stride over the array 4596; 528 programs with one
// long piece each 3713.

constexpr int kSumVectors = 8, kSumLanes = 512;
template <class T>
constexpr std::int64_t kSumChunk = std::int64_t{kSumVectors} * kSumLanes * kElements<T>;

template <class T>
void parts_program(View<const T, 1> x, View<float, 1> part, Int piece) {
  Scalar first = program_id(0) * piece, left = x.size(0) - first;
  Tile c = reshape(arange(int(kSumChunk<T>)), {kSumVectors, kSumLanes, kElements<T>}), p = x.pointer() + (first + c);
  Tile s = zeros(f32, {kSumLanes});
  for (auto at : range(0, piece, kSumChunk<T>)) {
    (void)at;  // p and left follow it, by one addition each
    s += lane_sum(load(p, c < left).cast(f32));
    p += kSumChunk<T>;
    left -= kSumChunk<T>;
  }
  store(part.pointer() + program_id(0), sum(s));
}
template <class T>
constinit auto parts = kernel("sum_all", parts_program<T>).names("x workspace piece");

void total_program(View<float, 1> part, View<float, 1> out) {
  Tile i = arange(int(kSumWorkspace));
  store(out.pointer(), sum(load(part.pointer() + i, i < part.size(0))));
}
constinit auto total = kernel("sum_all_total", total_program).names("workspace out");

/// How much of the array one program sums: as many chunks as it takes for the workspace to do.
template <class T>
std::int64_t piece_of(std::int64_t n) {
  return kSumChunk<T> * std::max<std::int64_t>(cdiv(n, kSumChunk<T> * kSumWorkspace), 1);
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
void running_program(View<const T, 2> x, View<T, 2> y, Tune<Scan> t) {
  Scalar width = x.size(1), from = x.pointer() + program_id(0) * x.stride(0),
         to = y.pointer() + program_id(0) * y.stride(0), before = 0.f;
  for (auto at : range(0, width, t.chunk)) {
    Tile c = at + arange(t.chunk), v = load(from + c, c < width).cast(f32);
    store(to + c, (before + cumsum(v, 0)).template cast<T>(), c < width);
    before += sum(v);
  }
}
template <class T>
constinit auto running = kernel("cumsum", running_program<T>).names("x y scan");

}  // namespace

template <Real T>
void sum_all(On on, Vector<const T> x, Vector<float> out, Vector<float> workspace) {
  check<T>(on.at, x, out);
  if (workspace.size[0] < kSumWorkspace)
    throw UserError(on.at,
                    fmt::format("sum_all: workspace has {} elements, must have {}", workspace.size[0], kSumWorkspace));
  check_vector("sum_all", on.at, "workspace", workspace.size[0], workspace.stride[0], workspace.size[0]);
  const std::int64_t n = x.size[0], piece = piece_of<T>(n);
  workspace.size[0] = std::max<std::int64_t>(cdiv(n, piece), 1);  // an empty array has a sum, too
  parts<T>.launch(on, workspace.size[0], x, workspace, piece);
  total.launch(on, 1, workspace, out);
}

template <Real T>
void sum_all(On on, Vector<const T> x, Vector<float> out) {
  check<T>(on.at, x, out);
  if (on.stream.capturing())
    throw UserError(on.at, fmt::format("sum_all: the stream is being captured, so a workspace of {} floats is needed",
                                       kSumWorkspace));
  Buffer<float> workspace(on.stream, std::size_t(kSumWorkspace), on.at);
  sum_all<T>(on, x, out, {workspace, {kSumWorkspace}});
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
