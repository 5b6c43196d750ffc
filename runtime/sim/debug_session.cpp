#include "runtime/sim/debug_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/sim/report.h"

namespace kiln::rt::sim {
namespace {

using debug::Reason;
using debug::Resume;

bool fulfils(const Warp& w, const debug::Condition& c, std::uint32_t lanes) {
  if (c.block && *c.block != w.block->id) return false;
  if (c.warp && *c.warp != w.index) return false;
  return !c.lane || (lanes >> *c.lane & 1) != 0;
}

/// Bytes in memory order, as hexadecimal words of up to four.
std::string hex(const std::vector<std::byte>& bytes) {
  std::string out;
  const std::size_t word = bytes.size() % 4 == 0 ? 4 : 1, shown = std::min<std::size_t>(bytes.size(), 32);
  for (std::size_t at = 0; at < shown; at += word) {
    std::uint64_t v = 0;
    for (std::size_t i = word; i-- > 0;) v = v << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
    out += fmt::format("{}{:0{}x}", at ? " " : "", v, 2 * word);
  }
  return bytes.size() > shown ? out + " …" : out;
}

}  // namespace

// --- breakpoints -----------------------------------------------------------------------------------------------------

int DebugSession::add(Breakpoint b) {
  b.number = ++last_number_;
  breakpoints_.push_back(std::move(b));
  const Breakpoint& own = breakpoints_.back();
  if (launch_) {
    map_breakpoints();
    if (own.kind == Breakpoint::Kind::Watch) watched_.push_back({own.number, {}});
    start_watches();
  }
  return own.number;
}

void DebugSession::remove(int number) {
  if (!breakpoint(number)) throw UserError(fmt::format("there is no breakpoint {}", number));
  std::erase_if(breakpoints_, [&](const Breakpoint& b) { return b.number == number; });
  std::erase_if(watched_, [&](const Watched& w) { return w.number == number; });
  std::erase(entry_, number);
  if (launch_) map_breakpoints();
}

const Breakpoint* DebugSession::breakpoint(int number) const {
  for (const Breakpoint& b : breakpoints_)
    if (b.number == number) return &b;
  return nullptr;
}

void DebugSession::map_breakpoints() {
  at_.clear();
  for (const Breakpoint& b : breakpoints_) {
    if (b.kind != Breakpoint::Kind::Line && b.kind != Breakpoint::Kind::Ptx) continue;
    for (std::uint32_t pc : map_->places(b)) {
      at_.resize(launch_->program.code.size());
      at_[pc].push_back(b.number);
    }
  }
}

std::string DebugSession::lacks_code_of(const Breakpoint& b) const {
  const bool place = b.kind == Breakpoint::Kind::Line || b.kind == Breakpoint::Kind::Ptx;
  if (!launch_ || !place || !map_->places(b).empty()) return {};
  return std::string(launch_->program.kernel);
}

const Breakpoint* DebugSession::breakpoint_at(const Warp& w) const {
  if (!at_.empty())
    for (int number : at_[w.pc])
      if (const Breakpoint* b = breakpoint(number); fulfils(w, b->condition, w.active)) return b;
  for (int number : entry_)
    if (const Breakpoint* b = breakpoint(number); fulfils(w, b->condition, w.active)) return b;
  return nullptr;
}

// --- watches ---------------------------------------------------------------------------------------------------------

const std::byte* DebugSession::watched_bytes(const Breakpoint& b, Block* block) const {
  if (b.space == debug::Space::Shared) {
    const bool inside = b.address <= block->shared_end() && b.bytes <= block->shared_end() - b.address;
    return inside ? block->shared_bytes() + b.address : nullptr;
  }
  const bool live = launch_->heap.find(b.address, b.bytes) < launch_->heap.live.size();
  return live ? reinterpret_cast<const std::byte*>(b.address) : nullptr;
}

/// Keeps what is there now of each watch and block that has nothing yet.
void DebugSession::start_watches() {
  const auto keep = [&](Watched& w, const Breakpoint& b, Block* block) {
    const std::byte* now = watched_bytes(b, block);
    for (const Watched::Copy& c : w.copies)
      if (c.block == block) return;
    if (now) w.copies.push_back({block, {now, now + b.bytes}});
  };
  for (Watched& w : watched_) {
    const Breakpoint& b = *breakpoint(w.number);
    if (b.space == debug::Space::Global) {
      keep(w, b, nullptr);
      continue;
    }
    for (Cluster* c : clusters_)
      for (Block& block : c->blocks) keep(w, b, &block);
  }
}

/// Which watched ranges the instruction is about to access, and for which lanes.
void DebugSession::note_accesses(const Warp& w, const Inst& in) {
  accesses_.clear();
  for (const Touch& t : touches(w, in)) {
    for (const Watched& watched : watched_) {
      const Breakpoint& b = *breakpoint(watched.number);
      if (b.space != t.space) continue;
      for (std::uint32_t m = t.lanes; m; m &= m - 1) {
        const auto l = static_cast<std::size_t>(std::countr_zero(m));
        if (t.address[l] < b.address + b.bytes && b.address < t.address[l] + t.bytes)
          note_access(b.number, t, t.block[l], 1u << l);
      }
    }
  }
}

void DebugSession::note_access(int number, const Touch& t, const Block* block, std::uint32_t lane) {
  for (Access& a : accesses_) {
    if (a.number != number || a.block != block) continue;
    a.lanes |= lane;
    return;
  }
  accesses_.push_back({number, lane, block, t.reads, t.writes});
}

/// Stops for each watch whose range the instruction accessed; null: something between two instructions did.
void DebugSession::check_watches(Warp& w, const Inst* in) {
  std::vector<Hit> hits;  // first: a handler may add and remove watches
  for (Watched& watched : watched_)
    for (Watched::Copy& copy : watched.copies)
      if (auto hit = check_watch(w, *breakpoint(watched.number), copy)) hits.push_back(std::move(*hit));
  accesses_.clear();
  const std::uint32_t pc = in ? static_cast<std::uint32_t>(in - launch_->program.code.data()) : w.pc;
  for (Hit& h : hits) {
    if (!in) h.what += " by an asynchronous operation";
    if (!detached_)
      stop(w, pc, Reason::Watch, std::move(h.what), h.number, std::move(h.old), std::move(h.now), h.lanes);
  }
}

/// Brings the copy up to date.
std::optional<DebugSession::Hit> DebugSession::check_watch(const Warp& w, const Breakpoint& b, Watched::Copy& copy) {
  const std::byte* now = watched_bytes(b, copy.block);
  const bool changed = std::memcmp(copy.bytes.data(), now, b.bytes) != 0;
  Hit hit{b.number, {}, copy.bytes, {}, 0};
  bool reads = false, writes = changed;
  for (const Access& a : accesses_) {
    if (a.number != b.number || a.block != copy.block) continue;
    hit.lanes |= a.lanes;
    reads |= a.reads;
    writes |= a.writes;
  }
  if (changed) copy.bytes.assign(now, now + b.bytes);
  const bool wanted = (writes && b.on != debug::On::Read) || (reads && b.on != debug::On::Write);
  if (!wanted || !fulfils(w, b.condition, hit.lanes ? hit.lanes : w.active)) return std::nullopt;
  hit.now = copy.bytes;
  hit.what = fmt::format("watch {}: {} bytes at 0x{:x} of {} memory ", b.number, b.bytes, b.address,
                         copy.block ? "shared" : "global");
  if (changed) hit.what += fmt::format("changed from {} to {}", hex(hit.old), hex(hit.now));
  else hit.what += fmt::format("{}: {}", writes ? "written with what was there" : "read", hex(hit.now));
  return hit;
}

// --- variables -------------------------------------------------------------------------------------------------------

void DebugSession::read_names() {
  const Program& p = launch_->program;
  for (std::uint32_t pc = 0; pc < p.code.size(); ++pc)
    if (const InstInfo& i = p.infos[p.code[pc].info]; names_value(i))
      if (auto v = parse_named_value(i.stmt->operands[0].name)) named_.emplace(pc, std::move(*v));
}

void DebugSession::keep_value(const Warp& w, const Inst& in, std::uint32_t pc) {
  const auto named = named_.find(pc);
  if (named == named_.end() || w.mask == 0) return;
  Past& past = past_[&w];
  Seen& seen = past.values[named->second.name];
  seen = {pc, ++past.turns[pc], w.mask, {}};
  seen.registers.resize(in.n_ops);
  const std::vector<ptx::Operand>& operands = launch_->program.infos[in.info].stmt->operands[1].parts;
  for (std::size_t r = 0; r < seen.registers.size(); ++r) {
    const Ref slot = in.ops[r];
    if (slot == kNoRef) continue;
    const bool reg = operands[r].kind == ptx::Operand::Kind::Reg;
    const Ty type = reg ? expansion_at(launch_->program, pc)->function->regs[operands[r].reg] : Ty::b64;
    for (std::size_t l = 0; l < kLanes; ++l) {
      std::uint64_t& word = seen.registers[r][l];
      if (type == Ty::pred) word = w.pred(slot) >> l & 1;
      else word = bits(type) == 64 ? w.in<std::uint64_t>(slot)[l] : w.in<std::uint32_t>(slot)[l];
    }
  }
}

const Seen* DebugSession::seen(const Warp& w, const std::string& name) const {
  const auto past = past_.find(&w);
  if (past == past_.end()) return nullptr;
  const auto v = past->second.values.find(name);
  return v == past->second.values.end() ? nullptr : &v->second;
}

// --- the launch ------------------------------------------------------------------------------------------------------

void DebugSession::begin(const Launch& launch, const KernelImage& image) {
  launch_ = &launch;
  image_ = &image;
  aborted_ = false;
  map_.emplace(launch.program);
  map_breakpoints();
  read_names();
  entry_.clear();
  for (const Breakpoint& b : breakpoints_) {
    if (b.kind == Breakpoint::Kind::Kernel && (b.name.empty() || b.name == launch.program.kernel))
      entry_.push_back(b.number);
    if (b.kind == Breakpoint::Kind::Watch) watched_.push_back({b.number, {}});
  }
  start_watches();
}

void DebugSession::end() noexcept {
  launch_ = nullptr;
  image_ = nullptr;
  map_.reset();
  named_.clear();
  at_.clear();
  watched_.clear();
  clusters_.clear();
  past_.clear();
  going_ = {};
  current_ = nullptr;
  found_.clear();
}

void DebugSession::started(Cluster& c) {
  if (std::find(clusters_.begin(), clusters_.end(), &c) == clusters_.end()) clusters_.push_back(&c);
  for (Block& b : c.blocks) {
    for (const Warp& w : b.warps) past_[&w] = {};
    for (Watched& w : watched_) std::erase_if(w.copies, [&](const Watched::Copy& old) { return old.block == &b; });
  }
  if (!watched_.empty()) start_watches();
}

std::vector<Block*> DebugSession::resident() const {
  std::vector<Block*> out;
  for (Cluster* c : clusters_)
    for (Block& b : c->blocks)
      if (!b.done || (current_ && current_->block == &b)) out.push_back(&b);
  return out;
}

bool DebugSession::steps_to(const Warp& w) const {
  if (&w != going_.warp) return false;
  if (going_.how == Resume::StepInstruction) return !named_.contains(w.pc);  // which the device does not have
  return going_.how == Resume::StepLine && map_->begins_line(w.pc) &&
         !(line_of(launch_->program.infos[launch_->program.code[w.pc].info]) == going_.line);
}

bool DebugSession::before(Warp& w, const Inst& in) {
  current_ = &w;
  if (detached_) return true;
  if (!found_.empty()) stop_for_findings(w, w.pc);  // an asynchronous operation was carried out
  if (!watched_.empty()) {
    check_watches(w, nullptr);
    note_accesses(w, in);
  }
  Past& past = past_[&w];
  // A waiting instruction is executed again until it passes.
  const bool again = past.pc == w.pc && past.active == w.active;
  past.pc = w.pc;
  past.active = w.active;
  const Breakpoint* b = again ? nullptr : breakpoint_at(w);
  if (interrupted_.exchange(false)) {
    stop(w, w.pc, Reason::Interrupt, "interrupted", 0);
  } else if (b) {
    const int number = b->number;
    const std::uint32_t lanes = b->condition.lane ? 1u << *b->condition.lane : 0;
    std::erase(entry_, number);
    stop(w, w.pc, Reason::Breakpoint, fmt::format("breakpoint {}", number), number, {}, {}, lanes);
    // So that all warps come to a place before one comes there again.
    return going_.how != Resume::Continue;
  } else if (steps_to(w)) {
    stop(w, w.pc, Reason::Step, "step", 0, {}, {}, w.active & 1u << going_.lane);
  }
  return true;
}

void DebugSession::after(Warp& w, const Inst& in) {
  if (detached_) return;
  const auto pc = static_cast<std::uint32_t>(&in - launch_->program.code.data());
  if (!named_.empty()) keep_value(w, in, pc);
  if (!watched_.empty()) check_watches(w, &in);
  if (!found_.empty()) stop_for_findings(w, pc);
  if (w.state == WarpState::Done) {
    const Block& b = *w.block;
    const bool stepped = going_.how == Resume::StepLine || going_.how == Resume::StepInstruction;
    if (stepped && going_.warp == &w) {
      stop(w, pc, Reason::Exit, fmt::format("warp {} has exited", w.index), 0);
    } else if (going_.how == Resume::FinishBlock && going_.block == &b &&
               std::all_of(b.warps.begin(), b.warps.end(), [](const Warp& v) { return v.state == WarpState::Done; })) {
      stop(w, pc, Reason::Exit, fmt::format("block ({}, {}, {}) has finished", b.id[0], b.id[1], b.id[2]), 0);
    }
  }
  current_ = nullptr;
}

void DebugSession::found(const Finding& f) {
  if (!detached_ && !aborted_) found_.push_back(f);
}

void DebugSession::stop_for_findings(Warp& w, std::uint32_t pc) {
  const std::vector<Finding> found = std::exchange(found_, {});
  for (const Finding& f : found) {
    if (detached_) return;
    // Its lane is one of the warp's in view unless another warp began it.
    const bool here = f.block == w.block->id && f.warp == w.index && f.lane >= 0;
    stop(w, pc, Reason::Finding, f.message, 0, {}, {}, here ? 1u << f.lane : 0);
  }
}

void DebugSession::faulted(const Fault& f) {
  if (detached_ || aborted_) return;
  Warp* w = current_;
  for (Cluster* c : clusters_)
    for (Block& b : c->blocks)
      for (Warp& v : b.warps)
        if (!w && v.state != WarpState::Done) w = &v;
  if (!w) return;
  current_ = w;
  try {
    stop(*w, w->pc ? w->pc - 1 : 0, Reason::Fault, f.finding.message, 0, {}, {},
         f.finding.lane < 0 ? 0 : 1u << f.finding.lane);
  } catch (const Fault&) {
    // The launch ends anyhow.
  }
}

void DebugSession::stop(Warp& w, std::uint32_t pc, Reason reason, std::string what, int number,
                        std::vector<std::byte> old, std::vector<std::byte> now, std::uint32_t lanes) {
  going_ = {};
  if (!handler_) return;
  debug::Stop s;
  s.session_ = this;
  s.warp_ = &w;
  s.pc_ = pc;
  s.reason_ = reason;
  s.what_ = std::move(what);
  s.number_ = number;
  s.old_ = std::move(old);
  s.new_ = std::move(now);
  if (lanes == 0) lanes = w.mask ? w.mask : w.active ? w.active : 1;
  s.lane_ = static_cast<std::uint32_t>(std::countr_zero(lanes));
  const Resume how = handler_(s);
  if (how == Resume::Abort) {
    aborted_ = true;
    Finding end;
    end.kernel = launch_->program.kernel;
    end.message = fmt::format("kernel {}: ended in the debugger", end.kernel);
    throw Fault{std::move(end), w.block->cluster->number};
  }
  detached_ = how == Resume::Detach;
  // Going on is about the warp in view.
  going_ = {how, s.warp_, s.warp_->block, line_of(launch_->program.infos[launch_->program.code[s.pc_].info]), s.lane_};
}

}  // namespace kiln::rt::sim
