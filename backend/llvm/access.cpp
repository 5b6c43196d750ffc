#include "backend/llvm/access.h"

#include <numeric>

#include "backend/llvm/index.h"

namespace kiln::cg {
namespace {

using llvm::Value;
constexpr int kMaxVectorBytes = 16;

Value* both(llvm::IRBuilder<>& b, Value* x, Value* y) {
  return x == nullptr ? y : y == nullptr ? x : b.CreateAnd(x, y);
}

}  // namespace

void Access::order(bool store, int commutes) {
  MemoryAccess access;
  access.space = shared_ ? MemoryAccess::Space::Shared : MemoryAccess::Space::Global;
  access.store = store;
  access.commutes = commutes;
  access.base = pointer_.uniform;
  access.private_pattern = pointer_.distinct && !g_.replicated;
  access.regs = pointer_.regs;
  access.scale = pointer_.scale;
  const Range span = pointer_.thread_known.range * Range::of(pointer_.scale) + pointer_.constants_known().range;
  // Beyond 2^40 bytes a tile's addresses are data, not a span.
  constexpr std::int64_t far = std::int64_t(1) << 40;
  access.bounded = span.lo > -far && span.hi < far;
  if (access.bounded) {
    access.lo = span.lo;
    access.hi = span.hi + size_;
  }
  e_.hazards.before(b_, std::move(access));
}

// --- vectors ---------------------------------------------------------------------------------------------------------

bool Access::uniform(const Group& group) const {
  for (int k = 1; k < group.width; ++k)
    if (!(lanes_[std::size_t(group.first + k)] == lanes_[std::size_t(group.first)])) return false;
  return true;
}

bool Access::neighbours(const Group& group) const {
  const TileValue::Reg& first = pointer_.regs[std::size_t(group.first)];
  const std::int64_t total = std::int64_t(group.width) * size_;
  const std::int64_t divisor = std::gcd(
      std::gcd(pointer_.uniform_known.divisor, (pointer_.thread_known * Known::constant(pointer_.scale)).divisor),
      Known::constant(first.c).divisor);
  if (divisor % total != 0 || group.first + group.width > g_.regs()) return false;
  for (int k = 0; k < group.width; ++k) {
    const auto r = std::size_t(group.first + k);
    if (!g_.live[r] || g_.first[r] != int(r) || !(pointer_.regs[r] == TileValue::Reg{first.v, first.c + k * size_}))
      return false;
  }
  return true;
}

/// The widest access; half of it, if that makes the predicate equal over each half.
int Access::preferred_width(int first) const {
  int widest = 1;
  for (int w = 2; w * size_ <= kMaxVectorBytes; w *= 2)
    if (neighbours({first, w})) widest = w;
  for (int w : {widest, widest / 2})
    if (w > 1 && uniform({first, w})) return w;
  return widest;
}

std::vector<Access::Group> Access::groups() const {
  std::vector<Group> out;
  for (int r = 0; r < g_.regs();) {
    const bool needed = g_.live[std::size_t(r)] && g_.first[std::size_t(r)] == r;
    if (needed) out.push_back({r, preferred_width(r)});
    r += needed ? out.back().width : 1;
  }
  return out;
}

/// The part of register `reg`'s constant offset that an address operand holds: PTX gives it 32 bits.
std::int32_t Access::near(int reg) const { return std::int32_t(pointer_.regs[std::size_t(reg)].c); }

/// The address without near().
Value* Access::address_of(int reg) {
  Value* v = pointer_.regs[std::size_t(reg)].v;
  const auto far = std::int64_t(std::uint64_t(pointer_.regs[std::size_t(reg)].c) - std::uint64_t(near(reg)));
  for (const Address& a : addresses_)
    if (a.thread == v && a.far == far) return a.value;
  Value* value = address(b_, pointer_, reg);
  if (far != 0) value = b_.CreatePtrAdd(value, b_.getInt64(std::uint64_t(far)));
  addresses_.push_back({v, far, value});
  return value;
}

std::string Access::place(const std::string& address, int reg) const {
  const std::int32_t c = near(reg);
  // PTX has no minus in an address: a negative offset is written [r+-4].
  return "[" + address + (c == 0 ? "" : "+" + std::to_string(c)) + "]";
}

// L1 eviction priorities need PTX 7.4; a hint that cannot be given is left out.
std::string Access::load_name(const char* vector, int bytes) const {
  const bool priorities = e_.c.target.ptx >= 74;
  std::string name = shared_ ? "ld.shared" : "ld.global";
  switch (shared_ ? ir::CacheHint::Plain : hint_) {
    case ir::CacheHint::Plain: break;
    case ir::CacheHint::NoAllocate: name += priorities ? ".L1::no_allocate" : ""; break;
    case ir::CacheHint::Streaming: name += ".cs"; break;
    case ir::CacheHint::EvictFirst: name += priorities ? ".L1::evict_first" : ""; break;
    case ir::CacheHint::EvictLast: name += priorities ? ".L1::evict_last" : ""; break;
  }
  return name + vector + ".b" + std::to_string(8 * bytes) + " ";
}

// A store never allocates in L1: its no_allocate is streaming through L2 (docs: "both or neither").
std::string Access::store_name(const char* vector, int bytes) const {
  const bool priorities = e_.c.target.ptx >= 74;
  std::string name = shared_ ? "st.shared" : "st.global";
  switch (shared_ ? ir::CacheHint::Plain : hint_) {
    case ir::CacheHint::Plain: break;
    case ir::CacheHint::NoAllocate:
    case ir::CacheHint::Streaming: name += ".cs"; break;
    case ir::CacheHint::EvictFirst: name += priorities ? ".L1::evict_first" : ""; break;
    case ir::CacheHint::EvictLast: name += priorities ? ".L1::evict_last" : ""; break;
  }
  return name + vector + ".b" + std::to_string(8 * bytes) + " ";
}

Value* Access::all_active(const Group& group) {
  Value* all = nullptr;
  for (int k = 0; k < group.width; ++k) {
    const Lane& lane = lanes_[std::size_t(group.first + k)];
    if (lane.off) return b_.getFalse();
    all = both(b_, all, lane.active);
  }
  return all;
}

Value* Access::only_here(const Lane& lane, Value* all) { return both(b_, lane.active, b_.CreateNot(all)); }

// --- loads -----------------------------------------------------------------------------------------------------------

std::vector<Value*> Access::defaults(const Group& group, const TileValue* other) {
  std::vector<Value*> out;
  for (int k = 0; k < group.width; ++k)
    out.push_back(other != nullptr ? other->regs[std::size_t(group.first + k)].v
                                   : llvm::Constant::getNullValue(e_.c.type(dtype_)));
  return out;
}

/// One access, `active` or not as a whole.
std::vector<Value*> Access::load_group(const Group& group, llvm::ArrayRef<Value*> other, Value* active) {
  const int total = group.width * size_, n = words_.units(total);
  PtxAsm text;
  std::vector<std::string> names;
  for (int u = 0; u < n; ++u) names.push_back(text.out(words_.unit_type(total)));
  if (active != nullptr) {
    const std::vector<Value*> words = words_.pack(other);
    for (int u = 0; u < n; ++u)
      text.line("mov.b" + std::to_string(words_.unit_type(total)->getBitWidth()) + " " + names[std::size_t(u)] + ", " +
                text.in(words[std::size_t(u)]) + ";");
  }
  const std::string at = place(text.in(address_of(group.first)), group.first);
  const std::string when = guard(text, active);
  text.line(when + load_name(vector_suffix(std::size_t(n)), total / n) + braces(names) + ", " + at + ";");
  text.emit(b_);
  std::vector<Value*> words;
  for (int u = 0; u < n; ++u) words.push_back(text.result(b_, unsigned(u)));
  return words_.unpack(words, group.width);
}

// Vector and elements go to registers of their own and meet in a select: an element loaded over the vector's register
// would wait for the vector, and every later load with it.
std::vector<Value*> Access::load_mixed(const Group& group, llvm::ArrayRef<Value*> other) {
  Value* all = all_active(group);
  const std::vector<Value*> zeros(other.size(), llvm::Constant::getNullValue(e_.c.type(dtype_)));
  const std::vector<Value*> vector = load_group(group, zeros, all);
  std::vector<Value*> elements(other);
  for (int k = 0; k < group.width; ++k) {
    const Lane& lane = lanes_[std::size_t(group.first + k)];
    if (!lane.off)
      elements[std::size_t(k)] = load_group({group.first + k, 1}, other[std::size_t(k)], only_here(lane, all))[0];
  }
  for (std::size_t k = 0; k < elements.size(); ++k) elements[k] = b_.CreateSelect(all, vector[k], elements[k]);
  return elements;
}

TileValue Access::load(const TileValue* other) {
  TileValue out;
  out.regs.resize(std::size_t(g_.regs()));
  for (const Group& group : groups()) {
    std::vector<Value*> elements = defaults(group, other);
    const Lane& lane = lanes_[std::size_t(group.first)];
    if (!uniform(group)) elements = load_mixed(group, elements);
    else if (!lane.off) elements = load_group(group, elements, lane.active);
    for (int k = 0; k < group.width; ++k) out.regs[std::size_t(group.first + k)].v = elements[std::size_t(k)];
  }
  for (int r = 0; r < g_.regs(); ++r)
    if (g_.live[std::size_t(r)] && g_.first[std::size_t(r)] != r)
      out.regs[std::size_t(r)] = out.regs[std::size_t(g_.first[std::size_t(r)])];
  return out;
}

// --- stores ----------------------------------------------------------------------------------------------------------

void Access::store(const TileValue& value) {
  const auto write = [&](const Group& group, Value* active) {
    std::vector<Value*> elements;
    for (int k = 0; k < group.width; ++k) elements.push_back(value.regs[std::size_t(group.first + k)].v);
    const std::vector<Value*> words = words_.pack(elements);
    PtxAsm text;
    const std::string at = place(text.in(address_of(group.first)), group.first);
    std::vector<std::string> names;
    for (Value* w : words) names.push_back(text.in(w));
    const std::string when = guard(text, active);
    const int total = group.width * size_;
    text.line(when + store_name(vector_suffix(words.size()), total / int(words.size())) + at + ", " + braces(names) +
              ";");
    text.emit(b_);
  };
  for (const Group& group : groups()) {
    const Lane& first = lanes_[std::size_t(group.first)];
    if (uniform(group)) {
      if (!first.off) write(group, first.active);
      continue;
    }
    Value* all = all_active(group);
    write(group, all);
    for (int k = 0; k < group.width; ++k) {
      const Lane& lane = lanes_[std::size_t(group.first + k)];
      if (!lane.off) write({group.first + k, 1}, only_here(lane, all));
    }
  }
}

// --- copies ----------------------------------------------------------------------------------------------------------

/// Groups that lie beside each other in shared memory, too.
std::vector<Access::Group> Access::groups_to(const SharedTarget& to) const {
  std::vector<Group> out;
  for (const Group& group : groups()) {
    const auto fits = [&](int width) {
      const std::int64_t bytes = std::int64_t(width) * size_;
      if (to.reach & (bytes - 1)) return false;
      for (int r = group.first; r < group.first + group.width; ++r) {
        const std::int64_t start = to.part(group.first + (r - group.first) / width * width);
        if (start % bytes != 0 || to.part(r) != start + (r - group.first) % width * size_) return false;
      }
      return true;
    };
    int width = group.width;
    while (!fits(width)) width /= 2;
    for (int first = group.first; first < group.first + group.width; first += width) out.push_back({first, width});
  }
  return out;
}

void Access::copy(const SharedTarget& to, Value* only) {
  constexpr int kLeastAsync = 4;
  for (const Group& group : groups_to(to)) {
    const bool whole = uniform(group) && !lanes_[std::size_t(group.first)].off;
    if (whole && group.width * size_ >= kLeastAsync) copy_group(group, to, only);
    else copy_through_registers(group, to, only);
  }
}

namespace {

/// "[a+16]": where `part` is.
std::string shared_place(llvm::IRBuilder<>& b, PtxAsm& text, const Access::SharedTarget& to, std::int64_t part) {
  Value* far = b.CreateXor(to.thread, b.getInt32(std::uint32_t(part & to.reach)));
  return "[" + text.in_register(b.CreateAdd(to.tile, far)) + "+" + std::to_string(part & ~to.reach) + "]";
}

}  // namespace

// A size of 0 instead of a guard: the assembler makes a predicate operand of the former, and a branch of the latter; the
// size is chosen in PTX, since LLVM would take the choice apart.
void Access::copy_group(const Group& group, const SharedTarget& to, Value* only) {
  const int total = group.width * size_;
  const std::int64_t part = to.part(group.first);
  Value* active = lanes_[std::size_t(group.first)].active;
  PtxAsm text;
  const std::string into = shared_place(b_, text, to, part), from = place(text.in(address_of(group.first)), group.first);
  std::string size;
  if (active != nullptr) {
    size = ", size";
    text.line("{ .reg .b32 size;");
    text.line("selp.b32 size, " + std::to_string(total) + ", 0, " + text.in(active, 'b') + ";");
  }
  text.line(guard(text, only) + (total == kMaxVectorBytes ? "cp.async.cg" : "cp.async.ca") + ".shared.global " + into +
            ", " + from + ", " + std::to_string(total) + size + ";");
  if (active != nullptr) text.line("}");
  text.emit(b_);
}

void Access::copy_through_registers(const Group& group, const SharedTarget& to, Value* only) {
  const std::vector<Value*> zeros = defaults(group, nullptr);
  const Lane& lane = lanes_[std::size_t(group.first)];
  std::vector<Value*> elements = zeros;
  if (!uniform(group)) elements = load_mixed(group, zeros);
  else if (!lane.off) elements = load_group(group, zeros, lane.active);
  const std::vector<Value*> words = words_.pack(elements);
  const std::int64_t part = to.part(group.first);
  PtxAsm text;
  const std::string into = shared_place(b_, text, to, part);
  std::vector<std::string> names;
  for (Value* w : words) names.push_back(text.in(w));
  const int total = group.width * size_;
  text.line(guard(text, only) + "st.shared" + vector_suffix(words.size()) + ".b" +
            std::to_string(8 * total / int(words.size())) + " " + into + ", " + braces(names) + ";");
  text.emit(b_);
}

}  // namespace kiln::cg
