// CUDA C++ kernels as PTX of nvcc, on the simulator and on a GPU that can run them.
#pragma once
#include <gtest/gtest.h>
#include <cmath>
#include <random>
#include <type_traits>

#include <map>
#include <ostream>

#include "tests/sim/data_files.h"
#include "tests/sim/gpu.h"
#include "tests/sim/ptx_fixture.h"
#include "tests/support/nvcc.h"

namespace kiln::test {

/// PTX that is kept as data, or what the installed compiler makes of the source now.
struct Origin {
  std::string target;
  bool kept = true;
  std::vector<std::string> options = {};
  std::string name = {};
  friend void PrintTo(const Origin& o, std::ostream* out) { *out << o.name; }
};
inline std::string origin_name(const ::testing::TestParamInfo<Origin>& info) { return info.param.name; }

/// Contents of the data folder's cuda/`file`.target.ptx, or the compilation of cuda/`file`.cu.
inline std::string cuda_ptx(const std::string& file, const Origin& origin) {
  const auto folder = data_folder() / "cuda";
  if (origin.kept) return read_file(folder / (file + "." + origin.target + ".ptx"));
  static std::map<std::string, std::string> compiled;
  std::string& ptx = compiled[file + origin.name];
  if (ptx.empty()) {
    const Compilation c = compile_cuda(*nvcc(), folder / (file + ".cu"), origin.target, origin.options);
    if (!c.accepted) throw std::runtime_error("nvcc refuses " + file + ".cu: " + c.log);
    ptx = c.ptx;
  }
  return ptx;
}

class CudaTest : public ::testing::TestWithParam<Origin> {
 protected:
  void SetUp() override {
    if (!GetParam().kept && !nvcc()) GTEST_SKIP() << "nvcc is not installed";
  }
  std::string ptx(const std::string& file) const { return cuda_ptx(file, GetParam()); }
  /// Runs `body(device)` on a simulator of the target, and on the GPU if it runs the target.
  template <class F>
  void on_each_device(F&& body) const {
    const std::string& target = GetParam().target;
    std::vector<Device> devices{Device::simulator(target)};
    if (const auto gpu = gpu_for(target)) devices.push_back(*gpu);
    for (const Device& d : devices) {
      SCOPED_TRACE(d.name());
      body(d);
    }
  }
};

template <class T>
Buffer<T> buffer_of(const Device& d, const std::vector<T>& values) {
  Buffer<T> b(d, values.size());
  b.upload(values);
  return b;
}
/// `n` elements whose bits are all set.
template <class T>
Buffer<T> empty_buffer(const Device& d, std::size_t n) {
  Buffer<T> b(d, n);
  b.fill_bytes(0xFF);
  return b;
}

/// Runs a kernel with these arguments (buffers stand for their addresses) and waits for it.
template <class... A>
void call(const Device& d, const std::string& ptx, const std::string& entry, const Shape& shape, const A&... args) {
  Params params;
  (params.add(args), ...);
  run(d, ptx, entry, shape, params);
}

/// Numbers of [low, high], those of integers with both ends.
template <class T>
std::vector<T> random_values(std::size_t n, T low, T high, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<T> v(n);
  for (T& x : v) {
    if constexpr (std::is_integral_v<T>) x = std::uniform_int_distribution<T>(low, high)(random);
    else x = std::uniform_real_distribution<T>(low, high)(random);
  }
  return v;
}

/// Each within relative · |want| + absolute.
inline void expect_near(const std::vector<float>& got, const std::vector<double>& want, double relative,
                        double absolute = 0) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::fabs(got[i] - want[i]), relative * std::fabs(want[i]) + absolute)
        << i << ": " << got[i] << " against " << want[i];
}

inline const Origin kSm80{"sm_80", true, {}, "sm_80"}, kSm90a{"sm_90a", true, {}, "sm_90a"};

}  // namespace kiln::test
