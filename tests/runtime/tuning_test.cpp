// rt::tune: the contest and what is kept of it, by a clock of the tests' own.
#include "runtime/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/entry_store.h"
#include "tests/support/expect_error.h"
#include "tests/support/knob.h"
#include "tests/support/temporary_folder.h"

namespace kiln::rt {
namespace {

using ::testing::HasSubstr;

class Tune : public ::testing::Test {
 protected:
  /// The row chosen of candidates that take these times; one with a time below 0 is refused.
  Tuning contest(const std::vector<double>& us, const std::string& subject = "work") {
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < us.size(); ++i) {
      candidates.push_back({"c" + std::to_string(i), [refused = us[i] < 0](const Stream&) {
                              if (refused) throw UserError({}, "too many threads");
                            }});
    }
    return tune(stream_, subject, candidates, [&](const Stream&, const Candidate& c, int) {
      ++asked_[c.name];
      return us.at(std::size_t(c.name[1] - '0'));
    });
  }

  const test::TemporaryFolder folder_;
  const test::Knob cache_{"KILN_CACHE_DIR", folder_.path().string()};
  const Device device_ = Device::simulator();
  const Stream stream_{device_};
  std::map<std::string, int> asked_;
};

TEST_F(Tune, TheFastestIsChosen) {
  const Tuning t = contest({5, 4, 6});
  EXPECT_TRUE(t.measured);
  EXPECT_EQ(t.chosen, 1u);
  EXPECT_EQ(t.table(), "  c0  5.00 us\n* c1  4.00 us\n  c2  6.00 us\n");
}

TEST_F(Tune, TheEarlierOfTwoAboutEqualIsChosen) {
  EXPECT_EQ(contest({4.03, 4}).chosen, 0u);
  EXPECT_EQ(contest({4.05, 4}).chosen, 1u);
}

TEST_F(Tune, WhatIsHopelessLeavesAfterTheFirstRound) {
  const Tuning t = contest({4, 6.1, 5.9});
  EXPECT_EQ(asked_["c1"], 2);
  EXPECT_EQ(asked_["c0"], 8);
  EXPECT_EQ(asked_["c2"], 8);
  EXPECT_EQ(t.rows[1].us, 6.1);
}

TEST_F(Tune, RefusedCandidatesSayWhy) {
  const Tuning t = contest({-1, 5, 4});
  EXPECT_EQ(t.chosen, 2u);
  EXPECT_THAT(t.rows[0].refused, HasSubstr("too many threads"));
  EXPECT_EQ(t.rows[0].us, -1);
  EXPECT_FALSE(contest({-1, 5}).measured) << "one that runs needs no clock";
  EXPECT_THAT(test::error_of<UserError>([&] {
                contest({-1, -1});
              }),
              HasSubstr("none of 2 candidates runs on simulator (sm_90a, 132 SMs): c0: "));
  EXPECT_THAT(test::error_of<UserError>([&] { contest({}); }), HasSubstr("needs a candidate"));
}

TEST_F(Tune, ResultsAreFoundByName) {
  contest({5, 4}, "found by name");
  const auto find = [&](const Device& d, std::vector<std::string> names) { return tuned(d, "found by name", names); };
  EXPECT_EQ(find(device_, {"c0", "c1"}), std::optional<std::size_t>(1));
  EXPECT_EQ(find(device_, {"c2", "c1", "c0"}), std::optional<std::size_t>(1));
  EXPECT_EQ(find(device_, {"c0", "c2"}), std::nullopt) << "the one chosen is no candidate any more";
  EXPECT_EQ(find(Device::simulator("sm_80"), {"c0", "c1"}), std::nullopt);
  EXPECT_EQ(tuned(device_, "something else", std::vector<std::string>{"c0", "c1"}), std::nullopt);
}

/// The key of the only entry in the folder.
std::string key_in(const std::filesystem::path& folder) {
  const std::filesystem::path entry = std::filesystem::directory_iterator(folder)->path();
  EXPECT_EQ(entry.extension(), ".tune");
  std::ifstream in(entry, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  return bytes.substr(12, bytes.find('{') - 12);  // behind the magic and the key's length
}

TEST_F(Tune, ADamagedEntryIsAMissAndGoesAway) {
  contest({5, 4}, "damaged 0");
  const std::string key = key_in(folder_.path());
  const EntryStore entries = EntryStore::from_env(".tune");
  const std::vector<std::string> names{"c0", "c1"};
  int n = 0;
  for (const char* value : {R"({"chosen":"c1"})", "{", "[]", R"({"chosen":3})", ""}) {
    std::string other = key;  // of a subject that this process has not looked at
    const std::string subject = "damaged " + std::to_string(++n);
    other.replace(other.find("damaged 0"), subject.size(), subject);
    entries.store(other, value);
    const bool good = n == 1;
    EXPECT_EQ(tuned(device_, subject, names), good ? std::optional<std::size_t>(1) : std::nullopt) << value;
    EXPECT_EQ(std::filesystem::exists(entries.path_of(other)), good) << value;
  }
}

TEST_F(Tune, ACaptureIsLeftAlone) {
  std::string what;
  (void)Graph::capture(stream_, [&] { what = test::error_of<UserError>([&] { contest({5, 4}, "captured"); }); });
  EXPECT_THAT(what, HasSubstr("captured cannot be tuned while its stream is being captured"));
}

}  // namespace
}  // namespace kiln::rt
