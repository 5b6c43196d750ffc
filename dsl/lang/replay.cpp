#include "dsl/lang/replay.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "dsl/lang/kernel.h"

namespace kiln::detail {
namespace {

constexpr int kAllBodies = 1 << 20;

struct Trial {
  ir::Function function;
  TraceNotes notes;
};

Trial trace_as(Replay replay, const TraceNotes* known, const std::string& name, SourceLoc at, FunctionRef<void()> run) {
  Tracer t(name, at, replay, known);
  run();
  ir::Function f = t.finish();
  return {std::move(f), t.notes()};
}

/// Walks two functions in step, down to bodies at `depth`.
class Comparison {
 public:
  Comparison(const Trial& first, const ir::Function& second, int depth)
      : a_(first.function), b_(second), rests_(first.notes.rests), depth_(depth), in_b_(a_.value_count(), ir::kNone) {}

  bool equal() { return region(a_.body(), b_.body(), 0); }

 private:
  bool same_values(const std::vector<ir::Value>& a, const std::vector<ir::Value>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a_.type(a[i]) != b_.type(b[i])) return false;
      in_b_[a[i].id] = b[i].id;
    }
    return true;
  }
  bool same_operands(const std::vector<ir::Value>& a, const std::vector<ir::Value>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](ir::Value x, ir::Value y) { return in_b_[x.id] == y.id; });
  }
  bool region(ir::RegionId a, ir::RegionId b, int depth) {
    const ir::Region &x = a_.region(a), &y = b_.region(b);
    if (!same_values(x.params, y.params) || x.insts.size() != y.insts.size()) return false;
    for (std::size_t i = 0; i < x.insts.size(); ++i)
      if (!instruction(x.insts[i], y.insts[i], depth)) return false;
    return true;
  }
  bool instruction(ir::InstId a, ir::InstId b, int depth) {
    const ir::Inst &x = a_.inst(a), &y = b_.inst(b);
    if (x.op != y.op || x.attrs != y.attrs || x.regions.size() != y.regions.size()) return false;
    if (!same_operands(x.operands, y.operands) || !same_values(x.results, y.results)) return false;
    const bool rest = rests_.contains(a);
    if (!rest && depth >= depth_) return true;
    for (std::size_t k = 0; k < x.regions.size(); ++k)
      if (!region(x.regions[k], y.regions[k], depth + !rest)) return false;
    return true;
  }

  const ir::Function &a_, &b_;
  const std::unordered_set<ir::InstId>& rests_;
  const int depth_;
  std::vector<std::uint32_t> in_b_;  // by value of a
};

/// The function without its bodies at `depth` and below.
void empty_bodies(ir::Function& f, const std::unordered_set<ir::InstId>& rests, ir::RegionId r, int depth) {
  for (ir::InstId i : std::vector<ir::InstId>(f.region(r).insts))
    for (ir::RegionId inner : std::vector<ir::RegionId>(f.inst(i).regions)) {
      if (rests.contains(i)) {
        empty_bodies(f, rests, inner, depth);
      } else if (depth > 0) {
        empty_bodies(f, rests, inner, depth - 1);
      } else {
        while (!f.region(inner).insts.empty()) f.remove(f.region(inner).insts.back());
        f.region(inner).params.clear();
      }
    }
}

[[noreturn]] void report(Replay replay, Trial first, Trial second) {
  if (replay.mode == Replay::Skip)
    for (Trial* t : {&first, &second}) empty_bodies(t->function, t->notes.rests, t->function.body(), replay.depth);
  if (first.notes.depth == 0)
    throw_trace_difference(
        first.function, second.function,
        "depends on C++ state that tracing changes (a counter, a static); pass it as a Const, an Int or a capture");
  throw_trace_difference(
      first.function, second.function,
      "depends on C++ state that a traced loop or branch changes; a variable changed there must be a Scalar or a Tile",
      replay.mode == Replay::Skip ? "when the bodies do not run" : "when loop bodies run twice and else before then");
}

}  // namespace

ir::Function verified_trace(const std::string& name, SourceLoc definition, FunctionRef<void()> run) {
  Trial first = trace_as({}, nullptr, name, definition, run);
  const auto replay = [&](Replay r) {
    Trial second = trace_as(r, &first.notes, name, definition, run);
    if (!Comparison(first, second.function, r.mode == Replay::Skip ? r.depth : kAllBodies).equal())
      report(r, std::move(first), std::move(second));
  };
  std::uint64_t repeated = first.notes.repeated;
  do {
    replay({Replay::Twice, repeated ? std::countr_zero(repeated) : 0});
    repeated &= repeated - 1;
  } while (repeated);
  for (int d = 0; d < first.notes.depth; ++d) replay({Replay::Skip, d});
  return std::move(first.function);
}

}  // namespace kiln::detail
