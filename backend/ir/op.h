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

/// What operand types an elementwise op takes and what it gives. All operands have one type (Shl, Shr too).
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
  std::span<const char* const> attr_names;
  int regions;
  bool pure, terminator;
  std::span<const Effect> effects;
  const char* doc;
};

const OpInfo& info(Op);
inline const char* mnemonic(Op op) { return info(op).mnemonic; }
std::optional<Op> op_named(std::string_view mnemonic);

}  // namespace kiln::ir
