#include "runtime/sim/special.h"

#include <fmt/format.h>

#include <charconv>

#include "runtime/sim/form.h"

namespace kiln::rt::sim {
namespace {

constexpr std::string_view kCluster = "90@7.8";

/// Vectors of x, y and z; w is 0 in each.
struct Vector {
  std::string_view name;
  std::array<Special, 3> elements;
  std::string_view needs = {};
  bool halves = false;
};
constexpr Vector kVectors[] = {
    {"%tid", {Special::TidX, Special::TidY, Special::TidZ}, {}, true},
    {"%ntid", {Special::NtidX, Special::NtidY, Special::NtidZ}, {}, true},
    {"%ctaid", {Special::CtaX, Special::CtaY, Special::CtaZ}, {}, true},
    {"%nctaid", {Special::NctaX, Special::NctaY, Special::NctaZ}, {}, true},
    {"%clusterid", {Special::ClusterX, Special::ClusterY, Special::ClusterZ}, kCluster},
    {"%nclusterid", {Special::NclusterX, Special::NclusterY, Special::NclusterZ}, kCluster},
    {"%cluster_ctaid", {Special::CtaInClusterX, Special::CtaInClusterY, Special::CtaInClusterZ}, kCluster},
    {"%cluster_nctaid", {Special::NctaInClusterX, Special::NctaInClusterY, Special::NctaInClusterZ}, kCluster},
};

constexpr SpecialName kSpecials[] = {
    {"%laneid", Special::LaneId},
    {"%warpid", Special::WarpId},
    {"%nwarpid", Special::NWarpId},
    {"%smid", Special::SmId},
    {"%nsmid", Special::NSmId},
    {.name = "%gridid", .bits = 64, .halves = true},
    {"%lanemask_eq", Special::MaskEq},
    {"%lanemask_lt", Special::MaskLt},
    {"%lanemask_le", Special::MaskLe},
    {"%lanemask_gt", Special::MaskGt},
    {"%lanemask_ge", Special::MaskGe},
    {"%dynamic_smem_size", Special::DynamicSmem},
    {"%total_smem_size", Special::TotalSmem},
    {"%is_explicit_cluster", Special::IsCluster, kCluster, 1},
    {"%aggr_smem_size", Special::AggregateSmem, "90@8.1"},
    {"%reserved_smem_offset_begin", Special::Zero, "80@7.6"},
    {"%reserved_smem_offset_end", Special::ReservedEnd, "80@7.6"},
    {"%reserved_smem_offset_cap", Special::ReservedEnd, "80@7.6"},
    {"%current_graph_exec", Special::Zero, "80@8.0", 64},
    {"%cluster_ctarank", Special::CtaRank, kCluster},
    {"%cluster_nctarank", Special::NctaRank, kCluster},
    {.name = "%clock", .clock = true},
    {.name = "%clock_hi", .clock = true, .bits_below = 32},
    {.name = "%clock64", .bits = 64, .clock = true},
    {.name = "%globaltimer", .bits = 64, .clock = true},
    {.name = "%globaltimer_lo", .clock = true},
    {.name = "%globaltimer_hi", .clock = true, .bits_below = 32},
};

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

/// 0 to 3 for x to w, or r to a; 4 for anything else.
std::size_t element_index(char c) {
  const std::size_t letter = std::string_view("xyzw").find(c);
  return letter != std::string_view::npos ? letter : std::min<std::size_t>(std::string_view("rgba").find(c), 4);
}

SpecialName element(const Vector& v, std::string_view name, std::size_t i) {
  return {.name = name, .which = i < 3 ? v.elements[i] : Special::Zero, .needs = v.needs, .halves = v.halves};
}

bool is_mov_type(const SpecialName& s, Ty t) {
  if (s.bits == 1) return t == Ty::pred;
  if (kind(t) == TyKind::Float || kind(t) == TyKind::Packed || t == Ty::pred) return false;
  return bits(t) == s.bits || (s.halves && bits(t) >= 16 && bits(t) < s.bits);
}

void check_special(const Form& f, const ptx::Operand& o, bool part) {
  if (f.name != "mov" && !(f.name == "cvt" && is_integer(f.type(0)) && is_integer(f.type(1))))
    f.fail(fmt::format("only mov and cvt between integers read a special register; {} takes none", f.name));
  const auto s = find_special(o.name);
  if (!s || part || f.has("v2") || f.has("v4")) return;
  const Ty t = f.name == "mov" ? f.type() : f.type(1);
  const bool fits = f.name == "mov" ? is_mov_type(*s, t) : s->bits > 1 && bits(t) <= s->bits;
  if (!fits)
    f.fail(fmt::format("{} has {}; {}.{} does not read it", s->name,
                       s->bits == 1 ? "1 bit" : fmt::format("{} bits", s->bits), f.name, name(t)));
}

}  // namespace

std::optional<SpecialName> find_special(std::string_view name) {
  for (const SpecialName& n : kSpecials)
    if (n.name == name) return n;
  if (is_environment(name)) return SpecialName{name};
  for (const Vector& v : kVectors) {
    if (name.size() != v.name.size() + 2 || !name.starts_with(v.name) || name[v.name.size()] != '.') continue;
    const std::size_t i = element_index(name.back());
    if (i > 3) return std::nullopt;
    return element(v, name, i);
  }
  return std::nullopt;
}

std::optional<std::array<SpecialName, 3>> special_elements(std::string_view vector) {
  for (const Vector& v : kVectors)
    if (v.name == vector) return std::array{element(v, vector, 0), element(v, vector, 1), element(v, vector, 2)};
  return std::nullopt;
}

void check_specials(const Form& f) {
  for (const ptx::Operand& o : f.stmt.operands) {
    if (o.kind == ptx::Operand::Kind::Special) check_special(f, o, false);
    for (const ptx::Operand& p : o.parts)
      if (p.kind == ptx::Operand::Kind::Special) check_special(f, p, true);
  }
}

}  // namespace kiln::rt::sim
