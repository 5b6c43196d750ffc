// print and assert. Each element that reports leaves one record (runtime/image/report_record.h).
#include "backend/ir/op/report.h"

#include <algorithm>
#include <cstring>

#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {

rt::ReportSite report_site(const Function& f, const Inst& inst) {
  rt::ReportSite site;
  site.kind = inst.op == Op::Print ? rt::ReportSite::Kind::Print : rt::ReportSite::Kind::Assert;
  site.text = inst.text();
  site.at = inst.loc;
  if (inst.op == Op::Print)
    for (Value v : inst.operands) site.values.push_back(f.type(v).dtype);
  if (!inst.operands.empty() && f.type(inst.operands[0]).tile) site.shape = f.type(inst.operands[0]).shape;
  return site;
}

std::vector<rt::ReportSite> report_sites(const Function& f) {
  std::vector<rt::ReportSite> sites;
  walk(f, [&](InstId i) {
    const Inst& inst = f.inst(i);
    if (inst.op != Op::Print && inst.op != Op::Assert) return;
    rt::ReportSite site = report_site(f, inst);
    if (std::find(sites.begin(), sites.end(), site) == sites.end()) sites.push_back(std::move(site));
  });
  return sites;
}

namespace {

/// Appends one record for each element that `reports(i)` says.
template <class Reports>
void record(Evaluator& e, const Inst& inst, std::size_t elements, Reports&& reports) {
  if (e.report_buffer() == nullptr) return;
  rt::ReportRecord r;
  r.site = e.site_of(inst);
  for (std::size_t axis = 0; axis < 3; ++axis) r.program[axis] = std::uint32_t(e.pid()[axis]);
  r.launch = e.launch_number();
  for (std::size_t i = 0; i < elements; ++i) {
    if (!reports(i)) continue;
    r.index = std::uint32_t(i);
    r.values.clear();
    if (inst.op == Op::Print)
      for (Value v : inst.operands) {
        const std::size_t bytes = element_bytes(e.type(v));
        std::uint64_t word = 0;
        std::memcpy(&word, e.data(v) + i * bytes, bytes);
        r.values.push_back(word);
      }
    append_record(e.report_buffer(), r, inst.op == Op::Assert);
  }
}

}  // namespace

Types infer_Print(const InferInput& in) {
  const auto text =
      std::find_if(in.attrs.begin(), in.attrs.end(), [](const Attr& a) { return a.key == AttrKey::text; });
  const std::string& format = std::get<std::string>(text->value);
  const int wanted = rt::placeholders(format);
  if (wanted < 0) in.fail("in the format only {}, {{ and }} may stand: \"" + format + "\"");
  if (wanted != int(in.operands.size()))
    in.fail("the format \"" + format + "\" has " + std::to_string(wanted) + " places for " +
            std::to_string(in.operands.size()) + " values");
  for (std::size_t i = 0; i < in.operands.size(); ++i) {
    const Type& t = in.type(i);
    if (t.ptr) in.fail("a pointer has no value to print: " + t.str());
    if (t.with(DType::i1) != in.type(0).with(DType::i1))
      in.fail("shapes differ: " + in.type(0).str() + " and " + t.str());
  }
  return {};
}
void eval_Print(Evaluator& e, const Inst& inst) {
  record(e, inst, inst.operands.empty() ? 1 : e.elements(inst.operands[0]), [](std::size_t) { return true; });
}

Types infer_Assert(const InferInput& in) {
  const Type& cond = in.type(0);
  if (cond.ptr || cond.dtype != DType::i1) in.fail("condition must be i1, is " + cond.str());
  if (in.operands.size() > 1 && in.type(1) != cond) in.fail("mask is " + in.type(1).str() + ", must be " + cond.str());
  return {};
}
void eval_Assert(Evaluator& e, const Inst& inst) {
  const bool* cond = e.in<bool>(inst.operands[0]);
  const bool* mask = inst.operands.size() > 1 ? e.in<bool>(inst.operands[1]) : nullptr;
  record(e, inst, e.elements(inst.operands[0]), [&](std::size_t i) { return !cond[i] && (!mask || mask[i]); });
}

}  // namespace kiln::ir
