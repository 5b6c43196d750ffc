// Constant folding and no-ops: what may go, and what must stay because a bit would change.
#include "backend/ir/fold.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/ir/builder.h"
#include "backend/ir/eval.h"
#include "backend/ir/text.h"

namespace kiln::ir::test {
namespace {

class FoldTest : public testing::Test {
 protected:
  FoldTest() {
    int k = 0;
    for (DType d : {DType::i32, DType::u8, DType::f32, DType::bf16, DType::i1}) {
      f.params.push_back({Type::scalar(d), "x", rt::Access::Read, 1, false});
      x[std::size_t(d)] = b.param(k++, {});
    }
  }
  Value var(DType d) const { return x[std::size_t(d)]; }
  Value lit(DType d, double v) { return b.constant(Literal::of_float(d, v), {}); }
  Value ew(Op op, std::vector<Value> v) { return b.elementwise(op, std::move(v), {}); }
  std::string value(Value v) const {
    const auto l = b.literal(v);
    return l ? print(*l) : "not known";
  }
  bool kept(Op op, Value a, Value c) { return f.inst(f.def(ew(op, {a, c}))).op == op; }

  Function f{"k"};
  Builder b{f};
  Value x[32];
};

TEST_F(FoldTest, ExactOpsOnConstants) {
  EXPECT_EQ(value(ew(Op::Add, {lit(i32, 3), lit(i32, 4)})), "i32(7)");
  EXPECT_EQ(value(ew(Op::Lt, {lit(i32, 3), lit(i32, 4)})), "i1(1)");
  EXPECT_EQ(value(ew(Op::Div, {lit(i32, 3), lit(i32, 0)})), "i32(0)");
  EXPECT_EQ(value(ew(Op::Fma, {lit(f32, 3), lit(f32, 4), lit(f32, 0.5)})), "f32(12.5)");
  EXPECT_EQ(value(ew(Op::Sqrt, {lit(f32, 2)})), "f32(1.4142135)");
}

TEST_F(FoldTest, KeepsInexactOpsForTheDevice) {
  EXPECT_EQ(value(ew(Op::Exp, {lit(f32, 1)})), "not known");
  EXPECT_EQ(value(ew(Op::Pow, {lit(f32, 2), lit(f32, 3)})), "not known");
  EXPECT_EQ(value(b.elementwise(Op::Sqrt, {lit(f32, 2)}, {}, true)), "not known");
}

TEST_F(FoldTest, SeesThroughSplats) {
  const Value a = b.splat(lit(f32, 2), {4}, {}), sum = ew(Op::Add, {a, a});
  EXPECT_EQ(value(sum), "f32(4)");
  EXPECT_EQ(f.type(sum).str(), "tile<4xf32>");
  EXPECT_EQ(f.inst(f.def(sum)).op, Op::Splat);
  const Value wide = b.broadcast(b.expand_dims(sum, 0, {}), {3, 4}, {});
  EXPECT_EQ(value(wide), "f32(4)");
  EXPECT_EQ(f.type(wide).str(), "tile<3x4xf32>");
}

TEST_F(FoldTest, NeutralElements) {
  const Value i = var(i32), r = var(f32), t = var(DType::i1);
  for (Op op : {Op::Add, Op::Sub, Op::Or, Op::Xor, Op::Shl, Op::Shr})
    EXPECT_EQ(ew(op, {i, lit(i32, 0)}), i) << mnemonic(op);
  for (Op op : {Op::Add, Op::Or, Op::Xor}) EXPECT_EQ(ew(op, {lit(i32, 0), i}), i) << mnemonic(op);
  for (Op op : {Op::Mul, Op::Div}) {
    EXPECT_EQ(ew(op, {i, lit(i32, 1)}), i);
    EXPECT_EQ(ew(op, {r, lit(f32, 1)}), r);
  }
  EXPECT_EQ(ew(Op::And, {i, lit(i32, -1)}), i);
  EXPECT_EQ(ew(Op::And, {lit(DType::i1, 1), t}), t);
  EXPECT_EQ(value(ew(Op::And, {t, lit(DType::i1, 0)})), "i1(0)");
  EXPECT_EQ(value(ew(Op::Mul, {lit(i32, 0), i})), "i32(0)");
  EXPECT_EQ(ew(Op::Add, {r, lit(f32, -0.0)}), r);
  EXPECT_EQ(ew(Op::Sub, {r, lit(f32, 0.0)}), r);
}

TEST_F(FoldTest, KeepsWhatWouldChangeABit) {
  const Value r = var(f32), i = var(i32);
  EXPECT_TRUE(kept(Op::Add, r, lit(f32, 0.0)));  // -0 + 0 = +0
  EXPECT_TRUE(kept(Op::Sub, r, lit(f32, -0.0)));
  EXPECT_TRUE(kept(Op::Mul, r, lit(f32, 0)));  // NaN, -0
  EXPECT_TRUE(kept(Op::Sub, lit(i32, 0), i));
  EXPECT_TRUE(kept(Op::Div, lit(i32, 1), i));
  EXPECT_TRUE(kept(Op::Shl, lit(i32, 0), i));
  EXPECT_TRUE(kept(Op::Sub, r, r));  // inf - inf
  EXPECT_TRUE(kept(Op::Eq, r, r));   // NaN
}

TEST_F(FoldTest, NeutralElementsAgreeWithEval) {  // every rewrite above, over all values of u8 and samples of bf16
  for (Op op :
       {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Rem, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr, Op::Min, Op::Max}) {
    for (DType d : {DType::u8, DType::bf16}) {
      if (d == DType::bf16 && info(op).rule != TypeRule::Num) continue;
      for (double constant : {0.0, -0.0, 1.0, -1.0, 255.0}) {
        for (bool left : {false, true}) {
          const Value c = lit(d, constant), v = var(d);
          const Value r = left ? ew(op, {c, v}) : ew(op, {v, c});
          if (r != v && !b.literal(r)) continue;  // not folded
          const std::uint64_t n = d == DType::u8 ? 256 : 65536;
          for (std::uint64_t bits = 0; bits < n; ++bits) {
            const Literal l{d, bits}, k = *b.literal(c);
            if (is_float(d) && std::isnan(l.as_double())) continue;
            const Literal want = left ? eval_elementwise(op, {k, l}) : eval_elementwise(op, {l, k});
            ASSERT_EQ(want, r == v ? l : *b.literal(r)) << mnemonic(op) << " " << constant << " " << bits;
          }
        }
      }
    }
  }
}

/// Two values of `d` whose order decides what `op` gives; empty if there is none among the samples.
std::string order_matters(Op op, DType d) {
  const auto differs = [](const Literal& x, const Literal& y) {
    return x != y && !(is_float(x.dtype) && std::isnan(x.as_double()) && std::isnan(y.as_double()));
  };
  const std::uint64_t step = d == DType::bf16 ? 257 : 1, n = std::uint64_t(1) << bits(d);
  for (std::uint64_t x = 0; x < n; x += step)
    for (std::uint64_t y = 0; y < x; y += step)
      if (differs(eval_elementwise(op, {{d, x}, {d, y}}), eval_elementwise(op, {{d, y}, {d, x}})))
        return std::to_string(x) + ", " + std::to_string(y);
  return "";
}

TEST(Commutes, HoldsForTheseOpsAndNoOthers) {
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = Op(i);
    if (!info(op).elementwise || info(op).arity != 2) continue;
    if (info(op).accuracy.bound != Bound::Exact) {
      EXPECT_FALSE(commutes(op)) << mnemonic(op);  // nothing is promised bit for bit
      continue;
    }
    std::string example;
    for (DType d : {DType::i1, DType::u8, DType::i8, DType::bf16}) {
      const bool takes = is_float(d) ? info(op).rule == TypeRule::Num || info(op).rule == TypeRule::Float ||
                                           info(op).rule == TypeRule::Cmp
                         : d == DType::i1 ? info(op).rule == TypeRule::Bits || info(op).rule == TypeRule::Cmp
                                          : info(op).rule != TypeRule::Float && info(op).rule != TypeRule::Math;
      if (!takes) continue;
      if (const std::string found = order_matters(op, d); !found.empty()) example = std::string(name(d)) + " " + found;
    }
    EXPECT_EQ(commutes(op), example.empty()) << mnemonic(op) << ": " << example;
  }
}

TEST_F(FoldTest, CastsAlwaysRound) {  // docs/pitfalls.md A22
  const Value r = var(f32);
  const Value there = b.cast(r, DType::bf16, false, {}), back = b.cast(there, f32, false, {});
  EXPECT_NE(back, r);
  EXPECT_EQ(f.inst(f.def(back)).op, Op::Cast);
  EXPECT_EQ(f.inst(f.def(there)).op, Op::Cast);
  EXPECT_EQ(value(b.cast(b.cast(lit(f32, 1.001), DType::bf16, false, {}), f32, false, {})), "f32(1)");
  EXPECT_EQ(b.cast(r, f32, false, {}), r);
  EXPECT_NE(b.cast(r, f32, true, {}), r);  // infinity becomes finite
  EXPECT_EQ(value(b.cast(lit(f32, 1e9), DType::f8e4m3, true, {})), "f8e4m3(448)");
}

TEST_F(FoldTest, SelectOfAKnownCondition) {
  const Value a = var(f32), c = lit(f32, 1);
  EXPECT_EQ(b.select(lit(DType::i1, 1), a, c, {}), a);
  EXPECT_EQ(b.select(lit(DType::i1, 0), a, c, {}), c);
  EXPECT_EQ(b.select(var(DType::i1), a, a, {}), a);
}

TEST_F(FoldTest, PointersAndReinterpretedBits) {
  f.params.push_back({Type::pointer(f32), "p", rt::Access::Write, 4, false});
  const Value p = b.param(int(f.params.size()) - 1, {});
  EXPECT_EQ(b.ptr_add(p, lit(DType::index, 0), {}), p);
  EXPECT_EQ(value(b.bitcast(lit(f32, 1), i32, {})), "i32(1065353216)");
  EXPECT_EQ(b.bitcast(var(f32), f32, {}), var(f32));
  const Value tiles = b.splat(p, {1, 4}, {});
  EXPECT_EQ(b.broadcast(tiles, {1, 4}, {}), tiles);
}

}  // namespace
}  // namespace kiln::ir::test
