// Programs of one result a thread, and what each thread must get. NVIDIA's assembler, where it is installed, must take
// each of them: the tests are of PTX, not of what the simulator happens to read. Where a GPU is that runs the program's
// target, it must leave the words that the simulator does.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "tests/sim/gpu.h"
#include "tests/sim/ptx_fixture.h"
#include "tests/support/ptxas.h"

namespace kiln::test {

/// out[global thread] = %r9 after `body`. %r1 is the thread in the block, %r18 the one in the grid, %rd1 the address of
/// `out`, %rd2 that of `data`; `before` stands in front of the kernel.
inline std::string thread_program(const std::string& body, const std::string& target = "sm_90a",
                                  const std::string& before = "", const std::string& version = "") {
  const bool blackwell = target.starts_with("sm_1");
  return ".version " + (!version.empty() ? version : blackwell ? "8.7" : "8.3") + "\n.target " + target + "\n.address_size 64\n" +
         before +
         R"(
.visible .entry k(.param .u64 out, .param .u64 data)
{
  .reg .pred %p<9>; .reg .b16 %rs<20>; .reg .b32 %r<20>; .reg .b64 %rd<16>; .reg .f32 %f<9>; .reg .f64 %fd<9>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [data];
  mov.u32 %r1, %tid.x;
  mov.u32 %r18, %ctaid.x;
  mov.u32 %r19, %ntid.x;
  mad.lo.s32 %r18, %r18, %r19, %r1;
  mov.u32 %r9, 0;
)" + body +
         R"(
  mul.wide.u32 %rd15, %r18, 4;
  add.s64 %rd15, %rd1, %rd15;
  st.global.b32 [%rd15], %r9;
  ret;
}
)";
}

inline void expect_assembles(const std::string& ptx, const std::string& target) {
  static std::string last;  // a program that runs several times in a row is assembled once
  if (ptx == last) return;
  last = ptx;
  if (const auto tool = ptxas()) {
    const Assembly a = assemble(*tool, ptx, target);
    EXPECT_TRUE(a.accepted) << a.log << ptx;
  }
}

struct ThreadProgram {
  std::string body;
  std::string target = "sm_90a";
  Shape shape = {};
  std::string before = {};
  std::vector<std::uint32_t> data = {};  ///< at least one word is there; changed by the run
  /// The program's words are the same on every device; not of clocks, approximations and races that are meant.
  bool portable = true;
  std::string version = {};  ///< of PTX, if it needs another than its target
  /// Where set, decides whether `data` is right after a run on any device, and need not be the same on all.
  std::function<void(const std::vector<std::uint32_t>& data)> judge = {};

  /// %r9 of each thread.
  std::vector<std::uint32_t> run() {
    const std::string ptx = thread_program(body, target, before, version);
    expect_assembles(ptx, target);
    if (data.empty()) data.resize(1);
    const Device simulator = Device::simulator(target);
    const Words got = run_on(simulator, ptx);  // a program with a fault throws here and never reaches the GPU
    counters = simulator.counters();
    if (portable) expect_same_on_gpu(ptx, got);
    data = got.data;
    if (judge) judge(data);
    return got.out;
  }
  Counters counters = {};

 private:
  struct Words {
    std::vector<std::uint32_t> out, data;
  };
  Words run_on(const Device& device, const std::string& ptx) const {
    Buffer<std::uint32_t> out(device, std::size_t{shape.grid[0]} * shape.block[0]), in(device, data.size());
    out.fill_bytes(0xAB);
    in.upload(data);
    test::run(device, ptx, "k", shape, Params().add(out).add(in));
    return {out.to_vector(), in.to_vector()};
  }
  void expect_same_on_gpu(const std::string& ptx, const Words& simulated) const {
    const auto gpu = gpu_for(target);
    if (!gpu) return;
    try {
      const Words real = run_on(*gpu, ptx);
      EXPECT_EQ(real.out, simulated.out) << "%r9 of each thread: " << gpu->name() << ", then the simulator\n" << body;
      if (judge) judge(real.data);
      else EXPECT_EQ(real.data, simulated.data) << "data: " << gpu->name() << ", then the simulator\n" << body;
    } catch (const DeviceError& e) {
      ADD_FAILURE() << "only the simulator runs it: " << e.what() << '\n' << body;
    }
  }
};

inline void expect_each(ThreadProgram p, const std::function<std::uint32_t(std::uint32_t)>& want) {
  const std::vector<std::uint32_t> got = p.run();
  for (std::uint32_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], want(i)) << "thread " << i << " of " << p.body;
}

/// The message of the fault that the program ends with.
inline std::string fault_of(ThreadProgram p) {
  try {
    p.run();
  } catch (const DeviceError& e) {
    return e.what();
  }
  return "no fault";
}

}  // namespace kiln::test
