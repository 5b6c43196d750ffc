// Names that integers and floats share: the type decides.
#include "runtime/sim/makers.h"

namespace kiln::rt::sim {
namespace {

bool is_int(const Form& f) { return is_integer(f.type()) || f.type() == Ty::u16x2 || f.type() == Ty::s16x2; }

}  // namespace

Handler make_add(Form& f) {
  if (f.types.size() == 2) return mixed_add(f);
  f.same_type_operands(3);
  return is_int(f) ? int_add(f) : float_add(f);
}
Handler make_sub(Form& f) {
  if (f.types.size() == 2) return mixed_sub(f);
  f.same_type_operands(3);
  return is_int(f) ? int_sub(f) : float_sub(f);
}
Handler make_fma(Form& f) {
  if (f.types.size() == 2) return mixed_fma(f);
  f.same_type_operands(4);
  return float_fma(f);
}
Handler make_mul(Form& f) { return is_int(f) ? int_mul(f) : float_mul(f); }
Handler make_mad(Form& f) {
  if (is_int(f)) return int_mad(f);
  f.same_type_operands(4);
  return float_fma(f);
}
Handler make_div(Form& f) { return is_int(f) ? int_div(f) : float_div(f); }
Handler make_abs(Form& f) { return is_int(f) ? int_abs(f) : float_abs(f); }
Handler make_neg(Form& f) { return is_int(f) ? int_neg(f) : float_neg(f); }
// f32 has a form of three operands (sm_100 on).
Handler make_min(Form& f) {
  f.same_type_operands(f.count() == 4 && f.type() == Ty::f32 ? 4 : 3);
  return is_int(f) ? int_min(f) : float_min(f);
}
Handler make_max(Form& f) {
  f.same_type_operands(f.count() == 4 && f.type() == Ty::f32 ? 4 : 3);
  return is_int(f) ? int_max(f) : float_max(f);
}

}  // namespace kiln::rt::sim
