// Embedding: the rows of a table, bit for bit, and ids that name none.
#include "dsl/lib/embedding.h"

#include "tests/lib/real_types.h"
#include "tests/lib/rows.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

template <class T, class Id>
void check(const Device& device, Shape table, const std::vector<Id>& ids, std::int64_t gap = 0) {
  SCOPED_TRACE(std::to_string(ids.size()) + " ids, dim " + std::to_string(table.cols));
  const std::vector<double> rows = numbers<T>(std::size_t(table.rows * table.cols), 1);
  const Rows<T> from(device, table, rows);
  const auto n = std::int64_t(ids.size());
  Rows<T> y(device, {n, table.cols, gap, table.offset});
  const Buffer<Id> picked = buffer_of(device, ids);
  lib::embedding<T, Id>(Stream(device), from, {picked, {n}}, y);
  std::vector<double> want;
  for (Id id : ids)
    for (std::int64_t c = 0; c < table.cols; ++c)
      want.push_back(id < 0 || id >= table.rows ? 0 : rows[std::size_t(id * table.cols + c)]);
  expect_within(y.values(), want, [](std::size_t) { return 0; });
  y.expect_rest_untouched();
}

template <class Id>
std::vector<Id> some_ids(std::size_t n, std::int64_t vocabulary) {
  std::vector<Id> ids(n);
  for (std::size_t i = 0; i < n; ++i) ids[i] = Id(std::int64_t(i) * 7919 % vocabulary);
  return ids;
}

template <class T>
class Embedding : public testing::Test {};
TYPED_TEST_SUITE(Embedding, RealTypes, RealTypeNames);

TYPED_TEST(Embedding, RowsOfEveryLength) {
  on_each_device([](const Device& d) {
    for (std::int64_t dim : {1, 2, 3, 127, 1000, 4097}) {
      check<TypeParam>(d, {11, dim}, some_ids<std::int64_t>(9, 11));
      check<TypeParam>(d, {11, dim}, some_ids<std::int32_t>(9, 11));
    }
    check<TypeParam>(d, {2, 100003}, std::vector<std::int64_t>{1, 5, 0});
    check<TypeParam>(d, {5, 3}, some_ids<std::int32_t>(20000, 5));
  });
}

TYPED_TEST(Embedding, RowsAnywhereInMemory) {
  on_each_device([](const Device& d) {
    check<TypeParam>(d, {5, 64, 8, 8}, some_ids<std::int64_t>(7, 5), 24);
    check<TypeParam>(d, {5, 33, 1, 1}, some_ids<std::int64_t>(7, 5), 3);
    check<TypeParam>(d, {5, 64, 0, 1}, some_ids<std::int64_t>(7, 5));
  });
}

// Where every device holds a part of the vocabulary, most ids are another's.
TYPED_TEST(Embedding, IdsOutsideTheTableGiveZeros) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int32_t most32 = std::numeric_limits<std::int32_t>::max();
  on_each_device([&](const Device& d) {
    for (std::int64_t dim : {3, 64, 1000}) {
      const std::vector<std::int64_t> far{-1, 0, 11, most, -most - 1, 10, std::int64_t(1) << 32, 12};
      check<TypeParam>(d, {11, dim}, far);
      check<TypeParam>(d, {11, dim}, std::vector<std::int32_t>{-1, 0, 11, most32, -most32 - 1, 10});
    }
  });
}

TEST(EmbeddingRows, OfNoIdsOfNoColumnsAndOfNoTable) {
  on_each_device([](const Device& d) {
    d.reset_counters();
    const Stream s(d);
    Buffer<float> none(d, 0), y = buffer_of(d, std::vector<float>(6, 77.f));
    Buffer<std::int64_t> ids = buffer_of(d, std::vector<std::int64_t>{0, 1, -1});
    lib::embedding<float>(s, {none, {4, 0}}, {ids, {3}}, {y, {3, 0}});
    lib::embedding<float>(s, {y, {3, 2}}, {ids, {0}}, {none, {0, 2}});
    s.synchronize();
    EXPECT_EQ(d.counters().launches, 0u);
    EXPECT_EQ(y.to_vector(), std::vector<float>(6, 77.f));
    Buffer<float> table(d, 1);
    lib::embedding<float>(s, {table, {0, 2}}, {ids, {3}}, {y, {3, 2}});
    EXPECT_EQ(y.to_vector(), std::vector<float>(6, 0.f));
  });
}

TEST(EmbeddingErrors, ShapesThatDoNotFit) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 12), y(d, 12);
  Buffer<std::int64_t> ids(d, 4);
  expect_user_error(
      [&] {
        lib::embedding<float>(s, {x, {3, 4}}, {ids, {4}}, {y, {4, 3}});
      },
      "embedding: rows of y have 3 elements, those of table 4", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::embedding<float>(s, {x, {3, 4}}, {ids, {2}}, {y, {3, 4}});
      },
      "embedding: ids has 2 elements, must have 3", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::embedding<float>(s, {x, {4, 3}, {1, 4}}, {ids, {4}}, {y, {4, 3}});
      },
      "embedding: the elements of a row of table are 4 apart, must be 1", __FILE__, __LINE__ - 2);
}

}  // namespace
}  // namespace kiln::test
