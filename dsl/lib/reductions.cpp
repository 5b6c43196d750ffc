#include "dsl/lib/reductions.h"

#include <limits>

#include "dsl/lang/control.h"

namespace kiln::lib::chain {
namespace {

constexpr int kCombined = 128;

void parts_program(View<const float, 2> parts, View<float, 1> out, Const<Reduction> reduction) {
  Scalar first = program_id(0) * kCombined;
  Tile all = full(f32, {kCombined, 1}, neutral(reduction));
  for (auto t : range(parts.size(1))) {
    Tile one = parts.load({first, t}, {kCombined, 1});
    all = takes_largest(reduction) ? maximum(all, one) : all + one;
  }
  out.store({first}, reshape(all, {kCombined}));
}
constinit auto combined = kernel("combine_parts", parts_program).names("parts out reduction");

}  // namespace

Tile reduced_element(Reduction r, const Tile& t) {
  Tile x = t.cast(f32);
  switch (r) {
    case Reduction::sum:
    case Reduction::max: return x;
    case Reduction::sum_squares: return x * x;
    case Reduction::abs_max: return abs(x);
  }
  return x;
}

float neutral(Reduction r) { return takes_largest(r) ? -std::numeric_limits<float>::infinity() : 0.f; }

void combine_parts(const On& on, const Matrix<const float>& parts, const Vector<float>& out, Reduction r) {
  combined.launch(on, cdiv(parts.size[0], kCombined), parts, out, r);
}

}  // namespace kiln::lib::chain
