// A profile as JSON: kiln-profile-1, described in docs/simulator.md. Counters that are 0 are left out.
#include <nlohmann/json.hpp>

#include "runtime/profile.h"

namespace kiln {
namespace {

using Json = nlohmann::ordered_json;

Json counters_json(const Counters& c) {
  Json out = Json::object();
#define KILN_COUNTER(name, doc) \
  if (c.name) out[#name] = c.name;
#include "runtime/counters.def"
  return out;
}

Json mix_json(const InstMix& mix) {
  Json out = Json::object();
  for (std::size_t i = 0; i < kInstClasses; ++i)
    if (mix[i]) out[kInstClassNames[i]] = mix[i];
  return out;
}

Json ratios_json(const Counters& c) {
  return {{"coalescing_read", coalescing_read(c)},
          {"coalescing_written", coalescing_written(c)},
          {"average_active_lanes", average_active_lanes(c)},
          {"average_executing_lanes", average_executing_lanes(c)}};
}

Json line_json(const Profile::Line& line) {
  Json out;
  if (!line.file.empty()) {
    out["file"] = line.file;
    out["line"] = line.line;
  }
  out["counters"] = counters_json(line.counters);
  out["ratios"] = ratios_json(line.counters);
  out["instructions_by_class"] = mix_json(line.mix);
  Json& instructions = out["instructions"] = Json::array();
  for (const Profile::Instruction& i : line.instructions)
    instructions.push_back({{"ptx_line", i.ptx_line},
                            {"text", i.text},
                            {"class", kInstClassNames[static_cast<std::size_t>(i.kind)]},
                            {"counters", counters_json(i.counters)}});
  return out;
}

Json kernel_json(const Profile::Kernel& k) {
  Json out{{"kernel", k.name}, {"device", k.device},   {"grid", k.grid},
           {"block", k.block}, {"cluster", k.cluster}, {"shared_bytes", k.shared_bytes}};
  out["counters"] = counters_json(k.counters);
  out["ratios"] = ratios_json(k.counters);
  out["instructions_by_class"] = mix_json(k.mix);
  Json& flop = out["matrix_flop_by_type"] = Json::object();
  for (const auto& [type, n] : k.flop) flop[type] = n;
  Json& lines = out["lines"] = Json::array();
  for (const Profile::Line& line : k.lines) lines.push_back(line_json(line));
  return out;
}

}  // namespace

std::string to_json(const Profile& p) {
  Json out{{"schema", "kiln-profile-1"}, {"kernels", Json::array()}};
  for (const Profile::Kernel& k : p.kernels) out["kernels"].push_back(kernel_json(k));
  // Names and lines may hold any bytes; JSON holds UTF-8.
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kiln
