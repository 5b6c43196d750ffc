#include "runtime/tools/json_input.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace kiln::rt::tools {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

/// Refuses what is nested deeper than any case: reading it back takes a stack frame a level.
bool nested_deeper(const std::string& text, int most) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;  // what follows is no end
      else in_string = c != '"';
      continue;
    }
    if (c == '"') in_string = true;
    if ((c == '[' || c == '{') && ++depth > most) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

}  // namespace

Input Input::parse(const std::filesystem::path& file) {
  const std::string text = read_whole(file, kMostBytes);
  if (nested_deeper(text, 32)) throw UserError(fmt::format("{}: nested deeper than 32 levels", file.string()));
  try {
    auto root = std::make_shared<const nlohmann::json>(nlohmann::json::parse(text));
    const nlohmann::json& value = *root;
    return Input(std::move(root), value, "", std::make_shared<const std::filesystem::path>(file));
  } catch (const nlohmann::json::parse_error& e) {
    const std::size_t at = std::min<std::size_t>(e.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    throw UserError(fmt::format("{}:{}:{}: this is no JSON", file.string(), line, at - std::min(at, begin)));
  } catch (const nlohmann::json::out_of_range&) {
    throw UserError(fmt::format("{}: holds a number that is too large for any type", file.string()));
  }
}

Input Input::operator[](const char* key) const {
  must_be_object();
  const auto member = value_->find(key);
  if (member == value_->end()) fail(fmt::format("has no '{}'", key));
  return Input(root_, *member, key_.empty() ? key : key_ + "." + key, file_);
}
Input Input::operator[](std::size_t i) const {
  must_be_array();
  return Input(root_, value_->at(i), fmt::format("{}[{}]", key_, i), file_);
}

void Input::must_be_object() const {
  if (!value_->is_object()) fail(fmt::format("is {}; must be an object", shown()));
}
void Input::must_be_array() const {
  if (!value_->is_array()) fail(fmt::format("is {}; must be an array", shown()));
}

void Input::only(std::initializer_list<const char*> keys) const {
  must_be_object();
  for (const auto& member : value_->items()) {
    const auto same = [&](const char* k) { return member.key() == k; };
    if (std::any_of(keys.begin(), keys.end(), same)) continue;
    std::string known;
    for (const char* k : keys) known += fmt::format("{}{}", known.empty() ? "" : ", ", k);
    fail(fmt::format("has an unknown key '{}'; known: {}", member.key(), known));
  }
}

std::string Input::text() const {
  if (!value_->is_string()) fail(fmt::format("is {}; must be a string", shown()));
  return value_->get<std::string>();
}
bool Input::boolean() const {
  if (!value_->is_boolean()) fail(fmt::format("is {}; must be true or false", shown()));
  return value_->get<bool>();
}
std::int64_t Input::integer(std::int64_t least, std::int64_t most) const {
  const auto refuse = [&] { fail(fmt::format("is {}; must be an integer of {} to {}", shown(), least, most)); };
  if (!value_->is_number_integer()) refuse();
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(most)) refuse();
  const auto v = value_->get<std::int64_t>();
  if (v < least || v > most) refuse();
  return v;
}
double Input::number() const {
  if (!value_->is_number()) fail(fmt::format("is {}; must be a number", shown()));
  return value_->get<double>();
}

void Input::fail(const std::string& what) const {
  throw UserError(fmt::format("{}: {}{}{}", file_->string(), key_, key_.empty() ? "" : " ", what));
}

std::string Input::shown() const {
  constexpr std::size_t kMost = 60;
  std::string s = value_->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (s.size() > kMost) s = s.substr(0, kMost) + "…";
  return s;
}

}  // namespace kiln::rt::tools
