#include "runtime/sim/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/sim/classify.h"
#include "runtime/sim/decode_limits.h"
#include "runtime/sim/named_value.h"
#include "runtime/sim/needs.h"
#include "runtime/sim/report.h"

namespace kiln::rt::sim {
namespace {

using Kind = ptx::Operand::Kind;

/// Splits "ld.global.v4.b32" at dots; "shared::cta" stays one word.
std::vector<std::string_view> words(std::string_view opcode) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at <= opcode.size();) {
    const std::size_t dot = std::min(opcode.find('.', at), opcode.size());
    out.push_back(opcode.substr(at, dot - at));
    at = dot + 1;
  }
  return out;
}

bool contains_word(std::string_view list, std::string_view word) {
  if (word.empty()) return false;  // between two dots
  for (std::size_t at = 0; (at = list.find(word, at)) != std::string_view::npos; at += word.size()) {
    const bool begins = at == 0 || list[at - 1] == ' ',
               ends = at + word.size() == list.size() || list[at + word.size()] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

Ty widened(Ty t) {
  switch (t) {
    case Ty::u16: return Ty::u32;
    case Ty::s16: return Ty::s32;
    case Ty::u32: return Ty::u64;
    case Ty::s32: return Ty::s64;
    default: return Ty::none;
  }
}

constexpr Row kRows[] = {
#define KILN_PTX(name, modifiers, operands, maker) {name, modifiers, operands, maker},
#include "runtime/sim/insts.def"
};

/// Instructions whose makers ask for each modifier that they know; a word nobody asked for does not go with the others.
bool asks_for_all(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "abs",  "add",  "addc",     "and",  "bfe",   "bfi",   "bfind", "bmsk",  "brev",  "clz", "cnot",     "copysign",
      "cos",  "cvt",  "cvt.pack", "cvta", "div",   "dp2a",  "dp4a",  "ex2",   "fma",   "fns", "isspacep", "lg2",
      "lop3", "mad",  "mad24",    "madc", "max",   "min",   "mov",   "mul",   "mul24", "neg", "not",      "or",
      "popc", "prmt", "rcp",      "rem",  "rsqrt", "sad",   "selp",  "set",   "setp",  "shf", "shl",      "shr",
      "sin",  "slct", "sqrt",     "sub",  "subc",  "szext", "tanh",  "testp", "xor"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

/// The row whose name is the longest prefix of the opcode's words.
const Row* find_row(std::string_view opcode) {
  const Row* best = nullptr;
  for (const Row& r : kRows) {
    if (!opcode.starts_with(r.name) || (opcode.size() > r.name.size() && opcode[r.name.size()] != '.')) continue;
    if (!best || r.name.size() > best->name.size()) best = &r;
  }
  return best;
}

}  // namespace

void Decoder::fail(const ptx::Stmt& s, const std::string& why) const {
  throw DeviceError(fmt::format("{}: kernel {}: unsupported instruction: {} (ptx line {}: {})",
                                place(*program_, {.text = s.text, .line = s.line, .loc = s.loc}), entry_.name, why,
                                s.line, s.text));
}

void Decoder::open(Frame& frame, const ptx::Function& f) {
  frame.function = &f;
  frame.slots.reserve(f.regs.size());
  for (Ty t : f.regs) frame.slots.push_back(new_slot(t));
  for (const ptx::Variable& v : f.locals) place_variable(v, frame);
}

void Decoder::body(Frame& frame) {
  frames_.push_back(&frame);
  for (const ptx::Stmt& s : frame.function->body) {
    frame.pc_of.push_back(static_cast<std::uint32_t>(program_->code.size()));
    statement(s);
  }
  frame.pc_of.push_back(static_cast<std::uint32_t>(program_->code.size()));
  for (const Frame::Fixup& x : frame.fixups) {
    const std::uint32_t target = frame.pc_of[x.stmt];
    if (x.operand < 0) program_->code[x.inst].imm = target;
    else program_->operand_pool[static_cast<std::size_t>(x.operand)] = static_cast<Ref>(target);
  }
  keep_expansion(frame);
  frames_.pop_back();
}

void Decoder::keep_expansion(Frame& frame) {
  Expansion e{frame.function, frame.pc_of.front(), frame.pc_of.back(), std::move(frame.slots), std::move(frame.params)};
  for (std::size_t i = 0; i < frame.locals.size(); ++i) e.variables[frame.function->locals[i].name] = frame.locals[i];
  program_->expansions.push_back(std::move(e));
}

void Decoder::statement(const ptx::Stmt& s) {
  Inst inst;
  flow_ = Flow::Next;
  skip_ = false;
  if (s.guard >= 0) {
    inst.guard = frames_.back()->slots[static_cast<std::size_t>(s.guard)];
    inst.guard_flip = s.guard_negated ? kAllLanes : 0;
  }
  pending_.clear();
  pending_uses_.clear();
  Form form{{}, {}, {}, s, *this, inst};
  inst.run = make(form);
  if (skip_) return;
  if (!inst.run) fail(s, "this form is not supported");
  append(inst, s, pending_, flow_);
  std::copy(pending_uses_.rbegin(), pending_uses_.rend(), program_->operand_uses.rbegin());
  InstInfo& info = program_->infos.back();
  info.kind = classify(form);
  program_->code.back().unknowns = unknowns(form, info.kind);
  info.multiplied = multiplied(form);
  info.packed = std::any_of(form.types.begin(), form.types.end(), [](Ty t) { return kind(t) == TyKind::Packed; });
  info.implicit = form.name == kNamedValue;
}

Handler Decoder::make(Form& form) {
  const std::string_view opcode = form.stmt.opcode;
  const Row* row = find_row(opcode);
  if (!row) fail(form.stmt, fmt::format("'{}' is not known", words(opcode)[0]));
  form.name = row->name;
  if (opcode.size() > row->name.size()) {
    for (std::string_view word : words(opcode.substr(row->name.size() + 1))) {
      if (contains_word(row->modifiers, word)) form.mods.push_back(word);
      else if (const Ty t = type_named(word); t != Ty::none) form.types.push_back(t);
      else if (row->modifiers == "*") form.mods.push_back(word);
      else fail(form.stmt, fmt::format("{} has no modifier '.{}' here", row->name, word));
    }
  }
  check_needs(form);
  check_specials(form);
  check_parts(form);
  if (row->operands != "*") operands_by_pattern(form, row->operands);
  const Handler handler = row->make(form);
  if (handler && asks_for_all(row->name))
    if (const std::string_view word = form.unasked(); !word.empty())
      fail(form.stmt, fmt::format("{} has no modifier '.{}' with these types", row->name, word));
  return handler;
}

/// "d|p" and "[map, {x, y}]" are only of the instructions that read the second part.
void Decoder::check_parts(const Form& form) const {
  for (std::size_t i = 0; i < form.stmt.operands.size(); ++i) {
    const ptx::Operand& o = form.stmt.operands[i];
    if (o.kind == Kind::Vector || o.parts.empty()) continue;
    const bool ok = o.kind == Kind::Address
                        ? form.name.find("bulk") != std::string_view::npos
                        : i == 0 && (form.name == "setp" || form.name == "shfl.sync" || form.name == "match.all.sync" ||
                                     form.name == "elect.sync" || form.name == "lop3");
    if (!ok) fail(form.stmt, "an operand has a second part, which this instruction does not take");
  }
}

/// "d0 0 0": destination and two sources of the first type; 1, 2: of the second, third; W: of the first widened;
/// u: u32; p: predicate; dp: predicate destination; i: left to the maker.
void Decoder::operands_by_pattern(Form& form, std::string_view pattern) {
  std::size_t i = 0, types = 0;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const bool dest = pattern[at] == 'd';
    at += dest;
    const char c = pattern[at++];
    if (c >= '0' && c <= '2') types = std::max<std::size_t>(types, static_cast<std::size_t>(c - '0') + 1);
    if (c == 'i') {
      ++i;
      continue;
    }
    const Ty t = c == 'W'   ? widened(form.type())
                 : c == 'u' ? Ty::u32
                 : c == 'p' ? Ty::pred
                            : form.type(static_cast<std::size_t>(c - '0'));
    if (t == Ty::none) fail(form.stmt, "a type is missing");
    if (i < form.count() && !form.operand(i).parts.empty())
      fail(form.stmt, "an operand is of a kind this instruction does not take");
    if (dest) form.dst(i++, t);
    else form.src(i++, t);
  }
  if (i != form.count()) fail(form.stmt, fmt::format("has {} operands, needs {}", form.count(), i));
  if (types != form.types.size() && !(types == 0 && form.types.size() <= 1))
    fail(form.stmt, fmt::format("has {} types, needs {}", form.types.size(), types));
}

void Decoder::append(Inst inst, const ptx::Stmt& s, const std::vector<Ref>& operands, Flow flow) {
  auto& pool = program_->operand_pool;
  if (program_->code.size() == kMostInstructions)
    fail(s, fmt::format("more than {} instructions, functions expanded", kMostInstructions));
  if (operands.size() > kMostOperands)
    fail(s, fmt::format("has {} operands; at most {}", operands.size(), kMostOperands));
  inst.info = static_cast<std::uint32_t>(program_->infos.size());
  inst.n_ops = static_cast<std::uint16_t>(operands.size());
  inst.control = flow != Flow::Next;
  program_->infos.push_back({.text = s.text, .line = s.line, .loc = s.loc, .stmt = s.opcode.empty() ? nullptr : &s});
  program_->code.push_back(inst);
  flows_.push_back(flow);
  operand_start_.push_back(pool.size());
  pool.insert(pool.end(), operands.begin(), operands.end());
  program_->operand_uses.resize(pool.size());
}

void Decoder::watch(const std::vector<ptx::Operand>& registers) {
  for (const ptx::Operand& o : registers)
    if (o.kind == Kind::Reg) watched_[frames_.back()->slots[o.reg]] = o.name;
  wgmmas_.push_back(static_cast<std::uint32_t>(program_->code.size()));
}

void Decoder::mark_watched() {
  if (watched_.empty()) return;
  Program& p = *program_;
  p.watch_numbers.assign(p.register_words / kLanes, -1);
  for (const auto& [slot, name] : watched_) {
    p.watch_numbers[static_cast<std::size_t>(slot) / kLanes] = static_cast<std::int32_t>(p.watched.size());
    p.watched.push_back(name);
  }
  for (Inst& in : p.code)
    for (std::size_t i = 0; i < in.n_ops; ++i) in.watched |= p.watch_number(in, i) >= 0;
  for (const std::uint32_t i : wgmmas_) p.code[i].watched = false;
}

std::shared_ptr<const Program> Decoder::run() {
  place_shared();
  carry_ = new_slot(Ty::pred);
  sink_pred_ = new_slot(Ty::pred);
  sink64_ = new_slot(Ty::b64);
  sink32_ = new_slot(Ty::b32);
  Frame frame;
  std::uint64_t at = 0;
  for (const ptx::Variable& v : entry_.params) {
    at = align_up(at, v.align);
    frame.params[v.name] = {Space::Param, at};
    at += std::min(v.bytes, kMostParameters + 1);
    if (at > kMostParameters)
      throw DeviceError(fmt::format("kernel {}: parameter {} of {} bytes makes more than {} bytes of parameters",
                                    entry_.name, v.name, v.bytes, kMostParameters));
  }
  program_->param_bytes = static_cast<std::uint32_t>(at);
  open(frame, entry_);
  body(frame);
  program_->symbols = symbols_;
  finish();
  return program_;
}

std::shared_ptr<const Program> decode(std::shared_ptr<const ptx::Module> module, const ptx::Function& entry,
                                      Symbols globals) {
  return Decoder(std::move(module), entry, std::move(globals)).run();
}

}  // namespace kiln::rt::sim
