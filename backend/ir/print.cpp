// Printer of the text form. The grammar, with `[…]` optional:
//
//   kernel "name" stage=traced [loc("file":line:column)]
//   [exec team=cta warps=4 programs_per_cta=1 cluster=1 max_registers=0 register_goal=0]
//   param ["name"] : type access=read|write|readwrite [align=n] [one] [extent] [disjoint]   one line a parameter
//   layout #n = [register=(1)(2) lane=(4) …] -> 8x128                         one line a layout
//   {
//     [%0, %1 =] mnemonic [attr=value …] [%2, %3] [: type, type] [loc(…)] [{[(%4 : type, …)]
//       …
//     }[ {…]]
//   }
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "backend/ir/text.h"

namespace kiln::ir {
namespace {

const char* access_name(rt::Access a) {
  switch (a) {
    case rt::Access::Read: return "read";
    case rt::Access::Write: return "write";
    case rt::Access::ReadWrite: return "readwrite";
  }
  return "";
}

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') out += "\\n";
    else out += c;
  }
  return out + '"';
}

class Printer {
 public:
  Printer(const Function& f, PrintOptions options)
      : f_(f), options_(options), value_(f.value_count(), kNone), layout_(f.layout_count(), kNone) {
    number_region(f.body());
  }

  std::string function(std::vector<SourceLoc>& line_locs) {
    line("kernel " + quoted(f_.name) + " stage=" + name(f_.stage) + loc(f_.loc), f_.loc);
    if (f_.exec) line(exec(*f_.exec));
    for (const Param& p : f_.params) line(param(p));
    for (std::size_t i = 0; i < layout_order_.size(); ++i)
      line(fmt::format("layout #{} = {}", i, layout(f_.layout(layout_order_[i]))));
    line("{");
    region(f_.body(), 1);
    line("}");
    line_locs = std::move(locs_);
    return std::move(text_);
  }

  std::string head(const Inst& inst) const {
    std::string s;
    for (Value v : inst.results) s += (s.empty() ? "" : ", ") + value(v);
    if (!s.empty()) s += " = ";
    s += mnemonic(inst.op);
    for (const Attr& a : inst.attrs) s.append(" ").append(name(a.key)).append("=").append(attr(a));
    for (std::size_t i = 0; i < inst.operands.size(); ++i) s += (i ? ", " : " ") + value(inst.operands[i]);
    for (std::size_t i = 0; i < inst.results.size(); ++i) s += (i ? ", " : " : ") + type(f_.type(inst.results[i]));
    return s + loc(inst.loc);
  }

 private:
  // Values and layouts are numbered in the order in which they are printed first.
  void number(Value v) {
    value_[v.id] = next_value_++;
    const LayoutId id = f_.type(v).layout;
    if (id >= layout_.size() || layout_[id] != kNone) return;  // none, or broken IR that names one that is not there
    layout_[id] = std::uint32_t(layout_order_.size());
    layout_order_.push_back(id);
  }
  void number_region(RegionId r) {
    for (Value v : f_.region(r).params) number(v);
    for (InstId i : f_.region(r).insts) {
      for (Value v : f_.inst(i).results) number(v);
      for (RegionId inner : f_.inst(i).regions) number_region(inner);
    }
  }

  void line(const std::string& s, SourceLoc at = {}) {
    text_ += s;
    text_ += '\n';
    locs_.push_back(at);
  }

  void region(RegionId r, int depth) {
    for (InstId i : f_.region(r).insts) instruction(f_.inst(i), depth);
  }

  void instruction(const Inst& inst, int depth) {
    const std::string indent(std::size_t(depth) * 2, ' ');
    std::string s = indent + head(inst);
    SourceLoc at = inst.loc;
    for (RegionId r : inst.regions) {
      line(s + " {" + region_params(f_.region(r)), at);
      region(r, depth + 1);
      s = indent + "}";
      at = {};
    }
    line(s, at);
  }

  std::string region_params(const Region& r) const {
    if (r.params.empty()) return "";
    std::string s;
    for (Value v : r.params) s += (s.empty() ? "(" : ", ") + value(v) + " : " + type(f_.type(v));
    return s + ")";
  }

  /// A value that is defined nowhere in the function (broken IR) prints as %?id.
  std::string value(Value v) const {
    if (v.id >= value_.size() || value_[v.id] == kNone) return fmt::format("%?{}", v.id);
    return "%" + std::to_string(value_[v.id]);
  }

  std::string type(const Type& t) const {
    if (t.layout == kNoLayout) return t.str();
    Type renumbered = t;
    if (t.layout < layout_.size()) renumbered.layout = layout_[t.layout];
    return renumbered.str();
  }

  std::string loc(SourceLoc at) const {
    if (!options_.locations || !at.known()) return "";
    return fmt::format(" loc({}:{}:{})", quoted(at.file), at.line, at.column);
  }

  std::string attr(const Attr& a) const {
    if (const auto* l = std::get_if<Literal>(&a.value)) return print(*l);
    if (const auto* s = std::get_if<std::string>(&a.value)) return quoted(*s);
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&a.value))
      return fmt::format("[{}]", fmt::join(*list, ","));
    const std::int64_t i = std::get<std::int64_t>(a.value);
    const auto named = names(info(a.key).kind);
    return i >= 0 && i < std::int64_t(named.size()) ? named[std::size_t(i)] : fmt::format("{}", i);
  }

  std::string exec(const Exec& e) const {
    return fmt::format(
        "exec team={} warps={} programs_per_cta={} cluster={} max_registers={} register_goal={}{}",
        name(e.team), e.warps, e.programs_per_cta, e.cluster, e.max_registers, e.register_goal,
        e.producer == 0 ? "" : fmt::format(" producer={}", e.producer));
  }

  std::string param(const Param& p) const {
    std::string s = "param ";
    if (options_.locations && !p.name.empty()) s += quoted(p.name) + " ";
    s += fmt::format(": {} access={}", p.type.str(), access_name(p.access));
    if (p.align != 1) s += fmt::format(" align={}", p.align);
    if (p.is_one) s += " one";
    if (p.is_extent) s += " extent";
    if (p.disjoint) s += " disjoint";
    return s;
  }

  std::string layout(const LinearLayout& l) const {
    std::string s = "[";
    for (const Hw h : {Hw::Register, Hw::Lane, Hw::Warp, Hw::Block, Hw::Offset}) {
      for (int bit = 0; bit < l.in_bits(h); ++bit) {
        if (bit == 0) s += fmt::format("{}{}=", s.size() > 1 ? " " : "", name(h));
        s += fmt::format("({})", fmt::join(l.basis(h, bit), ","));
      }
    }
    return s +
           fmt::format("] -> {}", l.out_shape().empty() ? "scalar" : fmt::format("{}", fmt::join(l.out_shape(), "x")));
  }

  const Function& f_;
  PrintOptions options_;
  std::vector<std::uint32_t> value_, layout_;
  std::vector<LayoutId> layout_order_;
  std::uint32_t next_value_ = 0;
  std::string text_;
  std::vector<SourceLoc> locs_;
};

}  // namespace

std::string print(const Literal& l) {
  if (!is_float(l.dtype)) {
    if (l.dtype == DType::u64) return fmt::format("u64({})", l.bits);
    return fmt::format("{}({})", name(l.dtype), l.as_int());
  }
  const std::string decimal =
      l.dtype == DType::f32 ? fmt::format("{}", float(l.as_double())) : fmt::format("{}", l.as_double());
  double back = 0;
  const auto [end, error] = std::from_chars(decimal.data(), decimal.data() + decimal.size(), back);
  const bool exact = error == std::errc{} && end == decimal.data() + decimal.size() && std::isfinite(back) &&
                     Literal::of_float(l.dtype, back) == l;
  return exact ? fmt::format("{}({})", name(l.dtype), decimal) : fmt::format("{}({:#x})", name(l.dtype), l.bits);
}

std::string print(const Function& f, PrintOptions options, std::vector<SourceLoc>& line_locs) {
  return Printer(f, options).function(line_locs);
}

std::string print(const Function& f, PrintOptions options) {
  std::vector<SourceLoc> line_locs;
  return print(f, options, line_locs);
}

std::vector<std::string> print_lines(const Function& f, const std::vector<InstId>& insts, PrintOptions options) {
  const Printer printer(f, options);
  std::vector<std::string> lines;
  for (InstId i : insts) lines.push_back(printer.head(f.inst(i)));
  return lines;
}

}  // namespace kiln::ir
