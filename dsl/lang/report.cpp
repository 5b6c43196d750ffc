#include "dsl/lang/report.h"

#include <fmt/format.h>

#include "dsl/lang/pointer.h"

namespace kiln::detail {

void report_print(const Text& format, std::initializer_list<Arg> values) {
  Tracer& t = Tracer::current(format.at);
  std::vector<ir::Value> operands;
  for (const Arg& a : values) operands.push_back(value_of(t, a, format.at));
  if (!operands.empty()) {
    ir::Type shape = t.type(operands[0]);
    for (ir::Value v : operands) shape = common_shape(t, shape, t.type(v), "print", format.at);
    for (ir::Value& v : operands) v = broadcast_like(t, v, shape, "print", format.at);
  }
  t.emit_effect(format.at, [&](ir::Builder& b) {
    b.make(ir::Op::Print, operands, {{ir::AttrKey::text, std::string(format.text)}}, format.at);
  });
}

void report_assert(const Handle& cond, const Text& message, const Operand* mask) {
  Tracer& t = Tracer::current(message.at);
  std::vector<ir::Value> operands{t.read(cond, message.at)};
  const ir::Type type = t.type(operands[0]);
  if (type.dtype != DType::i1 || type.ptr)
    t.fail(message.at, fmt::format("device_assert: condition must be i1, not {}", type.str()));
  if (mask)
    if (const ir::Value m = mask_operand(t, *mask, type, "device_assert", message.at); m.valid()) operands.push_back(m);
  t.emit_effect(message.at, [&](ir::Builder& b) {
    b.make(ir::Op::Assert, operands, {{ir::AttrKey::text, std::string(message.text)}}, message.at);
  });
}

}  // namespace kiln::detail
