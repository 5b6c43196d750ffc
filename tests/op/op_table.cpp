#include "tests/op/op_table.h"

namespace kiln::test {

using ir::TypeRule;

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> v;
    for (int i = 0; i < ir::kOpCount; ++i) {
      const ir::OpInfo& info = ir::info(static_cast<ir::Op>(i));
      if (info.elementwise)
        v.push_back(
            {info.op, info.rule, info.arity, info.accuracy.bound == ir::Bound::Exact, info.accuracy.fast});
    }
    return v;
  }();
  return all;
}

bool takes(TypeRule rule, DType d) {
  bool real = is_float(d) && bits(d) > 8;
  switch (rule) {
    case TypeRule::None: return false;
    case TypeRule::Num: return is_int(d) || real;
    case TypeRule::Float: return real;
    case TypeRule::Math: return real && d != DType::f64;
    case TypeRule::Int: return is_int(d);
    case TypeRule::Bits: return is_int(d) || d == DType::i1;
    case TypeRule::Cmp: return is_int(d) || real || d == DType::i1;
  }
  return false;
}

Kernel elementwise_kernel(const Row& row, DType d, bool fast) {
  return {std::string(ir::mnemonic(row.op)) + "_" + name(d) + (fast ? "_fast" : ""),
          std::vector<DType>(static_cast<std::size_t>(row.arity), d), row.rule == TypeRule::Cmp ? DType::i1 : d,
          [=](ir::Builder& b, const std::vector<ir::Value>& x) { return b.elementwise(row.op, x, {}, fast); }};
}

Kernel cast_kernel(DType from, DType to, bool saturate) {
  return {std::string("cast_") + name(from) + "_" + name(to) + (saturate ? "_saturate" : ""),
          {from},
          to,
          [=](ir::Builder& b, const std::vector<ir::Value>& x) { return b.cast(x[0], to, saturate, {}); }};
}

}  // namespace kiln::test
