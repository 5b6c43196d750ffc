// Kernels compiled by Triton 3.6 for sm_80 and sm_90a, with their buffers before and after a run on an H200: integers
// and data movement must come out bit for bit, floats within the bound that corpus/README.md states.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "runtime/base/float16.h"
#include "tests/sim/data_files.h"
#include "tests/sim/ptx_fixture.h"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string kernel, target;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.kernel << " " << c.target; }
};
std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return info.param.kernel + "_" + info.param.target;
}

double element(const std::string& bytes, std::size_t i, const std::string& dtype) {
  if (dtype == "fp32") {
    float v;
    std::memcpy(&v, bytes.data() + 4 * i, 4);
    return v;
  }
  std::uint16_t h;
  std::memcpy(&h, bytes.data() + 2 * i, 2);
  return dtype == "fp16" ? static_cast<float>(std::bit_cast<f16>(h)) : static_cast<float>(std::bit_cast<bf16>(h));
}

void expect_near(const std::string& got, const std::string& want, const std::string& dtype, const std::string& name) {
  const std::size_t size = dtype == "fp32" ? 4 : 2, n = want.size() / size;
  double squares = 0;
  for (std::size_t i = 0; i < n; ++i) squares += std::pow(element(want, i, dtype), 2);
  const double rms = std::sqrt(squares / static_cast<double>(n)), t = dtype == "fp32" ? 1e-5 : 1e-2;
  for (std::size_t i = 0; i < n; ++i) {
    const double g = element(got, i, dtype), w = element(want, i, dtype);
    ASSERT_LE(std::fabs(g - w), t * (std::fabs(w) + rms)) << name << "[" << i << "]: " << g << " against " << w;
  }
}

class Corpus : public ::testing::TestWithParam<Case> {};

TEST_P(Corpus, GivesTheBuffersOfTheGpu) {
  const auto& [kernel, target] = GetParam();
  const fs::path folder = data_folder() / "ptx-corpus" / kernel;
  const auto about = nlohmann::json::parse(read_file(folder / (target + ".json")));
  const Device device = Device::simulator(target == "sm_90" ? "sm_90a" : target);
  std::map<std::string, Buffer<std::uint8_t>> buffers;
  Params params;
  for (const auto& a : about["args"]) {
    if (a["kind"] == "i32") {
      params.add(a["value"].get<std::int32_t>());
      continue;
    }
    const std::string name = a["name"], before = read_file(folder / (name + ".in"));
    Buffer<std::uint8_t> b(device, before.size());
    b.upload({reinterpret_cast<const std::uint8_t*>(before.data()), before.size()});
    params.add(b);
    buffers.emplace(name, b);
  }
  params.add(DevicePtr{0}).add(DevicePtr{0});  // Triton's scratch pointers
  Shape shape;
  shape.grid = about["grid"].get<std::array<std::uint32_t, 3>>();
  shape.block = {about["threads"].get<std::uint32_t>(), 1, 1};
  shape.smem = about["shared"].get<std::uint32_t>();
  run(device, read_file(folder / (target + ".ptx")), about["entry"], shape, params);
  for (const auto& a : about["args"]) {
    if (a["kind"] != "buffer") continue;
    const std::string name = a["name"], dtype = a["dtype"], want = read_file(folder / (name + ".out"));
    const std::vector<std::uint8_t> bytes = buffers.at(name).to_vector();
    const std::string got(bytes.begin(), bytes.end());
    if (dtype.starts_with("fp") || dtype.starts_with("bf")) expect_near(got, want, dtype, name);
    else EXPECT_EQ(got, want) << name;
  }
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* kernel :
       {"add_relu", "atomics", "cumsum", "histogram", "random", "softmax", "transpose", "while_collatz", "matmul_f16"})
    for (const char* target : {"sm_80", "sm_90"}) out.push_back({kernel, target});
  return out;
}
INSTANTIATE_TEST_SUITE_P(Triton, Corpus, ::testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace kiln::test
