// An interpreter with a wrong op, made by changing the program it gets: the comparison must find it.
#include <algorithm>

#include "backend/ir/function.h"
#include "dsl/tools/fuzz/compare.h"

namespace kiln::fuzz {
namespace {

using ir::Attr;
using ir::AttrKey;
using ir::Function;
using ir::InstId;
using ir::Literal;
using ir::Op;
using ir::Type;
using ir::Value;

/// Inserts instructions one behind the other.
class Behind {
 public:
  Behind(Function& f, InstId i) : f_(f), region_(f.inst(i).parent), loc_(f.inst(i).loc) {
    const std::vector<InstId>& insts = f.region(region_).insts;
    next_ = std::size_t(std::find(insts.begin(), insts.end(), i) - insts.begin()) + 1;
  }
  Value make(Op op, std::vector<Value> operands, Type type, std::vector<Attr> attrs = {}) {
    const InstId i = f_.create(op, std::move(operands), {std::move(type)}, std::move(attrs), loc_);
    if (next_ < f_.region(region_).insts.size()) f_.insert_before(f_.region(region_).insts[next_], i);
    else f_.append(region_, i);
    ++next_;
    return f_.inst(i).results[0];
  }
  /// 1 of the dtype, in every element of a value like `like`.
  Value one(DType d, const Type& like) {
    const Value c = make(Op::Constant, {}, Type::scalar(d), {{AttrKey::value, Literal::of_int(d, 1)}});
    return like.tile ? make(Op::Splat, {c}, Type::tile_of(d, like.shape)) : c;
  }

 private:
  Function& f_;
  ir::RegionId region_;
  SourceLoc loc_;
  std::size_t next_ = 0;
};

/// Another value than `v`: its lowest bit flipped, or one more.
Value changed(Behind& behind, Value v, const Type& t) {
  if (t.ptr) return behind.make(Op::PtrAdd, {v, behind.one(DType::i32, t)}, t);
  if (!is_float(t.dtype)) return behind.make(Op::Xor, {v, behind.one(t.dtype, t)}, t);
  if (bytes(t.dtype) > 1) return behind.make(Op::Add, {v, behind.one(t.dtype, t)}, t);
  const Type wide = t.with(DType::f32);
  const Value w = behind.make(Op::Cast, {v}, wide), sum = behind.make(Op::Add, {w, behind.one(DType::f32, t)}, wide);
  return behind.make(Op::Cast, {sum}, t);
}

}  // namespace

Function with_planted(Function f, Op op) {
  std::vector<InstId> all;
  walk(f, [&](InstId i) {
    if (f.inst(i).op == op) all.push_back(i);
  });
  std::reverse(all.begin(), all.end());  // the inner ones first: an outer one may go with all that is in it
  for (InstId i : all) {
    const std::vector<Value> results = f.inst(i).results;
    if (results.empty() && !info(op).terminator) {
      f.remove(i);
      continue;
    }
    Behind behind(f, i);
    for (Value v : results) {
      // The uses first: the change itself uses the old value.
      const Value placeholder = f.add_value(f.type(v), i);
      f.replace_all_uses(v, placeholder);
      f.replace_all_uses(placeholder, changed(behind, v, Type(f.type(v))));
    }
  }
  return f;
}

}  // namespace kiln::fuzz
