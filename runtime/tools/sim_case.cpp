#include "runtime/tools/sim_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/sim/ptx.h"
#include "runtime/tools/sim_args.h"

namespace kiln::rt::tools {
namespace {

using Index3 = std::array<std::uint32_t, 3>;
constexpr std::int64_t kMostX = INT32_MAX, kMostYZ = 65535;

/// A number for x, or up to three.
Index3 read_index3(const Input& in, std::int64_t most_x, std::int64_t most_yz) {
  Index3 out{1, 1, 1};
  if (!in.json().is_array()) {
    out[0] = static_cast<std::uint32_t>(in.integer(1, most_x));
    return out;
  }
  if (in.size() < 1 || in.size() > 3) in.fail(fmt::format("has {} numbers; must be 1 to 3", in.size()));
  for (std::size_t i = 0; i < in.size(); ++i)
    out[i] = static_cast<std::uint32_t>(in[i].integer(1, i == 0 ? most_x : most_yz));
  return out;
}

void read_launch(Case& c, const Input& in) {
  if (in.has("threads") && in.has("block")) in.fail("has both 'threads' and 'block', which are the same");
  for (const char* key : {"threads", "block"})
    if (in.has(key)) c.block = read_index3(in[key], 1024, 1024);
  if (in.has("grid")) c.grid = read_index3(in["grid"], kMostX, kMostYZ);
  if (in.has("cluster")) c.cluster = read_index3(in["cluster"], 16, 16);
  if (in.has("shared")) c.shared_bytes = static_cast<std::uint32_t>(in["shared"].integer(0, 1 << 20));
}

void read_args(Case& c, const Input& args) {
  args.must_be_array();
  std::set<std::string> names;
  for (std::size_t i = 0; i < args.size(); ++i) {
    c.args.push_back(read_argument(args[i]));
    const std::string& name = c.args.back().name;
    if (!name.empty() && !names.insert(name).second)
      args[i].fail(fmt::format("has the name '{}' of another argument", name));
  }
  for (std::size_t i = 0; i < args.size(); ++i)
    if (c.args[i].kind == Argument::Kind::TensorMap) finish_tensor_map(c.args[i], args[i], c.args);
}

std::string entry_names(const sim::ptx::Module& m) {
  std::string out;
  for (const sim::ptx::Function& f : m.functions)
    if (f.entry) out += fmt::format("{}{}", out.empty() ? "" : ", ", f.name);
  return out.empty() ? "none" : out;
}

const sim::ptx::Function& entry_of(const Case& c, const sim::ptx::Module& m) {
  const sim::ptx::Function* only = nullptr;
  std::size_t entries = 0;
  for (const sim::ptx::Function& f : m.functions) {
    if (!f.entry) continue;
    if (f.name == c.entry) return f;
    only = &f;
    ++entries;
  }
  if (c.entry.empty() && entries == 1) return *only;
  const std::string asked = c.entry.empty() ? "--entry is needed" : fmt::format("no entry '{}'", c.entry);
  throw UserError(fmt::format("{}: {}; its entries: {}", c.ptx_file.string(), asked, entry_names(m)));
}

void parse_module(const std::filesystem::path& file, const std::string& text, sim::ptx::Module& m) {
  try {
    sim::ptx::parse(text, m);
  } catch (const DeviceError& e) {
    throw UserError(fmt::format("{}: {}", file.string(), e.what()));
  }
}

void override_with(Case& c, const CaseOptions& o) {
  if (o.entry) c.entry = *o.entry;
  if (o.target) c.target = *o.target;
  if (o.grid) c.grid = *o.grid;
  if (o.block) c.block = *o.block;
  if (o.cluster) c.cluster = *o.cluster;
  if (o.shared_bytes) c.shared_bytes = *o.shared_bytes;
}

/// What the PTX itself says: parameters, and what nobody stated.
void complete(Case& c, const CaseOptions& o, bool block_stated, bool cluster_stated) {
  c.ptx = read_whole(c.ptx_file, std::size_t{1} << 30);
  sim::ptx::Module m;
  parse_module(c.ptx_file, c.ptx, m);
  const sim::ptx::Function& f = entry_of(c, m);
  c.entry = f.name;
  if (c.target.empty()) c.target = m.target;
  if (!block_stated && !o.block && f.reqntid[0] != 0) c.block = f.reqntid;
  if (!cluster_stated && !o.cluster) c.cluster = f.cluster;
  for (const sim::ptx::Variable& p : f.params) {
    c.param_bytes.push_back(static_cast<std::uint32_t>(p.bytes));
    c.param_align.push_back(p.align);
  }
}

}  // namespace

Case read_case(const std::filesystem::path& json, const CaseOptions& o) {
  const Input in = Input::parse(json);
  Case c;
  const bool list = in.json().is_array();
  if (!list) {
    in.only({"entry", "ptx", "target", "shared", "threads", "block", "grid", "cluster", "args", "extra_pointers",
             "comment"});
    if (in.has("entry")) c.entry = in["entry"].text();
    if (in.has("target")) c.target = in["target"].text();
    read_launch(c, in);
  }
  read_args(c, list ? in : in["args"]);
  if (o.ptx) c.ptx_file = *o.ptx;
  else if (!list && in.has("ptx")) c.ptx_file = json.parent_path() / in["ptx"].text();
  else c.ptx_file = std::filesystem::path(json).replace_extension(".ptx");
  override_with(c, o);
  complete(c, o, !list && (in.has("threads") || in.has("block")), !list && in.has("cluster"));
  return c;
}

Case bare_case(const CaseOptions& o) {
  Case c;
  c.ptx_file = *o.ptx;
  override_with(c, o);
  complete(c, o, false, false);
  return c;
}

namespace {

Bytes pointer(std::uint64_t address) {
  Bytes out(sizeof address);
  std::memcpy(out.data(), &address, sizeof address);
  return out;
}

/// The values of the arguments that are parameters, with the arguments themselves.
std::vector<std::pair<const Argument*, Bytes>> passed(const Case& c, const std::vector<std::uint64_t>& addresses,
                                                      const std::vector<Bytes>& maps) {
  std::vector<std::pair<const Argument*, Bytes>> out;
  std::size_t buffer = 0, map = 0;
  for (const Argument& a : c.args) {
    const auto take = [&](Bytes value) { out.emplace_back(&a, std::move(value)); };
    switch (a.kind) {
      case Argument::Kind::Value: take(a.before); break;
      case Argument::Kind::Null: take(pointer(0)); break;
      case Argument::Kind::TensorMap: take(maps.at(map++)); break;
      case Argument::Kind::Buffer: {
        const std::uint64_t address = addresses.at(buffer++);
        if (a.passed) take(pointer(address));
      }
    }
  }
  return out;
}

}  // namespace

Bytes pack(const Case& c, const std::vector<std::uint64_t>& addresses, const std::vector<Bytes>& maps) {
  const auto values = passed(c, addresses, maps);
  if (values.size() > c.param_bytes.size())
    throw UserError(fmt::format("{}: {} has {} parameters, {} arguments are given", c.ptx_file.string(), c.entry,
                                c.param_bytes.size(), values.size()));
  Bytes out;
  for (std::size_t i = 0; i < c.param_bytes.size(); ++i) {
    const std::size_t align = c.param_align[i], at = (out.size() + align - 1) / align * align;
    out.resize(at + c.param_bytes[i]);
    if (i >= values.size()) continue;
    const auto& [argument, value] = values[i];
    if (value.size() != c.param_bytes[i])
      throw UserError(fmt::format("{}: argument {}{} has {} bytes, the parameter of {} has {}", c.ptx_file.string(), i,
                                  argument->name.empty() ? "" : " (" + argument->name + ")", value.size(), c.entry,
                                  c.param_bytes[i]));
    std::memcpy(out.data() + at, value.data(), value.size());
  }
  return out;
}

std::string describe_entries(const std::filesystem::path& file) {
  sim::ptx::Module m;
  parse_module(file, read_whole(file, std::size_t{1} << 30), m);
  std::string out = fmt::format("{}: PTX {}.{} for {}\n", file.string(), m.version / 10, m.version % 10, m.target);
  for (const sim::ptx::Function& f : m.functions) {
    if (!f.entry) continue;
    std::string params;
    for (const sim::ptx::Variable& p : f.params)
      params += fmt::format("{}{} ({} bytes)", params.empty() ? "" : ", ", p.name, p.bytes);
    out += fmt::format("  {}({})\n", f.name, params);
  }
  return out;
}

}  // namespace kiln::rt::tools
