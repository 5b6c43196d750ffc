// Hints to the caches. None has an effect that a program can see; those with rules are held to them.
#include <fmt/format.h>

#include <bit>

#include "runtime/sim/decode.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/memory.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

void nothing(Warp&, const Inst&) {}

/// discard and applypriority work on a whole line. in.flags: it is a discard.
void line(Warp& w, const Inst& in) {
  const auto address = address_lanes(w, in, in.ops[0]);
  each_lane(w.mask, [&](int l) {
    check_global_range(w, in, l, address[static_cast<std::size_t>(l)], 128, 128,
                       in.flags ? "discard of a line" : "applypriority to a line");
  });
}

/// ops: address, bytes
void bulk_prefetch(Warp& w, const Inst& in) {
  const auto address = address_lanes(w, in, in.ops[0]);
  const auto* bytes = w.in<U32>(in.ops[1]);
  each_lane(w.mask, [&](int l) {
    if (bytes[l] % 16) fault(w, in, l, fmt::format("a prefetch of {} bytes, which is no multiple of 16", bytes[l]));
    check_global_range(w, in, l, address[static_cast<std::size_t>(l)], bytes[l], 16, "bulk prefetch");
  });
}

/// A policy is an opaque word.
void policy(Warp& w, const Inst& in) {
  auto* d = w.out<U64>(in.ops[0]);
  each_lane(w.mask, [=](int l) { d[l] = 0x1000000000000000; });
}

}  // namespace

Handler make_prefetch(Form& f) {
  if (f.count() != 1) return nullptr;
  f.address(f.operand(0));
  return nothing;
}

Handler make_line_hint(Form& f) {
  if (f.count() != 2 || f.immediate(1) != 128) f.fail("needs an address and 128");
  f.address(f.operand(0));
  f.inst.flags = f.name == "discard";
  return line;
}

Handler make_bulk_prefetch(Form& f) {
  if (f.count() != 2u + f.has("L2::cache_hint")) f.fail("needs an address and a number of bytes");
  f.address(f.operand(0));
  f.src(1, Ty::u32);
  cache_hint(f);
  return bulk_prefetch;
}

Handler make_createpolicy(Form& f) {
  const bool range = f.has("range");
  const std::size_t least = range ? 4 : f.has("cvt") ? 2 : 1, most = range ? 4 : 2;
  if (f.types.size() != 1 || f.type() != Ty::b64 || f.count() < least || f.count() > most) return nullptr;
  f.dst(0, Ty::b64);
  if (range) f.address(f.operand(1));
  return policy;
}

}  // namespace kiln::rt::sim
