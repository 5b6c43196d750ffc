// Classes of PTX instructions, as a profile sums them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace kiln {

// Enumerator, name.
#define KILN_INST_CLASSES(X)        \
  X(Integer, "integer")             \
  X(FloatMath, "float")             \
  X(DoubleMath, "f64")              \
  X(Special, "special function")    \
  X(Conversion, "conversion")       \
  X(Move, "move")                   \
  X(Control, "control")             \
  X(LoadGlobal, "load global")      \
  X(LoadShared, "load shared")      \
  X(LoadLocal, "load local")        \
  X(LoadConstant, "load constant")  \
  X(LoadGeneric, "load generic")    \
  X(StoreGlobal, "store global")    \
  X(StoreShared, "store shared")    \
  X(StoreLocal, "store local")      \
  X(StoreGeneric, "store generic")  \
  X(Atomic, "atomic")               \
  X(Lanes, "shuffle and vote")      \
  X(Barrier, "barrier")             \
  X(Mbarrier, "mbarrier")           \
  X(Matrix, "matrix")               \
  X(AsyncCopy, "asynchronous copy") \
  X(Other, "other")

enum class InstClass : std::uint8_t {
#define X(name, text) name,
  KILN_INST_CLASSES(X)
#undef X
};
inline constexpr std::array kInstClassNames = {
#define X(name, text) text,
    KILN_INST_CLASSES(X)
#undef X
};
inline constexpr std::size_t kInstClasses = kInstClassNames.size();

/// Instructions executed, by class.
using InstMix = std::array<std::uint64_t, kInstClasses>;

}  // namespace kiln
