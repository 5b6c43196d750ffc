#include "dsl/lib/embedding.h"

#include <fmt/format.h>

#include "dsl/lang/arrange.h"
#include "dsl/lib/blocks.h"
#include "runtime/base/error.h"

namespace kiln::lib {
namespace {

/// Rows and columns of one program.
struct Picked {
  int rows = 1, cols = 8192;
};
constexpr int kElements = 8192;

template <class T, class Id>
void rows_by_id_program(View<const T, 2> table, View<const Id, 1> ids, View<T, 2> y, Tune<Picked> t) {
  Scalar r = slow_block() * t.rows, c = program_id(0) * t.cols;
  Tile id = expand(ids.load({r}, {t.rows}, -1).cast(DType::index), 1);
  Tile at = c + arange(t.cols);
  Tile known = id >= 0 && id < table.size(0) && at < table.size(1);
  y.store({r, c}, load(table.pointer() + (id * table.stride(0) + at), known));
}
template <class T, class Id>
constinit auto rows_by_id = kernel("embedding", rows_by_id_program<T, Id>).names("table ids y picked");

}  // namespace

template <Real T, class Id>
requires(std::same_as<Id, std::int32_t> || std::same_as<Id, std::int64_t>) void embedding(On on, Matrix<const T> table,
                                                                                          Vector<const Id> ids,
                                                                                          Matrix<T> y) {
  check_rows("embedding", on.at, {named<const T>("table", table)});
  check_rows("embedding", on.at, {named<T>("y", y)});
  const auto [n, dim] = y.size;
  if (table.size[1] != dim)
    throw UserError(on.at, fmt::format("embedding: rows of y have {} elements, those of table {}", dim, table.size[1]));
  check_vector("embedding", on.at, "ids", ids.size[0], ids.stride[0], n);
  Picked t{.cols = block_for(dim, kElements)};
  t.rows = block_for(n, kElements / t.cols);
  rows_by_id<T, Id>.launch(on, blocks(cdiv(dim, t.cols), cdiv(n, t.rows)), table, ids, y, t);
}

#define KILN_INSTANTIATE(T, Id) template void embedding<T, Id>(On, Matrix<const T>, Vector<const Id>, Matrix<T>);
KILN_INSTANTIATE(float, std::int32_t)
KILN_INSTANTIATE(f16, std::int32_t)
KILN_INSTANTIATE(bf16, std::int32_t)
KILN_INSTANTIATE(float, std::int64_t)
KILN_INSTANTIATE(f16, std::int64_t)
KILN_INSTANTIATE(bf16, std::int64_t)
#undef KILN_INSTANTIATE

}  // namespace kiln::lib
