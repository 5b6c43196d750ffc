#include "runtime/sim/form.h"

#include <fmt/format.h>

#include "runtime/sim/decode.h"
#include "runtime/sim/needs.h"

namespace kiln::rt::sim {

using Kind = ptx::Operand::Kind;

namespace {
OperandUse reads(Ty t) { return {OperandRole::Read, static_cast<std::uint8_t>(bits(t))}; }
OperandUse writes(Ty t) { return {OperandRole::Written, static_cast<std::uint8_t>(bits(t))}; }
}  // namespace

void Form::dst(const ptx::Operand& o, Ty t) { decoder.add_reference(decoder.destination(o, t, stmt), writes(t)); }
void Form::src(const ptx::Operand& o, Ty t) { decoder.add_reference(decoder.source(o, t, stmt), reads(t)); }
void Form::dst_128(const ptx::Operand& o) {
  const Ref lo = decoder.destination(o, Ty::b128, stmt);
  for (const Ref half : {lo, lo + 2 * kLanes}) decoder.add_reference(half, writes(Ty::b64));
}
void Form::src_128(const ptx::Operand& o) {
  const Ref lo = decoder.source(o, Ty::b128, stmt);
  for (const Ref half : {lo, lo + 2 * kLanes}) decoder.add_reference(half, reads(Ty::b64));
}
void Form::dst(std::size_t i, Ty t) {
  if (i >= count()) fail(fmt::format("has {} operands, needs more", count()));
  dst(operand(i), t);
}
void Form::src(std::size_t i, Ty t) {
  if (i >= count()) fail(fmt::format("has {} operands, needs more", count()));
  src(operand(i), t);
}
void Form::same_type_operands(std::size_t n) {
  if (count() != n || types.size() != 1)
    fail(fmt::format("has {} operands and {} types, needs {} and 1", count(), types.size(), n));
  dst(0, type());
  for (std::size_t i = 1; i < n; ++i) src(i, type());
}
void Form::special(const SpecialName& s, Ty t) {
  decoder.add_reference(decoder.special(s, bits(t) == 64, stmt), reads(t));
}
void Form::none() { decoder.add_reference(kNoRef); }
void Form::zero() { decoder.add_reference(decoder.constant(0, false)); }
void Form::add_reference_of_carry() { decoder.add_reference(decoder.carry(), {OperandRole::Both, 1}); }
int Form::register_bits(const ptx::Operand& o) const { return decoder.register_bits(o); }
void Form::require_kind(const ptx::Operand& o, Ty t) const { decoder.require_kind(o, t, stmt); }
void Form::fail(const std::string& why) const { decoder.fail(stmt, why); }

void Form::requires_module(std::string_view alternatives) const {
  if (const std::string what = missing(alternatives, decoder.target(), decoder.version()); !what.empty()) fail(what);
}

void Form::address(const ptx::Operand& o) {
  if (o.kind != Kind::Address) fail("expected an address in brackets");
  inst.imm = o.value;
  if (o.has_base) {
    inst.wide_address = register_bits(o) == 64;
    ptx::Operand base = o;
    base.kind = Kind::Reg;
    src(base, inst.wide_address ? Ty::b64 : Ty::b32);
    return;
  }
  none();
  if (o.name.empty()) return;
  const Place p = decoder.find(o, stmt);
  inst.imm += static_cast<std::int64_t>(p.at);
  // A parameter of an expanded function lives in its caller's frame.
  if (inst.space == Space::Param || inst.space == Space::Generic) inst.space = p.space;
}

std::int64_t Form::immediate(std::size_t i) const {
  if (i >= count() || operand(i).kind != Kind::Int) fail(fmt::format("operand {} must be an immediate", i + 1));
  return operand(i).value;
}

void Form::float_modifiers() {
  has("rn");  // as without
  if (has("rz")) inst.round = Round::Zero;
  if (has("rm")) inst.round = Round::Down;
  if (has("rp")) inst.round = Round::Up;
  static constexpr std::pair<std::string_view, std::uint16_t> kFlags[] = {{"ftz", kFtz},
                                                                          {"sat", kSat},
                                                                          {"NaN", kNaN},
                                                                          {"xorsign", kXorSign},
                                                                          {"abs", kAbs},
                                                                          {"relu", kRelu},
                                                                          {"satfinite", kSatFinite}};
  for (const auto& [word, flag] : kFlags)
    if (has(word)) inst.flags |= flag;
}

}  // namespace kiln::rt::sim
