#include "backend/pass/name_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "backend/pass/rewrite.h"
#include "backend/pass/source_names.h"
#include "runtime/base/file.h"

namespace kiln::ir {
namespace {

class Namer {
 public:
  explicit Namer(Function& f) : f_(f) {}

  bool run() {
    std::vector<RegionId> regions{f_.body()};
    walk(f_, [&](InstId i) {
      const Inst& inst = f_.inst(i);
      if (inst.op == Op::Reduce || inst.op == Op::Scan) return;  // their regions combine elements
      regions.insert(regions.end(), inst.regions.begin(), inst.regions.end());
    });
    for (RegionId r : regions) region(r);
    parameters();
    return changed_;
  }

 private:
  using Place = std::pair<const SourceNames*, std::size_t>;  ///< file, statement

  const SourceNames* file(const char* path) {
    auto& names = files_[path];
    if (!names) {
      names.emplace(rt::read_source(path).value_or(""));
    }
    return &*names;
  }

  std::optional<Place> place(InstId i) {
    const SourceLoc at = f_.inst(i).loc;
    if (!at.known()) return std::nullopt;
    const SourceNames* source = file(at.file);
    const std::size_t s = source->at(at.line, at.column);
    if (s == SourceNames::npos || source->statement(s).names.empty()) return std::nullopt;
    return Place{source, s};
  }

  /// What one statement made, in order. A C++ loop around it runs it several times: it starts over with its first place
  /// and operation.
  struct Made {
    Place place;
    std::vector<std::vector<InstId>> turns;
  };

  void region(RegionId r) {
    const std::vector<InstId> order = f_.region(r).insts;
    std::vector<Made> made;
    for (InstId i : order) {
      const Inst& inst = f_.inst(i);
      const auto p = place(i);
      if (!p) continue;
      if (p->first->statement(p->second).loop) {
        if (inst.op == Op::For) induction(i, p->first->statement(p->second).names[0]);
        continue;
      }
      if (inst.results.empty()) continue;
      auto at = std::find_if(made.begin(), made.end(), [&](const Made& m) { return m.place == *p; });
      if (at == made.end()) at = made.insert(made.end(), {*p, {}});
      const bool again = !at->turns.empty() && same(f_.inst(at->turns.back().front()), inst);
      if (at->turns.empty() || again) at->turns.emplace_back();
      at->turns.back().push_back(i);
    }
    for (const Made& m : made)
      for (const auto& turn : m.turns) name(turn, m.place.first->statement(m.place.second).names);
  }

  static bool same(const Inst& a, const Inst& b) {
    return a.op == b.op && a.loc.line == b.loc.line && a.loc.column == b.loc.column;
  }

  void name(const std::vector<InstId>& turn, const std::vector<std::string>& names) {
    const InstId last = turn.back();
    const std::vector<Value> results = f_.inst(last).results;
    if (results.size() == names.size()) {
      for (std::size_t k = names.size(); k-- > 0;) put_behind(last, results[k], names[k]);
    } else if (results.size() == 1 && turn.size() >= names.size()) {
      // One operation for each of several names, as the two halves of split.
      const auto begin = turn.end() - static_cast<std::ptrdiff_t>(names.size());
      if (std::all_of(begin, turn.end(), [&](InstId i) { return same(f_.inst(i), f_.inst(last)); }))
        for (std::size_t k = 0; k < names.size(); ++k)
          put_behind(begin[static_cast<std::ptrdiff_t>(k)], f_.inst(begin[static_cast<std::ptrdiff_t>(k)]).results[0],
                     names[k]);
    }
  }

  void induction(InstId loop, const std::string& name) {
    const RegionId body = f_.inst(loop).regions[0];
    put(f_.region(body).insts.front(), f_.region(body).params[0], name, f_.inst(loop).loc);
  }

  void put_behind(InstId i, Value v, const std::string& name) {
    const std::vector<InstId>& insts = f_.region(f_.inst(i).parent).insts;
    const auto at = std::find(insts.begin(), insts.end(), i);
    if (at + 1 != insts.end()) return put(at[1], v, name, f_.inst(i).loc);
    f_.append(f_.inst(i).parent, create(v, name, f_.inst(i).loc));
  }
  void put(InstId before, Value v, const std::string& name, SourceLoc at) {
    f_.insert_before(before, create(v, name, at));
  }
  InstId create(Value v, const std::string& name, SourceLoc at) {
    changed_ = true;
    return f_.create(Op::Name, {v}, {}, {{AttrKey::text, name}}, at);
  }

  /// "argument 2 (Int)" becomes "n", "argument 1 (View<float, 2>.stride(0))" "x.stride(0)".
  void parameters() {
    if (!f_.loc.known()) return;
    const std::vector<std::string> names = file(f_.loc.file)->parameters(f_.loc.line, f_.loc.column);
    for (Param& p : f_.params) {
      unsigned position = 0;
      if (std::sscanf(p.name.c_str(), "argument %u (", &position) != 1 || !p.name.ends_with(')')) continue;
      if (position == 0 || position > names.size() || names[position - 1].empty()) continue;
      const std::size_t part = std::min(p.name.find('.'), p.name.size() - 1);
      p.name = names[position - 1] + p.name.substr(part, p.name.size() - 1 - part);
      changed_ = true;
    }
  }

  Function& f_;
  std::map<std::string, std::optional<SourceNames>> files_;
  bool changed_ = false;
};

}  // namespace

bool name_values(Function& f) { return Namer(f).run(); }

}  // namespace kiln::ir
