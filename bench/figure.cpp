#include "bench/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"

namespace kiln::bench {

static double rounded(double value, double per_unit) { return std::round(value * per_unit) / per_unit; }

std::string to_json(const Case& what) {
  return nlohmann::ordered_json{{"case", what.name}, {"shape", what.shape}, {"dtype", what.dtype}}.dump();
}

Case parse_case(const std::string& line) {
  const auto json = nlohmann::json::parse(line);
  if (!json.is_object() || !json.contains("case"))
    throw UserError("expected an object with \"case\", \"shape\" and \"dtype\"");
  for (const auto& extent : json.value("shape", nlohmann::json::array()))
    if (!extent.is_number_integer()) throw UserError("shape: expected whole numbers, got " + extent.dump());
  return {json.at("case").get<std::string>(), json.value("shape", std::vector<std::int64_t>{}),
          json.value("dtype", std::string())};
}

std::string to_json(const Figure& f) {
  nlohmann::ordered_json line{{"case", f.what.name}, {"peer", f.peer}};
  if (!f.what.shape.empty()) line["shape"] = f.what.shape;
  if (!f.what.dtype.empty()) line["dtype"] = f.what.dtype;
  if (!f.state.empty()) line["state"] = f.state;
  if (!f.stage.empty()) line["stage"] = f.stage;
  if (f.us >= 0) line["us"] = rounded(f.us, 1e3);
  if (f.gbs >= 0) line["gbs"] = rounded(f.gbs, 10);
  if (f.tflops >= 0) line["tflops"] = rounded(f.tflops, 10);
  if (f.ms >= 0) line["ms"] = rounded(f.ms, 1e3);
  if (f.glanes >= 0) line["glanes"] = rounded(f.glanes, 1e4);
  if (f.samples > 0) line["samples"] = f.samples;
  return line.dump();
}

std::string to_text(const Figure& f) {
  std::string subject = f.what.name;
  if (!f.what.shape.empty()) subject += fmt::format(" [{}]", fmt::join(f.what.shape, ", "));
  for (const std::string& s : {f.what.dtype, f.state, f.stage})
    if (!s.empty()) subject += " " + s;
  std::string text = fmt::format("{:<48} {:<34}", subject, f.peer);
  if (f.us >= 0) text += fmt::format(" {:>10.3f} us", f.us);
  if (f.gbs >= 0) text += fmt::format(" {:>8.1f} GB/s", f.gbs);
  if (f.tflops >= 0) text += fmt::format(" {:>8.1f} TFLOP/s", f.tflops);
  if (f.ms >= 0) text += fmt::format(" {:>10.3f} ms", f.ms);
  if (f.glanes >= 0) text += fmt::format(" {:>8.3f} G lane instructions/s", f.glanes);
  return text;
}

double median(std::vector<double> values) {
  if (values.empty()) return -1;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace kiln::bench
