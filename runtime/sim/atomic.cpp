// Atomics and fences. One host thread runs all blocks of a kernel with global atomics (execute.cpp), so a plain
// read-modify-write is atomic, and every order is sequentially consistent.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/sim/atomic.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/memory.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

using Op = AtomicOp;
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

/// −0 is less than +0; one NaN gives the other operand.
template <class T>
T narrow_extreme(Op op, T a, T b) {
  if (is_nan(a)) return canonical(b);
  if (is_nan(b)) return a;
  const float x = to_float(a), y = to_float(b);
  const bool less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
  return less == (op == Op::Max) ? b : a;
}
template <class T>
T narrow(Op op, T a, T b) {
  return op == Op::Add ? narrow_add(a, b) : narrow_extreme(op, a, b);
}

template <class T>
T result(Op op, T old, T b, T c, bool global) {
  if constexpr (std::is_integral_v<T>) return update(op, old, b, c);
  else if constexpr (std::is_same_v<T, float>) return add_float(old, b, global);
  else if constexpr (std::is_same_v<T, double>) return old + b;
  else if constexpr (requires { old.lo; }) return {narrow(op, old.lo, b.lo), narrow(op, old.hi, b.hi)};
  else return narrow(op, old, b);
}

template <class T>
void combine_as(Op op, std::byte* to, const std::byte* value, bool global) {
  T old, v;
  std::memcpy(&old, to, sizeof old);
  std::memcpy(&v, value, sizeof v);
  const T made = result(op, old, v, v, global);
  std::memcpy(to, &made, sizeof made);
}

/// ops: address, then the elements' results or none, their operands, and of a cas the values to set. A vector is atomic
/// element by element.
template <class T>
void atomic(Warp& w, const Inst& in) {
  const U32 n = in.count;
  const LaneAddresses a =
      access(w, in, in.space, address_lanes(w, in, in.ops[0]), static_cast<U32>(sizeof(T)) * n, Use::Atomic);
  const auto op = static_cast<Op>(in.flags);
  for (U32 m = w.mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    for (U32 i = 0; i < n; ++i) {
      std::byte* at = a.at[static_cast<std::size_t>(l)] + i * sizeof(T);
      T old;
      std::memcpy(&old, at, sizeof old);
      const T b = from_word<T>(w.in<Word<T>>(in.ops[1 + n + i])[l]);
      const T c = op == Op::Cas ? from_word<T>(w.in<Word<T>>(in.ops[1 + 2 * n])[l]) : b;
      const T value = result(op, old, b, c, a.global_lanes >> l & 1);
      if (std::memcmp(at, &value, sizeof value) != 0) ++*w.block->changes;
      std::memcpy(at, &value, sizeof value);
      if (in.ops[1 + i] != kNoRef) w.out<Word<T>>(in.ops[1 + i])[l] = to_word<T>(old);
    }
  }
}

/// As atomic(), of 16 bytes; each operand is two registers.
void atomic_128(Warp& w, const Inst& in) {
  const LaneAddresses a = access(w, in, in.space, address_lanes(w, in, in.ops[0]), 16, Use::Atomic);
  const bool compares = static_cast<Op>(in.flags) == Op::Cas;
  const auto operand = [&](std::size_t i, int l) {
    return std::array<U64, 2>{w.in<U64>(in.ops[i])[l], w.in<U64>(in.ops[i + 1])[l]};
  };
  each_lane(w.mask, [&](int l) {
    std::byte* at = a.at[static_cast<std::size_t>(l)];
    std::array<U64, 2> old;
    std::memcpy(old.data(), at, sizeof old);
    if (!compares || old == operand(3, l)) {
      const std::array<U64, 2> value = operand(compares ? 5 : 3, l);
      if (value != old) ++*w.block->changes;
      std::memcpy(at, value.data(), sizeof value);
    }
    for (std::size_t i = 0; i < 2; ++i) w.out<U64>(in.ops[1 + i])[l] = old[i];
  });
}

bool is_bitwise(Op op) { return op == Op::And || op == Op::Or || op == Op::Xor; }
bool is_counting(Op op) { return op == Op::Inc || op == Op::Dec; }
bool is_extreme(Op op) { return op == Op::Min || op == Op::Max; }

Handler handler_for(Ty t, Op op, bool vector) {
  const bool typed = op == Op::Add || is_extreme(op), bits = is_bitwise(op) || op == Op::Exch || op == Op::Cas;
  const bool narrow = op == Op::Add || (vector && is_extreme(op));
  switch (t) {
    case Ty::b32: return bits && !vector ? atomic<U32> : nullptr;
    case Ty::u32: return (typed || is_counting(op)) && !vector ? atomic<U32> : nullptr;
    case Ty::s32: return typed && !vector ? atomic<std::int32_t> : nullptr;
    case Ty::b64: return bits && !vector ? atomic<U64> : nullptr;
    case Ty::u64: return typed && !vector ? atomic<U64> : nullptr;
    case Ty::s64: return is_extreme(op) && !vector ? atomic<std::int64_t> : nullptr;
    case Ty::b16: return op == Op::Cas && !vector ? atomic<std::uint16_t> : nullptr;
    case Ty::f32: return op == Op::Add ? atomic<float> : nullptr;
    case Ty::f64: return op == Op::Add && !vector ? atomic<double> : nullptr;
    case Ty::f16: return narrow ? atomic<F16> : nullptr;
    case Ty::bf16: return narrow ? atomic<BF16> : nullptr;
    case Ty::f16x2: return narrow ? atomic<Pair<F16>> : nullptr;
    case Ty::bf16x2: return narrow ? atomic<Pair<BF16>> : nullptr;
    default: return nullptr;
  }
}

/// The registers of a vector operand, or the one.
const std::vector<ptx::Operand>& elements(Form& f, std::size_t i, std::size_t n, std::vector<ptx::Operand>& one) {
  const ptx::Operand& o = f.operand(i);
  if (n == 1) {
    one = {o};
    return one;
  }
  if (o.parts.size() != n) f.fail(fmt::format("an operand has {} elements, needs {}", o.parts.size(), n));
  return o.parts;
}

/// atom.exch and atom.cas of .b128.
Handler atomic_128_form(Form& f) {
  const std::size_t operands = f.has("cas") ? 2 : 1;
  if (f.has("exch") == f.has("cas") || f.has("v2") || f.has("v4") || f.has("v8")) return nullptr;
  if (f.count() != 2 + operands + f.has("L2::cache_hint")) f.fail("has a wrong number of operands");
  f.address(f.operand(1));
  f.dst_128(f.operand(0));
  for (std::size_t i = 0; i < operands; ++i) f.src_128(f.operand(2 + i));
  cache_hint(f);
  f.inst.flags = static_cast<std::uint16_t>(operands == 2 ? Op::Cas : Op::Exch);
  return atomic_128;
}

/// `first`: index of the address operand.
Handler atomic_form(Form& f, std::size_t first) {
  memory_modifiers(f);
  f.decoder.polls();
  if (f.inst.scope == 0) f.inst.scope = f.has("cta") ? 1 : f.has("cluster") ? 2 : 3;
  if (f.inst.space == Space::Global || f.inst.space == Space::Generic) f.decoder.communicates();
  if (f.types.size() != 1) return nullptr;
  const Ty t = f.type();
  if (t == Ty::b128 && first == 1) return atomic_128_form(f);
  const std::size_t n = f.has("v2") ? 2 : f.has("v4") ? 4 : f.has("v8") ? 8 : 1, operands = f.has("cas") ? 2 : 1;
  if (n > 1 && ((f.inst.space != Space::Global && f.inst.space != Space::Generic) || bytes(t) * n > 16)) return nullptr;
  if (f.count() != first + 1 + operands + f.has("L2::cache_hint")) f.fail("has a wrong number of operands");
  f.inst.count = static_cast<std::uint8_t>(n);
  f.address(f.operand(first));
  std::vector<ptx::Operand> one;
  if (first == 0)
    for (std::size_t i = 0; i < n; ++i) f.none();
  else
    for (const ptx::Operand& o : elements(f, 0, n, one)) f.dst(o, t);
  for (const ptx::Operand& o : elements(f, first + 1, n, one)) f.src(o, t);
  if (operands == 2) f.src(first + 2, t);
  cache_hint(f);
  for (const auto& [word, op] : kOps) {
    if (!f.has(word)) continue;
    f.inst.flags = static_cast<std::uint16_t>(op);
    return handler_for(t, op, n > 1);
  }
  return nullptr;
}

/// flags: it is a fence.sc that holds the device.
void any_fence(Warp& w, const Inst& in) { fence(w, {in.acquires, in.releases, in.flags != 0}); }
/// Between proxies whose accesses are not told apart.
void no_fence(Warp&, const Inst&) {}

}  // namespace

std::optional<AtomicOp> atomic_op(const Form& f) {
  for (const auto& [word, op] : kOps)
    if (f.has(word)) return op;
  return std::nullopt;
}

void combine(AtomicOp op, Ty t, std::byte* to, const std::byte* value, bool global) {
  switch (t) {
    case Ty::b32:
    case Ty::u32: return combine_as<U32>(op, to, value, global);
    case Ty::s32: return combine_as<std::int32_t>(op, to, value, global);
    case Ty::b64:
    case Ty::u64: return combine_as<U64>(op, to, value, global);
    case Ty::s64: return combine_as<std::int64_t>(op, to, value, global);
    case Ty::f16: return combine_as<F16>(op, to, value, global);
    case Ty::bf16: return combine_as<BF16>(op, to, value, global);
    case Ty::f32: return combine_as<float>(op, to, value, global);
    case Ty::f64: return combine_as<double>(op, to, value, global);
    default: return;
  }
}

Handler make_atom(Form& f) { return atomic_form(f, 1); }
Handler make_red(Form& f) { return atomic_form(f, 0); }

Handler make_fence(Form& f) {
  if (f.count() != 0) return nullptr;
  // Of a fence that is restricted to synchronisation in shared memory nothing is made up by taking it for a whole one.
  const bool cluster = f.has("sync_restrict::shared::cluster"), cta = f.has("sync_restrict::shared::cta");
  if ((cluster || cta) && (!f.has("cluster") || !f.has(cluster ? "acquire" : "release") || cluster == cta))
    return nullptr;
  const bool wide = f.has("gl") || f.has("gpu") || f.has("sys");
  if (wide) f.decoder.communicates();
  if (f.has("proxy")) return no_fence;
  f.inst.acquires = !f.has("release");
  f.inst.releases = !f.has("acquire");
  f.inst.flags = wide && (f.name == "membar" || f.has("sc"));
  return any_fence;
}

}  // namespace kiln::rt::sim
