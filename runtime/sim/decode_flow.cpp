// Decoder: jumps, calls of functions, and where paths that part meet again.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/decode_limits.h"

namespace kiln::rt::sim {
namespace {

using Kind = ptx::Operand::Kind;

}  // namespace

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
  const auto around = static_cast<std::uint32_t>(program_->code.size());
  if (s.guard >= 0) {  // threads without the predicate jump over the body
    Inst jump = form.inst;
    jump.run = branch_handler();
    jump.guard_flip ^= kAllLanes;
    append(jump, s, {}, Flow::Jump);
  }
  open(frame, *callee);
  body(frame);
  if (s.guard >= 0) program_->code[around].imm = static_cast<std::int64_t>(program_->code.size());
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

}  // namespace kiln::rt::sim
