#include "runtime/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/source_loc.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

TEST(UserError, StartsWithThePlaceWhenItIsKnown) {
  EXPECT_STREQ(UserError(SourceLoc("a.cpp", 7, 3), "too wide").what(), "a.cpp:7: error: too wide");
  EXPECT_STREQ(UserError("too wide").what(), "too wide");
  EXPECT_EQ(UserError(SourceLoc("a.cpp", 7), "x").loc().line, 7u);
}

TEST(DeviceError, CarriesTheDriversCode) {
  EXPECT_EQ(DeviceError("x", 218).code(), 218);
  EXPECT_EQ(DeviceError("x").code(), 0);
  EXPECT_STREQ(DeviceError("x").what(), "x");
  EXPECT_STREQ(DeviceError(SourceLoc("a.cpp", 7), "x", 218).what(), "a.cpp:7: error: x");
}

TEST(Check, NamesConditionAndPlaceAndBuildsTheMessageOnlyOnFailure) {
  int built = 0;
  const auto message = [&] {
    ++built;
    return std::string("three is not four");
  };
  KILN_CHECK(3 < 4, message());
  EXPECT_EQ(built, 0);
  try {
    KILN_CHECK(3 == 4, message());
    FAIL() << "no error";
  } catch (const InternalError& e) {
    EXPECT_THAT(e.what(), HasSubstr("three is not four"));
    EXPECT_THAT(e.what(), HasSubstr("3 == 4"));
    EXPECT_THAT(e.what(), HasSubstr("error_test.cpp:"));
  }
}

TEST(SourceLoc, PrintsFileAndLine) {
  EXPECT_EQ(SourceLoc("k.cpp", 12, 5).str(), "k.cpp:12");
  EXPECT_EQ(SourceLoc().str(), "unknown location");
  const SourceLoc here = RawLoc::current();
  EXPECT_THAT(here.str(), HasSubstr("error_test.cpp:"));
}

TEST(InternFile, EqualNamesShareOnePointerThatStays) {
  const char* first = intern_file("some/file.cpp");
  for (int i = 0; i < 1000; ++i) intern_file("other" + std::to_string(i));
  EXPECT_EQ(intern_file(std::string("some/file.cpp")), first);
  EXPECT_STREQ(first, "some/file.cpp");
}

}  // namespace
}  // namespace kiln
