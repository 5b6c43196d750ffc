#include "runtime/sim/register_names.h"

#include <fmt/format.h>

#include <charconv>

namespace kiln::rt::sim::ptx {
namespace {

/// The whole text as a number, without zeros in front.
std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  return value;
}

/// Whether shorter<count> has names of longer<…>: of %r<20> %r10 is one of %r1<5>.
bool holds_names(std::string_view shorter, std::uint32_t count, std::string_view longer) {
  if (longer.size() <= shorter.size() || !longer.starts_with(shorter)) return false;
  const auto n = number(longer.substr(shorter.size()));
  return n && std::uint64_t{*n} * 10 < count;
}

}  // namespace

std::optional<std::uint32_t> Scope::find(std::string_view name) const {
  if (const auto it = regs.find(name); it != regs.end()) return it->second;
  std::size_t digits = name.size();  // where the number begins
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  // The name of a range may end in digits itself.
  for (; digits < name.size(); ++digits) {
    const auto n = number(name.substr(digits));
    if (!n) continue;
    const auto range = ranges.find(name.substr(0, digits));
    if (range != ranges.end() && *n < range->second.second) return range->second.first + *n;
  }
  return std::nullopt;
}

bool Scope::overlaps(std::string_view name, std::uint32_t count) const {
  if (ranges.contains(name)) return true;
  for (auto r = regs.lower_bound(name); r != regs.end() && r->first.starts_with(name); ++r)
    if (const auto n = number(r->first.substr(name.size())); n && *n < count) return true;
  for (const auto& [other, range] : ranges)
    if (range.second && count && (holds_names(other, range.second, name) || holds_names(name, count, other)))
      return true;
  return false;
}

bool RegisterNames::declare(Function& f, std::string_view name, bool numbered, std::uint32_t count,
                            std::uint32_t width) {
  const auto first = static_cast<std::uint32_t>(f.regs.size());
  if (width > 1) {
    for (std::uint32_t i = 0; i < count; ++i)
      if (!declare_vector(f, numbered ? owned(fmt::format("{}{}", name, i)) : name, first + i * width, width))
        return false;
    return true;
  }
  Scope& scope = innermost();
  if (numbered ? scope.overlaps(name, count) : scope.declares(name)) return false;
  if (numbered) scope.ranges[name] = {first, count};
  else scope.regs[name] = first;
  f.reg_names.push_back({name, numbered, first, count});
  return true;
}

bool RegisterNames::declare_vector(Function& f, std::string_view name, std::uint32_t first, std::uint32_t width) {
  Scope& scope = innermost();
  if (scope.declares(name)) return false;
  scope.vectors[name] = {first, width};
  for (std::uint32_t i = 0; i < width; ++i) {
    const std::string_view element = owned(fmt::format("{}.{}", name, "xyzw"[i]));
    scope.regs[element] = first + i;
    f.reg_names.push_back({element, false, first + i, 1});
  }
  return true;
}

std::optional<std::uint32_t> RegisterNames::find(std::string_view name) const {
  for (auto s = scopes_.rbegin(); s != scopes_.rend(); ++s)
    if (const auto reg = s->find(name)) return reg;
  // An element of a vector has a second name, as of a colour.
  if (name.size() < 3 || name[name.size() - 2] != '.') return std::nullopt;
  const std::size_t colour = std::string_view("rgba").find(name.back());
  const auto [first, elements] = find_vector(name.substr(0, name.size() - 2));
  if (colour >= elements) return std::nullopt;
  return first + static_cast<std::uint32_t>(colour);
}

Scope::Registers RegisterNames::find_vector(std::string_view name) const {
  for (auto s = scopes_.rbegin(); s != scopes_.rend(); ++s)
    if (const auto it = s->vectors.find(name); it != s->vectors.end()) return it->second;
  return {0, 0};
}

std::int32_t RegisterNames::find_variable(std::string_view name) const {
  for (auto s = scopes_.rbegin(); s != scopes_.rend(); ++s)
    if (const auto it = s->variables.find(name); it != s->variables.end()) return it->second;
  return -1;
}

}  // namespace kiln::rt::sim::ptx
