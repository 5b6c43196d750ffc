// Verifier. It checks, at every stage:
//   region     the body and the regions of instructions form a tree: each instruction stands once, in the region it
//   names
//              as its parent; an op has as many regions as ops.def says
//   scope      an operand is defined earlier in its own region or in one around it
//   types      operand count, attributes and operand types are what the op takes, and the result types are what it
//   gives
//              (infer, backend/ir/op/infer.h: no store through a read-only pointer is one of its rules)
//   yield      a region of an instruction ends with its only yield; the body has none
//   control    region parameters and yields have the types, layouts included, of the values they carry
//   params     parameter types are scalars or pointers; access agrees with read_only; alignments are powers of two;
//              only an index is known to be one
//   uses       use lists name exactly the operands (broken by writing Inst::operands directly)
// and at a stage:
//   exec       absent at traced, present from canonical on and consistent (warps a power of two, cluster only as a
//   team) layouts    before laid: no tile has one, no convert. From laid on: every tile has one, of its rank, over its
//   padded
//              extents, surjective, with the lanes, warps and blocks of Exec
//   threads    expand_dims and broadcast (from laid on) find each element in the thread that needs it
#include "backend/ir/verify.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/infer.h"
#include "backend/ir/text.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

std::string list(const std::vector<Type>& types) {
  std::string s;
  for (const Type& t : types) s += (s.empty() ? "" : ", ") + t.str();
  return "(" + s + ")";
}

class Verifier {
 public:
  explicit Verifier(const Function& f)
      : f_(f), in_scope_(f.value_count(), false), seen_(f.inst_count(), false), laid_(f.stage >= Stage::Laid) {}

  std::vector<Violation> run() {
    function();
    region(f_.body());
    if (!f_.region(f_.body()).params.empty()) report(kNone, "region: the body has parameters");
    return std::move(found_);
  }

 private:
  void report(InstId i, std::string message) {
    found_.push_back({i, i == kNone ? f_.loc : f_.inst(i).loc, std::move(message)});
  }
  std::vector<Type> types(std::span<const Value> values) const {
    std::vector<Type> t;
    for (Value v : values) t.push_back(f_.type(v));
    return t;
  }

  // --- function
  // ---------------------------------------------------------------------------------------------------------
  void function() {
    for (std::size_t i = 0; i < f_.params.size(); ++i) param(i, f_.params[i]);
    if (!f_.use_lists_consistent()) report(kNone, "uses: use lists do not match operands");
    if (f_.stage == Stage::Traced && f_.exec) report(kNone, "exec: present at stage traced");
    if (f_.stage != Stage::Traced && !f_.exec) report(kNone, fmt::format("exec: missing at stage {}", name(f_.stage)));
    if (f_.exec) exec(*f_.exec);
  }

  void param(std::size_t i, const Param& p) {
    const auto bad = [&](const std::string& what) {
      report(kNone, fmt::format("params: parameter {} ({}): {}", i, p.type.str(), what));
    };
    if (p.type.tile) bad("is a tile");
    if (p.type.ptr && p.type.read_only != (p.access == rt::Access::Read))
      bad("access differs from the pointer's const");
    if (!p.type.ptr && p.access != rt::Access::Read) bad("a scalar is only read");
    if (p.align < 1 || !std::has_single_bit(unsigned(p.align)))
      bad(fmt::format("alignment {} is no power of two", p.align));
    if (p.align != 1 && !p.type.ptr && p.type.dtype != DType::index) bad("only pointers and index have an alignment");
    if (p.disjoint && !p.type.ptr) bad("only pointers are disjoint");
    const bool is_index = !p.type.ptr && p.type.dtype == DType::index;
    if (p.is_one && !is_index) bad("only an index is known to be one");
    if (p.is_extent && !is_index) bad("only an index is an extent");
  }

  void exec(const Exec& e) {
    const auto bad = [&](const std::string& what) { report(kNone, "exec: " + what); };
    if (e.warps < 1 || e.warps > 32 || !std::has_single_bit(unsigned(e.warps)))
      bad(fmt::format("{} warps: a power of two from 1 to 32 is needed", e.warps));
    if (e.team == Team::Warp && e.warps != 1) bad(fmt::format("a warp team has one warp, not {}", e.warps));
    if (e.programs_per_cta < 1 || (e.team != Team::Warp && e.programs_per_cta != 1))
      bad(fmt::format("{} programs in a block for a {} team", e.programs_per_cta, name(e.team)));
    if (e.cluster < 1 || !std::has_single_bit(unsigned(e.cluster)) || (e.team != Team::Cluster && e.cluster != 1))
      bad(fmt::format("cluster of {} for a {} team", e.cluster, name(e.team)));
    if (e.producer != 0 && (e.producer != 4 || e.team != Team::Cta || e.warps % 4 != 0))
      bad(fmt::format("{} warps that fill a ring for {} warps of a {} team", e.producer, e.warps, name(e.team)));
    if (e.max_registers < 0 || e.max_registers > 255)
      bad(fmt::format("{} registers: 0 to 255 is allowed", e.max_registers));
  }

  // --- regions and instructions
  // ---------------------------------------------------------------------------------------
  void region(RegionId r) {
    const Region& region = f_.region(r);
    for (Value v : region.params) define(region.owner, v);
    for (InstId i : region.insts) instruction(r, i);
    if (region.owner != kNone) terminated(region);
    for (InstId i : region.insts) leave(f_.inst(i).results);
    leave(region.params);
  }

  void terminated(const Region& region) {
    if (region.insts.empty() || f_.inst(region.insts.back()).op != Op::Yield)
      report(region.owner,
             fmt::format("yield: a region of {} does not end with one", mnemonic(f_.inst(region.owner).op)));
  }

  void instruction(RegionId r, InstId i) {
    const Inst& inst = f_.inst(i);
    if (seen_[i]) return report(i, "region: instruction stands twice");
    seen_[i] = true;
    if (inst.parent != r) report(i, "region: instruction names another region as its parent");
    if (inst.op == Op::Yield && (f_.region(r).owner == kNone || f_.region(r).insts.back() != i))
      report(i, "yield: not at the end of a region");
    if (operands_in_scope(i) && type_rules(i) && laid_) threads(i);
    if (int(inst.regions.size()) != info(inst.op).regions) {
      report(i, fmt::format("region: {} has {} regions, takes {}", mnemonic(inst.op), inst.regions.size(),
                            info(inst.op).regions));
    } else {
      for (RegionId inner : inst.regions) {
        if (f_.region(inner).owner != i) report(i, "region: region names another owner");
        region(inner);
      }
      control(i);
    }
    for (Value v : inst.results) define(i, v);
  }

  /// False when an operand is no value at all, so that nothing more can be asked about it.
  bool operands_in_scope(InstId i) {
    bool known = true;
    for (Value v : f_.inst(i).operands) {
      if (v.id >= f_.value_count()) known = false;
      if (v.id >= f_.value_count() || !in_scope_[v.id])
        report(i, fmt::format("scope: {} uses a value that is not defined before it in its region or one around it",
                              mnemonic(f_.inst(i).op)));
    }
    return known;
  }

  void define(InstId at, Value v) {
    in_scope_[v.id] = true;
    const Type& t = f_.type(v);
    if (!t.tile && (!t.shape.empty() || t.layout != kNoLayout))
      report(at, fmt::format("types: scalar {} has a shape or a layout", t.str()));
    if (t.tile) layout(at, t);
  }
  void leave(const std::vector<Value>& values) {
    for (Value v : values) in_scope_[v.id] = false;
  }

  bool type_rules(InstId i) {
    const Inst& inst = f_.inst(i);
    const std::vector<Type> stated = types(inst.results);
    const std::size_t before = found_.size();
    try {
      const Types given = infer({f_, inst.op, inst.operands, inst.attrs, stated, {}});
      if (given != stated)
        report(i, fmt::format("types: {} gives {}, its results are {}", mnemonic(inst.op), list(given), list(stated)));
    } catch (const UserError& e) {
      report(i, fmt::format("types: {}", e.what()));
    }
    if (inst.op == Op::Convert && !laid_) report(i, fmt::format("layouts: convert at stage {}", name(f_.stage)));
    return found_.size() == before;
  }

  // --- control flow
  // ---------------------------------------------------------------------------------------------------
  void control(InstId i) {
    const Inst& inst = f_.inst(i);
    const std::vector<Type> results = types(inst.results);
    if (inst.op == Op::For && inst.operands.size() >= 3) {
      std::vector<Type> params = results;
      params.insert(params.begin(), f_.type(inst.operands[0]));
      carried(i, 0, params, results);
    } else if (inst.op == Op::While) {
      carried(i, 0, results, {Type::scalar(DType::i1)});
      carried(i, 1, results, results);
    } else if ((inst.op == Op::Reduce || inst.op == Op::Scan) && !inst.results.empty()) {
      std::vector<Type> scalars;
      for (const Type& t : results) scalars.push_back(Type::scalar(t.dtype));
      std::vector<Type> params = scalars;
      params.insert(params.end(), scalars.begin(), scalars.end());
      carried(i, 0, params, scalars);
      combines(f_.region(inst.regions[0]));
    } else if (inst.op == Op::Walk) {
      const Type number = Type::scalar(DType::index);
      carried(i, 0, {number, number, number, Type::scalar(DType::i1)}, {});
    } else if (inst.op == Op::If) {
      carried(i, 0, {}, results);
      carried(i, 1, {}, results);
    }
  }

  /// Region number k of `i` takes `params` and yields `yields`.
  void carried(InstId i, std::size_t k, const std::vector<Type>& params, const std::vector<Type>& yields) {
    const Region& r = f_.region(f_.inst(i).regions[k]);
    const char* op = mnemonic(f_.inst(i).op);
    if (const auto t = types(r.params); t != params)
      report(i, fmt::format("control: region {} of {} has parameters {}, must be {}", k, op, list(t), list(params)));
    if (r.insts.empty() || f_.inst(r.insts.back()).op != Op::Yield) return;
    if (const auto t = types(f_.inst(r.insts.back()).operands); t != yields)
      report(r.insts.back(),
             fmt::format("control: region {} of {} yields {}, must be {}", k, op, list(t), list(yields)));
  }

  /// A combining region holds scalar operations without effects or regions.
  void combines(const Region& r) {
    for (InstId i : r.insts) {
      const Inst& inst = f_.inst(i);
      const bool scalar = std::none_of(inst.results.begin(), inst.results.end(),
                                       [&](Value v) { return f_.type(v).tile || f_.type(v).ptr; });
      if (inst.op != Op::Yield && (!info(inst.op).pure || !inst.regions.empty() || !scalar))
        report(i, fmt::format("control: {} in a combining region", mnemonic(inst.op)));
    }
  }

  // --- layouts
  // --------------------------------------------------------------------------------------------------------
  void layout(InstId at, const Type& t) {
    const auto bad = [&](const std::string& what) { report(at, fmt::format("layouts: {} {}", t.str(), what)); };
    if (!laid_ && t.layout != kNoLayout) return bad(fmt::format("has a layout at stage {}", name(f_.stage)));
    if (!laid_) return;
    if (t.layout == kNoLayout) return bad(fmt::format("has no layout at stage {}", name(f_.stage)));
    if (t.layout >= f_.layout_count()) return bad("names a layout that the function does not have");
    const LinearLayout& l = f_.layout(t.layout);
    if (l.out_shape() != padded(t.shape)) return bad("has a layout of other extents: " + l.str());
    if (!l.surjective()) bad("has a layout that does not reach every element: " + l.str());
    if (!f_.exec) return;
    const auto bits = [](int n) { return int(std::bit_width(unsigned(n))) - 1; };
    if (l.in_bits(Hw::Lane) != 5 || l.in_bits(Hw::Warp) != bits(f_.exec->warps) ||
        l.in_bits(Hw::Block) != bits(f_.exec->cluster))
      bad(fmt::format("has a layout of other threads than {} warps, cluster {}: {}", f_.exec->warps, f_.exec->cluster,
                      l.str()));
  }

  void threads(InstId i) {
    const Inst& inst = f_.inst(i);
    if (inst.op != Op::ExpandDims && inst.op != Op::Broadcast) return;
    const LayoutId from = f_.type(inst.operands[0]).layout, to = f_.type(inst.results[0]).layout;
    if (from >= f_.layout_count() || to >= f_.layout_count()) return;  // reported where the value is defined
    LinearLayout have = f_.layout(from);
    if (inst.op == Op::ExpandDims) have = have.expand(int(inst.i64(AttrKey::axis)));
    if (have.rank() != f_.layout(to).rank()) return;
    if (!same_thread_registers(have, f_.layout(to)))
      report(i, fmt::format("threads: {} needs elements of other threads: {} from {}", mnemonic(inst.op),
                            f_.layout(to).str(), f_.layout(from).str()));
  }

  const Function& f_;
  std::vector<bool> in_scope_, seen_;
  bool laid_;
  std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> verify(const Function& f) { return Verifier(f).run(); }

std::string format(const Function& f, const std::vector<Violation>& violations) {
  std::vector<InstId> insts;
  for (const Violation& v : violations)
    if (v.inst != kNone) insts.push_back(v.inst);
  const std::vector<std::string> lines = print_lines(f, insts, {.locations = false});
  std::string text;
  std::size_t next = 0;
  for (const Violation& v : violations) {
    text += fmt::format("{}: {}: {}", v.loc.str(), f.name, v.message);
    if (v.inst != kNone) text += "\n    " + lines[next++];
    text += "\n";
  }
  return text;
}

}  // namespace kiln::ir
