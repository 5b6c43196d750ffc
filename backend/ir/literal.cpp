#include "backend/ir/function.h"
#include "backend/ir/op/numeric.h"

namespace kiln::ir {

Literal Literal::of_int(DType d, std::int64_t v) {
  return num::dispatch(d, [&]<class T>(std::type_identity<T>) {
    return Literal{d, num::to_bits(num::convert<T>(v, false))};
  });
}

Literal Literal::of_float(DType d, double v) {
  return num::dispatch(d, [&]<class T>(std::type_identity<T>) {
    return Literal{d, num::to_bits(num::convert<T>(v, false))};
  });
}

double Literal::as_double() const {
  return num::dispatch(
      dtype, [&]<class T>(std::type_identity<T>) { return num::convert<double>(num::from_bits<T>(bits), false); });
}

std::int64_t Literal::as_int() const {
  return num::dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    return num::convert<std::int64_t>(num::from_bits<T>(bits), false);
  });
}

}  // namespace kiln::ir
