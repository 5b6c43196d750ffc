#include "runtime/sim/classify.h"

namespace kiln::rt::sim {
namespace {

struct Family {
  std::string_view name;  ///< leading words of a row of insts.def
  InstClass of;
};
// The first that a name starts with counts. What is in no family has the class of its type.
constexpr Family kFamilies[] = {
    {"cp.async.mbarrier", InstClass::Mbarrier},
    {"cp.async", InstClass::AsyncCopy},
    {"cp.reduce", InstClass::AsyncCopy},
    {"st.async", InstClass::AsyncCopy},
    {"red.async", InstClass::AsyncCopy},
    {"atom", InstClass::Atomic},
    {"red", InstClass::Atomic},
    {"mbarrier", InstClass::Mbarrier},
    {"bar.warp", InstClass::Lanes},
    {"bar", InstClass::Barrier},
    {"barrier", InstClass::Barrier},
    {"shfl", InstClass::Lanes},
    {"vote", InstClass::Lanes},
    {"match", InstClass::Lanes},
    {"redux", InstClass::Lanes},
    {"activemask", InstClass::Lanes},
    {"elect", InstClass::Lanes},
    {"mma", InstClass::Matrix},
    {"wmma", InstClass::Matrix},
    {"wgmma", InstClass::Matrix},
    {"ldmatrix", InstClass::Matrix},
    {"stmatrix", InstClass::Matrix},
    {"movmatrix", InstClass::Matrix},
    {"bra", InstClass::Control},
    {"brx", InstClass::Control},
    {"call", InstClass::Control},
    {"ret", InstClass::Control},
    {"exit", InstClass::Control},
    {"trap", InstClass::Control},
    {"brkpt", InstClass::Control},
    {"cvt", InstClass::Conversion},
    {"cvta", InstClass::Move},
    {"mov", InstClass::Move},
    {"selp", InstClass::Move},
    {"isspacep", InstClass::Move},
    {"mapa", InstClass::Move},
    {"getctarank", InstClass::Move},
    {"sin", InstClass::Special},
    {"cos", InstClass::Special},
    {"tanh", InstClass::Special},
    {"ex2", InstClass::Special},
    {"lg2", InstClass::Special},
    {"prefetch", InstClass::Other},
    {"prefetchu", InstClass::Other},
    {"applypriority", InstClass::Other},
    {"discard", InstClass::Other},
    {"createpolicy", InstClass::Other},
    {"membar", InstClass::Other},
    {"fence", InstClass::Other},
    {"nanosleep", InstClass::Other},
    {"griddepcontrol", InstClass::Other},
    {"pmevent", InstClass::Other},
    {"setmaxnreg", InstClass::Other},
};

bool has_word_prefix(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && (name.size() == prefix.size() || name[prefix.size()] == '.');
}

InstClass load_of(Space s) {
  switch (s) {
    case Space::Shared:
    case Space::Cluster: return InstClass::LoadShared;
    case Space::Local: return InstClass::LoadLocal;
    case Space::Const:
    case Space::Param: return InstClass::LoadConstant;
    case Space::Generic: return InstClass::LoadGeneric;
    default: return InstClass::LoadGlobal;
  }
}
InstClass store_of(Space s) {
  switch (s) {
    case Space::Shared:
    case Space::Cluster: return InstClass::StoreShared;
    case Space::Local:
    case Space::Param: return InstClass::StoreLocal;  // an argument of a function that was expanded
    case Space::Generic: return InstClass::StoreGeneric;
    default: return InstClass::StoreGlobal;
  }
}

InstClass by_type(Ty t) {
  if (t == Ty::f64) return InstClass::DoubleMath;
  switch (kind(t)) {
    case TyKind::Float: return InstClass::FloatMath;
    case TyKind::Packed: return t == Ty::u16x2 || t == Ty::s16x2 ? InstClass::Integer : InstClass::FloatMath;
    default: return InstClass::Integer;
  }
}

}  // namespace

InstClass classify(const Form& f) {
  if (f.name == "ld" || f.name == "ldu") return load_of(f.inst.space);
  if (f.name == "st") return store_of(f.inst.space);
  for (const Family& family : kFamilies)
    if (has_word_prefix(f.name, family.name)) return family.of;
  const bool approximates = f.name == "rcp" || f.name == "sqrt" || f.name == "rsqrt" || f.name == "div";
  if (approximates && f.has("approx")) return InstClass::Special;
  // set and slct have the type of their result first; what they compare is the second.
  const bool second = (f.name == "set" || f.name == "slct") && f.types.size() > 1;
  return by_type(f.type(second ? 1 : 0));
}

namespace {

/// Values that show for few operands only that the result depends on them: the lesser of two, a quotient, a value cut
/// off at an end of its range.
bool mixes(const Form& f) {
  if (f.name == "min" || f.name == "max" || f.name == "set" || f.name == "rem" || f.name == "fns" || f.has("sat"))
    return true;
  if (f.name == "div") return is_integer(f.type());
  return f.name == "cvt" && is_integer(f.type()) && kind(f.type(1)) == TyKind::Float;
}

}  // namespace

Unknowns unknowns(const Form& f, InstClass of) {
  if (f.name == "kiln.value") return Unknowns::Ignored;
  if (f.name == "ld" || f.name == "ldu" || f.name == "ldmatrix.sync.aligned") return Unknowns::Loads;
  if (f.name == "st" || f.name == "stmatrix.sync.aligned") return Unknowns::Stores;
  if (f.name == "mma.sync.aligned" || f.name == "movmatrix.sync.aligned") return Unknowns::Warp;
  if (f.name == "mapa" || f.name == "getctarank") return Unknowns::Needed;
  if (f.name == "setp" || f.name == "testp" || f.name == "isspacep") return Unknowns::Decides;
  switch (of) {
    case InstClass::Lanes:
      return f.name == "redux.sync" && (f.has("min") || f.has("max")) ? Unknowns::Extreme : Unknowns::Lanes;
    case InstClass::Integer:
    case InstClass::FloatMath:
    case InstClass::DoubleMath:
    case InstClass::Special:
    case InstClass::Conversion:
    case InstClass::Move: return mixes(f) ? Unknowns::Mixes : Unknowns::Computes;
    default: return Unknowns::Needed;
  }
}

Ty multiplied(const Form& f) {
  const bool multiplies =
      has_word_prefix(f.name, "mma") || has_word_prefix(f.name, "wgmma") || has_word_prefix(f.name, "wmma");
  if (!multiplies || f.types.empty()) return Ty::none;
  return f.type(f.types.size() > 1 ? 1 : 0);
}

}  // namespace kiln::rt::sim
