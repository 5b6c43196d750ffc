// infer-facts: what the facts of parameters and the ranges of values decide becomes a constant.
//
// Facts come with the specialisation (an index parameter known to be 1) and from the kernel itself (arange, program_id,
// constants); AxisAnalysis (axis_info.h) carries them to every value. A value that can only be one number is replaced
// by that number: here `one` is 1, and the mask 0 <= arange(0, 128) < 256 is true. Canonicalise then removes the mask
// and the multiplication.
//
//     param : ptr<f32> access=write                      param : ptr<f32> access=write
//     param : index access=read one                      param : index access=read one
//     {                                                  {
//       %1 = param index=1 : index                         %1 = constant value=index(1) : index
//       %2 = arange start=0 end=128 : tile<128xindex>      %2 = arange start=0 end=128 : tile<128xindex>
//       %4 = lt %2, splat(256) : tile<128xi1>      ->      %4 = splat(i1(1)) : tile<128xi1>
//       …                                                  …
#include "backend/pass/axis_info.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"

#include "backend/ir/fold.h"

namespace kiln::ir {

bool infer_facts(PassContext&, Function& f) {
  const AxisAnalysis facts(f);
  bool changed = false;
  walk(f, [&](InstId i) {
    const Inst& inst = f.inst(i);
    if (!info(inst.op).pure || inst.results.size() != 1) return;
    const Value v = inst.results[0];
    const Type type = f.type(v);
    const Interval range = facts[v].range;
    if (type.ptr || is_float(type.dtype) || !range.single() || literal_of(f, v) || !f.has_uses(v)) return;
    f.replace_all_uses(v, insert_constant(f, i, Literal::of_int(type.dtype, range.lo), type, inst.loc));
    f.remove(i);
    changed = true;
  });
  return changed;
}

}  // namespace kiln::ir
