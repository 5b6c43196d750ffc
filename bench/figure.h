// Figure: one measured number with what it was measured on, as one JSON line and as one line for a reader.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::bench {

/// What is measured: `name` ("add_relu"), the shape of its output and its element type.
struct Case {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string dtype;
  bool operator==(const Case&) const = default;
};

/// A figure of `what`. Fields that do not apply are left out of the JSON line: negative numbers and empty strings.
struct Figure {
  Case what;
  std::string peer = "kiln";
  double us = -1;          ///< microseconds
  double gbs = -1;         ///< 10^9 bytes per second of the bytes that must move
  double tflops = -1;      ///< 10^12 multiplications and additions per second, of products
  double ms = -1;          ///< compile latency
  double glanes = -1;      ///< the simulator: 10^9 lane instructions per second of host time
  std::string state = {};  ///< compile latency: "cold", "disk cache", "memory cache"; the simulator: which checks
  std::string stage = {};  ///< compile latency: part of the whole
  int samples = 0;         ///< repetitions behind the median
};

/// {"case":"add_relu","shape":[100],"dtype":"f32"}, and back; throws UserError, or nlohmann::json::exception for what
/// is no JSON at all or has wrong types.
std::string to_json(const Case& what);
Case parse_case(const std::string& line);

/// {"case":"add_relu","peer":"kiln","shape":[100],"dtype":"f32","us":1.1,"gbs":1.0}
std::string to_json(const Figure& figure);
/// The same for a reader, aligned.
std::string to_text(const Figure& figure);

double median(std::vector<double> values);

}  // namespace kiln::bench
