// The layout rules of ops: the thread that computes a result element holds the operand element it comes from.
#include "backend/ir/op/operand_layout.h"

#include <gtest/gtest.h>

#include "backend/ir/builder.h"
#include "backend/ir/layout_zoo.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

class OperandLayout : public testing::Test {
 protected:
  const Inst& last() const { return f_.inst(f_.region(f_.body()).insts.back()); }
  Function f_{"k"};
  Builder b_{f_};
};

TEST_F(OperandLayout, ElementwiseOperandsStandWhereTheResultStands) {
  const Value x = b_.arange(0, 64, {});
  b_.elementwise(Op::Neg, {x}, {});
  const LinearLayout l = blocked({64}, 2, {0}, 1);
  EXPECT_EQ(operand_layout(f_, last(), 0, l), l);
}

TEST_F(OperandLayout, ReshapedOperandsAreFoundInTheSameThread) {
  for (int axis : {0, 1})
    for (std::int64_t vector : {1, 4})
      for (const std::vector<int>& order : {row_major(2), std::vector<int>{0, 1}}) {
        Value x = b_.expand_dims(b_.arange(0, axis == 0 ? 24 : 16, {}), axis, {});
        const Inst expand = last();
        b_.broadcast(x, {16, 24}, {});
        const LinearLayout result = blocked({16, 24}, vector, order, 2);
        const LinearLayout one = operand_layout(f_, last(), 0, result), line = operand_layout(f_, expand, 0, one);
        EXPECT_TRUE(same_thread_registers(one, result).has_value());
        EXPECT_TRUE(same_thread_registers(line.expand(axis), one).has_value());
        EXPECT_TRUE(line.surjective());
        EXPECT_EQ(line.free_bits(Hw::Register), 0);
        EXPECT_EQ(line.out_shape(), padded(Shape{axis == 0 ? 24 : 16}));
        EXPECT_EQ(line.in_bits(Hw::Lane), 5);
        EXPECT_EQ(line.in_bits(Hw::Warp), 1);
      }
}

TEST_F(OperandLayout, OpsWithoutTileOperandsHaveNoRule) {
  b_.arange(0, 64, {});
  EXPECT_THROW((void)operand_layout(f_, last(), 0, blocked({64}, 1, {0}, 1)), InternalError);
}

}  // namespace
}  // namespace kiln::ir
