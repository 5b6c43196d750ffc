// Op: the operations of the tile IR, generated from ops.def, and what is known of each (OpInfo).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kiln::ir {

enum class Op : std::uint8_t {
#define KILN_EW(Enum, ...) Enum,
#define KILN_OP(Enum, ...) Enum,
#include "backend/ir/ops.def"
};

inline constexpr int kOpCount = 0
#define KILN_EW(...) +1
#define KILN_OP(...) +1
#include "backend/ir/ops.def"
    ;

/// The elementwise ops alone, so that a switch over them needs no default.
enum class Ew : std::uint8_t {
#define KILN_EW(Enum, ...) Enum,
#include "backend/ir/ops.def"
};
/// `op` as an elementwise op, if it is one.
std::optional<Ew> elementwise(Op op);

/// Names of attributes; one enum so that an attribute has one meaning everywhere.
enum class AttrKey : std::uint8_t {
#define KILN_ATTR(name, ...) name,
#include "backend/ir/ops.def"
};
const char* name(AttrKey);
std::optional<AttrKey> attr_named(std::string_view name);

/// How an attribute is held in AttrValue and printed. Flag (0 or 1) and the named kinds, from Cache on (numbers of
/// CacheHint, Rmw, MemoryOrder, MemoryScope, Precision, DotUnit), are integers.
enum class AttrKind : std::uint8_t { Int, Flag, Literal, Ints, Text, Cache, Rmw, Order, Scope, Precision, Unit };
/// The names of a named kind, by number; empty for the others.
std::span<const char* const> names(AttrKind);
struct AttrInfo {
  const char* name;
  AttrKind kind;
  bool optional;  ///< left out where it is 0
  const char* doc;
};
const AttrInfo& info(AttrKey);

/// Cache hint of a load or store. Plain: none.
enum class CacheHint : std::uint8_t { Plain, NoAllocate, Streaming, EvictFirst, EvictLast };
const char* name(CacheHint);
/// How an atomic combines memory and value.
enum class Rmw : std::uint8_t { Add, Min, Max, And, Or, Xor, Exchange };
const char* name(Rmw);
enum class MemoryOrder : std::uint8_t { Relaxed, Acquire, Release, AcqRel };
const char* name(MemoryOrder);
enum class MemoryScope : std::uint8_t { Gpu, Cta, Cluster, System };
const char* name(MemoryScope);
/// What f32 elements of a product are multiplied as. Tf32: rounded to 10 bits of mantissa. The others split each element
/// into two of that type and leave out only the product of the two small parts.
enum class Precision : std::uint8_t { Exact, Tf32, Tf32x3, Bf16x3 };
const char* name(Precision);
/// Fma: the CUDA cores, in the accumulator's type. The others: tensor cores, on elements of that type.
enum class DotUnit : std::uint8_t { Fma, F16, Bf16, Tf32, F64, I8, F8 };
const char* name(DotUnit);

/// What operand types an elementwise op takes and what it gives. All operands have one type (Shl, Shr too). The 8-bit
/// floats take part in no arithmetic: "floats" here are f16, bf16, f32, f64.
enum class TypeRule : std::uint8_t {
  None,   ///< structural op: its infer_ function decides
  Num,    ///< integers, index and floats → same type
  Float,  ///< f16, bf16, f32, f64 → same type
  Math,   ///< f16, bf16, f32 → same type (f64 has no emission: an error that says so)
  Int,    ///< integers and index → same type
  Bits,   ///< i1 and integers → same type
  Cmp,    ///< i1, integers, index, floats → i1
};

enum class Bound : std::uint8_t { Exact, Ulp, Rel };
/// How far an emitted elementwise op may be from the correctly rounded result (ops.def).
struct Accuracy {
  Bound bound = Bound::Exact;
  int n = 0;
  bool fast = false;  ///< takes the attribute fast
};

enum class EffectKind : std::uint8_t { None, Read, Write };
enum class MemorySpace : std::uint8_t { Global, Shared, Remote };
struct Effect {
  EffectKind kind = EffectKind::None;
  MemorySpace space = MemorySpace::Global;
};

struct OpInfo {
  Op op;
  const char* mnemonic;
  bool elementwise;
  int arity;                           ///< elementwise: number of operands; structural: -1 (see operand_names)
  TypeRule rule;
  Accuracy accuracy;
  std::span<const char* const> operand_names;  ///< trailing "?" optional, "..." variadic
  std::span<const AttrKey> attrs;              ///< in printed order
  int regions;
  bool pure, terminator;
  std::span<const Effect> effects;
  const char* doc;

  int min_operands() const;
  int max_operands() const;                    ///< of a variadic op: INT_MAX
};

const OpInfo& info(Op);
inline const char* mnemonic(Op op) { return info(op).mnemonic; }
std::optional<Op> op_named(std::string_view mnemonic);

}  // namespace kiln::ir
