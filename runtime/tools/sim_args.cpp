#include "runtime/tools/sim_args.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace kiln::rt::tools {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;

Bytes bytes_of(const std::string& s) {
  Bytes out(s.size());
  if (!s.empty()) std::memcpy(out.data(), s.data(), s.size());
  return out;
}

/// Names of arguments become names of files, so they have no folder in them.
std::string read_name(const Input& in) {
  const std::string name = in.text();
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  };
  if (name.empty() || name.size() > 100 || name[0] == '.' || !std::all_of(name.begin(), name.end(), fits))
    in.fail(fmt::format("is {}; must be letters, digits, '_', '-' or '.'", in.shown()));
  return name;
}

/// One element: a number, or a name of what JSON has no number for.
void append_value(Bytes& to, DType t, const Input& in) {
  const nlohmann::json& v = in.json();
  bool held = false;
  if (v.is_number_unsigned()) held = append(to, t, v.get<std::uint64_t>());
  else if (v.is_number_integer()) held = append(to, t, v.get<std::int64_t>());
  else if (v.is_number_float()) held = append(to, t, v.get<double>());
  else if (v.is_string() && is_float(t)) {
    const std::string text = in.text();
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (text == "nan" || text == "inf" || text == "-inf")
      held = append(to, t, text == "nan" ? std::nan("") : text == "inf" ? kInf : -kInf);
  }
  if (!held)
    in.fail(fmt::format("is {}; {} takes {}{}", in.shown(), name(t), range_text(t),
                        is_float(t) ? ", \"nan\", \"inf\" or \"-inf\"" : ""));
}

/// The number of elements; appends the extents.
std::uint64_t read_elements(const Input& shape, DType t, std::vector<std::uint64_t>& extents) {
  shape.must_be_array();
  const std::uint64_t most = kMostBytes / static_cast<std::uint64_t>(bytes(t));
  std::uint64_t n = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto extent = static_cast<std::uint64_t>(shape[i].integer(0, static_cast<std::int64_t>(most)));
    if (extent != 0 && n > most / extent)
      shape.fail(fmt::format("is {}; must be at most {} elements of {}", shape.shown(), most, name(t)));
    n *= extent;
    extents.push_back(extent);
  }
  return n;
}

Bytes read_values(const Input& values, DType t) {
  values.must_be_array();
  Bytes out;
  out.reserve(values.size() * static_cast<std::size_t>(bytes(t)));
  for (std::size_t i = 0; i < values.size(); ++i) append_value(out, t, values[i]);
  return out;
}

/// {"iota": [start, step]}: start, start + step, …
Bytes read_iota(const Input& iota, DType t, std::uint64_t n) {
  iota.must_be_array();
  if (iota.size() != 2) iota.fail(fmt::format("has {} numbers; must be start and step", iota.size()));
  const double start = iota[std::size_t{0}].number(), step = iota[1].number();
  Bytes out;
  for (std::uint64_t i = 0; i < n; ++i)
    if (const double v = start + step * static_cast<double>(i); !append(out, t, v))
      iota.fail(fmt::format("gives {} for element {}; {} takes {}", v, i, name(t), range_text(t)));
  return out;
}

/// {"random": [low, high], "seed": n}: uniform; the same numbers wherever it runs. Integers include both ends.
Bytes read_random(const Input& fill, DType t, std::uint64_t n) {
  const Input range = fill["random"];
  range.must_be_array();
  if (range.size() != 2) range.fail(fmt::format("has {} numbers; must be the lowest and the highest", range.size()));
  const double low = range[std::size_t{0}].number(), high = range[1].number();
  if (!(low <= high)) range.fail(fmt::format("is {}; the lowest must come first", range.shown()));
  std::mt19937_64 engine(static_cast<std::uint64_t>(fill.has("seed") ? fill["seed"].integer(0, INT64_MAX) : 0));
  Bytes out;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double u = static_cast<double>(engine() >> 11) * 0x1p-53;
    const double v = is_float(t) ? low + (high - low) * u : std::min(high, std::floor(low + (high - low + 1) * u));
    if (!append(out, t, v)) range.fail(fmt::format("gives {}; {} takes {}", v, name(t), range_text(t)));
  }
  return out;
}

Bytes repeated(const Bytes& one, std::uint64_t n) {
  Bytes out(one.size() * n);
  for (std::uint64_t i = 0; i < n; ++i) std::memcpy(out.data() + i * one.size(), one.data(), one.size());
  return out;
}

Bytes read_fill(const Input& fill, DType t, std::uint64_t n) {
  if (!fill.json().is_object()) {
    if (fill.json() == "none") return {};
    Bytes one;
    append_value(one, t, fill);
    return repeated(one, n);
  }
  fill.only({"iota", "random", "seed", "byte"});
  if (fill.has("iota")) return read_iota(fill["iota"], t, n);
  if (fill.has("random")) return read_random(fill, t, n);
  const auto byte = static_cast<std::uint8_t>(fill["byte"].integer(0, 255));
  return Bytes(n * static_cast<std::uint64_t>(bytes(t)), byte);
}

std::filesystem::path beside(const Input& in, const std::string& file) { return in.file().parent_path() / file; }

Bytes read_contents(const Input& in, const std::filesystem::path& file, std::uint64_t size) {
  Bytes b = bytes_of(read_whole(file, kMostBytes));
  if (b.size() != size)
    in.fail(fmt::format("has {} bytes by its shape and dtype, {} has {}", size, file.string(), b.size()));
  return b;
}

Argument read_buffer(const Input& in) {
  in.only({"name", "kind", "dtype", "shape", "written", "passed", "file", "values", "fill", "want"});
  Argument a;
  a.kind = Argument::Kind::Buffer;
  a.name = read_name(in["name"]);
  a.dtype = read_dtype(in["dtype"]);
  if (in.has("written")) in["written"].boolean();
  if (in.has("passed")) a.passed = in["passed"].boolean();
  const auto element_bytes = static_cast<std::uint64_t>(bytes(a.dtype));
  if (in.has("file") + in.has("values") + in.has("fill") > 1)
    in.fail("has more than one of 'file', 'values' and 'fill'");
  const bool shaped = in.has("shape") || !in.has("values");
  const std::uint64_t n = shaped ? read_elements(in["shape"], a.dtype, a.shape) : in["values"].size();
  if (!shaped) a.shape = {n};
  a.size = n * element_bytes;
  if (in.has("values")) {
    a.before = read_values(in["values"], a.dtype);
    if (a.before.size() != a.size)
      in["values"].fail(fmt::format("has {} elements; its shape has {}", a.before.size() / element_bytes, n));
  } else if (in.has("fill")) {
    a.before = read_fill(in["fill"], a.dtype, n);
  } else {
    a.before = read_contents(in, beside(in, in.has("file") ? in["file"].text() : a.name + ".in"), a.size);
  }
  const auto out = beside(in, in.has("want") && in["want"].json().is_string() ? in["want"].text() : a.name + ".out");
  const bool named = in.has("want") && !in["want"].json().is_boolean();
  const bool wanted = !in.has("want") || named || in["want"].boolean();
  std::error_code ignored;
  if (wanted && (in.has("want") || std::filesystem::exists(out, ignored))) a.want = read_contents(in, out, a.size);
  return a;
}

Argument read_bytes(const Input& in) {
  in.only({"name", "kind", "values", "file"});
  Argument a;
  a.kind = Argument::Kind::Value;
  if (in.has("name")) a.name = read_name(in["name"]);
  a.before =
      in.has("file") ? bytes_of(read_whole(beside(in, in["file"].text()), 4096)) : read_values(in["values"], DType::u8);
  return a;
}

}  // namespace

DType read_dtype(const Input& in) {
  const std::string text = in.text();
  const auto t = element_type(text);
  if (!t) in.fail(fmt::format("is '{}'; must be one of {}", text, element_types()));
  return *t;
}

Argument read_argument(const Input& in) {
  const Input kind_input = in["kind"];
  const std::string kind = kind_input.text();
  if (kind == "buffer") return read_buffer(in);
  if (kind == "bytes") return read_bytes(in);
  Argument a;
  if (kind == "tensor_map") {
    a.kind = Argument::Kind::TensorMap;
  } else if (kind == "null") {
    in.only({"name", "kind"});
  } else if (const auto t = element_type(kind)) {
    in.only({"name", "kind", "value"});
    a.kind = Argument::Kind::Value;
    a.dtype = *t;
    append_value(a.before, *t, in["value"]);
  } else {
    kind_input.fail(
        fmt::format("is '{}'; must be buffer, tensor_map, null, bytes or one of {}", kind, element_types()));
  }
  if (in.has("name")) a.name = read_name(in["name"]);
  return a;
}

}  // namespace kiln::rt::tools
