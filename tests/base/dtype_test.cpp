#include "runtime/base/dtype.h"

#include <gtest/gtest.h>

#include <string>

namespace kiln {
namespace {

constexpr DType kAll[] = {
#define KILN_DTYPE(name, bits, kind, host) DType::name,
#include "runtime/base/dtype.def"
};

TEST(DType, NameFindsItsDType) {
  for (const DType d : kAll) EXPECT_EQ(dtype_named(name(d)), d) << name(d);
  EXPECT_FALSE(dtype_named("f31"));
  EXPECT_FALSE(dtype_named(""));
  EXPECT_FALSE(dtype_named("F32"));
}

TEST(DType, BytesAreThoseOfTheHostType) {
#define KILN_DTYPE(name, bits, kind, host)                     \
  if constexpr (!std::is_same_v<host, IndexHost>) {            \
    EXPECT_EQ(bytes(DType::name), int(sizeof(host))) << #name; \
    EXPECT_EQ(dtype_of<host>, DType::name);                    \
    EXPECT_EQ(dtype_of<const host>, DType::name);              \
  }
#include "runtime/base/dtype.def"
}

TEST(DType, BoolIsOneBitInOneByte) {
  EXPECT_EQ(bits(i1), 1);
  EXPECT_EQ(bytes(i1), 1);
  EXPECT_FALSE(is_int(i1));
}

TEST(DType, IndexIsASigned64BitInteger) {
  EXPECT_EQ(bytes(DType::index), 8);
  EXPECT_TRUE(is_int(DType::index));
  EXPECT_TRUE(is_signed(DType::index));
}

TEST(DType, KindsDivideTheTypes) {
  for (const DType d : kAll) EXPECT_EQ(int(is_float(d)) + int(is_int(d)) + int(d == i1), 1) << name(d);
  EXPECT_FALSE(is_signed(u64));
  EXPECT_TRUE(is_float(DType::f8e5m2));
}

static_assert(Element<float> && Element<const f16> && !Element<char> && !Element<int*>);

}  // namespace
}  // namespace kiln
