// The axis analysis: known cases, then random programs whose every claim is checked against the interpreter.
#include "backend/pass/axis_info.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backend/ir/builder.h"
#include "backend/ir/eval.h"
#include "backend/ir/text.h"

namespace kiln::ir {
namespace {

/// Facts of the last value of `body`, a kernel of parameters (ptr<f32> ÷16, index ÷16, index, index = 1).
AxisInfo last(const std::string& body) {
  const Function f = parse(
      "kernel \"k\" stage=traced\nparam : ptr<f32> access=readwrite align=16\nparam : index access=read align=16\n"
      "param : index access=read\nparam : index access=read one\n{\n" +
      body + "}\n");
  const AxisAnalysis facts(f);
  return facts[f.inst(f.region(f.body()).insts.back()).results[0]];
}

AxisInfo::Axis axis(std::int64_t contiguity, std::int64_t divisibility, std::int64_t constancy) {
  return {contiguity, divisibility, constancy};
}
constexpr std::int64_t kZeroDivisor = std::int64_t(1) << 30;

const std::string kOffsets = R"(
  %0 = program_id axis=0 : index
  %1 = constant value=index(1024) : index
  %2 = mul %0, %1 : index
  %3 = arange start=0 end=1024 : tile<1024xindex>
  %4 = splat %2 : tile<1024xindex>
  %5 = add %4, %3 : tile<1024xindex>
)";

TEST(AxisInfo, ArangeCountsFromItsStart) {
  EXPECT_EQ(last("%0 = arange start=0 end=64 : tile<64xindex>\n").axes[0], axis(64, kZeroDivisor, 1));
  EXPECT_EQ(last("%0 = arange start=12 end=76 : tile<64xindex>\n").axes[0], axis(64, 4, 1));
  EXPECT_EQ(last("%0 = arange start=12 end=76 : tile<64xindex>\n").range, (Interval{12, 75}));
}

TEST(AxisInfo, PaddingDoesNotBreakARun) {
  EXPECT_EQ(last("%0 = arange start=0 end=24 : tile<24xindex>\n").axes[0].contiguity, 32);
}

TEST(AxisInfo, BlockOffsetsAreContiguousAndAligned) { EXPECT_EQ(last(kOffsets).axes[0], axis(1024, 1024, 1)); }

TEST(AxisInfo, BlockOffsetsDoNotWrapAt32Bits) {
  const AxisInfo i = last(kOffsets);
  EXPECT_EQ(i.range.hi, ((std::int64_t(1) << 31) - 2) * 1024 + 1023);
  EXPECT_FALSE(i.range.fits_i32());
}

TEST(AxisInfo, AddressesCountElementsAndDivideBytes) {
  EXPECT_EQ(last(kOffsets + R"(
    %6 = param index=0 : ptr<f32>
    %7 = splat %6 : tile<1024xptr<f32>>
    %8 = ptr_add %7, %5 : tile<1024xptr<f32>>
  )")
                .axes[0],
            axis(1024, 16, 1));
}

TEST(AxisInfo, MaskIsConstantOverGroupsThatDivideTheBound) {
  const auto mask = [](int param, const char* op) {
    return last(kOffsets + "%6 = param index=" + std::to_string(param) +
                " : index\n%7 = splat %6 : tile<1024xindex>\n%8 = " + op + " %5, %7 : tile<1024xi1>\n")
        .axes[0]
        .constancy;
  };
  EXPECT_EQ(mask(1, "lt"), 16);
  EXPECT_EQ(mask(1, "ge"), 16);
  EXPECT_EQ(mask(1, "le"), 1);
  EXPECT_EQ(mask(1, "gt"), 1);
  EXPECT_EQ(mask(1, "eq"), 1);
  EXPECT_EQ(mask(2, "lt"), 1);
}

TEST(AxisInfo, RowStrideOf1185IsNotDivisibleBy16) {
  const auto row_major = [](int stride) {
    return last(R"(
      %0 = arange start=0 end=8 : tile<8xindex>
      %1 = constant value=index()" +
                std::to_string(stride) + R"() : index
      %2 = splat %1 : tile<8xindex>
      %3 = mul %0, %2 : tile<8xindex>
      %4 = expand_dims axis=1 %3 : tile<8x1xindex>
      %5 = broadcast %4 : tile<8x64xindex>
      %6 = arange start=0 end=64 : tile<64xindex>
      %7 = expand_dims axis=0 %6 : tile<1x64xindex>
      %8 = broadcast %7 : tile<8x64xindex>
      %9 = add %5, %8 : tile<8x64xindex>
    )");
  };
  EXPECT_EQ(row_major(1185).axes[1], axis(64, 1, 1));
  EXPECT_EQ(row_major(1184).axes[1], axis(64, 32, 1));
  EXPECT_EQ(row_major(1185).range, (Interval{0, 7 * 1185 + 63}));
}

TEST(AxisInfo, StrideKnownToBeOneKeepsTheRun) {
  const auto scaled = [](int param) {
    return last("%0 = arange start=0 end=64 : tile<64xindex>\n%1 = param index=" + std::to_string(param) +
                " : index\n%2 = splat %1 : tile<64xindex>\n%3 = mul %0, %2 : tile<64xindex>\n")
        .axes[0]
        .contiguity;
  };
  EXPECT_EQ(scaled(3), 64);
  EXPECT_EQ(scaled(2), 1);
}

TEST(AxisInfo, NarrowIntegersKeepOnlyGroupsThatCannotStraddleTheWrap) {
  // i8: 120 + arange(32) wraps from 127 to -128 between elements 7 and 8.
  const AxisInfo wraps = last(R"(
    %0 = arange start=120 end=152 : tile<32xindex>
    %1 = cast %0 : tile<32xi8>
  )");
  EXPECT_EQ(wraps.axes[0], axis(8, 8, 1));
  EXPECT_EQ(wraps.range, (Interval{-128, 127}));
  const AxisInfo fits = last(R"(
    %0 = arange start=90 end=122 : tile<32xindex>
    %1 = cast %0 : tile<32xi8>
  )");
  EXPECT_EQ(fits.axes[0], axis(32, 2, 1));
}

TEST(AxisInfo, QuotientOfARunIsConstantInGroups) {
  const auto over = [](const char* op, int d) {
    return last("%0 = arange start=0 end=64 : tile<64xindex>\n%1 = constant value=index(" + std::to_string(d) +
                ") : index\n%2 = splat %1 : tile<64xindex>\n%3 = " + op + " %0, %2 : tile<64xindex>\n");
  };
  EXPECT_EQ(over("div", 8).axes[0].constancy, 8);
  EXPECT_EQ(over("div", 6).axes[0].constancy, 1);
  EXPECT_EQ(over("rem", 8).axes[0], axis(8, kZeroDivisor, 1));
  EXPECT_EQ(over("rem", 8).range, (Interval{0, 7}));
}

TEST(AxisInfo, DivisionTruncatesTowardZeroSoNegativeGroupsAreNotConstant) {
  const auto by_eight = [](const char* op, int operand) {
    return last("%0 = arange start=-8 end=8 : tile<16xindex>\n%1 = constant value=index(" + std::to_string(operand) +
                ") : index\n%2 = splat %1 : tile<16xindex>\n%3 = " + op + " %0, %2 : tile<16xindex>\n")
        .axes[0];
  };
  EXPECT_EQ(by_eight("div", 8).constancy, 1);   // -1, 0, 0, …
  EXPECT_EQ(by_eight("rem", 8).contiguity, 1);  // 0, -7, -6, …
  EXPECT_EQ(by_eight("shr", 3).constancy, 8);   // -1, -1, …
}

/// Facts of the one Neg in `body`, which may stand in any region.
AxisInfo negated(const std::string& body) {
  const Function f = parse(
      "kernel \"k\" stage=traced\nparam : ptr<f32> access=readwrite align=16\nparam : index access=read align=16\n"
      "param : index access=read\n{\n  %n16 = param index=1 : index\n  %n = param index=2 : index\n"
      "  %zero = constant value=index(0) : index\n  %four = constant value=index(4) : index\n"
      "  %k512 = constant value=index(512) : index\n" +
      body + "}\n");
  const AxisAnalysis facts(f);
  AxisInfo found;
  walk(f, [&](InstId i) {
    if (f.inst(i).op == Op::Neg) found = facts[f.inst(i).operands[0]];
  });
  return found;
}

TEST(AxisInfo, InductionVariablesCountInSteps) {
  const auto of = [](const std::string& bounds) {
    return negated("  for " + bounds + " {(%i : index)\n    %x = neg %i : index\n    yield\n  }\n");
  };
  EXPECT_EQ(of("%zero, %k512, %four").axes[0].divisibility, 4);
  EXPECT_EQ(of("%zero, %k512, %four").range, (Interval{0, 511}));
  EXPECT_EQ(of("%zero, %n, %k512").axes[0].divisibility, 512);
  EXPECT_EQ(of("%zero, %n, %k512").range.lo, 0);
  EXPECT_EQ(of("%n16, %n, %k512").axes[0].divisibility, 16);
  EXPECT_EQ(of("%k512, %zero, %n").range, (Interval{1, 512})) << "counts down, or not at all";
}

TEST(AxisInfo, CarriedValuesKeepWhatEveryTripKeeps) {
  const auto of = [](const std::string& step) {
    return negated(R"(
  %a = arange start=0 end=64 : tile<64xindex>
  %s = splat )" + step + R"( : tile<64xindex>
  %r = for %zero, %n, %four, %a : tile<64xindex> {(%i : index, %p : tile<64xindex>)
    %x = neg %p : tile<64xindex>
    %q = add %p, %s : tile<64xindex>
    yield %q
  }
)");
  };
  EXPECT_EQ(of("%k512").axes[0], axis(64, 512, 1));
  EXPECT_EQ(of("%k512").range, Interval{}) << "grows with every trip";
  EXPECT_EQ(of("%n16").axes[0], axis(64, 16, 1));
  EXPECT_EQ(of("%n").axes[0], axis(64, 1, 1));
  EXPECT_EQ(of("%zero").range, (Interval{0, 63}));
}

TEST(AxisInfo, ExchangedValuesShareTheirFacts) {
  const AxisInfo x = negated(R"(
  %r, %t = for %zero, %n, %four, %k512, %four : index, index {(%i : index, %p : index, %q : index)
    %x = neg %p : index
    yield %q, %p
  }
)");
  EXPECT_EQ(x.axes[0].divisibility, 4);
}

TEST(AxisInfo, BranchesAndWhileMeet) {
  EXPECT_EQ(negated(R"(
  %c = lt %n, %four : i1
  %v = if %c : index {
    yield %k512
  } {
    yield %four
  }
  %x = neg %v : index
)")
                .range,
            (Interval{4, 512}));
  EXPECT_EQ(negated(R"(
  %w = while %k512 : index {(%t : index)
    %c = lt %t, %n : i1
    yield %c
  } {(%u : index)
    %x = neg %u : index
    %v = add %u, %four : index
    yield %v
  }
)")
                .axes[0]
                .divisibility,
            4);
}

// A nest too deep to be settled level by level is walked once, with nothing known of what it carries.
TEST(AxisInfo, DeepNestsAreWalkedOnce) {
  std::string body, end;
  for (int d = 0; d < 40; ++d) {
    const std::string n = std::to_string(d), outer = d ? "%v" + std::to_string(d - 1) : "%k512";
    body += "%r" + n + " = for %zero, %n, %four, " + outer + " : index {(%i" + n + " : index, %v" + n + " : index)\n";
    end = "yield %" + std::string(d == 39 ? "s" : "r" + std::to_string(d + 1)) + "\n}\n" + end;
  }
  EXPECT_EQ(negated(body + "%x = neg %v39 : index\n%s = add %v39, %four : index\n" + end).axes[0].divisibility, 1);
}

TEST(AxisInfo, RunsAndGroupsSurviveRearranging) {
  const std::string run = "%0 = arange start=0 end=64 : tile<64xindex>\n";
  const AxisInfo rows = last(run + "%1 = reshape %0 : tile<4x16xindex>\n");
  EXPECT_EQ(rows.axes[0], axis(1, 1, 1));
  EXPECT_EQ(rows.axes[1], axis(16, 16, 1));
  EXPECT_EQ(rows.range, (Interval{0, 63}));
  EXPECT_EQ(last(run + "%1 = reshape %0 : tile<4x16xindex>\n%2 = permute order=[1,0] %1 : tile<16x4xindex>\n").axes[0],
            axis(16, 16, 1));
  EXPECT_EQ(last(run + "%1 = slice axis=0 start=24 end=64 %0 : tile<40xindex>\n").axes[0], axis(8, 8, 1));
  EXPECT_EQ(last(run + "%1 = cat axis=0 %0, %0 : tile<128xindex>\n").axes[0].contiguity, 64);
  EXPECT_EQ(last(run + "%1 = flip axis=0 %0 : tile<64xindex>\n").axes[0], axis(1, 1, 1));
}

// --- random programs -------------------------------------------------------------------------------------------------
constexpr std::int64_t kRows = 8, kColumns = 16, kElements = kRows * kColumns;

/// Grows a kernel of random integer tiles, all of which it stores as i64.
class RandomKernel {
 public:
  explicit RandomKernel(unsigned seed) : rng_(seed), b_(f) {
    f.params = {{Type::pointer(DType::i64), "out", rt::Access::Write, 16, false},
                {Type::scalar(DType::index), "n", rt::Access::Read, 16, false},
                {Type::scalar(DType::index), "m", rt::Access::Read, 1, false},
                {Type::scalar(DType::index), "one", rt::Access::Read, 1, true}};
    const Value row = axis(0), column = axis(1);
    pool_ = {row,        column,    binary(Op::Add, binary(Op::Mul, row, constant(kColumns)), column),
             scalar(1),  scalar(2), scalar(3),
             constant(0)};
    linear_ = pool_[2];
    for (int n = 0; n < 24; ++n) pool_.push_back(grow());
    for (std::size_t k = 0; k < pool_.size(); ++k) keep(k);
  }

  Function f{"random"};
  const std::vector<Value>& pool() const { return pool_; }

 private:
  std::int64_t below(std::int64_t n) { return std::int64_t(rng_() % std::uint64_t(n)); }
  Value pick() { return pool_[std::size_t(below(std::int64_t(pool_.size())))]; }
  Value axis(int k) {
    const std::int64_t start = below(2) * below(40);
    const Value line = b_.arange(start, start + (k == 0 ? kRows : kColumns), {});
    return b_.broadcast(b_.expand_dims(line, 1 - k, {}), {kRows, kColumns}, {});
  }
  Value scalar(int param) { return b_.splat(b_.param(param, {}), {kRows, kColumns}, {}); }
  Value constant(std::int64_t x, DType d = DType::index) {
    return b_.splat(b_.constant(Literal::of_int(d, x), {}), {kRows, kColumns}, {});
  }
  Value binary(Op op, Value x, Value y) { return b_.elementwise(op, {x, y}, {}); }

  Value grow() {
    static constexpr Op ops[] = {Op::Add, Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Rem, Op::Min,
                                 Op::Max, Op::And, Op::Or,  Op::Xor, Op::Shl, Op::Shr};
    static constexpr Op comparisons[] = {Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne};
    static constexpr DType dtypes[] = {DType::index, DType::i64, DType::i32, DType::i8,
                                       DType::u8,    DType::u32, DType::u64, DType::i16};
    static constexpr std::int64_t constants[] = {
        0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 64, 96, -1, -4, -16, 1 << 20, std::int64_t(1) << 33};
    const Value x = pick();
    const DType d = f.type(x).dtype;
    switch (below(6)) {
      case 0: return b_.cast(x, dtypes[below(8)], false, {});
      case 4: return rearranged(x);
      case 1: {
        Value y = pick();
        if (f.type(y).dtype != d) y = b_.cast(y, d, false, {});
        const Value mask = binary(comparisons[below(6)], x, y);
        return below(2) ? b_.select(mask, x, y, {}) : b_.cast(mask, d, false, {});
      }
      case 2: return b_.elementwise(Op::Neg, {x}, {});
      case 3: return binary(ops[below(13)], x, constant(constants[below(17)], d));
      default: {
        Value y = pick();
        if (f.type(y).dtype != d) y = b_.cast(y, d, false, {});
        return binary(ops[below(13)], x, y);
      }
    }
  }

  Value make(Op op, std::vector<Value> v, std::vector<Attr> attrs = {}, std::optional<Type> t = {}) {
    return b_.make(op, std::move(v), std::move(attrs), {}, std::move(t));
  }
  Value reshaped(Value x, Shape shape) { return make(Op::Reshape, {x}, {}, f.type(x).with_shape(std::move(shape))); }
  Value sliced(Value x, std::int64_t a, std::int64_t start, std::int64_t end) {
    return make(Op::Slice, {x}, {{AttrKey::axis, a}, {AttrKey::start, start}, {AttrKey::end, end}});
  }
  Value flipped(Value x, std::int64_t a) { return make(Op::Flip, {x}, {{AttrKey::axis, a}}); }

  /// Elements of x (and others) in other places, of the same shape again.
  Value rearranged(Value x) {
    static const Shape shapes[] = {{128}, {4, 32}, {2, 64}, {4, 2, 16}, {8, 4, 4}, {16, 8}, {32, 1, 4}, {8, 1, 16}};
    const std::int64_t a = below(2), extent = a == 0 ? kRows : kColumns, at = 1 + below(extent - 1);
    switch (below(6)) {
      case 0: return flipped(x, a);
      case 1: return make(Op::Cat, {sliced(x, a, at, extent), sliced(x, a, 0, at)}, {{AttrKey::axis, a}});
      case 2:
        return reshaped(make(Op::Permute, {x}, {{AttrKey::order, std::vector<std::int64_t>{1, 0}}}), {kRows, kColumns});
      case 3: return reshaped(flipped(reshaped(x, shapes[below(8)]), 0), {kRows, kColumns});
      case 4: {
        const Value both = make(Op::Join, {x, flipped(x, a)});
        return sliced(reshaped(both, {2 * kRows, kColumns}), 0, at / 2, at / 2 + kRows);
      }
      default: return b_.broadcast(sliced(x, a, at, at + 1), {kRows, kColumns}, {});
    }
  }

  void keep(std::size_t k) {
    const Value at = binary(Op::Add, linear_, constant(std::int64_t(k) * kElements - first()));
    const Value base = b_.splat(b_.param(0, {}), {kRows, kColumns}, {});
    b_.store(b_.ptr_add(base, at, {}), b_.cast(pool_[k], DType::i64, false, {}), {}, CacheHint::Plain, {});
  }
  /// Value of element (0, 0) of linear_, whose axes may start anywhere.
  std::int64_t first() const {
    std::int64_t at = 0;
    const Region& body = f.region(f.body());
    int seen = 0;
    for (InstId i : body.insts)
      if (f.inst(i).op == Op::Arange && seen++ < 2) at += f.inst(i).i64(AttrKey::start) * (seen == 1 ? kColumns : 1);
    return at;
  }

  std::mt19937_64 rng_;
  Builder b_;
  std::vector<Value> pool_;
  Value linear_;
};

class AxisInfoSweep : public testing::TestWithParam<unsigned> {};

TEST_P(AxisInfoSweep, HoldsForEveryElement) {
  const RandomKernel kernel(GetParam());
  const AxisAnalysis facts(kernel.f);
  for (const auto& [n, m] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{16, 5}, {48, -3}, {-32, 1185}, {0, 0}}) {
    std::vector<std::int64_t> out(kernel.pool().size() * kElements);
    const std::uint64_t address = 4096;
    eval(kernel.f, {},
         {{DType::u64, address},
          Literal::of_int(DType::index, n),
          Literal::of_int(DType::index, m),
          Literal::of_int(DType::index, 1)},
         {{reinterpret_cast<std::byte*>(out.data()), out.size() * 8, address}});
    for (std::size_t k = 0; k < kernel.pool().size(); ++k) {
      const Value v = kernel.pool()[k];
      const AxisInfo& info = facts[v];
      const bool wide_unsigned = kernel.f.type(v).dtype == DType::u64;
      const auto at = [&](std::int64_t r, std::int64_t c) {
        return out[k * kElements + std::size_t(r * kColumns + c)];
      };
      for (std::int64_t r = 0; r < kRows; ++r)
        for (std::int64_t c = 0; c < kColumns; ++c) {
          const std::int64_t x = at(r, c);
          ASSERT_TRUE(wide_unsigned || (info.range.lo <= x && x <= info.range.hi))
              << print(kernel.f) << "value " << k << " is " << x;
          for (std::size_t a : {0u, 1u}) {
            const AxisInfo::Axis& claim = info.axes[a];
            const std::int64_t p = a == 0 ? r : c, in_run = p % claim.contiguity, in_group = p % claim.constancy;
            const std::int64_t run = a == 0 ? at(r - in_run, c) : at(r, c - in_run),
                               group = a == 0 ? at(r - in_group, c) : at(r, c - in_group);
            ASSERT_EQ(std::uint64_t(x), std::uint64_t(run) + std::uint64_t(in_run))
                << print(kernel.f) << "contiguity of value " << k << " axis " << a;
            ASSERT_EQ(run % claim.divisibility, 0) << print(kernel.f) << "divisibility of value " << k << " axis " << a;
            ASSERT_EQ(x, group) << print(kernel.f) << "constancy of value " << k << " axis " << a;
          }
        }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Random, AxisInfoSweep, testing::Range(0u, 400u));

}  // namespace
}  // namespace kiln::ir
