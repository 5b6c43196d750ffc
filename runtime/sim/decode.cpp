#include "runtime/sim/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/sim/classify.h"
#include "runtime/sim/named_value.h"
#include "runtime/sim/report.h"

namespace kiln::rt::sim {
namespace {

using Kind = ptx::Operand::Kind;

// Limits that no compiler's code comes near: of what a thread, a block and a kernel may need.
constexpr std::uint64_t kMostShared = 256 << 10, kMostLocal = 512 << 10, kMostParameters = 32764;
constexpr std::uint32_t kMostRegisterWords = 1 << 21;  // 32 a register of up to 32 bits
constexpr std::size_t kMostInstructions = 1 << 20;     // with the functions expanded
constexpr std::size_t kDeepestCalls = 64, kMostOperands = UINT16_MAX;

std::uint64_t align_up(std::uint64_t v, std::uint64_t a) { return (v + a - 1) / a * a; }

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

void not_pred(Warp& w, const Inst& in) { *w.out<std::uint32_t>(in.ops[0]) = ~w.pred(in.ops[1]); }

struct SpecialName {
  std::string_view name;
  Special which;
};
constexpr SpecialName kSpecials[] = {
    {"%tid.x", Special::TidX},
    {"%tid.y", Special::TidY},
    {"%tid.z", Special::TidZ},
    {"%ntid.x", Special::NtidX},
    {"%ntid.y", Special::NtidY},
    {"%ntid.z", Special::NtidZ},
    {"%ctaid.x", Special::CtaX},
    {"%ctaid.y", Special::CtaY},
    {"%ctaid.z", Special::CtaZ},
    {"%nctaid.x", Special::NctaX},
    {"%nctaid.y", Special::NctaY},
    {"%nctaid.z", Special::NctaZ},
    {"%laneid", Special::LaneId},
    {"%warpid", Special::WarpId},
    {"%nwarpid", Special::NWarpId},
    {"%smid", Special::SmId},
    {"%nsmid", Special::NSmId},
    {"%gridid", Special::GridId},
    {"%lanemask_eq", Special::MaskEq},
    {"%lanemask_lt", Special::MaskLt},
    {"%lanemask_le", Special::MaskLe},
    {"%lanemask_gt", Special::MaskGt},
    {"%lanemask_ge", Special::MaskGe},
    {"%dynamic_smem_size", Special::DynamicSmem},
    {"%total_smem_size", Special::TotalSmem},
    {"%clusterid.x", Special::ClusterX},
    {"%clusterid.y", Special::ClusterY},
    {"%clusterid.z", Special::ClusterZ},
    {"%nclusterid.x", Special::NclusterX},
    {"%nclusterid.y", Special::NclusterY},
    {"%nclusterid.z", Special::NclusterZ},
    {"%cluster_ctaid.x", Special::CtaInClusterX},
    {"%cluster_ctaid.y", Special::CtaInClusterY},
    {"%cluster_ctaid.z", Special::CtaInClusterZ},
    {"%cluster_nctaid.x", Special::NctaInClusterX},
    {"%cluster_nctaid.y", Special::NctaInClusterY},
    {"%cluster_nctaid.z", Special::NctaInClusterZ},
    {"%cluster_ctarank", Special::CtaRank},
    {"%cluster_nctarank", Special::NctaRank},
};

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

std::optional<Special> special_named(std::string_view name) {
  for (const SpecialName& n : kSpecials)
    if (n.name == name) return n.which;
  return std::nullopt;
}

// --- Decoder: variables and registers --------------------------------------------------------------------------------

Decoder::Decoder(std::shared_ptr<const ptx::Module> module, const ptx::Function& entry, Symbols globals)
    : program_(std::make_shared<Program>()), module_(*module), entry_(entry), symbols_(std::move(globals)) {
  program_->module = std::move(module);
  program_->kernel = entry.name;
  program_->reqntid = entry.reqntid;
  program_->maxntid = entry.maxntid;
  program_->maxnreg = entry.maxnreg;
  program_->minnctapersm = entry.minnctapersm;
  program_->cluster = entry.cluster;
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

Ref Decoder::special(std::string_view name, bool wide, const ptx::Stmt& s) {
  const auto known = specials_.find({name, wide});
  if (known != specials_.end()) return known->second;
  if (const auto which = special_named(name)) {
    const Ref slot = new_slot(wide ? Ty::b64 : Ty::b32);
    program_->specials.push_back({*which, slot, wide});
    return specials_[{name, wide}] = slot;
  }
  fail(s, fmt::format("the special register {} is not supported", name));
}

int Decoder::register_bits(const ptx::Operand& o) const {
  const bool reg = o.kind == Kind::Reg || (o.kind == Kind::Address && o.has_base);
  if (!reg) return 0;
  const Ty t = frames_.back()->function->regs[o.reg];
  return t == Ty::pred ? 1 : bits(t) == 64 ? 64 : bits(t) == 128 ? 128 : bits(t);
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

Ref Decoder::source(const ptx::Operand& o, Ty t, const ptx::Stmt& s) {
  const bool wide = bits(t) == 64;
  if (o.negated && o.kind != Kind::Reg) fail(s, "'!' before what is no predicate register");
  if (bits(t) == 128 && o.kind != Kind::Reg) fail(s, "128 bits that are no register");
  switch (o.kind) {
    case Kind::Reg: {
      const Frame& f = *frames_.back();
      const Ty r = f.function->regs[o.reg];
      if (o.negated && t != Ty::pred) fail(s, fmt::format("{} is no predicate, so it has no '!'", o.name));
      if ((r == Ty::pred) != (t == Ty::pred) || (bits(r) == 64) != wide || (bits(r) == 128) != (bits(t) == 128))
        fail(s, fmt::format("register {} has {} bits, the operation needs {}", o.name, bits(r), bits(t)));
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
      if (t == Ty::pred || bits(t) < 32) fail(s, fmt::format("the special register {} has 32 bits or 64", o.name));
      return special(o.name, wide, s);
    case Kind::Symbol: {
      const Place p = find(o, s);
      if (bits(t) < 32 || (p.space == Space::Global && !wide))
        fail(s, fmt::format("the address of {} needs {} bits", o.name, p.space == Space::Global ? 64 : 32));
      return constant(p.at + static_cast<std::uint64_t>(o.value), wide);
    }
    case Kind::Int:
      if (t == Ty::pred) return constant(o.value ? kAllLanes : 0, false);
      if (bits(t) < 32) return constant(static_cast<std::uint64_t>(o.value) & ((1u << bits(t)) - 1), false);
      return constant(static_cast<std::uint64_t>(o.value), wide);
    case Kind::Float32:
      if (is_integer(t) || t == Ty::pred || bits(t) < 32) fail(s, "a float where an integer belongs");
      if (t == Ty::f64)
        return constant(std::bit_cast<std::uint64_t>(
                            static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(o.value)))),
                        true);
      return constant(static_cast<std::uint64_t>(o.value), wide);
    case Kind::Float64:
      if (is_integer(t) || t == Ty::pred || bits(t) < 32) fail(s, "a float where an integer belongs");
      if (t == Ty::f32)
        return constant(std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(o.value))), false);
      return constant(static_cast<std::uint64_t>(o.value), wide);
    case Kind::Address:
    case Kind::Vector:
    case Kind::Text:
    case Kind::Sink: break;
  }
  fail(s, "an operand is of a kind this instruction does not take");
}

// --- Decoder: statements ---------------------------------------------------------------------------------------------

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

std::uint32_t Decoder::label_target(std::string_view label, const ptx::Stmt& s) const {
  const ptx::Function& f = *frames_.back()->function;
  for (std::uint32_t scope = s.scope;; scope = f.scope_parents[scope]) {
    if (const auto it = f.labels.find({scope, label}); it != f.labels.end()) return it->second;
    if (scope == 0) fail(s, fmt::format("unknown label {}", label));
  }
}

void Decoder::jumps(std::string_view label, const ptx::Stmt& s) {
  flow_ = Flow::Jump;
  frames_.back()->fixups.push_back({static_cast<std::uint32_t>(program_->code.size()), label_target(label, s), -1});
}

void Decoder::jumps_by_table(std::string_view table, const ptx::Stmt& s) {
  flow_ = Flow::Table;
  const ptx::Function& f = *frames_.back()->function;
  for (std::uint32_t scope = s.scope;; scope = f.scope_parents[scope]) {
    const auto it = f.branch_tables.find({scope, table});
    if (it == f.branch_tables.end()) {
      if (scope == 0) fail(s, fmt::format("unknown branch table {}", table));
      continue;
    }
    for (std::string_view label : it->second) {
      frames_.back()->fixups.push_back({static_cast<std::uint32_t>(program_->code.size()), label_target(label, s),
                                        static_cast<std::int64_t>(program_->operand_pool.size() + pending_.size())});
      add_reference(0);
    }
    return;
  }
}

void Decoder::exits() { flow_ = Flow::Leave; }

bool Decoder::returns() {
  if (frames_.size() == 1) return exits(), true;
  flow_ = Flow::Jump;
  Frame& f = *frames_.back();
  f.fixups.push_back(
      {static_cast<std::uint32_t>(program_->code.size()), static_cast<std::uint32_t>(f.function->body.size()), -1});
  return false;
}

Handler Decoder::expand_call(Form& form) {
  const ptx::Stmt& s = form.stmt;
  static const std::vector<ptx::Operand> kNothing;
  const bool has_result = !s.operands.empty() && s.operands[0].kind == Kind::Vector;
  const std::size_t name_at = has_result ? 1 : 0;
  const auto& results = has_result ? s.operands[0].parts : kNothing;
  const auto& arguments = s.operands.size() > name_at + 1 ? s.operands[name_at + 1].parts : kNothing;
  if (s.operands.size() <= name_at || s.operands[name_at].kind != Kind::Symbol) fail(s, "an indirect call");
  const std::string_view name = s.operands[name_at].name;
  const ptx::Function* callee = module_.find(name);
  if (!callee) return builtin_function(form, name, results, arguments);
  if (s.guard >= 0) fail(s, "a call under a predicate");
  if (callee->entry) fail(s, fmt::format("{} is a kernel, not a function", name));
  if (frames_.size() == kDeepestCalls) fail(s, fmt::format("more than {} calls in one another", kDeepestCalls));
  for (const Frame* f : frames_)
    if (f->function == callee) fail(s, fmt::format("{} calls itself", callee->name));
  skip_ = true;
  Frame frame;
  const auto bind = [&](const std::vector<ptx::Variable>& formal, const std::vector<ptx::Operand>& actual) {
    if (formal.size() != actual.size())
      fail(s, fmt::format("{} takes {} arguments, the call gives {}", callee->name, formal.size(), actual.size()));
    for (std::size_t i = 0; i < formal.size(); ++i) {
      if (actual[i].kind != Kind::Symbol) fail(s, "an argument that is not a .param variable");
      frame.params[formal[i].name] = find(actual[i], s);
    }
  };
  bind(callee->results, results);
  bind(callee->params, arguments);
  open(frame, *callee);
  body(frame);
  skip_ = true;  // statements of the callee set it for themselves
  return nullptr;
}

void Decoder::finish() {
  Inst leave;
  leave.run = exit_handler();
  append(leave, entry_.body.empty() ? ptx::Stmt{} : entry_.body.back(), {}, Flow::Leave);
  program_->infos.back().stmt = nullptr;
  Program& p = *program_;
  const auto n = static_cast<std::uint32_t>(p.code.size());
  Successors next(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    Inst& in = p.code[i];
    in.ops = p.operand_pool.data() + operand_start_[i];
    if (flows_[i] == Flow::Jump) next[i].push_back(static_cast<std::uint32_t>(in.imm));
    if (flows_[i] == Flow::Table)
      for (std::uint16_t k = 1; k < in.n_ops; ++k) next[i].push_back(static_cast<std::uint32_t>(in.ops[k]));
    if (flows_[i] == Flow::Next || (in.guard >= 0 && i + 1 < n)) next[i].push_back(i + 1);
  }
  const auto meet = reconvergence_points(next);
  if (meet.empty()) throw DeviceError(fmt::format("kernel {}: its branches are too tangled to be analysed", p.kernel));
  for (std::uint32_t i = 0; i < n; ++i) p.code[i].meet = meet[i];
  p.local_bytes = static_cast<std::uint32_t>(align_up(local_at_, 16));
  p.register_words = static_cast<std::uint32_t>(align_up(words_, 2 * kLanes));
  mark_watched();
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
