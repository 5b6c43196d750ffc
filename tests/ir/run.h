// Runs IR text on the interpreter over typed host arrays.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "backend/ir/eval.h"
#include "backend/ir/text.h"
#include "backend/ir/verify.h"
#include "runtime/base/error.h"

namespace kiln::ir::test {

/// Collects the arguments of one run; arrays live at fixed, far apart addresses, so that messages are stable.
class Launch {
 public:
  explicit Launch(const std::string& text) : f_(parse(text, "k.kir")) {
    const auto violations = verify(f_);
    if (!violations.empty()) throw InternalError(format(f_, violations));
  }
  explicit Launch(Function f) : f_(std::move(f)) {}

  template <class T>
  Launch& array(std::vector<T>& v) {
    const std::uint64_t address = 0x10000 * (blocks_.size() + 1);
    blocks_.push_back({reinterpret_cast<std::byte*>(v.data()), v.size() * sizeof(T), address});
    return arg({DType::u64, address});
  }
  Launch& arg(Literal l) {
    args_.push_back(l);
    return *this;
  }
  Launch& index(std::int64_t v) { return arg(Literal::of_int(DType::index, v)); }
  void operator()(std::int64_t x = 1, std::int64_t y = 1, std::int64_t z = 1) { eval(f_, {{x, y, z}}, args_, blocks_); }
  /// Message of the UserError this run ends with.
  std::string error(std::int64_t x = 1) {
    try {
      (*this)(x);
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  }

 private:
  Function f_;
  std::vector<EvalArg> args_;
  std::vector<EvalBlock> blocks_;
};

}  // namespace kiln::ir::test
