// The tables generated from ops.def.
#include "backend/ir/op.h"

#include <array>
#include <climits>
#include <cstring>

namespace kiln::ir {
namespace {

using enum EffectKind;
using enum MemorySpace;

// The vocabulary of the Exactness column.
constexpr Accuracy Exact{Bound::Exact, 0, false};
constexpr Accuracy ExactOrFast{Bound::Exact, 0, true};
constexpr Accuracy Ulp(int n) { return {Bound::Ulp, n, true}; }
constexpr Accuracy Rel(int n) { return {Bound::Rel, n, true}; }

// The vocabulary of the traits column.
struct Trait {
  bool pure = false, terminator = false;
  Effect effect;
};
constexpr Trait Pure{true, false, {}};
constexpr Trait Terminator{false, true, {}};
constexpr Trait effects(EffectKind kind, MemorySpace space) { return {false, false, {kind, space}}; }

struct Traits {
  bool pure = false, terminator = false;
  std::array<Effect, 2> effect{};
  std::size_t effect_count = 0;
};
template <class... T>
constexpr Traits traits(T... list) {
  Traits all;
  ((all.pure |= list.pure, all.terminator |= list.terminator,
    list.effect.kind == EffectKind::None ? void() : void(all.effect[all.effect_count++] = list.effect)),
   ...);
  return all;
}

// Lists of names: operands(ptr, mask?) → {"ptr", "mask?", nullptr}; attrs(axis) → {AttrKey::axis, …}. Both carry one
// element too many, because an array cannot be empty.
#define KILN_STR(x) #x,
#define KILN_KEY(x) AttrKey::x,
#define KILN_EACH(m, ...) __VA_OPT__(KILN_EACH1(m, __VA_ARGS__))
#define KILN_EACH1(m, x, ...) m(x) __VA_OPT__(KILN_EACH2(m, __VA_ARGS__))
#define KILN_EACH2(m, x, ...) m(x) __VA_OPT__(KILN_EACH3(m, __VA_ARGS__))
#define KILN_EACH3(m, x, ...) m(x) __VA_OPT__(KILN_EACH4(m, __VA_ARGS__))
#define KILN_EACH4(m, x, ...) m(x) __VA_OPT__(KILN_EACH5(m, __VA_ARGS__))
#define KILN_EACH5(m, x, ...) m(x) __VA_OPT__(KILN_EACH6(m, __VA_ARGS__))
#define KILN_EACH6(m, x) m(x)
#define KILN_NAMES_operands(...) KILN_EACH(KILN_STR, __VA_ARGS__) nullptr
#define KILN_KEYS_attrs(...) \
  KILN_EACH(KILN_KEY, __VA_ARGS__) AttrKey {}

#define KILN_OP(Enum, mnemonic, operands, attrs, regions, op_traits, doc) \
  constexpr const char* kOperands##Enum[] = {KILN_NAMES_##operands};      \
  constexpr AttrKey kAttrs##Enum[] = {KILN_KEYS_##attrs};                 \
  constexpr Traits kTraits##Enum = op_traits;
#include "backend/ir/ops.def"

constexpr const char* kEwOperands[] = {"a", "b", "c"};
constexpr AttrKey kEwAttrs[] = {AttrKey::fast};

template <class T, std::size_t N>
constexpr std::span<const T> but_last(const T (&list)[N]) {
  return {list, N - 1};
}
constexpr std::span<const AttrKey> ew_attrs(Accuracy a) {
  return {kEwAttrs, a.fast ? std::size_t(1) : std::size_t(0)};
}
constexpr std::span<const Effect> effects_of(const Traits& t) { return {t.effect.data(), t.effect_count}; }

constexpr OpInfo kOps[] = {
#define KILN_EW(Enum, mnemonic, arity, rule, accuracy, eval, doc)                                           \
  {Op::Enum, #mnemonic, true, arity, TypeRule::rule, accuracy, {kEwOperands, arity}, ew_attrs(accuracy), 0, \
   true,     false,     {},   doc},
#define KILN_OP(Enum, mnemonic, operands, attrs, regions, op_traits, doc) \
  {Op::Enum,                                                              \
   mnemonic,                                                              \
   false,                                                                 \
   -1,                                                                    \
   TypeRule::None,                                                        \
   Exact,                                                                 \
   but_last(kOperands##Enum),                                             \
   but_last(kAttrs##Enum),                                                \
   regions,                                                               \
   kTraits##Enum.pure,                                                    \
   kTraits##Enum.terminator,                                              \
   effects_of(kTraits##Enum),                                             \
   doc},
#include "backend/ir/ops.def"
};

constexpr bool Required = false, Optional = true;
constexpr AttrInfo kAttrs[] = {
#define KILN_ATTR(name, kind, presence, doc) {#name, AttrKind::kind, presence, doc},
#include "backend/ir/ops.def"
};

#undef KILN_STR
#undef KILN_KEY
#undef KILN_EACH
#undef KILN_EACH1
#undef KILN_EACH2
#undef KILN_EACH3
#undef KILN_EACH4
#undef KILN_EACH5
#undef KILN_NAMES_operands
#undef KILN_KEYS_attrs

constexpr const char* kCacheHints[] = {"plain", "no_allocate", "streaming", "evict_first", "evict_last"};
constexpr const char* kRmws[] = {"add", "min", "max", "and", "or", "xor", "exchange"};
constexpr const char* kOrders[] = {"relaxed", "acquire", "release", "acq_rel"};
constexpr const char* kScopes[] = {"gpu", "cta", "cluster", "system"};
constexpr const char* kPrecisions[] = {"exact", "tf32", "tf32x3", "bf16x3"};
constexpr const char* kUnits[] = {"fma", "f16", "bf16", "tf32", "f64", "i8", "f8"};

bool ends_with(const char* s, std::string_view end) { return std::string_view(s).ends_with(end); }

}  // namespace

int OpInfo::min_operands() const {
  int n = 0;
  for (const char* o : operand_names) n += !ends_with(o, "?") && !ends_with(o, "...");
  return n;
}

int OpInfo::max_operands() const {
  if (!operand_names.empty() && ends_with(operand_names.back(), "...")) return INT_MAX;
  return int(operand_names.size());
}

const OpInfo& info(Op op) { return kOps[std::size_t(op)]; }

std::optional<Op> op_named(std::string_view mnemonic) {
  for (const OpInfo& i : kOps)
    if (mnemonic == i.mnemonic) return i.op;
  return {};
}

std::optional<Ew> elementwise(Op op) {
  switch (op) {
// clang-format off
#define KILN_EW(Enum, ...) case Op::Enum: return Ew::Enum;
#define KILN_OP(Enum, ...) case Op::Enum: return {};
#include "backend/ir/ops.def"
    // clang-format on
  }
  return {};
}

std::span<const char* const> names(AttrKind kind) {
  switch (kind) {
    case AttrKind::Int:
    case AttrKind::Flag:
    case AttrKind::Literal:
    case AttrKind::Ints:
    case AttrKind::Text: return {};
    case AttrKind::Cache: return kCacheHints;
    case AttrKind::Rmw: return kRmws;
    case AttrKind::Order: return kOrders;
    case AttrKind::Scope: return kScopes;
    case AttrKind::Precision: return kPrecisions;
    case AttrKind::Unit: return kUnits;
  }
  return {};
}
const char* name(CacheHint h) { return kCacheHints[std::size_t(h)]; }
const char* name(Rmw r) { return kRmws[std::size_t(r)]; }
const char* name(MemoryOrder o) { return kOrders[std::size_t(o)]; }
const char* name(MemoryScope s) { return kScopes[std::size_t(s)]; }
const char* name(Precision p) { return kPrecisions[std::size_t(p)]; }
const char* name(DotUnit u) { return kUnits[std::size_t(u)]; }

const AttrInfo& info(AttrKey key) { return kAttrs[std::size_t(key)]; }
const char* name(AttrKey key) { return info(key).name; }

std::optional<AttrKey> attr_named(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kAttrs); ++i)
    if (name == kAttrs[i].name) return AttrKey(i);
  return {};
}

}  // namespace kiln::ir
