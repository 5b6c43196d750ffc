// Looking at a stopped launch, and the handle of a debugger.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/device_impl.h"
#include "runtime/sim/debug_session.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/device.h"
#include "runtime/sim/report.h"

namespace kiln::debug {

using namespace rt::sim;

namespace {

const char* space_name(Space s) {
  switch (s) {
    case Space::Global: return "global";
    case Space::Shared: return "shared";
    case Space::Local: return "local";
    case Space::Param: return "parameter";
  }
  return "";
}

std::string text(const Index3& i) { return fmt::format("({}, {}, {})", i[0], i[1], i[2]); }

const Program& program(const Warp& w) { return w.block->launch->program; }
const InstInfo& info(const Warp& w, std::uint32_t pc) { return program(w).infos[program(w).code[pc].info]; }

/// A register of an expansion: its index, or nothing. `name` of a range is its prefix.
std::optional<std::uint32_t> find_register(const rt::sim::ptx::Function& f, std::string_view name) {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  std::optional<std::uint32_t> found;
  const auto take = [&](std::uint32_t reg) {
    if (found) throw UserError(fmt::format("{} is declared in several inner scopes of {}", name, f.name));
    found = reg;
  };
  for (const auto& r : f.reg_names) {
    if (!r.numbered && r.name == name) take(r.first);
    if (!r.numbered || digits == name.size() || r.name != name.substr(0, digits)) continue;
    const std::uint64_t n = std::stoull("0" + std::string(name.substr(digits)).substr(0, 9));
    if (n < r.count) take(r.first + static_cast<std::uint32_t>(n));
  }
  return found;
}

/// Of `type`: how many bits the value has.
int width(const std::string& type) {
  const Ty t = type_named(type);
  return t == Ty::none ? 64 : bits(t);
}

Register read_register(const Warp& w, std::string name, Ty type, Ref slot) {
  Register r{std::move(name), std::string(rt::sim::name(type)), {}};
  for (std::size_t l = 0; l < kLanes; ++l) {
    if (type == Ty::pred) r.bits[l] = w.pred(slot) >> l & 1;
    else if (bits(type) > 32) r.bits[l] = w.in<std::uint64_t>(slot)[l];
    else r.bits[l] = w.in<std::uint32_t>(slot)[l] & (~std::uint64_t{0} >> (64 - bits(type)));
  }
  return r;
}

}  // namespace

float Register::f32(int lane) const {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits[static_cast<std::size_t>(lane)]));
}
double Register::f64(int lane) const { return std::bit_cast<double>(bits[static_cast<std::size_t>(lane)]); }
std::int64_t Register::s64(int lane) const {
  const int unused = 64 - std::min(64, width(type));
  return static_cast<std::int64_t>(bits[static_cast<std::size_t>(lane)] << unused) >> unused;
}

const std::string& Stop::kernel() const { return program(*warp_).kernel; }
Index3 Stop::block() const { return warp_->block->id; }
std::uint32_t Stop::warp() const { return warp_->index; }
std::uint32_t Stop::active() const { return warp_->active; }
unsigned Stop::line() const { return line_of(info(*warp_, pc_)).line; }
unsigned Stop::ptx_line() const { return info(*warp_, pc_).line; }
std::string Stop::ptx() const {
  std::string out;
  for (char c : info(*warp_, pc_).text) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!space) out += c;
    else if (!out.ends_with(' ')) out += ' ';
  }
  return out;
}

const std::string& Stop::module() const { return program(*warp_).module->text; }

std::string Stop::file() const {
  const auto& files = program(*warp_).module->files;
  const auto file = files.find(line_of(info(*warp_, pc_)).file);
  return file == files.end() || line() == 0 ? "" : file->second;
}

std::vector<std::string> Stop::functions() const {
  std::vector<std::string> out;
  for (const Expansion& e : program(*warp_).expansions)
    if (e.begin <= pc_ && pc_ < e.end) out.emplace_back(e.function->name);
  if (out.empty()) out.push_back(kernel());
  return out;
}

std::vector<WarpInfo> Stop::warps() const {
  std::vector<WarpInfo> out;
  for (const Block* b : session_->resident()) {
    for (const Warp& w : b->warps) {
      const bool ends = w.state == WarpState::Done;
      out.push_back({b->id, w.index, w.active, w.live, w.state == WarpState::Ready ? "ready" : waits_for(w),
                     ends ? "" : full_place(program(w), info(w, &w == warp_ ? pc_ : w.pc))});
    }
  }
  return out;
}

void Stop::focus(std::optional<Index3> block, std::optional<std::uint32_t> warp, std::optional<std::uint32_t> lane) {
  Block* b = warp_->block;
  if (block && *block != b->id) {
    const auto all = session_->resident();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Block* c) { return c->id == *block; });
    if (found == all.end())
      throw UserError(fmt::format("block {} is not running now; {} running, the first is {}", text(*block),
                                  all.size() == 1 ? "one block is" : fmt::format("{} blocks are", all.size()),
                                  all.empty() ? "none" : text(all[0]->id)));
    b = *found;
  }
  const std::uint32_t n = warp ? *warp : b == warp_->block ? warp_->index : 0;
  if (n >= b->warps.size()) throw UserError(fmt::format("warp {}: the block has {} warps", n, b->warps.size()));
  if (lane && *lane >= kLanes) throw UserError(fmt::format("lane {}: a warp has {} lanes", *lane, kLanes));
  Warp& to = b->warps[n];
  if (&to != warp_) pc_ = std::min(to.pc, static_cast<std::uint32_t>(program(to).code.size()) - 1);
  const bool moved = &to != warp_;
  warp_ = &to;
  if (lane) lane_ = *lane;
  else if (moved && to.active && !(to.active >> lane_ & 1))
    lane_ = static_cast<std::uint32_t>(std::countr_zero(to.active));
}

Register Stop::reg(const std::string& name) const {
  for (const Expansion& e : program(*warp_).expansions) {
    if (pc_ < e.begin || (pc_ >= e.end && e.function->name != kernel())) continue;
    if (const auto reg = find_register(*e.function, name))
      return read_register(*warp_, name, e.function->regs[*reg], e.slots[*reg]);
  }
  if (const auto special = find_special(name); special && !special->clock) {
    Register r{name, "u32", {}};
    for (std::uint32_t l = 0; l < kLanes; ++l) r.bits[l] = special_value(*warp_, l, special->which);
    return r;
  }
  throw UserError(fmt::format("kernel {} has no register {}", kernel(), name));
}

std::vector<std::string> Stop::register_names() const {
  std::vector<std::string> out;
  for (const Expansion& e : program(*warp_).expansions) {
    if (pc_ < e.begin || pc_ >= e.end) continue;
    for (const auto& r : e.function->reg_names)
      out.push_back(r.numbered ? fmt::format("{}0 … {}{}", r.name, r.name, r.count - 1) : std::string(r.name));
  }
  return out;
}

std::vector<Parameter> Stop::parameters() const {
  const Program& p = program(*warp_);
  const auto& bytes = session_->launch().params;
  const auto take = [&](std::uint64_t at, std::uint64_t n) {
    return std::vector<std::byte>(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(at + n));
  };
  std::vector<Parameter> out;
  const rt::sim::ptx::Function& entry = *p.expansions.back().function;
  for (const rt::sim::ptx::Variable& v : entry.params) {
    const std::uint64_t at = p.expansions.back().variables.at(v.name).at;
    Parameter param{std::string(v.name),
                    v.bytes > 8 ? fmt::format("{} bytes", v.bytes) : fmt::format("b{}", 8 * v.bytes),
                    take(at, v.bytes)};
    for (const rt::Arg& a : session_->image().signature.args) {
      if (a.offset != at) continue;
      param.name = a.name;
      param.type = fmt::format("{}{}", name(a.dtype), a.kind == rt::ArgKind::Pointer ? "*" : "");
    }
    out.push_back(std::move(param));
  }
  return out;
}

std::vector<std::byte> Stop::read(Space space, std::uint64_t address, std::size_t bytes) const {
  Block& b = *warp_->block;
  const auto window = [&](const std::byte* memory, std::uint64_t begin, std::uint64_t end) {
    if (address < begin || address > end || bytes > end - address)
      throw UserError(fmt::format("{} bytes at 0x{:x} of {} memory: it has 0x{:x} to 0x{:x}", bytes, address,
                                  space_name(space), begin, end));
    return std::vector<std::byte>(memory + address, memory + address + bytes);
  };
  switch (space) {
    case Space::Shared: return window(b.shared_bytes(), kSharedBase, b.shared_end());
    case Space::Param: return window(session_->launch().params.data(), 0, session_->launch().params.size());
    case Space::Local: {
      const std::uint64_t per_thread = program(*warp_).local_bytes;
      return window(b.local_bytes() + (warp_->index * std::uint64_t{kLanes} + lane_) * per_thread, 0, per_thread);
    }
    case Space::Global: break;
  }
  const rt::sim::HeapView& heap = session_->launch().heap;
  if (heap.find(address, bytes) >= heap.live.size())
    throw UserError(
        fmt::format("{} bytes at 0x{:x} of global memory: {}", bytes, address, heap.describe(address).where));
  const auto* at = reinterpret_cast<const std::byte*>(address);
  return {at, at + bytes};
}

std::pair<Space, std::uint64_t> Stop::address_of(const std::string& name) const {
  const Program& p = program(*warp_);
  for (const Parameter& param : parameters()) {
    if (param.name != name || param.bytes.size() != sizeof(std::uint64_t)) continue;
    std::uint64_t v = 0;
    std::memcpy(&v, param.bytes.data(), sizeof v);
    return {Space::Global, v};
  }
  const auto placed = [](const rt::sim::Place& at) {
    return std::pair{at.space == rt::sim::Space::Shared  ? Space::Shared
                     : at.space == rt::sim::Space::Local ? Space::Local
                     : at.space == rt::sim::Space::Param ? Space::Param
                                                         : Space::Global,
                     at.at};
  };
  for (const Expansion& e : p.expansions)
    if (e.begin <= pc_ && pc_ < e.end)
      if (const auto v = e.variables.find(name); v != e.variables.end()) return placed(v->second);
  if (const auto v = p.symbols.find(name); v != p.symbols.end()) return placed(v->second);
  throw UserError(fmt::format("kernel {} has no variable or pointer parameter {}", kernel(), name));
}

}  // namespace kiln::debug

namespace kiln {

namespace {
rt::sim::SimDevice& simulator(const Device& device, SourceLoc at) {
  if (!device.is_simulator()) throw UserError(at, fmt::format("{} is no simulator: it has no debugger", device.name()));
  return static_cast<rt::sim::SimDevice&>(device.impl());
}
}  // namespace

using rt::sim::Breakpoint;

Debugger::Debugger(const Device& device, SourceLoc at)
    : device_(device), session_(std::make_shared<rt::sim::DebugSession>()) {
  rt::located(at, [&] { simulator(device_, at).debug_with(session_.get()); });
}
Debugger::~Debugger() { static_cast<rt::sim::SimDevice&>(device_.impl()).debug_with(nullptr); }

void Debugger::on_stop(Handler h) { session_->on_stop(std::move(h)); }

int Debugger::break_line(std::string file, unsigned line, debug::Condition c) {
  Breakpoint b;
  b.name = std::move(file);
  b.line = line;
  b.condition = c;
  return session_->add(std::move(b));
}
int Debugger::break_ptx(unsigned line, debug::Condition c) {
  Breakpoint b;
  b.kind = Breakpoint::Kind::Ptx;
  b.line = line;
  b.condition = c;
  return session_->add(std::move(b));
}
int Debugger::break_kernel(std::string name, debug::Condition c) {
  Breakpoint b;
  b.kind = Breakpoint::Kind::Kernel;
  b.name = std::move(name);
  b.condition = c;
  return session_->add(std::move(b));
}
int Debugger::watch(debug::Space space, std::uint64_t address, std::size_t bytes, debug::On on, debug::Condition c) {
  if (space != debug::Space::Global && space != debug::Space::Shared)
    throw UserError(fmt::format("{} memory cannot be watched; global and shared memory can", debug::space_name(space)));
  if (bytes == 0) throw UserError(fmt::format("a watch of 0 bytes at 0x{:x}", address));
  Breakpoint b;
  b.kind = Breakpoint::Kind::Watch;
  b.space = space;
  b.address = address;
  b.bytes = bytes;
  b.on = on;
  b.condition = c;
  return session_->add(std::move(b));
}
bool Debugger::interrupt() { return session_->interrupt(); }
void Debugger::remove(int number) { session_->remove(number); }

std::vector<std::string> Debugger::breakpoints() const {
  std::vector<std::string> out;
  for (const Breakpoint& b : session_->breakpoints()) {
    std::string s = fmt::format("{}: ", b.number);
    switch (b.kind) {
      case Breakpoint::Kind::Line: s += fmt::format("{}:{}", b.name, b.line); break;
      case Breakpoint::Kind::Ptx: s += fmt::format("ptx:{}", b.line); break;
      case Breakpoint::Kind::Kernel: s += b.name.empty() ? "any kernel" : "kernel " + b.name; break;
      case Breakpoint::Kind::Watch:
        s += fmt::format("{} of {} bytes at 0x{:x} of {} memory",
                         b.on == debug::On::Write  ? "watch"
                         : b.on == debug::On::Read ? "watch of reads"
                                                   : "watch of accesses",
                         b.bytes, b.address, debug::space_name(b.space));
    }
    if (b.condition.block) s += " block " + debug::text(*b.condition.block);
    if (b.condition.warp) s += fmt::format(" warp {}", *b.condition.warp);
    if (b.condition.lane) s += fmt::format(" lane {}", *b.condition.lane);
    if (const std::string kernel = session_->lacks_code_of(b); !kernel.empty())
      s += fmt::format(" (no code of kernel {} stands there)", kernel);
    out.push_back(std::move(s));
  }
  return out;
}

}  // namespace kiln
