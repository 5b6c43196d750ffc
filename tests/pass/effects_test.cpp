// No pass removes, doubles or reorders what a kernel does to memory, to other threads and to the host.
#include "tests/pass/pass_fixture.h"

namespace kiln::test {
namespace {

using ir::Pass;

/// The effects of IR text, one word each, in order; regions as braces.
std::string effects(const std::string& text) {
  std::string found;
  const ir::Function f = ir::parse(text, "test.kir");
  const auto region = [&](auto&& self, ir::RegionId r) -> void {
    for (ir::InstId i : f.region(r).insts) {
      const ir::Inst& inst = f.inst(i);
      if (!ir::info(inst.op).effects.empty() || inst.op == ir::Op::Alloc || inst.op == ir::Op::Opaque)
        found += std::string(found.empty() ? "" : " ") + ir::mnemonic(inst.op);
      for (ir::RegionId inner : inst.regions) {
        found += " {";
        self(self, inner);
        found += " }";
      }
    }
  };
  region(region, f.body());
  return found;
}

std::string effects_after_all(const std::string& text) {
  return effects(after(
      {Pass::infer_facts, Pass::canonicalise, Pass::choose_exec, Pass::assign_layouts, Pass::allocate_shared}, text));
}

const std::string kParams = R"(param "p" : ptr<i32> access=readwrite
param "q" : ptr<i32> access=readwrite
param "c" : i1 access=read
)";
const std::string kValues = R"(  %0 = param index=0 : ptr<i32>
  %1 = param index=1 : ptr<i32>
  %2 = param index=2 : i1
  %3 = arange start=0 end=64 : tile<64xindex>
  %4 = splat %0 : tile<64xptr<i32>>
  %5 = ptr_add %4, %3 : tile<64xptr<i32>>
  %6 = constant value=i32(1) : i32
  %7 = splat %6 : tile<64xi32>
)";

std::string body(const std::string& rest) { return kernel(kParams, kValues + rest); }

TEST(Effects, EqualAtomicsStayTwoEvenUnused) {
  EXPECT_EQ(effects_after_all(body(R"(
    %8 = atomic_rmw rmw=add %5, %7 : tile<64xi32>
    %9 = atomic_rmw rmw=add %5, %7 : tile<64xi32>
    %10 = atomic_cas %5, %7, %7 : tile<64xi32>
    %11 = atomic_cas %5, %7, %7 : tile<64xi32>
  )")),
            "atomic_rmw atomic_rmw atomic_cas atomic_cas");
}

TEST(Effects, LoadsOfOnePlaceAroundAnAtomicStayApart) {
  const std::string text = after({Pass::canonicalise}, body(R"(
    %8 = load %5 : tile<64xi32>
    %9 = atomic_rmw rmw=add %5, %7 : tile<64xi32>
    %10 = load %5 : tile<64xi32>
    %11 = sub %10, %8 : tile<64xi32>
    store %5, %11
  )"));
  EXPECT_EQ(effects(text), "load atomic_rmw load store");
  EXPECT_THAT(text, testing::HasSubstr("sub"));
}

// b = a + 1; a = b; c = a + 2: the second load sees the store.
TEST(Effects, ALoadAfterAStoreIsAnotherLoad) {
  EXPECT_EQ(effects_after_all(body(R"(
    %8 = load %5 : tile<64xi32>
    %9 = add %8, %7 : tile<64xi32>
    store %5, %9
    %10 = load %5 : tile<64xi32>
    %11 = add %10, %7 : tile<64xi32>
    store %5, %11
    store %5, %11
  )")),
            "load store load store store");
}

TEST(Effects, BarriersAndSharedMemoryStayWhereTheyAre) {
  EXPECT_EQ(effects_after_all(body(R"(
    %8 = alloc count=64 : ptr<shared i32>
    %9 = alloc count=64 : ptr<shared i32>
    store %8, %6
    barrier
    %10 = load %8 : i32
    barrier
    barrier id=2
    store %9, %10
    %11 = load %9 : i32
    store %0, %11
  )")),
            "alloc alloc store barrier load barrier barrier store load store");
}

// A barrier in a branch stays behind the write in it.
TEST(Effects, NothingLeavesABranch) {
  EXPECT_EQ(effects_after_all(body(R"(
    %8 = alloc count=64 : ptr<shared i32>
    if %2 {
      store %8, %6
      barrier
      %9 = load %8 : i32
      store %0, %9
      yield
    } {
      barrier
      yield
    }
    %10 = load %8 : i32
    store %1, %10
  )")),
            "alloc { store barrier load store } { barrier } load store");
}

TEST(Effects, ReportsStayEvenWhereTheyAreEqual) {
  EXPECT_EQ(effects_after_all(body(R"(
    print text="a {}" %6
    print text="a {}" %6
    assert text="c" %2
    assert text="c" %2
    store %0, %6
    assert text="c" %2
  )")),
            "print print assert assert store assert");
}

TEST(Effects, PtxIsNeitherMergedNorRemoved) {
  EXPECT_EQ(effects_after_all(body(R"(
    %8 = inline_ptx text="mov.b32 $0, $1;" %6 : i32
    %9 = inline_ptx text="mov.b32 $0, $1;" %6 : i32
    inline_ptx text="membar.gl;"
  )")),
            "inline_ptx inline_ptx inline_ptx");
}

TEST(Effects, AnOpaqueValueIsMergedWithNoOther) {
  const std::string text = after({Pass::canonicalise}, body(R"(
    %8 = opaque %7 : tile<64xi32>
    %9 = opaque %7 : tile<64xi32>
    %10 = add %8, %7 : tile<64xi32>
    %11 = add %9, %7 : tile<64xi32>
    store %5, %10
    store %5, %11
  )"));
  EXPECT_EQ(effects(text), "opaque opaque store store");
}

}  // namespace
}  // namespace kiln::test
