#include "backend/ir/op/infer.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

bool holds(const AttrValue& value, AttrKind kind) {
  if (kind == AttrKind::Literal) return std::holds_alternative<Literal>(value);
  if (kind == AttrKind::Text) return std::holds_alternative<std::string>(value);
  if (kind == AttrKind::Ints) return std::holds_alternative<std::vector<std::int64_t>>(value);
  const auto* i = std::get_if<std::int64_t>(&value);
  if (!i) return false;
  if (kind == AttrKind::Flag) return *i == 0 || *i == 1;
  if (const auto named = names(kind); !named.empty()) return *i >= 0 && *i < std::int64_t(named.size());
  return true;
}

const char* kind_name(AttrKind kind) {
  switch (kind) {
    case AttrKind::Int: return "an integer";
    case AttrKind::Flag: return "0 or 1";
    case AttrKind::Literal: return "a literal";
    case AttrKind::Ints: return "a list of integers";
    case AttrKind::Text: return "a text";
    case AttrKind::Cache: return "a cache hint";
    case AttrKind::Rmw: return "a way to combine";
    case AttrKind::Order: return "a memory order";
    case AttrKind::Scope: return "a memory scope";
    case AttrKind::Precision: return "a precision";
    case AttrKind::Unit: return "a unit";
  }
  return "";
}

void check_attrs(const InferInput& in) {
  const std::span<const AttrKey> known = info(in.op).attrs;
  for (const Attr& a : in.attrs) {
    if (std::find(known.begin(), known.end(), a.key) == known.end())
      in.fail(std::string("has no attribute ") + name(a.key));
    if (!holds(a.value, info(a.key).kind))
      in.fail(std::string("attribute ") + name(a.key) + " must be " + kind_name(info(a.key).kind));
  }
  for (AttrKey key : known) {
    const auto count = std::count_if(in.attrs.begin(), in.attrs.end(), [&](const Attr& a) { return a.key == key; });
    if (count > 1) in.fail(std::string("attribute ") + name(key) + " is given twice");
    if (count == 0 && !info(key).optional) in.fail(std::string("attribute ") + name(key) + " is missing");
  }
}

void check_operand_count(const InferInput& in) {
  const OpInfo& op = info(in.op);
  const auto n = std::int64_t(in.operands.size());
  if (n >= op.min_operands() && n <= op.max_operands()) return;
  std::string names;
  for (const char* o : op.operand_names) names += (names.empty() ? "" : ", ") + std::string(o);
  in.fail("has " + std::to_string(n) + " operands, takes (" + names + ")");
}

}  // namespace

std::int64_t InferInput::i64(AttrKey key) const {
  for (const Attr& a : attrs)
    if (a.key == key) return std::get<std::int64_t>(a.value);
  return 0;
}

const Literal* InferInput::literal(AttrKey key) const {
  for (const Attr& a : attrs)
    if (a.key == key) return std::get_if<Literal>(&a.value);
  return nullptr;
}

const std::vector<std::int64_t>& InferInput::ints(AttrKey key) const {
  for (const Attr& a : attrs)
    if (a.key == key) return std::get<std::vector<std::int64_t>>(a.value);
  fail(std::string("attribute ") + name(key) + " is missing");
}

const Type& InferInput::wanted() const {
  if (stated.size() != 1) fail("needs one result type, has " + std::to_string(stated.size()));
  return stated[0];
}

void InferInput::fail(const std::string& message) const {
  throw UserError(loc, std::string(mnemonic(op)) + ": " + message);
}

std::string shape_str(const Shape& s) {
  std::string text = "[";
  for (std::size_t i = 0; i < s.size(); ++i) text += (i ? "," : "") + std::to_string(s[i]);
  return text + "]";
}

void check_shape(const InferInput& in, const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t extent : shape) {
    if (extent < 1) in.fail("extents of a tile are positive, shape is " + shape_str(shape));
    if (extent > kMaxTileElements / n) in.fail("tile of shape " + shape_str(shape) + " has more than 1048576 elements");
    n *= extent;
  }
}

std::size_t checked_axis(const InferInput& in, const Type& x) {
  if (!x.tile) in.fail("takes a tile, not " + x.str());
  const std::int64_t axis = in.i64(AttrKey::axis), rank = std::int64_t(x.shape.size());
  if (axis < 0 || axis >= rank)
    in.fail("axis " + std::to_string(axis) + " is not in 0 to " + std::to_string(rank - 1) + " for " + x.str());
  return std::size_t(axis);
}

Type laid_out(const InferInput& in, Type t, std::size_t i) {
  if (t.tile && i < in.stated.size()) t.layout = in.stated[i].layout;
  return t;
}

Types infer(const InferInput& in) {
  check_operand_count(in);
  check_attrs(in);
  switch (in.op) {
// clang-format off
#define KILN_EW(Enum, ...) case Op::Enum: return infer_elementwise(in);
#define KILN_OP(Enum, ...) case Op::Enum: return infer_##Enum(in);
#include "backend/ir/ops.def"
    // clang-format on
  }
  return {};
}

}  // namespace kiln::ir
