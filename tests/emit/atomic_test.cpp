// Instructions of atomics: which, in which order, by whom.
#include <string>
#include <vector>

#include "tests/emit/emit_fixture.h"
#include "tests/support/ptxas.h"

namespace kiln::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Atomics on `n` neighbours of `dtype`, one for each of `ops`; the last one's result is stored where `used`.
std::string atomic_kernel(const std::string& dtype, const std::vector<std::string>& ops, int n, bool used) {
  const std::string size = std::to_string(n), t = "tile<" + size + "x", ptr = "ptr<" + dtype + ">";
  std::string body = "  %0 = param index=0 : " + ptr + "\n  %1 = param index=1 : " + dtype +
                     "\n  %2 = param index=2 : " + ptr + "\n  %3 = arange start=0 end=" + size + " : " + t +
                     "index>\n  %4 = splat %0 : " + t + ptr + ">\n  %5 = ptr_add %4, %3 : " + t + ptr +
                     ">\n  %6 = splat %2 : " + t + ptr + ">\n  %7 = ptr_add %6, %3 : " + t + ptr +
                     ">\n  %8 = splat %1 : " + t + dtype + ">\n";
  std::string result;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    result = "%" + std::to_string(9 + i);
    body += "  " + result + " = " +
            (ops[i].starts_with("cas") ? "atomic_cas" + ops[i].substr(3) + " %5, %8, %8"
                                       : "atomic_rmw rmw=" + ops[i] + " %5, %8") +
            " : " + t + dtype + ">\n";
  }
  if (used) body += "  store %7, " + result + "\n";
  return kernel("param \"p\" : " + ptr + " access=readwrite align=16\nparam \"v\" : " + dtype +
                    " access=read\nparam \"q\" : " + ptr + " access=write align=16\n",
                body);
}
std::string atomic_kernel(const std::string& dtype, const std::string& op, int n, bool used) {
  return atomic_kernel(dtype, std::vector<std::string>{op}, n, used);
}

TEST(AtomicPtx, UnusedResultsAreReductions) {
  const std::string ptx = ptx_of(atomic_kernel("i32", "add", 32, false));
  EXPECT_THAT(ptx, AllOf(HasSubstr("red.relaxed.gpu.global.add.u32 ["), Not(HasSubstr("atom."))));
  EXPECT_EQ(count(ptx, "red."), 1) << ptx;
}

TEST(AtomicPtx, UsedResultsAreAtomics) {
  const std::string ptx = ptx_of(atomic_kernel("u64", "max", 128, true));
  EXPECT_THAT(ptx, AllOf(HasSubstr("atom.relaxed.gpu.global.max.u64 "), Not(HasSubstr("red."))));
  EXPECT_THAT(ptx_of(atomic_kernel("f64", "exchange", 128, true)), HasSubstr("atom.relaxed.gpu.global.exch.b64 "));
  EXPECT_THAT(ptx_of(atomic_kernel("i16", "cas", 128, true)), HasSubstr("atom.relaxed.gpu.global.cas.b16 "));
}

TEST(AtomicPtx, SumsOfNeighbouringHalvesArePacked) {
  for (const char* dtype : {"f16", "bf16"}) {
    const std::string ptx = ptx_of(atomic_kernel(dtype, "add", 512, true));
    EXPECT_THAT(ptx, HasSubstr(std::string("atom.relaxed.gpu.global.add.noftz.") + dtype + "x2 ")) << dtype;
    EXPECT_THAT(ptx, Not(HasSubstr(std::string("add.noftz.") + dtype + " "))) << dtype;
  }
}

TEST(AtomicPtx, WhatTheHardwareLacksIsALoopAroundCas) {
  EXPECT_THAT(ptx_of(atomic_kernel("f32", "max", 128, false)),
              AllOf(HasSubstr(".cas.b32 "), HasSubstr("ld.relaxed.gpu.global.b32")));
  EXPECT_THAT(ptx_of(atomic_kernel("i16", "add", 128, false)), HasSubstr(".cas.b16 "));
  EXPECT_THAT(ptx_of(atomic_kernel("bf16", "add", 128, false), "sm_80"), HasSubstr(".cas.b16 "));
}

TEST(AtomicPtx, NoLaneWithoutItsElementTouchesMemory) {
  // 20 elements on 32 threads: those inside; 8: their owners.
  for (int n : {20, 8}) EXPECT_THAT(ptx_of(atomic_kernel("i32", "add", n, false)), Not(HasSubstr("\tred."))) << n;
}

TEST(AtomicPtx, ReleaseWaitsBeforeAndAcquireAfter) {
  const auto order = [](const char* semantics, bool used) {
    return ptx_of(atomic_kernel("i32", std::string("add semantics=") + semantics + " scope=system", 32, used));
  };
  EXPECT_IR(order("acq_rel", true), R"(
    // CHECK: bar.sync 0
    // CHECK: atom.acq_rel.sys.global.add.u32
    // CHECK: bar.sync 0
    // CHECK: st.global
  )");
  EXPECT_IR(order("release", false), R"(
    // CHECK: bar.sync 0
    // CHECK: red.release.sys.global.add.u32
    // CHECK-NOT: bar.sync 0
    // CHECK: ret
  )");
  EXPECT_IR(order("acquire", true), R"(
    // CHECK-NOT: bar.sync 0
    // CHECK: atom.acquire.sys.global.add.u32
    // CHECK: bar.sync 0
    // CHECK: st.global
  )");
}

TEST(AtomicPtx, ClusterScopeIsTheNextWiderOneWithoutClusters) {
  const std::string text = atomic_kernel("i32", "add scope=cluster", 256, false);
  EXPECT_THAT(ptx_of(text, "sm_90a"), HasSubstr("red.relaxed.cluster.global"));
  EXPECT_THAT(ptx_of(text, "sm_89"), HasSubstr("red.relaxed.gpu.global"));
}

TEST(AtomicPtx, CountersInALoopNeedNoBarriers) {
  const std::string text =
      kernel("param \"p\" : ptr<i32> access=readwrite align=16\nparam \"n\" : index access=read\n", R"(
    %0 = param index=0 : ptr<i32>
    %1 = param index=1 : index
    %2 = constant value=index(0) : index
    %3 = constant value=index(1) : index
    %4 = constant value=i32(1) : i32
    for %2, %1, %3 {(%5 : index)
      %6 = arange start=0 end=256 : tile<256xindex>
      %7 = splat %5 : tile<256xindex>
      %8 = rem %6, %7 : tile<256xindex>
      %9 = splat %0 : tile<256xptr<i32>>
      %10 = ptr_add %9, %8 : tile<256xptr<i32>>
      %11 = splat %4 : tile<256xi32>
      %12 = atomic_rmw rmw=add %10, %11 : tile<256xi32>
      yield
    }
)");
  EXPECT_THAT(ptx_of(text), AllOf(HasSubstr("red.relaxed.gpu.global.add.u32"), Not(HasSubstr("bar.sync"))));
}

TEST(AtomicPtx, IsAssembledForEveryTargetAndType) {
  const auto tool = ptxas();
  if (!tool) GTEST_SKIP() << "no ptxas in PATH or /usr/local/cuda/bin";
  const std::vector<std::string> targets = known_targets();
  std::size_t i = 0;
  for (const char* dtype : {"i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64"}) {
    const std::vector<std::string> ops = {"add semantics=release",      "min", "max scope=cta",
                                          "exchange semantics=acquire", "cas", "add"};
    for (const std::string& arch : {targets[i % targets.size()], targets[(i + 3) % targets.size()]}) {
      const std::string ptx = ptx_of(atomic_kernel(dtype, ops, 40, true), arch);
      const Assembly a = assemble(*tool, ptx, arch);
      EXPECT_TRUE(a.accepted) << dtype << " " << arch << "\n" << a.log << ptx;
    }
    ++i;
  }
}

}  // namespace
}  // namespace kiln::test
