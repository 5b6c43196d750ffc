#include "runtime/tools/sim_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/tools/diagnostics.h"

namespace kiln::rt::tools {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(Verdict v) {
  switch (v) {
    case Verdict::Match: return "match";
    case Verdict::Mismatch: return "mismatch";
    case Verdict::Findings: return "findings";
    case Verdict::BadInput: return "bad input";
  }
  return "";
}

std::string triple(const std::array<std::uint32_t, 3>& v) { return fmt::format("({}, {}, {})", v[0], v[1], v[2]); }

std::string comparison_text(const Comparison& c) {
  if (c.matches())
    return c.largest_error == 0 ? "equal" : fmt::format("within the bound, largest error {:.3g}", c.largest_error);
  std::string out =
      fmt::format("{} of {} wrong, first [{}]: got {}, want {}", c.wrong, c.elements, c.first_wrong, c.got, c.want);
  if (c.allowed > 0)
    out += fmt::format("; largest error {:.3g}, {:.3g} is allowed next to 0", c.largest_error, c.allowed);
  else out += fmt::format("; largest error {:.6g}", c.largest_error);
  return out;
}

std::string elements_text(const Result& r, std::size_t most) {
  const std::size_t all = r.after.size() / static_cast<std::size_t>(bytes(r.argument->dtype)), n = std::min(all, most);
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += (i ? " " : "") + element_text(r.argument->dtype, r.after, i);
  return out + (n < all ? " …" : "");
}

std::string result_text(const Result& r, std::size_t print, std::size_t width) {
  const std::size_t n = r.after.size() / static_cast<std::size_t>(bytes(r.argument->dtype));
  std::string out = fmt::format("  {:<{}}  {} {}", r.argument->name, width, n, name(r.argument->dtype));
  if (r.comparison) out += ": " + comparison_text(*r.comparison);
  out += "\n";
  if (print) out += fmt::format("  {:<{}}  {}\n", "", width, elements_text(r, print));
  return out;
}

Json finding_json(const Finding& f) {
  Json j{{"kind", name(f.kind)}, {"where", f.where}, {"ptx_line", f.ptx_line},
         {"ptx", f.ptx},         {"block", f.block}, {"warp", f.warp}};
  if (f.lane >= 0) {
    j["lane"] = f.lane;
    j["thread"] = f.thread;
  }
  j["what"] = what(f);
  j["message"] = f.message;
  return j;
}

Json result_json(const Result& r) {
  Json j{{"name", r.argument->name},
         {"dtype", name(r.argument->dtype)},
         {"elements", r.after.size() / static_cast<std::size_t>(bytes(r.argument->dtype))}};
  if (!r.comparison) return j;
  const Comparison& c = *r.comparison;
  j["matches"] = c.matches();
  j["wrong"] = c.wrong;
  // JSON has no infinity.
  if (std::isfinite(c.largest_error)) j["largest_error"] = c.largest_error;
  if (!c.matches()) {
    j["first_wrong"] = c.first_wrong;
    j["got"] = c.got;
    j["want"] = c.want;
  }
  return j;
}

}  // namespace

Verdict verdict(const Outcome& o) {
  if (!o.findings.empty()) return Verdict::Findings;
  if (!o.error.empty()) return Verdict::BadInput;
  return o.matches() ? Verdict::Match : Verdict::Mismatch;
}

std::string outcome_text(const Case& c, const Outcome& o, std::size_t print) {
  std::string out = fmt::format("{} on {}: grid {}, {} threads\n", c.entry, o.device, triple(c.grid),
                                c.block[1] * c.block[2] == 1 ? std::to_string(c.block[0]) : triple(c.block));
  std::size_t width = 0;
  for (const Result& r : o.results) width = std::max(width, r.argument->name.size());
  for (const Result& r : o.results) out += result_text(r, print, width);
  const auto right = std::count_if(o.results.begin(), o.results.end(),
                                   [](const Result& r) { return r.comparison && r.comparison->matches(); });
  const auto compared =
      std::count_if(o.results.begin(), o.results.end(), [](const Result& r) { return r.comparison.has_value(); });
  const std::string buffers =
      compared ? fmt::format("{} of {} buffers match", right, compared) : "nothing to compare with";
  const std::string found = o.findings.empty()
                                ? "no findings"
                                : fmt::format("{} finding{}", o.findings.size(), o.findings.size() == 1 ? "" : "s");
  return out + fmt::format("{}: {}, {}\n", name_of(verdict(o)), buffers, found);
}

std::string outcome_json(const Case& c, const Outcome& o) {
  Json j{{"schema", "kiln-sim-1"},
         {"verdict", name_of(verdict(o))},
         {"kernel", c.entry},
         {"ptx", c.ptx_file.string()},
         {"device", o.device}};
  if (!o.error.empty()) j["error"] = o.error;
  Json& buffers = j["buffers"] = Json::array();
  for (const Result& r : o.results) buffers.push_back(result_json(r));
  Json& findings = j["findings"] = Json::array();
  for (const Finding& f : o.findings) findings.push_back(finding_json(f));
  Json& counters = j["counters"] = Json::object();
  for (const Profile::Kernel& k : o.profile.kernels) {
#define KILN_COUNTER(name, doc) counters[#name] = k.counters.name;
#include "runtime/counters.def"
  }
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kiln::rt::tools
