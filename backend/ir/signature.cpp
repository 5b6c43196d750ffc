#include "backend/ir/signature.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::ir {

rt::ArgSig signature(const Function& f) {
  rt::ArgSig sig;
  for (std::size_t i = 0; i < f.params.size(); ++i) {
    const Param& p = f.params[i];
    rt::Arg arg;
    arg.kind = p.type.ptr ? rt::ArgKind::Pointer : rt::ArgKind::Scalar;
    arg.dtype = p.type.dtype;
    arg.access = p.access;
    arg.name = p.name.empty() ? fmt::format("argument {} ({})", i + 1, p.type.str()) : p.name;
    arg.align = std::uint32_t(p.type.ptr ? std::max(p.align, bytes(p.type.dtype)) : p.align);
    arg.is_one = p.is_one;
    arg.disjoint = p.disjoint;
    sig.append(std::move(arg));
  }
  return sig;
}

std::string tensor_map_obstacle(const Function& f, const rt::TensorMapRecipe& map) {
  const rt::ArgSig sig = signature(f);
  std::string why = rt::tensor_map_obstacle(sig, map);
  for (std::size_t i = 0; i < map.rank && why.empty(); ++i)
    for (const rt::TensorExtent& e : {map.sizes[i], map.strides[i]})
      if (e.is_arg() && !f.params[e.arg].is_extent && !f.params[e.arg].is_one && why.empty())
        why = sig.args[e.arg].name + ": not known to be 1 to 2^31 - 1";
  return why;
}

}  // namespace kiln::ir
