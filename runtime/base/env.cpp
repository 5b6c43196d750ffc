// The parsed environment is one of the process's few globals: written on first use, and by reload() in tests.
#include "runtime/base/env.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>

#include "runtime/base/error.h"

namespace kiln::env {
namespace {

void parse(const char* name, const char* text, Bool& value) {
  const std::string s = text;
  if (s == "1" || s == "true" || s == "on" || s == "yes") value = true;
  else if (s == "0" || s == "false" || s == "off" || s == "no") value = false;
  else throw UserError(fmt::format("{}: expected 0 or 1, got '{}'", name, s));
}

void parse(const char* name, const char* text, Int& value) {
  char* end = nullptr;
  errno = 0;
  value = std::strtoll(text, &end, 10);
  if (end == text || *end != '\0' || errno == ERANGE || value < 0)
    throw UserError(fmt::format("{}: expected an integer of 0 or more, got '{}'", name, text));
}

void parse(const char*, const char* text, String& value) { value = text; }

template <class T>
T read(const char* name, T value) {
  if (const char* text = std::getenv(name); text && *text) parse(name, text, value);
  return value;
}

struct Values {
#define KILN_ENV(NAME, type, fallback, doc) type NAME = read<type>(#NAME, fallback);
#include "runtime/base/env.def"
};

Values& values() {
  static auto& v = *new Values;  // outlives every static object that logs while it is destroyed
  return v;
}

std::string text(Bool v) { return v ? "1" : "0"; }
std::string text(Int v) { return std::to_string(v); }
std::string text(const String& v) { return v.empty() ? "''" : v; }

std::string row(const char* name, const char* type, const std::string& fallback, const char* doc) {
  return fmt::format("{:<18} {:<7} {:<12} {}\n", name, type, fallback, doc);
}

}  // namespace

#define KILN_ENV(NAME, type, fallback, doc) \
  const type& NAME() { return values().NAME; }
#include "runtime/base/env.def"

std::string help() {
  std::string s = row("variable", "type", "default", "meaning");
#define KILN_ENV(NAME, type, fallback, doc) s += row(#NAME, #type, text(type(fallback)), doc);
#include "runtime/base/env.def"
  return s;
}

void reload() { values() = Values{}; }

}  // namespace kiln::env
