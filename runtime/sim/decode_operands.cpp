// Decoder: where variables and registers live, and what operands stand for.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/decode_limits.h"
#include "runtime/sim/needs.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

using Kind = ptx::Operand::Kind;

struct SpecialName {
  std::string_view name;
  Special which;
  std::string_view needs = {};  ///< as in needs.def
};
constexpr SpecialName kSpecials[] = {
    {"%tid.x", Special::TidX},
    {"%tid.y", Special::TidY},
    {"%tid.z", Special::TidZ},
    {"%ntid.x", Special::NtidX},
    {"%ntid.y", Special::NtidY},
    {"%ntid.z", Special::NtidZ},
    {"%ctaid.x", Special::CtaX},
    {"%ctaid.y", Special::CtaY},
    {"%ctaid.z", Special::CtaZ},
    {"%nctaid.x", Special::NctaX},
    {"%nctaid.y", Special::NctaY},
    {"%nctaid.z", Special::NctaZ},
    {"%laneid", Special::LaneId},
    {"%warpid", Special::WarpId},
    {"%nwarpid", Special::NWarpId},
    {"%smid", Special::SmId},
    {"%nsmid", Special::NSmId},
    {"%gridid", Special::Zero},
    {"%lanemask_eq", Special::MaskEq},
    {"%lanemask_lt", Special::MaskLt},
    {"%lanemask_le", Special::MaskLe},
    {"%lanemask_gt", Special::MaskGt},
    {"%lanemask_ge", Special::MaskGe},
    {"%dynamic_smem_size", Special::DynamicSmem},
    {"%total_smem_size", Special::TotalSmem},
    {"%clusterid.x", Special::ClusterX, "90@7.8"},
    {"%clusterid.y", Special::ClusterY, "90@7.8"},
    {"%clusterid.z", Special::ClusterZ, "90@7.8"},
    {"%nclusterid.x", Special::NclusterX, "90@7.8"},
    {"%nclusterid.y", Special::NclusterY, "90@7.8"},
    {"%nclusterid.z", Special::NclusterZ, "90@7.8"},
    {"%cluster_ctaid.x", Special::CtaInClusterX, "90@7.8"},
    {"%cluster_ctaid.y", Special::CtaInClusterY, "90@7.8"},
    {"%cluster_ctaid.z", Special::CtaInClusterZ, "90@7.8"},
    {"%cluster_nctaid.x", Special::NctaInClusterX, "90@7.8"},
    {"%cluster_nctaid.y", Special::NctaInClusterY, "90@7.8"},
    {"%cluster_nctaid.z", Special::NctaInClusterZ, "90@7.8"},
    {"%is_explicit_cluster", Special::IsCluster, "90@7.8"},
    {"%aggr_smem_size", Special::AggregateSmem, "90@8.1"},
    {"%reserved_smem_offset_begin", Special::Zero, "80@7.6"},
    {"%reserved_smem_offset_end", Special::ReservedEnd, "80@7.6"},
    {"%reserved_smem_offset_cap", Special::ReservedEnd, "80@7.6"},
    {"%current_graph_exec", Special::Zero, "80@8.0"},
    {"%cluster_ctarank", Special::CtaRank, "90@7.8"},
    {"%cluster_nctarank", Special::NctaRank, "90@7.8"},
};

void not_pred(Warp& w, const Inst& in) { *w.out<std::uint32_t>(in.ops[0]) = ~w.pred(in.ops[1]); }

}  // namespace

namespace {

/// %envreg0 to %envreg31 hold what the driver put there: nothing, here.
bool is_environment(std::string_view name) {
  constexpr std::string_view kPrefix = "%envreg";
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() && number < 32 &&
         (name.size() == 1 || name[0] != '0');
}

std::optional<SpecialName> find_special(std::string_view name) {
  for (const SpecialName& n : kSpecials)
    if (n.name == name) return n;
  if (is_environment(name)) return SpecialName{name, Special::Zero};
  return std::nullopt;
}

}  // namespace

std::optional<Special> special_named(std::string_view name) {
  const auto found = find_special(name);
  return found ? std::optional(found->which) : std::nullopt;
}

std::string_view special_element(std::string_view vector, char element) {
  for (const SpecialName& n : kSpecials)
    if (n.name.size() == vector.size() + 2 && n.name.starts_with(vector) && n.name.ends_with(std::string{'.', element}))
      return n.name;
  return {};
}

Decoder::Decoder(std::shared_ptr<const ptx::Module> module, const ptx::Function& entry, Symbols globals)
    : program_(std::make_shared<Program>()), module_(*module), entry_(entry), symbols_(std::move(globals)) {
  program_->module = std::move(module);
  program_->kernel = entry.name;
  program_->reqntid = entry.reqntid;
  program_->maxntid = entry.maxntid;
  program_->maxnreg = entry.maxnreg;
  program_->minnctapersm = entry.minnctapersm;
  program_->cluster = entry.cluster;
}

std::uint64_t Decoder::reserve(std::uint32_t& at, const ptx::Variable& v, std::uint64_t most, const char* what) const {
  const std::uint64_t begin = align_up(at, v.align);
  if (v.bytes > most || begin + v.bytes > most)
    throw DeviceError(fmt::format("kernel {}: variable {} of {} bytes behind {} others makes more than {} bytes of {}",
                                  entry_.name, v.name, v.bytes, at, most, what));
  at = static_cast<std::uint32_t>(begin + v.bytes);
  return begin;
}

void Decoder::place_shared() {
  std::uint32_t dynamic_align = 16;
  const auto place_one = [&](const ptx::Variable& v) {
    return Place{Space::Shared, reserve(shared_at_, v, kMostShared, "shared memory")};
  };
  for (const ptx::Variable& v : module_.variables) {
    if (v.space != Space::Shared) continue;
    if (v.external) dynamic_align = std::max(dynamic_align, v.align);
    else symbols_[v.name] = place_one(v);
  }
  for (const ptx::Function& f : module_.functions)
    for (const ptx::Variable& v : f.locals)
      if (v.space == Space::Shared && (!f.entry || &f == &entry_)) shared_variables_[&v] = place_one(v);
  program_->shared_bytes = shared_at_ - kSharedBase;
  program_->dynamic_at = static_cast<std::uint32_t>(align_up(shared_at_, dynamic_align));
  for (const ptx::Variable& v : module_.variables)
    if (v.space == Space::Shared && v.external) symbols_[v.name] = {Space::Shared, program_->dynamic_at};
}

void Decoder::place_variable(const ptx::Variable& v, Frame& frame) {
  Place p{v.space, 0};
  if (v.space == Space::Shared) {
    p = shared_variables_.at(&v);  // one object, however often the function is expanded
  } else if (v.space == Space::Local || v.space == Space::Param) {
    p.space = Space::Local;
    p.at = reserve(local_at_, v, kMostLocal, "local memory");
  } else {
    throw DeviceError(fmt::format("kernel {}: variable {} of {} has an unsupported state space", entry_.name, v.name,
                                  frame.function->name));
  }
  frame.locals.push_back(p);
}

Ref Decoder::new_slot(Ty t) {
  if (words_ > kMostRegisterWords)
    throw DeviceError(
        fmt::format("kernel {} needs more than {} registers a thread", entry_.name, kMostRegisterWords / kLanes));
  if (t == Ty::pred) {
    if (pred_free_ == 0) {
      pred_words_ = words_;
      pred_free_ = kLanes;
      words_ += kLanes;
    }
    --pred_free_;
    return static_cast<Ref>(pred_words_++);
  }
  const auto at = static_cast<Ref>(words_);
  words_ += static_cast<std::uint32_t>(std::max(bits(t), 32)) / 32 * kLanes;  // 128 bits: two slots of 64
  return at;
}

Ref Decoder::constant(std::uint64_t value, bool wide) {
  if (!wide) value &= 0xFFFFFFFFu;
  const auto [it, fresh] = constants_.insert({{value, wide}, 0});
  if (fresh) {
    auto& pool = program_->constants;
    it->second = ~static_cast<Ref>(pool.size() * 2);
    pool.insert(pool.end(), wide ? kLanes : kLanes / 2, wide ? value : value << 32 | value);
  }
  return it->second;
}

Ref Decoder::special(std::string_view name, bool wide, const ptx::Stmt& s) {
  const auto known = specials_.find({name, wide});
  if (known != specials_.end()) return known->second;
  if (const auto found = find_special(name)) {
    if (const std::string what = missing(found->needs, module_.target, module_.version); !what.empty())
      fail(s, fmt::format("{} {}", name, what));
    const Ref slot = new_slot(wide ? Ty::b64 : Ty::b32);
    program_->specials.push_back({found->which, slot, wide});
    return specials_[{name, wide}] = slot;
  }
  fail(s, fmt::format("the special register {} is not supported", name));
}

int Decoder::register_bits(const ptx::Operand& o) const {
  const bool reg = o.kind == Kind::Reg || (o.kind == Kind::Address && o.has_base);
  if (!reg) return 0;
  const Ty t = frames_.back()->function->regs[o.reg];
  return t == Ty::pred ? 1 : bits(t) == 64 ? 64 : bits(t) == 128 ? 128 : bits(t);
}

Place Decoder::find(const ptx::Operand& o, const ptx::Stmt& s) const {
  const Frame& f = *frames_.back();
  if (o.local >= 0) return f.locals[static_cast<std::size_t>(o.local)];
  if (const auto it = f.params.find(o.name); it != f.params.end()) return it->second;
  if (const auto it = symbols_.find(o.name); it != symbols_.end()) return it->second;
  if (module_.find(o.name)) fail(s, fmt::format("{} is a function; its address is for an indirect call", o.name));
  fail(s, fmt::format("unknown name '{}'", o.name));
}

Ref Decoder::destination(const ptx::Operand& o, Ty t, const ptx::Stmt& s) {
  if (o.kind == Kind::Sink && bits(t) == 128) fail(s, "128 bits that are no register");
  if (o.kind == Kind::Sink) return t == Ty::pred ? sink_pred_ : bits(t) > 32 ? sink64_ : sink32_;
  if (o.kind != Kind::Reg || o.negated) fail(s, "the result must be a register");
  return source(o, t, s);
}

Ref Decoder::source(const ptx::Operand& o, Ty t, const ptx::Stmt& s) {
  const bool wide = bits(t) == 64;
  if (o.negated && o.kind != Kind::Reg) fail(s, "'!' before what is no predicate register");
  if (bits(t) == 128 && o.kind != Kind::Reg) fail(s, "128 bits that are no register");
  switch (o.kind) {
    case Kind::Reg: {
      const Frame& f = *frames_.back();
      const Ty r = f.function->regs[o.reg];
      if (o.negated && t != Ty::pred) fail(s, fmt::format("{} is no predicate, so it has no '!'", o.name));
      if ((r == Ty::pred) != (t == Ty::pred) || (bits(r) == 64) != wide || (bits(r) == 128) != (bits(t) == 128))
        fail(s, fmt::format("register {} has {} bits, the operation needs {}", o.name, bits(r), bits(t)));
      if (!o.negated) return f.slots[o.reg];
      const Ref flipped = new_slot(Ty::pred);
      Inst inst;
      inst.run = not_pred;
      inst.unknowns = Unknowns::Computes;
      append(inst, s, {flipped, f.slots[o.reg]}, Flow::Next);
      program_->operand_uses.end()[-2] = {OperandRole::Written, 1};
      program_->operand_uses.end()[-1] = {OperandRole::Read, 1};
      return flipped;
    }
    case Kind::Special:
      if (t == Ty::pred && o.name == "%is_explicit_cluster") return special(o.name, false, s);
      if (t == Ty::pred || bits(t) < 32 || o.name == "%is_explicit_cluster")
        fail(s, fmt::format("the special register {} has 32 bits or 64", o.name));
      return special(o.name, wide, s);
    case Kind::Symbol: {
      const Place p = find(o, s);
      if (bits(t) < 32 || (p.space == Space::Global && !wide))
        fail(s, fmt::format("the address of {} needs {} bits", o.name, p.space == Space::Global ? 64 : 32));
      return constant(p.at + static_cast<std::uint64_t>(o.value), wide);
    }
    case Kind::Int:
      if (t == Ty::pred) return constant(o.value ? kAllLanes : 0, false);
      if (bits(t) < 32) return constant(static_cast<std::uint64_t>(o.value) & ((1u << bits(t)) - 1), false);
      return constant(static_cast<std::uint64_t>(o.value), wide);
    case Kind::Float32:
      if (is_integer(t) || t == Ty::pred || bits(t) < 32) fail(s, "a float where an integer belongs");
      if (t == Ty::f64)
        return constant(std::bit_cast<std::uint64_t>(
                            static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(o.value)))),
                        true);
      return constant(static_cast<std::uint64_t>(o.value), wide);
    case Kind::Float64:
      if (is_integer(t) || t == Ty::pred || bits(t) < 32) fail(s, "a float where an integer belongs");
      if (t == Ty::f32)
        return constant(std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(o.value))), false);
      return constant(static_cast<std::uint64_t>(o.value), wide);
    case Kind::Address:
    case Kind::Vector:
    case Kind::Text:
    case Kind::Sink: break;
  }
  fail(s, "an operand is of a kind this instruction does not take");
}

}  // namespace kiln::rt::sim
