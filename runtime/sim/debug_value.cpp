#include "runtime/sim/debug_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/sim/debug_session.h"
#include "runtime/sim/debug_text.h"
#include "runtime/sim/report.h"

namespace kiln::debug {

double Value::number(std::size_t index) const { return rt::sim::value_number(dtype, bits.at(index)); }
std::string Value::text(std::size_t index) const {
  return rt::sim::value_text(rt::sim::Format{dtype, pointer}, bits.at(index));
}

std::size_t Value::at(const std::vector<std::int64_t>& index) const {
  if (index.size() != shape.size())
    throw UserError(fmt::format("{} has {} axes, the index has {}", name, shape.size(), index.size()));
  std::size_t n = 0;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (index[k] < 0 || index[k] >= shape[k])
      throw UserError(fmt::format("{}: index {} along axis {}, which has {} elements", name, index[k], k, shape[k]));
    n = n * static_cast<std::size_t>(shape[k]) + static_cast<std::size_t>(index[k]);
  }
  return n;
}

std::vector<std::string> Stop::value_names() const {
  std::vector<std::string> out;
  for (const auto& [pc, v] : session_->named())
    if (std::find(out.begin(), out.end(), v.name) == out.end()) out.push_back(v.name);
  return out;
}

namespace {

using rt::sim::NamedValue;
using rt::sim::Seen;

void take(Value& v, const NamedValue& named, const Seen& seen, std::uint32_t warp, std::uint32_t block) {
  for (std::uint32_t lanes = seen.lanes; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
    for (std::uint32_t r = 0; r < seen.registers.size(); ++r) {
      const auto e = named.element(r, lane, warp, block);
      if (!e) continue;
      v.bits[*e] = seen.registers[r][lane];
      v.known[*e] = true;
    }
  }
}

}  // namespace

Value Stop::value(const std::string& name) const {
  const Seen* here = session_->seen(*warp_, name);
  if (!here) {
    const std::vector<std::string> names = value_names();
    if (std::find(names.begin(), names.end(), name) != names.end())
      throw UserError(fmt::format("{} has no value yet in warp {} of block ({}, {}, {})", name, warp(), block()[0],
                                  block()[1], block()[2]));
    throw UserError(
        fmt::format("kernel {} has no variable {}; it has {}", kernel(), name,
                    names.empty() ? "none: it was compiled without names" : fmt::format("{}", fmt::join(names, ", "))));
  }
  const NamedValue& named = session_->named().at(here->pc);
  const rt::sim::Program& p = warp_->block->launch->program;
  Value v;
  v.name = name;
  v.dtype = named.dtype;
  v.pointer = named.pointer;
  v.tile = named.tile;
  v.shape = named.shape;
  v.where = rt::sim::place(p, p.infos[p.code[here->pc].info]);
  v.turn = here->turn;
  v.bits.resize(named.elements());
  v.known.resize(named.elements());
  if (!named.tile) {
    if (here->registers.empty() || here->lanes == 0) return v;
    const bool present = here->lanes >> lane_ & 1;
    v.bits[0] = here->registers[0][present ? lane_ : static_cast<std::uint32_t>(std::countr_zero(here->lanes))];
    v.known[0] = true;
    return v;
  }
  const std::uint32_t first = warp_->index / named.warps * named.warps;
  for (rt::sim::Block& b : warp_->block->cluster->blocks) {
    if (named.blocks == 1 && &b != warp_->block) continue;
    for (std::uint32_t w = 0; w < named.warps && first + w < b.warps.size(); ++w) {
      const Seen* seen = session_->seen(b.warps[first + w], name);
      if (seen && seen->pc == here->pc && seen->turn == here->turn) {
        take(v, named, *seen, w, named.blocks == 1 ? 0 : b.rank);
        continue;
      }
      const char* why = !seen                     ? "not here yet"
                        : seen->pc != here->pc    ? "has it from another statement"
                        : seen->turn < here->turn ? "not here yet in this turn"
                                                  : "already further on";
      const std::string whose = named.blocks == 1 ? "" : fmt::format("block {} of the cluster, ", b.rank);
      v.absent.push_back(fmt::format("{}warp {}: {}", whose, first + w, why));
    }
  }
  return v;
}

}  // namespace kiln::debug

namespace kiln::rt::sim {
namespace {

constexpr std::int64_t kShown = 8;  // positions of an axis, half of them from its end

/// The elements from `first` on: axes `axis` and inner ones.
void append(std::string& out, const debug::Value& v, std::size_t axis, std::size_t first, std::size_t width,
            const std::string& indent) {
  if (axis == v.shape.size()) {
    out += fmt::format("{:>{}}", v.known[first] ? v.text(first) : "?", width);
    return;
  }
  std::size_t stride = 1;
  for (std::size_t k = axis + 1; k < v.shape.size(); ++k) stride *= static_cast<std::size_t>(v.shape[k]);
  const bool inner = axis + 1 == v.shape.size();
  out += "[";
  for (std::int64_t i = 0; i < v.shape[axis]; ++i) {
    if (i > 0) out += inner ? ", " : ",\n" + indent + " ";
    if (v.shape[axis] > kShown && i == kShown / 2) {
      i = v.shape[axis] - kShown / 2;
      out += inner ? "…, " : "…,\n" + indent + " ";
    }
    append(out, v, axis + 1, first + static_cast<std::size_t>(i) * stride, width, indent + " ");
  }
  out += "]";
}

std::string statistics(const debug::Value& v) {
  if (v.pointer || v.dtype == DType::i1) return {};
  std::size_t least = v.bits.size(), most = least, nan = 0, known = 0;
  for (std::size_t i = 0; i < v.bits.size(); ++i) {
    if (!v.known[i]) continue;
    ++known;
    const double x = v.number(i);
    if (std::isnan(x)) {
      ++nan;
      continue;
    }
    if (least == v.bits.size() || x < v.number(least)) least = i;
    if (most == v.bits.size() || x > v.number(most)) most = i;
  }
  std::string out;
  if (least < v.bits.size()) out = fmt::format("min {}, max {}", v.text(least), v.text(most));
  if (nan) out += fmt::format("{}{} nan", out.empty() ? "" : ", ", nan);
  if (known < v.bits.size())
    out += fmt::format("{}{} of {} elements known", out.empty() ? "" : ", ", known, v.bits.size());
  return out.empty() ? out : out + "\n";
}

}  // namespace

std::string type_text(const debug::Value& v) {
  const std::string element = v.pointer ? "pointer" : name(v.dtype);
  return v.tile ? fmt::format("{}[{}]", element, fmt::join(v.shape, ", ")) : element;
}

std::string value_text(const debug::Value& v) {
  const std::string given = fmt::format("given at {}{}", v.where.substr(v.where.rfind('/') + 1),
                                        v.turn > 1 ? fmt::format(", turn {}", v.turn) : "");
  if (!v.tile) return fmt::format("{} {} = {}   ({})\n", type_text(v), v.name, v.known[0] ? v.text(0) : "?", given);
  std::string out = fmt::format("{} {}   ({})\n  ", type_text(v), v.name, given);
  std::size_t width = 1;
  for (std::size_t i = 0; i < v.bits.size(); ++i)
    if (v.shape.size() > 1 && v.known[i]) width = std::max(width, v.text(i).size());
  append(out, v, 0, 0, width, "  ");
  out += "\n" + statistics(v);
  for (const std::string& a : v.absent) out += a + "\n";
  return out;
}

}  // namespace kiln::rt::sim
