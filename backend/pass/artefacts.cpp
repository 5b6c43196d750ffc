#include "backend/pass/artefacts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backend/ir/text.h"
#include "backend/pass/pass.h"
#include "runtime/base/env.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/log.h"

namespace kiln::ir {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnchanged = "(unchanged)\n";

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

void check_name(const char* knob, const std::string& name) {
  std::vector<std::string> known{"traced", "llvm", "ptx"};
  for (const PassInfo& p : all_passes()) known.insert(known.end() - 2, p.flag);
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw UserError(fmt::format("{} names '{}'; known are {}", knob, name, fmt::join(known, ", ")));
}

/// `name` with everything a file system may dislike replaced.
std::string path_safe(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  return name.empty() ? "kernel" : name;
}

std::string key8(const Function& f, const Target& t, const CompileOptions& o) {
  const std::string key =
      fmt::format("{}{} {} {} {} {} {} {} {}{}", print(f, {.locations = false}), t.arch, t.ptx, o.num_warps, o.cluster,
                  o.max_registers, o.stages, o.line_info, o.strict, o.debug ? " debug" : "");
  return fmt::format("{:08x}", std::uint32_t(rt::hash128(key).low));
}

/// Why `text` could not be written to `path`; empty on success.
std::string write(const std::string& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  return out ? "" : fmt::format("cannot write {}{}{}", path, error ? ": " : "", error ? error.message() : "");
}

std::optional<std::string> read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

Artefacts::Artefacts(const Function& traced, const Target& target, const CompileOptions& options)
    : kernel_(traced.name), stop_after_(env::KILN_STOP_AFTER()), override_(env::KILN_OVERRIDE()) {
  folder_ = path_safe(kernel_) + "-" + key8(traced, target, options);
  dir_ = env::KILN_DUMP_DIR() + "/" + folder_;
  std::string dump = env::KILN_DUMP();
  if (const std::size_t at = dump.find('@'); at != std::string::npos) {
    dump_kernel_ = dump.substr(at + 1) == kernel_;
    dump.resize(at);
    if (dump.empty()) dump = "all";
  }
  dump_ = split(dump);
  for (const std::string& name : dump_)
    if (name != "all") check_name("KILN_DUMP", name);
  if (const std::size_t at = stop_after_.find('@'); at != std::string::npos) {
    const bool here = stop_after_.substr(at + 1) == kernel_;
    stop_after_.resize(at);
    check_name("KILN_STOP_AFTER", stop_after_);
    if (!here) stop_after_.clear();
  }
  if (!stop_after_.empty()) check_name("KILN_STOP_AFTER", stop_after_);
  if (!override_.empty() && !fs::is_directory(override_))
    throw UserError(fmt::format("KILN_OVERRIDE: no folder '{}'", override_));
}

bool Artefacts::wanted(const std::string& name) const {
  return dump_kernel_ &&
         std::any_of(dump_.begin(), dump_.end(), [&](const std::string& d) { return d == "all" || d == name; });
}

std::string Artefacts::file(const std::string& name, const std::string& extension) const {
  return fmt::format("{:02}-{}.{}", number_, name, extension);
}

std::optional<std::string> Artefacts::replacement(const std::string& file_name) const {
  if (override_.empty()) return std::nullopt;
  const std::string path = override_ + "/" + folder_ + "/" + file_name;
  std::optional<std::string> text = read(path);
  if (!text || *text == kUnchanged) return std::nullopt;
  rt::say(rt::LogLevel::Info, fmt::format("{}: {} replaces what was compiled", kernel_, path));
  return text;
}

std::optional<std::string> Artefacts::publish(const std::string& name, const std::string& extension,
                                              const std::function<std::string()>& text, bool changed) {
  const std::string file_name = file(name, extension), path = dir_ + "/" + file_name;
  ++number_;
  std::optional<std::string> replaced = replacement(file_name);  // before a dump into the same folder hides it
  const auto contents = [&] { return replaced ? *replaced : text(); };
  if (name == stop_after_) {
    const std::string failure = write(path, contents());
    throw UserError(fmt::format("{}: stopped after {} as KILN_STOP_AFTER asks; {}", kernel_, name,
                                failure.empty() ? "see " + path : failure));
  }
  if (wanted(name))
    if (const std::string failure = write(path, changed || replaced ? contents() : kUnchanged); !failure.empty())
      rt::say_once(rt::LogLevel::Error, "dump", "KILN_DUMP: " + failure);
  return replaced;
}

void Artefacts::publish(const std::string& name, Function& f, bool changed) {
  const std::string origin = override_ + "/" + folder_ + "/" + file(name, "kir");
  if (const auto replaced = publish(
          name, "kir", [&] { return print(f); }, changed))
    f = parse(*replaced, origin);
}

std::string Artefacts::reproducer(const std::string& name, const std::string& extension,
                                  const std::string& text) const {
  const std::string path = dir_ + "/" + file("before-" + name, extension);
  const std::string failure = write(path, text);
  return failure.empty() ? path : failure;
}

}  // namespace kiln::ir
