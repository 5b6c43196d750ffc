// Atomics and fences. One host thread runs all blocks of a kernel with global atomics (execute.cpp), so a plain
// read-modify-write is atomic, and every order is sequentially consistent.
#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/sim/decode.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/memory.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

enum class Op : std::uint8_t { Add, Min, Max, And, Or, Xor, Exch, Cas, Inc, Dec };
constexpr std::pair<std::string_view, Op> kOps[] = {
    {"add", Op::Add}, {"min", Op::Min},   {"max", Op::Max}, {"and", Op::And}, {"or", Op::Or},
    {"xor", Op::Xor}, {"exch", Op::Exch}, {"cas", Op::Cas}, {"inc", Op::Inc}, {"dec", Op::Dec}};

template <class T>
T update(Op op, T old, T b, T c) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case Op::Add: return static_cast<T>(static_cast<U>(old) + static_cast<U>(b));
    case Op::Min: return std::min(old, b);
    case Op::Max: return std::max(old, b);
    case Op::And: return static_cast<T>(old & b);
    case Op::Or: return static_cast<T>(old | b);
    case Op::Xor: return static_cast<T>(old ^ b);
    case Op::Exch: return b;
    case Op::Cas: return old == b ? c : old;
    case Op::Inc: return old >= b ? T{0} : static_cast<T>(old + 1);
    case Op::Dec: return old == 0 || old > b ? b : static_cast<T>(old - 1);
  }
  return old;
}

template <class T>
T narrow_add(T a, T b) {
  return canonical(rounded<T>(fma_odd(1.0, to_float(a), to_float(b), Round::Nearest), Round::Nearest));
}
/// f32 addition in global memory flushes subnormals, in shared memory it does not.
float add_float(float a, float b, bool global) {
  return global ? canonical(flushed(flushed(a) + flushed(b))) : canonical(a + b);
}

template <class T>
void atomic(Warp& w, const Inst& in) {
  const LaneAddresses a = access(w, in, in.space, address_lanes(w, in, in.ops[1]), sizeof(T), Use::Atomic);
  for (U32 m = w.mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    T old, value;
    std::memcpy(&old, a.at[static_cast<std::size_t>(l)], sizeof old);
    const T b = from_word<T>(w.in<Word<T>>(in.ops[2])[l]);
    if constexpr (std::is_integral_v<T>) {
      const T c = in.ops[3] == kNoRef ? T{0} : from_word<T>(w.in<Word<T>>(in.ops[3])[l]);
      value = update(static_cast<Op>(in.flags), old, b, c);
    } else if constexpr (std::is_same_v<T, float>) {
      value = add_float(old, b, a.global_lanes >> l & 1);
    } else if constexpr (std::is_same_v<T, double>) {
      value = old + b;
    } else if constexpr (requires { old.lo; }) {
      value = {narrow_add(old.lo, b.lo), narrow_add(old.hi, b.hi)};
    } else {
      value = narrow_add(old, b);
    }
    std::memcpy(a.at[static_cast<std::size_t>(l)], &value, sizeof value);
    if (in.ops[0] != kNoRef) w.out<Word<T>>(in.ops[0])[l] = to_word<T>(old);
  }
}

Handler handler_for(Ty t, Op op) {
  const bool add = op == Op::Add;
  switch (t) {
    case Ty::b32:
    case Ty::u32: return atomic<U32>;
    case Ty::s32: return atomic<std::int32_t>;
    case Ty::b64:
    case Ty::u64: return atomic<U64>;
    case Ty::s64: return atomic<std::int64_t>;
    case Ty::b16: return op == Op::Cas ? atomic<std::uint16_t> : nullptr;
    case Ty::f32: return add ? atomic<float> : nullptr;
    case Ty::f64: return add ? atomic<double> : nullptr;
    case Ty::f16: return add ? atomic<F16> : nullptr;
    case Ty::bf16: return add ? atomic<BF16> : nullptr;
    case Ty::f16x2: return add ? atomic<Pair<F16>> : nullptr;
    case Ty::bf16x2: return add ? atomic<Pair<BF16>> : nullptr;
    default: return nullptr;
  }
}

/// `first`: index of the address operand.
Handler atomic_form(Form& f, std::size_t first) {
  memory_modifiers(f);
  if (f.inst.space != Space::Shared) f.decoder.communicates();
  if (f.types.size() != 1) return nullptr;
  const Ty t = f.type();
  const std::size_t extra = f.has("L2::cache_hint") ? 1 : 0, operands = f.has("cas") ? 2 : 1;
  if (f.count() != first + 1 + operands + extra) f.fail("has a wrong number of operands");
  if (first == 0) f.none();
  else f.dst(0, t);
  f.address(f.operand(first));
  f.src(first + 1, t);
  if (operands == 2) f.src(first + 2, t);
  else f.none();
  for (const auto& [word, op] : kOps) {
    if (!f.has(word)) continue;
    f.inst.flags = static_cast<std::uint16_t>(op);
    return handler_for(t, op);
  }
  return nullptr;
}

void nothing(Warp&, const Inst&) {}

}  // namespace

Handler make_atom(Form& f) { return atomic_form(f, 1); }
Handler make_red(Form& f) { return atomic_form(f, 0); }

Handler make_fence(Form& f) {
  if (!f.has("cta")) f.decoder.communicates();
  return nothing;
}

}  // namespace kiln::rt::sim
