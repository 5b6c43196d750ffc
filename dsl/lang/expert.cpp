#include "dsl/lang/expert.h"

#include <fmt/format.h>

#include "dsl/lang/shaping.h"

namespace kiln {
namespace detail {
namespace {

void emit_barrier(std::int64_t id, std::int64_t threads, SourceLoc at) {
  const ir::Attr number{ir::AttrKey::id, id}, count{ir::AttrKey::threads, threads};
  std::vector<ir::Attr> attrs;
  if (id != 0) attrs.push_back(number);
  if (threads != 0) attrs.push_back(count);
  Tracer::current(at).emit_effect(at, [&](ir::Builder& b) { b.make(ir::Op::Barrier, {}, attrs, at); });
}

}  // namespace

Made shared(DType d, std::int64_t count, SourceLoc at) {
  return {Tracer::current(at)
              .emit(at,
                    [&](ir::Builder& b) {
                      return b.make(ir::Op::Alloc, {}, {{ir::AttrKey::count, count}}, at, ir::Type::shared_pointer(d));
                    })
              .id};
}

std::vector<Made> inline_ptx(const Text& ptx, std::initializer_list<Arg> operands,
                             std::initializer_list<DType> results) {
  Tracer& t = Tracer::current(ptx.at);
  std::vector<ir::Value> in;
  for (const Arg& a : operands) in.push_back(value_of(t, a, ptx.at));
  ir::Type shape = ir::Type::scalar(DType::i1);
  for (ir::Value v : in) shape = common_shape(t, shape, t.type(v), "inline_ptx", ptx.at);
  for (ir::Value& v : in) v = broadcast_like(t, v, shape, "inline_ptx", ptx.at);
  std::vector<ir::Type> stated;
  for (const DType d : results) stated.push_back(shape.with(d));
  std::vector<Made> made;
  t.emit_effect(ptx.at, [&](ir::Builder& b) {
    const ir::InstId i = b.append(ir::Op::InlinePtx, in, stated, {{ir::AttrKey::text, std::string(ptx.text)}}, ptx.at);
    for (ir::Value v : b.function().inst(i).results) made.push_back({v.id});
  });
  return made;
}

}  // namespace detail

void barrier(RawLoc l) { detail::emit_barrier(0, 0, l); }
void barrier(int id, int threads, RawLoc l) {
  if (id == 0) detail::Tracer::current(l).fail(l, "barrier: id 0 is the compiler's; named barriers are 1 to 15");
  detail::emit_barrier(id, threads, l);
}

}  // namespace kiln
