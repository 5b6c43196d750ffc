#include "backend/llvm/exchange.h"

#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <map>

#include "backend/ir/gf2.h"
#include "backend/ir/op/evaluator.h"
#include "backend/llvm/ptx_asm.h"
#include "backend/llvm/words.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using ir::BitMap;
using llvm::Value;

llvm::Type* element_type(Emitter& e, const ir::Type& t) {
  return t.ptr ? llvm::PointerType::get(e.c.context(), t.shared ? kShared : kGlobal) : e.c.type(t.dtype);
}

std::vector<std::int64_t> scaled(const BitMap& m, std::int64_t scale) {
  std::vector<std::int64_t> out;
  for (std::uint64_t v : m) out.push_back(std::int64_t(v) * scale);
  return out;
}

/// A choice among registers that differs between threads: register r ^ combine(masks, thread). Binary decisions, one
/// for each independent mask.
class Chooser {
 public:
  Chooser(Emitter& e, const BitMap& masks) : b_(e.b), basis_(masks) {
    std::vector<std::int64_t> bits(std::size_t(basis_.size()), 0);
    for (std::size_t k = 0; k < masks.size(); ++k)
      for (std::size_t i = 0; i < bits.size(); ++i)
        if (*basis_.solve(masks[k]) >> i & 1) bits[i] |= std::int64_t(1) << k;
    for (std::int64_t thread_bits : bits) when_.push_back(e.geometry.parity(thread_bits));
  }
  /// What register r chooses; `given` makes the registers' values.
  Value* operator()(std::uint64_t r, llvm::function_ref<Value*(std::uint64_t)> given) { return at(r, 0, given); }

 private:
  Value* at(std::uint64_t r, std::size_t level, llvm::function_ref<Value*(std::uint64_t)> given) {
    const auto [it, is_new] = made_.emplace(std::pair(level, r), nullptr);
    if (!is_new) return it->second;
    Value* v = nullptr;
    if (level == when_.size()) v = given(r);
    else {
      Value *other = at(r ^ basis_.vectors()[level], level + 1, given), *same = at(r, level + 1, given);
      v = other == same ? same : b_.CreateSelect(when_[level], other, same);
    }
    return made_[{level, r}] = v;
  }

  llvm::IRBuilder<>& b_;
  ir::Basis basis_;
  std::vector<Value*> when_;
  std::map<std::pair<std::size_t, std::uint64_t>, Value*> made_;
};

/// One relayout under way.
class Relayout {
 public:
  Relayout(Emitter& e, const TileValue& x, const ir::Type& from, const ir::Type& to)
      : e_(e),
        b_(e.b),
        x_(x),
        type_(element_type(e, from)),
        size_(int(ir::element_bytes(from))),
        words_(b_, type_, size_),
        from_(e.geometry.of(from)),
        to_(e.geometry.of(to)),
        plan_(ir::plan_exchange(e.f.layout(from.layout), e.f.layout(to.layout), size_)) {}

  TileValue run(const Scratch& scratch) {
    result_.regs.resize(std::size_t(to_.regs()));
    switch (plan_.way) {
      case ir::ExchangePlan::Way::Registers: registers(); break;
      case ir::ExchangePlan::Way::Shuffle: shuffle(); break;
      case ir::ExchangePlan::Way::Shared:
        KILN_CHECK(scratch.range.bytes() >= plan_.bytes,
                   fmt::format("relayout: {} bytes of scratch, {} needed", scratch.range.bytes(), plan_.bytes));
        write(scratch);
        if (plan_.in_warp) e_.hazards.shared_read_in_warp(b_, scratch.range);
        else e_.hazards.shared_read(b_, scratch.range);
        read(scratch);
        break;
    }
    return result_;
  }

 private:
  /// Element of source register r; zero where it is dead.
  Value* source(std::uint64_t r) {
    Value* v = x_.regs[r].v;
    return v != nullptr ? v : llvm::Constant::getNullValue(type_);
  }
  bool live(const Geometry& g, std::uint64_t r) const { return g.live[std::size_t(r)]; }

  void registers() {
    Chooser choose(e_, plan_.of_thread);
    for (std::uint64_t r = 0; r < std::uint64_t(to_.regs()); ++r)
      if (live(to_, r))
        result_.regs[r].v = choose(ir::combine(plan_.of_register, r), [&](std::uint64_t q) { return source(q); });
  }

  // --- shuffle
  void shuffle() {
    Chooser supply(e_, plan_.from_register), place(e_, plan_.to_register);
    std::map<std::uint64_t, std::vector<Value*>> received;  // by round; one element per packed register
    const auto round = [&](std::uint64_t q) {
      const std::uint64_t base = q & ~plan_.packable;
      std::vector<Value*>& elements = received[base];
      if (elements.empty()) elements = unpack(send(supply, base));
      return elements[index_in_word(q)];
    };
    for (std::uint64_t r = 0; r < std::uint64_t(to_.regs()); ++r)
      if (live(to_, r)) result_.regs[r].v = place(r, round);
  }

  /// The word of round q as it arrives.
  Value* send(Chooser& supply, std::uint64_t q) {
    Value* word = supply(ir::combine(plan_.round_register, q), [&](std::uint64_t r) { return pack(r); });
    const std::uint64_t lane = ir::combine(plan_.round_lane, q);
    Value* low = move(b_.CreateZExtOrTrunc(word, b_.getInt32Ty()), lane);
    if (size_ < 8) return low;
    Value* high = move(b_.CreateTrunc(b_.CreateLShr(word, 32), b_.getInt32Ty()), lane);
    llvm::Type* i64 = b_.getInt64Ty();
    return b_.CreateOr(b_.CreateZExt(low, i64), b_.CreateShl(b_.CreateZExt(high, i64), 32));
  }

  Value* move(Value* word, std::uint64_t lane) {
    bool own = true;  // source lane = own lane ^ a constant
    for (std::size_t k = 0; k < plan_.source_lane.size(); ++k)
      own &= plan_.source_lane[k] == (k < 5 ? std::uint64_t(1) << k : 0);
    if (own && lane == 0) return word;
    Value *all = b_.getInt32(~0u), *constant = b_.getInt32(std::uint32_t(lane)), *clamp = b_.getInt32(31);
    if (own) return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {}, {all, word, constant, clamp});
    Value* thread = e_.geometry.linear(scaled(plan_.source_lane, 1)).thread;
    Value* from = thread == nullptr ? constant : b_.CreateXor(thread, constant);
    return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {}, {all, word, from, clamp});
  }

  /// Destination registers of one word differ in the packable bits; the k-th of them, for all k.
  std::vector<std::uint64_t> in_word() const {
    std::vector<std::uint64_t> out{0};
    for (std::uint64_t m = plan_.packable; m != 0; m &= m - 1) {
      const std::size_t n = out.size();
      for (std::size_t i = 0; i < n; ++i) out.push_back(out[i] | (m & -m));
    }
    return out;
  }
  std::size_t index_in_word(std::uint64_t q) const {
    const std::vector<std::uint64_t> all = in_word();
    return std::size_t(std::find(all.begin(), all.end(), q & plan_.packable) - all.begin());
  }
  Value* pack(std::uint64_t r) {
    std::vector<Value*> elements;
    for (std::uint64_t q : in_word()) elements.push_back(source(r ^ ir::combine(plan_.round_register, q)));
    if (elements.size() == 1) return b_.CreateZExt(words_.to_bits(elements[0]), b_.getIntNTy(size_ == 8 ? 64 : 32));
    return b_.CreateZExt(words_.pack(elements)[0], b_.getInt32Ty());
  }
  std::vector<Value*> unpack(Value* word) {
    const auto n = int(in_word().size());
    if (size_ < 4)
      word = b_.CreateTrunc(word, n == 1 ? b_.getIntNTy(unsigned(8 * size_)) : words_.unit_type(n * size_));
    if (n == 1) return {words_.from_bits(word)};
    return words_.unpack({word}, n);
  }

  // --- shared memory
  /// Registers by the vector that holds them: element number of its first → registers.
  using Vectors = std::map<std::uint64_t, std::vector<std::vector<std::uint64_t>>>;
  Vectors vectors(const Geometry& g, const BitMap& offsets, int width) const {
    Vectors out;
    for (std::uint64_t r = 0; r < std::uint64_t(g.regs()); ++r) {
      if (!live(g, r)) continue;
      const std::uint64_t at = ir::combine(offsets, r), within = at & std::uint64_t(width - 1);
      auto& registers = out[at - within];
      registers.resize(std::size_t(width));
      registers[within].push_back(r);
    }
    return out;
  }

  /// "[address + constant]" of an element offset: bits that threads have, too, are XORed, the others added.
  class Addresses {
   public:
    Addresses(Emitter& e, const BitMap& threads, int size, Value* base)
        : b_(e.b), base_(base), size_(std::uint64_t(size)), thread_(e.geometry.linear(scaled(threads, size)).thread) {
      for (std::uint64_t t : threads) mask_ |= t * size_;
    }
    std::string place(PtxAsm& text, std::uint64_t offset) {
      const std::uint64_t bytes = offset * size_, swizzled = bytes & mask_, plain = bytes & ~mask_;
      Value*& at = made_[swizzled];
      if (at == nullptr)
        at = thread_ == nullptr ? base_
                                : b_.CreateAdd(base_, b_.CreateXor(thread_, b_.getInt32(std::uint32_t(swizzled))));
      return "[" + text.in(at) + (plain == 0 ? "" : "+" + std::to_string(plain)) + "]";
    }

   private:
    llvm::IRBuilder<>& b_;
    Value* base_;
    std::uint64_t size_, mask_ = 0;
    Value* thread_;
    std::map<std::uint64_t, Value*> made_;
  };

  std::string bits_suffix(int total, std::size_t units) const { return ".b" + std::to_string(8 * total / int(units)); }

  void write(const Scratch& scratch) {
    e_.hazards.shared_write(b_, scratch.range);
    Value* owner = e_.geometry.owner_where_zero(plan_.owner_mask);
    Addresses addresses(e_, plan_.write_thread, size_, scratch.address);
    const int width = plan_.write_vector, total = width * size_;
    for (const auto& [offset, registers] : vectors(from_, plan_.write_register, width)) {
      std::vector<Value*> elements;
      for (const auto& r : registers)
        elements.push_back(r.empty() ? llvm::Constant::getNullValue(type_) : source(r[0]));
      const std::vector<Value*> words = words_.pack(elements);
      PtxAsm text;
      const std::string at = addresses.place(text, offset);
      std::vector<std::string> names;
      for (Value* w : words) names.push_back(text.in(w));
      const std::string when = owner == nullptr ? "" : "@" + text.in(owner, 'b') + " ";
      text.line(when + "st.shared" + vector_suffix(words.size()) + bits_suffix(total, words.size()) + " " + at + ", " +
                braces(names) + ";");
      text.emit(b_);
    }
  }

  void read(const Scratch& scratch) {
    Addresses addresses(e_, plan_.read_thread, size_, scratch.address);
    const int width = plan_.read_vector, total = width * size_, units = words_.units(total);
    for (const auto& [offset, registers] : vectors(to_, plan_.read_register, width)) {
      PtxAsm text;
      std::vector<std::string> names;
      for (int u = 0; u < units; ++u) names.push_back(text.out(words_.unit_type(total)));
      const std::string at = addresses.place(text, offset);
      text.line("ld.shared" + std::string(vector_suffix(std::size_t(units))) + bits_suffix(total, std::size_t(units)) +
                " " + braces(names) + ", " + at + ";");
      text.emit(b_);
      std::vector<Value*> words;
      for (int u = 0; u < units; ++u) words.push_back(text.result(b_, unsigned(u)));
      const std::vector<Value*> elements = words_.unpack(words, width);
      for (std::size_t k = 0; k < registers.size(); ++k)
        for (std::uint64_t r : registers[k]) result_.regs[r].v = elements[k];
    }
  }

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const TileValue& x_;
  llvm::Type* type_;
  int size_;
  Words words_;
  const Geometry &from_, &to_;
  ir::ExchangePlan plan_;
  TileValue result_;
};

Value* both(llvm::IRBuilder<>& b, Value* x, Value* y) {
  return x == nullptr ? y : y == nullptr ? x : b.CreateAnd(x, y);
}

std::string slot_place(llvm::IRBuilder<>& b, PtxAsm& text, const Scratch& scratch, const Slot& slot, int size) {
  Value* at = scratch.address;
  if (slot.v != nullptr) at = b.CreateAdd(at, b.CreateMul(slot.v, b.getInt32(std::uint32_t(size))));
  return "[" + text.in(at) + (slot.c == 0 ? "" : "+" + std::to_string(slot.c * size)) + "]";
}

}  // namespace

TileValue relayout(Emitter& e, const TileValue& x, const ir::Type& from, const ir::Type& to, const Scratch& scratch) {
  return Relayout(e, x, from, to).run(scratch);
}

void scatter(Emitter& e, const TileValue& x, const ir::Type& type, const Scratch& scratch,
             llvm::function_ref<Slot(int)> slot) {
  const Geometry& g = e.geometry.of(type);
  const auto size = int(ir::element_bytes(type));
  Words words(e.b, element_type(e, type), size);
  e.hazards.shared_write(e.b, scratch.range);
  for (int r = 0; r < g.regs(); ++r) {
    if (!g.live[std::size_t(r)] || g.first[std::size_t(r)] != r) continue;
    const Slot to = slot(r);
    Value* active = both(e.b, both(e.b, g.owner, GeometryCache::inside(e.b, g, r)), to.active);
    Value* word = words.pack({x.regs[std::size_t(r)].v})[0];
    PtxAsm text;
    const std::string at = slot_place(e.b, text, scratch, to, size), v = text.in(word);
    const std::string when = active == nullptr ? "" : "@" + text.in(active, 'b') + " ";
    text.line(when + "st.shared.b" + std::to_string(8 * size) + " " + at + ", " + v + ";");
    text.emit(e.b);
  }
}

TileValue gather(Emitter& e, const ir::Type& type, const Scratch& scratch, llvm::function_ref<Slot(int)> slot) {
  const Geometry& g = e.geometry.of(type);
  const auto size = int(ir::element_bytes(type));
  Words words(e.b, element_type(e, type), size);
  e.hazards.shared_read(e.b, scratch.range);
  TileValue out;
  out.regs.resize(std::size_t(g.regs()));
  for (int r = 0; r < g.regs(); ++r) {
    if (!g.live[std::size_t(r)]) continue;
    if (const int first = g.first[std::size_t(r)]; first != r) {
      out.regs[std::size_t(r)] = out.regs[std::size_t(first)];
      continue;
    }
    const Slot from = slot(r);
    // A place outside the tile may have no slot in the array.
    Value* active = both(e.b, GeometryCache::inside(e.b, g, r), from.active);
    PtxAsm text;
    const std::string v = text.out(words.unit_type(size)), at = slot_place(e.b, text, scratch, from, size);
    if (active != nullptr) text.line("mov.b" + std::to_string(words.unit_type(size)->getBitWidth()) + " " + v + ", 0;");
    const std::string when = active == nullptr ? "" : "@" + text.in(active, 'b') + " ";
    text.line(when + "ld.shared.b" + std::to_string(8 * size) + " " + v + ", " + at + ";");
    text.emit(e.b);
    out.regs[std::size_t(r)].v = words.unpack({text.result(e.b, 0)}, 1)[0];
  }
  return out;
}

Slot strided(Emitter& e, const Geometry& g, int reg, const std::vector<std::int64_t>& strides) {
  Slot slot;
  for (int a = 0; a < int(strides.size()); ++a) {
    const TileValue::Reg at = GeometryCache::coordinate(e.b, g, reg, a);
    const std::int64_t stride = strides[std::size_t(a)];
    slot.c += at.c * stride;
    if (at.v == nullptr || stride == 0) continue;
    Value* part = e.b.CreateMul(at.v, e.b.getInt32(std::uint32_t(stride)));
    slot.v = slot.v == nullptr ? part : e.b.CreateAdd(slot.v, part);
  }
  return slot;
}

}  // namespace kiln::cg
