// Atomics: one instruction an element, by the thread that owns it.
//
//   result unused   red.relaxed.gpu.global.add.u32 [a], v;           nobody waits for it
//   result used     atom.relaxed.gpu.global.add.u32 old, [a], v;     and every thread that holds the element gets old
//   f16, bf16 add   two neighbours of one thread are one atom.add.noftz.f16x2
//   the rest        a loop around atom.cas: min and max of floats, 16-bit integers, bf16 sums before sm_90
//
// A program that releases waits for its threads' earlier accesses (barrier), then each owner does a releasing atomic,
// which is cumulative; one that acquires does an acquiring atomic and lets its threads go on after a barrier.
#include "backend/ir/op/atomic.h"
#include "backend/llvm/access.h"
#include "backend/llvm/replicate.h"

namespace kiln::cg {
namespace {

using llvm::BasicBlock;
using llvm::Value;

bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }

/// The hardware's name of the operation, ".add.u32"; empty: there is none.
std::string hardware_name(const Target& target, ir::Rmw rmw, DType d) {
  const std::string word = ".b" + std::to_string(bits(d)), sign = is_signed(d) ? "s" : "u",
                    integer = "." + sign + std::to_string(bits(d));
  const bool wide = bits(d) >= 32, whole = !is_float(d);
  switch (rmw) {
    case ir::Rmw::Add:
      if (d == DType::bf16) return target.compute() >= 90 ? ".add.noftz.bf16" : "";
      if (d == DType::f16) return ".add.noftz.f16";
      if (is_float(d)) return ".add.f" + std::to_string(bits(d));
      return wide ? ".add.u" + std::to_string(bits(d)) : "";
    case ir::Rmw::Min: return wide && whole ? ".min" + integer : "";
    case ir::Rmw::Max: return wide && whole ? ".max" + integer : "";
    case ir::Rmw::And: return wide ? ".and" + word : "";
    case ir::Rmw::Or: return wide ? ".or" + word : "";
    case ir::Rmw::Xor: return wide ? ".xor" + word : "";
    case ir::Rmw::Exchange: return wide ? ".exch" + word : "";
  }
  return "";
}

class Atomic {
 public:
  Atomic(Emitter& e, const ir::Inst& inst, std::size_t mask)
      : e_(e),
        b_(e.b),
        inst_(inst),
        g_(e.geometry_of(inst.operands[1])),
        dtype_(e.type(inst.operands[1]).dtype),
        word_(e.b.getIntNTy(unsigned(bits(dtype_)))),
        shared_(e.type(inst.operands[0]).shared),
        used_(e.f.has_uses(inst.results[0])),
        access_(e, inst, g_, inst.operands[0]) {
    old_.regs.resize(std::size_t(g_.regs()));
    if (releases()) e.hazards.barrier(b_);
    access_.order(/*store=*/true, commutes());
    access_.add_extents();
    if (inst.operands.size() > mask) access_.add_mask(e.as_plain(inst.operands[mask]));
    access_.add_owner();
  }

  void rmw(ir::Rmw op) {
    const TileValue value = e_.as_plain(inst_.operands[1]);
    const std::string name = hardware_name(e_.c.target, op, dtype_);
    for (int r = 0; r < g_.regs(); ++r) {
      if (!access_.acts(r)) continue;
      Value* v = element(value, r);
      if (name.empty()) set(r, emulated(op, r, v));
      else if (op == ir::Rmw::Add && is_half(dtype_) && access_.pair(r)) pair(name, r, v, element(value, r + 1)), ++r;
      else if (op == ir::Rmw::Add && is_half(dtype_)) set(r, half_sum(name, r, v));
      else set(r, one(name, r, is_float(dtype_) && op == ir::Rmw::Add ? v : to_bits(v)));
    }
    finish();
  }

  void cas() {
    const TileValue expected = e_.as_plain(inst_.operands[1]), desired = e_.as_plain(inst_.operands[2]);
    for (int r = 0; r < g_.regs(); ++r)
      if (access_.acts(r))
        set(r, compare_and_swap(r, access_.active(r), to_bits(element(expected, r)), to_bits(element(desired, r))));
    finish();
  }

 private:
  ir::MemoryOrder order() const { return ir::MemoryOrder(inst_.i64(ir::AttrKey::semantics)); }
  bool releases() const { return order() == ir::MemoryOrder::Release || order() == ir::MemoryOrder::AcqRel; }
  bool acquires() const { return order() == ir::MemoryOrder::Acquire || order() == ir::MemoryOrder::AcqRel; }
  /// Whether the instruction must give back what was there: red has no acquiring form.
  bool gives() const { return used_ || acquires(); }

  /// Updates that nobody reads back may come in any order among their kind (hazards.h); exchange and cas decide by it.
  int commutes() const {
    if (used_ || order() != ir::MemoryOrder::Relaxed || inst_.op != ir::Op::AtomicRmw) return 0;
    const auto rmw = ir::Rmw(inst_.i64(ir::AttrKey::rmw));
    return rmw == ir::Rmw::Exchange ? 0 : 1 + int(rmw) + 16 * int(dtype_);
  }

  std::string scope() const {
    switch (ir::MemoryScope(inst_.i64(ir::AttrKey::scope))) {
      case ir::MemoryScope::Gpu: return ".gpu";
      case ir::MemoryScope::Cta: return ".cta";
      // Where there are no clusters, the next wider scope.
      case ir::MemoryScope::Cluster: return e_.c.target.has_cluster() ? ".cluster" : ".gpu";
      case ir::MemoryScope::System: return ".sys";
    }
    return "";
  }
  const char* space() const { return shared_ ? ".shared" : ".global"; }
  /// "atom.relaxed.gpu.global" or, where nothing is given back, "red.…".
  std::string stem(bool gives) const {
    return std::string(gives ? "atom." : "red.") + ir::name(order()) + scope() + space();
  }

  Value* element(const TileValue& t, int r) const { return t.regs[std::size_t(r)].v; }
  Value* to_bits(Value* v) { return b_.CreateBitCast(v, word_); }
  /// `v`: bits or the element itself.
  void set(int r, Value* v) {
    if (v != nullptr) old_.regs[std::size_t(r)].v = b_.CreateBitCast(v, e_.c.type(dtype_));
  }

  /// What an instruction gives where it is masked off.
  std::string result(PtxAsm& text, llvm::Type* type, Value* active) {
    const std::string out = text.out(type);
    if (active != nullptr)
      text.line("mov.b" + std::to_string(type->getPrimitiveSizeInBits().getFixedValue()) + " " + out + ", 0;");
    return out;
  }

  /// The hardware's atomic on one element of 32 or 64 bits; null where nothing is given back.
  Value* one(const std::string& name, int r, Value* v) {
    PtxAsm text;
    Value* active = access_.active(r);
    // There is no red.exch.
    const bool gives = this->gives() || name.starts_with(".exch");
    const std::string out = gives ? result(text, word_, active) + ", " : "";
    const std::string at = access_.place(text, r), when = access_.guard(text, active);
    text.line(when + stem(gives) + name + " " + out + at + ", " + text.in(v) + ";");
    text.emit(b_);
    return used_ ? text.result(b_, 0) : nullptr;
  }

  /// A sum of f16 or bf16.
  Value* half_sum(const std::string& name, int r, Value* v) {
    PtxAsm text;
    Value* active = access_.active(r);
    const std::string out = gives() ? result(text, word_, active) + ", " : "";
    const std::string at = access_.place(text, r), in = text.in_register(to_bits(v)),
                      when = access_.guard(text, active);
    text.line(when + stem(gives()) + name + " " + out + at + ", " + in + ";");
    text.emit(b_);
    return used_ ? text.result(b_, 0) : nullptr;
  }

  /// Registers r and r + 1 as one packed sum.
  void pair(const std::string& name, int r, Value* low, Value* high) {
    llvm::Type* two = llvm::FixedVectorType::get(word_, 2);
    Value* packed = b_.CreateInsertElement(llvm::PoisonValue::get(two), to_bits(low), std::uint64_t(0));
    packed = b_.CreateBitCast(b_.CreateInsertElement(packed, to_bits(high), 1), b_.getInt32Ty());
    PtxAsm text;
    Value* active = access_.active(r);
    const std::string out = gives() ? result(text, b_.getInt32Ty(), active) + ", " : "";
    const std::string at = access_.place(text, r), in = text.in_register(packed), when = access_.guard(text, active);
    text.line(when + stem(gives()) + name + "x2 " + out + at + ", " + in + ";");
    text.emit(b_);
    if (!used_) return;
    Value* was = b_.CreateBitCast(text.result(b_, 0), two);
    set(r, b_.CreateExtractElement(was, std::uint64_t(0)));
    set(r + 1, b_.CreateExtractElement(was, 1));
  }

  /// `active` may be null: always.
  Value* compare_and_swap(int r, Value* active, Value* expected, Value* desired) {
    PtxAsm text;
    const std::string out = result(text, word_, active);
    const std::string at = access_.place(text, r), when = access_.guard(text, active);
    text.line(when + stem(true) + ".cas.b" + std::to_string(bits(dtype_)) + " " + out + ", " + at + ", " +
              text.in(expected) + ", " + text.in(desired) + ";");
    text.emit(b_);
    return text.result(b_, 0);
  }

  Value* relaxed_load(int r) {
    PtxAsm text;
    const std::string out = text.out(word_);
    text.line("ld.relaxed" + scope() + space() + ".b" + std::to_string(bits(dtype_)) + " " + out + ", " +
              access_.place(text, r) + ";");
    text.emit(b_);
    return text.result(b_, 0);
  }

  /// Bits of `old` combined with `v`.
  Value* combined(ir::Rmw op, Value* old, Value* v) {
    if (op == ir::Rmw::Exchange) return to_bits(v);
    return to_bits(
        emit_elementwise(e_.c, ir::elementwise_of(op), dtype_, {b_.CreateBitCast(old, e_.c.type(dtype_)), v}, false));
  }

  /// Tries until no other thread came between. Where a relaxed atomic would change nothing, it writes nothing.
  Value* emulated(ir::Rmw op, int r, Value* v) {
    const auto block = [&](const char* name) { return BasicBlock::Create(e_.c.context(), name, e_.kernel); };
    BasicBlock *start = block("atomic"), *attempt = block("atomic.try"), *swap = block("atomic.swap"),
               *done = block("atomic.done"), *before = b_.GetInsertBlock();
    access_.make_address(r);
    if (Value* active = access_.active(r)) b_.CreateCondBr(active, start, done);
    else b_.CreateBr(start);
    b_.SetInsertPoint(start);
    Value* first = relaxed_load(r);
    b_.CreateBr(attempt);

    b_.SetInsertPoint(attempt);
    llvm::PHINode* old = b_.CreatePHI(word_, 2);
    old->addIncoming(first, start);
    Value* next = combined(op, old, v);
    BasicBlock* tried = b_.GetInsertBlock();
    const bool may_skip = order() == ir::MemoryOrder::Relaxed && op != ir::Rmw::Exchange;
    if (may_skip) b_.CreateCondBr(b_.CreateICmpEQ(next, old), done, swap);
    else b_.CreateBr(swap);

    b_.SetInsertPoint(swap);
    Value* seen = compare_and_swap(r, nullptr, old, next);
    old->addIncoming(seen, swap);
    b_.CreateCondBr(b_.CreateICmpEQ(seen, old), done, attempt);

    b_.SetInsertPoint(done);
    llvm::PHINode* was = b_.CreatePHI(word_, 3);
    if (access_.active(r) != nullptr) was->addIncoming(llvm::ConstantInt::get(word_, 0), before);
    if (may_skip) was->addIncoming(old, tried);
    was->addIncoming(old, swap);
    return was;
  }

  void finish() {
    if (acquires()) e_.hazards.barrier(b_);
    if (!used_) return;
    for (int r = 0; r < g_.regs(); ++r) {
      Value*& v = old_.regs[std::size_t(r)].v;
      if (g_.live[std::size_t(r)] && v == nullptr) v = llvm::Constant::getNullValue(e_.c.type(dtype_));
    }
    e_.set_plain(inst_.results[0], from_owner(e_, inst_, g_, std::move(old_), dtype_));
  }

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::Inst& inst_;
  const Geometry& g_;
  DType dtype_;
  llvm::IntegerType* word_;
  bool shared_, used_;
  Access access_;
  TileValue old_;
};

}  // namespace

void emit_AtomicRmw(Emitter& e, const ir::Inst& inst) { Atomic(e, inst, 2).rmw(ir::Rmw(inst.i64(ir::AttrKey::rmw))); }
void emit_AtomicCas(Emitter& e, const ir::Inst& inst) { Atomic(e, inst, 3).cas(); }

}  // namespace kiln::cg
