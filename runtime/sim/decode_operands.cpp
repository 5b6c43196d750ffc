// Decoder: where variables and registers live, and what operands stand for.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/decode_limits.h"
#include "runtime/sim/needs.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

using Kind = ptx::Operand::Kind;

/// Registers of 8 bits are read and written as those of 16.
int slot_bits(Ty t) { return std::max(bits(t), t == Ty::pred ? 1 : 16); }

void not_pred(Warp& w, const Inst& in) { *w.out<std::uint32_t>(in.ops[0]) = ~w.pred(in.ops[1]); }

}  // namespace

Decoder::Decoder(std::shared_ptr<const ptx::Module> module, const ptx::Function& entry, Symbols globals)
    : program_(std::make_shared<Program>()), module_(*module), entry_(entry), symbols_(std::move(globals)) {
  program_->module = std::move(module);
  program_->kernel = entry.name;
  program_->reqntid = entry.reqntid;
  program_->maxntid = entry.maxntid;
  program_->maxnreg = entry.maxnreg;
  program_->minnctapersm = entry.minnctapersm;
  program_->cluster = entry.cluster;
  for (const ptx::Variable& v : module_.variables)
    if (v.space == Space::Const)
      if (const auto at = symbols_.find(v.name); at != symbols_.end())
        program_->const_variables.push_back({at->second.at, at->second.at + v.bytes});
}

std::uint64_t Decoder::reserve(std::uint32_t& at, const ptx::Variable& v, std::uint64_t most, const char* what) const {
  const std::uint64_t begin = align_up(at, v.align);
  if (v.bytes > most || begin + v.bytes > most)
    throw DeviceError(fmt::format("kernel {}: variable {} of {} bytes behind {} others makes more than {} bytes of {}",
                                  entry_.name, v.name, v.bytes, at, most, what));
  at = static_cast<std::uint32_t>(begin + v.bytes);
  return begin;
}

void Decoder::place_shared() {
  std::uint32_t dynamic_align = 16;
  const auto place_one = [&](const ptx::Variable& v) {
    return Place{Space::Shared, reserve(shared_at_, v, kMostShared, "shared memory")};
  };
  for (const ptx::Variable& v : module_.variables) {
    if (v.space != Space::Shared) continue;
    if (v.external) dynamic_align = std::max(dynamic_align, v.align);
    else symbols_[v.name] = place_one(v);
  }
  for (const ptx::Function& f : module_.functions)
    for (const ptx::Variable& v : f.locals)
      if (v.space == Space::Shared && (!f.entry || &f == &entry_)) shared_variables_[&v] = place_one(v);
  program_->shared_bytes = shared_at_ - kSharedBase;
  program_->dynamic_at = static_cast<std::uint32_t>(align_up(shared_at_, dynamic_align));
  for (const ptx::Variable& v : module_.variables)
    if (v.space == Space::Shared && v.external) symbols_[v.name] = {Space::Shared, program_->dynamic_at};
}

void Decoder::place_variable(const ptx::Variable& v, Frame& frame) {
  Place p{v.space, 0};
  if (v.space == Space::Shared) {
    p = shared_variables_.at(&v);  // one object, however often the function is expanded
  } else if (v.space == Space::Local || v.space == Space::Param) {
    p.space = Space::Local;
    p.at = reserve(local_at_, v, kMostLocal, "local memory");
  } else {
    throw DeviceError(fmt::format("kernel {}: variable {} of {} has an unsupported state space", entry_.name, v.name,
                                  frame.function->name));
  }
  frame.locals.push_back(p);
}

Ref Decoder::new_slot(Ty t) {
  if (words_ > kMostRegisterWords)
    throw DeviceError(
        fmt::format("kernel {} needs more than {} registers a thread", entry_.name, kMostRegisterWords / kLanes));
  if (t == Ty::pred) {
    if (pred_free_ == 0) {
      pred_words_ = words_;
      pred_free_ = kLanes;
      words_ += kLanes;
    }
    --pred_free_;
    return static_cast<Ref>(pred_words_++);
  }
  const auto at = static_cast<Ref>(words_);
  words_ += static_cast<std::uint32_t>(std::max(bits(t), 32)) / 32 * kLanes;  // 128 bits: two slots of 64
  return at;
}

Ref Decoder::constant(std::uint64_t value, bool wide) {
  if (!wide) value &= 0xFFFFFFFFu;
  const auto [it, fresh] = constants_.insert({{value, wide}, 0});
  if (fresh) {
    auto& pool = program_->constants;
    it->second = ~static_cast<Ref>(pool.size() * 2);
    pool.insert(pool.end(), wide ? kLanes : kLanes / 2, wide ? value : value << 32 | value);
  }
  return it->second;
}

Ref Decoder::special(const SpecialName& r, bool wide, const ptx::Stmt& s) {
  if (const std::string what = missing(r.needs, module_.target, module_.version); !what.empty())
    fail(s, fmt::format("{} {}", r.name, what));
  if (r.clock) {
    const Ref now = new_slot(wide ? Ty::b64 : Ty::b32);
    Inst inst;
    inst.run = clock_reader(wide);
    inst.size = r.bits_below;
    inst.unknowns = Unknowns::Computes;
    append(inst, s, {now}, Flow::Next);
    program_->operand_uses.back() = {OperandRole::Written, wide ? std::uint8_t{64} : std::uint8_t{32}};
    return now;
  }
  const auto [known, fresh] = specials_.insert({{r.which, wide}, 0});
  if (fresh) {
    known->second = new_slot(wide ? Ty::b64 : Ty::b32);
    program_->specials.push_back({r.which, known->second, wide});
  }
  return known->second;
}

int Decoder::register_bits(const ptx::Operand& o) const {
  const bool reg = o.kind == Kind::Reg || (o.kind == Kind::Address && o.has_base);
  if (!reg) return 0;
  const Ty t = frames_.back()->function->regs[o.reg];
  return t == Ty::pred ? 1 : bits(t) == 64 ? 64 : bits(t) == 128 ? 128 : bits(t);
}

void Decoder::require_kind(const ptx::Operand& o, Ty t, const ptx::Stmt& s) const {
  if (o.kind != Kind::Reg) return;
  const Ty r = frames_.back()->function->regs[o.reg];
  if ((kind(r) == TyKind::Float && is_integer(t)) || (is_integer(r) && kind(t) == TyKind::Float))
    fail(s, fmt::format("register {} is of {}, the operation needs {}", o.name, name(r), name(t)));
}

Place Decoder::find(const ptx::Operand& o, const ptx::Stmt& s) const {
  const Frame& f = *frames_.back();
  if (o.local >= 0) return f.locals[static_cast<std::size_t>(o.local)];
  if (const auto it = f.params.find(o.name); it != f.params.end()) return it->second;
  if (const auto it = symbols_.find(o.name); it != symbols_.end()) return it->second;
  if (module_.find(o.name)) fail(s, fmt::format("{} is a function; its address is for an indirect call", o.name));
  fail(s, fmt::format("unknown name '{}'", o.name));
}

Ref Decoder::destination(const ptx::Operand& o, Ty t, const ptx::Stmt& s) {
  if (o.kind == Kind::Sink && bits(t) == 128) fail(s, "128 bits that are no register");
  if (o.kind == Kind::Sink) return t == Ty::pred ? sink_pred_ : bits(t) > 32 ? sink64_ : sink32_;
  if (o.kind != Kind::Reg || o.negated) fail(s, "the result must be a register");
  return source(o, t, s);
}

/// A single 0f… is of f32 or 32 bits, any other float of f64 or 64 bits; each may be the other float.
Ref Decoder::float_constant(const ptx::Operand& o, Ty t, const ptx::Stmt& s) {
  const bool single = o.kind == Kind::Float32;
  if (t != Ty::f32 && t != Ty::f64 && t != (single ? Ty::b32 : Ty::b64))
    fail(s, fmt::format("a float of {} bits where {} belongs", single ? 32 : 64, name(t)));
  auto value = static_cast<std::uint64_t>(o.value);
  if (single && t == Ty::f64)
    value = std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value))));
  if (!single && t == Ty::f32) value = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(value)));
  return constant(value, bits(t) == 64);
}

Ref Decoder::source(const ptx::Operand& o, Ty t, const ptx::Stmt& s) {
  const bool wide = bits(t) == 64;
  if (o.negated && o.kind != Kind::Reg) fail(s, "'!' before what is no predicate register");
  if (bits(t) == 128 && o.kind != Kind::Reg) fail(s, "128 bits that are no register");
  switch (o.kind) {
    case Kind::Reg: {
      const Frame& f = *frames_.back();
      const Ty r = f.function->regs[o.reg];
      if (o.negated && t != Ty::pred) fail(s, fmt::format("{} is no predicate, so it has no '!'", o.name));
      if (slot_bits(r) != slot_bits(t))
        fail(s, fmt::format("register {} has {} bits, the operation needs {}", o.name, bits(r), bits(t)));
      require_kind(o, t, s);
      if (!o.negated) return f.slots[o.reg];
      const Ref flipped = new_slot(Ty::pred);
      Inst inst;
      inst.run = not_pred;
      inst.unknowns = Unknowns::Computes;
      append(inst, s, {flipped, f.slots[o.reg]}, Flow::Next);
      program_->operand_uses.end()[-2] = {OperandRole::Written, 1};
      program_->operand_uses.end()[-1] = {OperandRole::Read, 1};
      return flipped;
    }
    case Kind::Special:
      if (const auto found = find_special(o.name)) return special(*found, wide, s);
      fail(s, fmt::format("the special register {} is not supported", o.name));
    case Kind::Symbol: {
      const Place p = find(o, s);
      if (bits(t) < 32 || (p.space == Space::Global && !wide))
        fail(s, fmt::format("the address of {} needs {} bits", o.name, p.space == Space::Global ? 64 : 32));
      return constant(p.at + static_cast<std::uint64_t>(o.value), wide);
    }
    case Kind::Int:
      if (kind(t) == TyKind::Float) fail(s, fmt::format("the integer {0} where a float belongs: write {0}.0", o.value));
      if (t == Ty::pred) return constant(o.value ? kAllLanes : 0, false);
      if (bits(t) < 32) return constant(static_cast<std::uint64_t>(o.value) & ((1u << bits(t)) - 1), false);
      return constant(static_cast<std::uint64_t>(o.value), wide);
    case Kind::Float32:
    case Kind::Float64: return float_constant(o, t, s);
    case Kind::Address:
    case Kind::Vector:
    case Kind::Text:
    case Kind::Sink: break;
  }
  fail(s, "an operand is of a kind this instruction does not take");
}

}  // namespace kiln::rt::sim
