// What a debugger reads off a program: places of breakpoints, addresses of accesses.
#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/sim/debug_session.h"

namespace kiln::rt::sim {
namespace {

/// Whether the last parts of the path are `name`.
bool is_called(std::string_view path, std::string_view name) {
  if (!path.ends_with(name)) return false;
  return path.size() == name.size() || path[path.size() - name.size() - 1] == '/';
}

/// Instructions that something jumps to, or that follow a jump.
std::vector<bool> stretches(const Program& p) {
  std::vector<bool> first(p.code.size() + 1);
  first[0] = true;
  for (std::uint32_t i = 0; i < p.code.size(); ++i) {
    const Inst& in = p.code[i];
    if (!in.control) continue;
    first[i + 1] = true;
    if (in.imm >= 0 && static_cast<std::uint64_t>(in.imm) < p.code.size())
      first[static_cast<std::size_t>(in.imm)] = true;
    for (std::uint16_t k = 1; k < in.n_ops; ++k)
      if (in.ops[k] >= 0 && static_cast<std::size_t>(in.ops[k]) < p.code.size())
        first[static_cast<std::size_t>(in.ops[k])] = true;
  }
  return first;
}

}  // namespace

CodeMap::CodeMap(const Program& program) : program_(program), begins_(program.code.size()) {
  const std::vector<bool> first = stretches(program);
  std::vector<Line> seen;                                          // in this stretch
  std::vector<std::pair<std::uint32_t, std::vector<Line>>> calls;  // where they end; what was seen before them
  for (std::uint32_t pc = 0; pc < program.code.size(); ++pc) {
    if (first[pc]) seen.clear();
    // A line goes on behind the call that it makes.
    for (; !calls.empty() && calls.back().first == pc; calls.pop_back()) seen = std::move(calls.back().second);
    for (auto e = program.expansions.rbegin(); e != program.expansions.rend(); ++e)
      if (e->begin == pc && e->end != pc && pc != 0) calls.push_back({e->end, std::exchange(seen, {})});
    const Line line = line_of(program.infos[program.code[pc].info]);
    if (line.line == 0 || std::find(seen.begin(), seen.end(), line) != seen.end()) continue;
    seen.push_back(line);
    begins_[pc] = true;
  }
}

std::vector<std::uint32_t> CodeMap::places(const Breakpoint& b) const {
  if (b.kind == Breakpoint::Kind::Line) return line_places(b);
  std::vector<std::uint32_t> out;
  std::uint32_t best = UINT32_MAX;
  for (std::uint32_t pc = 0; pc < program_.code.size(); ++pc) {
    const InstInfo& i = program_.infos[program_.code[pc].info];
    if (!i.stmt || i.line < b.line || i.line > best) continue;
    if (i.line < best) out.clear();
    // A function may have been expanded several times; of one statement's instructions only the first counts.
    if (out.empty() || pc != out.back() + 1) out.push_back(pc);
    best = i.line;
  }
  return out;
}

std::vector<std::uint32_t> CodeMap::line_places(const Breakpoint& b) const {
  const auto matches = [&](Line l) {
    const auto file = program_.module->files.find(l.file);
    return l.line != 0 && file != program_.module->files.end() && is_called(file->second, b.name);
  };
  std::uint32_t line = UINT32_MAX;
  bool inside = false;  // some code of the file stands at this line or above it
  for (const Inst& in : program_.code) {
    const Line l = line_of(program_.infos[in.info]);
    if (!matches(l)) continue;
    inside |= l.line <= b.line;
    if (l.line >= b.line) line = std::min(line, l.line);
  }
  std::vector<std::uint32_t> out;
  if (!inside || line == UINT32_MAX) return out;
  for (std::uint32_t pc = 0; pc < program_.code.size(); ++pc) {
    const Line l = line_of(program_.infos[program_.code[pc].info]);
    if (begins_[pc] && l.line == line && matches(l)) out.push_back(pc);
  }
  return out;
}

namespace {

/// The operand in brackets, of the instructions whose only one is the address of what they read or write.
const ptx::Operand* address_operand(const ptx::Stmt& s) {
  for (const ptx::Operand& o : s.operands)
    if (o.kind == ptx::Operand::Kind::Address) return &o;
  return nullptr;
}

/// A generic address is taken apart; a shared one gets the block it belongs to.
bool resolve(const Warp& w, Space space, std::uint64_t address, Touch& t, int lane) {
  const auto l = static_cast<std::size_t>(lane);
  if (space == Space::Generic) {
    const std::uint64_t window = address >> 56;
    space = window == kSharedWindow >> 56  ? Space::Cluster
            : window == kLocalWindow >> 56 ? Space::Local
            : window == kParamWindow >> 56 ? Space::Param
                                           : Space::Global;
    if (space != Space::Global) address &= (std::uint64_t{1} << 56) - 1;
  }
  debug::Space known = debug::Space::Global;
  t.block[l] = nullptr;
  if (space == Space::Shared || space == Space::Cluster) {
    known = debug::Space::Shared;
    const std::uint64_t named = space == Space::Cluster ? address >> kRankShift : 0;
    const auto& blocks = w.block->cluster->blocks;
    t.block[l] = named == 0 ? w.block : named <= blocks.size() ? &blocks[named - 1] : nullptr;
    address &= space == Space::Cluster ? kInBlock : ~std::uint64_t{0};
  } else if (space == Space::Local) {
    known = debug::Space::Local;
  } else if (space == Space::Param) {
    known = debug::Space::Param;
  }
  t.address[l] = address;
  return known == t.space;
}

}  // namespace

const Expansion* expansion_at(const Program& p, std::uint32_t pc) {
  for (const Expansion& e : p.expansions)
    if (e.begin <= pc && pc < e.end) return &e;
  return nullptr;
}

std::vector<Touch> touches(const Warp& w, const Inst& in) {
  const Program& p = w.block->launch->program;
  const ptx::Stmt* s = p.infos[in.info].stmt;
  if (!s || in.size == 0) return {};
  const std::string_view word = s->opcode.substr(0, s->opcode.find('.'));
  const bool atomic = word == "atom" || word == "red";
  if (word != "ld" && word != "st" && !atomic) return {};
  const ptx::Operand* o = address_operand(*s);
  const Expansion* e = expansion_at(p, w.pc);
  if (!o || !e) return {};
  const Ref base = o->has_base ? e->slots[o->reg] : kNoRef;
  std::vector<Touch> out;
  for (const debug::Space space : {debug::Space::Global, debug::Space::Shared}) {
    Touch t;
    t.space = space;
    t.reads = word == "ld" || atomic;
    t.writes = word != "ld";
    t.bytes = std::uint32_t{in.size} * std::max<std::uint32_t>(1, in.count);
    for (std::uint32_t m = w.mask; m; m &= m - 1) {
      const int l = std::countr_zero(m);
      std::uint64_t a = static_cast<std::uint64_t>(in.imm);
      if (base != kNoRef) {
        const std::uint64_t b = in.wide_address ? w.in<std::uint64_t>(base)[l] : w.in<std::uint32_t>(base)[l];
        a = in.wide_address ? a + b : std::uint32_t(a + b);
      }
      if (resolve(w, in.space, a, t, l)) t.lanes |= 1u << l;
    }
    if (t.lanes) out.push_back(t);
  }
  return out;
}

}  // namespace kiln::rt::sim
