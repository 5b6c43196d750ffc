// What kiln-sim says of input that is wrong: files, keys, values and options are named.
#include <limits>

#include "tests/sim/kiln_sim_fixture.h"

namespace kiln::test {
namespace {

using ::testing::HasSubstr;

struct BadInput {
  const char* name;
  std::function<void(nlohmann::json&)> change;
  std::string message;
  friend void PrintTo(const BadInput& b, std::ostream* out) { *out << b.name; }
};

class KilnSimRefuses : public KilnSim, public ::testing::WithParamInterface<BadInput> {};

TEST_P(KilnSimRefuses, AndNamesFileKeyAndValue) {
  const ProcessResult r = run_case(GetParam().change, {"--out", (folder_.path() / "o").string()});
  EXPECT_EQ(r.status, 3) << r.output;
  EXPECT_THAT(r.output, HasSubstr(GetParam().message));
}

using J = nlohmann::json;
const std::vector<BadInput>& bad_inputs() {
  static const std::vector<BadInput> all{
      {"UnknownKey", [](J& j) { j["gird"] = 1; }, "add.json: has an unknown key 'gird'; known: entry"},
      {"UnknownKeyOfAnArgument", [](J& j) { j["args"][0]["shpae"] = 1; },
       "add.json: args[0] has an unknown key 'shpae'"},
      {"NoArgs", [](J& j) { j.erase("args"); }, "add.json: has no 'args'"},
      {"ArgsNoArray", [](J& j) { j["args"] = 3; }, "add.json: args is 3; must be an array"},
      {"NoEntryOfThatName", [](J& j) { j["entry"] = "sub"; }, "add.ptx: no entry 'sub'; its entries: add"},
      {"NegativeGrid",
       [](J& j) {
         j["grid"] = {-1, 1, 1};
       },
       "add.json: grid[0] is -1; must be an integer of 1 to 2147483647"},
      {"HugeGrid",
       [](J& j) {
         j["grid"] = {1, 65536, 1};
       },
       "add.json: grid[1] is 65536; must be an integer of 1 to 65535"},
      {"GridOfFour",
       [](J& j) {
         j["grid"] = {1, 1, 1, 1};
       },
       "add.json: grid has 4 numbers; must be 1 to 3"},
      {"FractionalThreads", [](J& j) { j["threads"] = 32.5; },
       "add.json: threads is 32.5; must be an integer of 1 to 1024"},
      {"TooManyThreads",
       [](J& j) {
         j["threads"] = {32, 64};
       },
       "a block of 2048 threads; must be 1 to 1024"},
      {"Shared", [](J& j) { j["shared"] = -4; }, "add.json: shared is -4"},
      {"TooMuchShared", [](J& j) { j["shared"] = 1 << 19; }, "524288 bytes of shared memory"},
      {"UnknownKind", [](J& j) { j["args"][2]["kind"] = "int"; },
       "add.json: args[2].kind is 'int'; must be buffer, tensor_map, null, bytes or one of i8"},
      {"UnknownDtype", [](J& j) { j["args"][0]["dtype"] = "f31"; },
       "add.json: args[0].dtype is 'f31'; must be one of i8"},
      {"ValueTooLarge", [](J& j) { j["args"][2]["value"] = 5000000000; },
       "add.json: args[2].value is 5000000000; i32 takes -2147483648 to 2147483647"},
      {"ValueNoNumber", [](J& j) { j["args"][2]["value"] = "ten"; }, "add.json: args[2].value is \"ten\"; i32 takes"},
      {"FractionForAnInteger", [](J& j) { j["args"][2]["value"] = 1.5; }, "add.json: args[2].value is 1.5; i32 takes"},
      {"NegativeShape", [](J& j) { j["args"][0]["shape"] = {-4}; }, "add.json: args[0].shape[0] is -4"},
      {"HugeShape",
       [](J& j) {
         j["args"][0]["shape"] = {1000000, 1000000};
       },
       "add.json: args[0].shape is [1000000,1000000]; must be at most"},
      {"ShapeThatOverflows",
       [](J& j) {
         j["args"][0]["shape"] = {1ull << 63, 4};
       },
       "add.json: args[0].shape[0] is 9223372036854775808"},
      {"ShapeUnlikeTheFile", [](J& j) { j["args"][0]["shape"] = {5}; },
       "add.json: args[0] has 20 bytes by its shape and dtype, "},
      {"NoSuchFile", [](J& j) { j["args"][0]["name"] = "z"; }, "z.in: no such file"},
      {"FolderAsFile", [](J& j) { j["args"][0]["file"] = "."; }, "not a file"},
      {"NameWithAFolder", [](J& j) { j["args"][0]["name"] = "../x"; },
       "add.json: args[0].name is \"../x\"; must be letters"},
      {"TheSameNameTwice", [](J& j) { j["args"][1]["name"] = "x"; },
       "add.json: args[1] has the name 'x' of another argument"},
      {"ValuesUnlikeTheShape",
       [](J& j) {
         j["args"][0]["values"] = {1, 2};
       },
       "add.json: args[0].values has 2 elements; its shape has 4"},
      {"FileAndValues", [](J& j) { j["args"][0]["values"] = {1}, j["args"][0]["fill"] = 1; },
       "has more than one of 'file', 'values' and 'fill'"},
      {"FillThatDoesNotFit",
       [](J& j) {
         j["args"][0]["fill"] = {{"iota", {2147483647, 1}}};
       },
       "gives 2147483648 for element 1; i32 takes"},
      {"MoreArgumentsThanParameters",
       [](J& j) {
         j["args"].push_back({{"kind", "null"}});
       },
       "add has 4 parameters, 5 arguments are given"},
      {"AnArgumentOfAnotherSize", [](J& j) { j["args"][2]["kind"] = "i64"; },
       "argument 2 (n) has 8 bytes, the parameter of add has 4"},
      {"ABufferThatIsNotPassed", [](J& j) { j["args"][0]["passed"] = false; },
       "argument 1 (n) has 4 bytes, the parameter of add has 8"},
      {"UnknownTarget", [](J& j) { j["target"] = "sm_12"; }, "sm_12"},
      {"ClusterThatDoesNotDivide", [](J& j) { j["target"] = "sm_90a", j["cluster"] = 2; },
       "1 blocks along x, which is no multiple of the cluster's 2"},
      {"PtxThatIsNotThere", [](J& j) { j["ptx"] = "other.ptx"; }, "other.ptx: no such file"},
  };
  return all;
}
INSTANTIATE_TEST_SUITE_P(Input, KilnSimRefuses, ::testing::ValuesIn(bad_inputs()),
                         [](const auto& i) { return std::string(i.param.name); });

TEST_F(KilnSim, TextThatIsNoJsonIsPlaced) {
  const auto said = [&](const std::string& text) {
    const ProcessResult r = run({"--case", write("bad.json", text).string()});
    EXPECT_EQ(r.status, 3) << r.output;
    return r.output;
  };
  EXPECT_THAT(said("{\"args\": [\n  {\"kind\" 3}]}"), HasSubstr("bad.json:2:11: this is no JSON"));
  EXPECT_THAT(said(""), HasSubstr("this is no JSON"));
  EXPECT_THAT(said("{\"args\": [1e999]}"), HasSubstr("bad.json: "));
  EXPECT_THAT(said(std::string(1000000, '[')), HasSubstr("nested deeper than 32 levels"));
  EXPECT_THAT(said("\xff\xfe{"), HasSubstr("this is no JSON"));
  EXPECT_THAT(said("{\"args\": [], \"entry\": \"\\ud800\"}"), HasSubstr("this is no JSON"));
}

TEST_F(KilnSim, CommandsThatCannotBeUsed) {
  for (const std::vector<std::string>& argv : std::vector<std::vector<std::string>>{{},
                                                                                    {"--case"},
                                                                                    {"--nonsense"},
                                                                                    {"--case", "/nowhere/x.json"},
                                                                                    {"--ptx", "/nowhere/x.ptx"},
                                                                                    {"--list"},
                                                                                    {"--ptx", "a", "--grid", "0"},
                                                                                    {"--ptx", "a", "--grid", "1,2,3,4"},
                                                                                    {"--case", "a", "--by", "word"}}) {
    const ProcessResult r = run(argv);
    EXPECT_EQ(r.status, 3) << r.output;
    EXPECT_FALSE(r.output.empty());
  }
  const ProcessResult r = run({"--case", add_case().string(), "--profile", "p.csv"});
  EXPECT_EQ(r.status, 3);
  EXPECT_THAT(r.output, HasSubstr("must end in .json, .html or .txt, not '.csv'"));
  EXPECT_EQ(run({"--help"}).status, 0);
}

TEST_F(KilnSim, NumbersAreWholeAndLargeEnough) {
  for (const char* option : {"--grid", "--block", "--cluster", "--steps"})
    for (const char* wrong : {"0", "-1", "1x", "1.5"}) {
      const ProcessResult r = run({"--ptx", "a", option, wrong});
      EXPECT_EQ(r.status, 3) << r.output;
      EXPECT_THAT(r.output, HasSubstr(option + std::string(": '") + wrong + "' is no whole number of 1 or more"));
    }
  for (const char* option : {"--threads", "--smem", "--print"})
    EXPECT_THAT(run({"--ptx", "a", option, "-1"}).output,
                HasSubstr(option + std::string(": '-1' is no whole number of 0 or more")));
}

TEST_F(KilnSim, PtxThatCannotBeReadIsNamed) {
  const ProcessResult r = run({"--ptx", write("bad.ptx", ".version 8.0\n.target sm_80\n\x01").string()});
  EXPECT_EQ(r.status, 3) << r.output;
  EXPECT_THAT(r.output, HasSubstr("bad.ptx: "));
}

}  // namespace
}  // namespace kiln::test
