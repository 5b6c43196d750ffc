// The names of registers and variables that are visible while a function's body is read.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/sim/ptx.h"

namespace kiln::rt::sim::ptx {

/// Names visible inside one { }.
struct Scope {
  using Registers = std::pair<std::uint32_t, std::uint32_t>;  ///< first index, how many

  std::uint32_t id = 0;
  std::map<std::string_view, std::uint32_t> regs;
  std::map<std::string_view, Registers> ranges;  ///< by prefix: %r of %r<5>
  std::map<std::string_view, Registers> vectors;
  std::map<std::string_view, std::int32_t> variables;

  /// The index of a register, one of a range or an element of a vector among them.
  std::optional<std::uint32_t> find(std::string_view name) const;
  bool declares(std::string_view name) const { return find(name) || vectors.contains(name); }
  /// Whether a register that `name`<count> declares has a name here already.
  bool overlaps(std::string_view name, std::uint32_t count) const;
};

class RegisterNames {
 public:
  explicit RegisterNames(Module& module) : module_(module) {}

  void clear() { scopes_.clear(); }
  void open(std::uint32_t id) { scopes_.emplace_back().id = id; }
  void close() { scopes_.pop_back(); }
  Scope& innermost() { return scopes_.back(); }

  /// Declares `count` registers (with `numbered`: name0, name1 …) of `width` elements each, the next ones of `f`. False
  /// if one of them is declared already.
  bool declare(Function& f, std::string_view name, bool numbered, std::uint32_t count, std::uint32_t width);
  std::optional<std::uint32_t> find(std::string_view name) const;
  /// First index and number of the elements of a vector of registers; none: 0, 0.
  Scope::Registers find_vector(std::string_view name) const;
  /// Index in Function::locals, or -1.
  std::int32_t find_variable(std::string_view name) const;

 private:
  bool declare_vector(Function& f, std::string_view name, std::uint32_t first, std::uint32_t width);
  std::string_view owned(std::string name) { return module_.names.emplace_back(std::move(name)); }

  Module& module_;
  std::vector<Scope> scopes_;
};

}  // namespace kiln::rt::sim::ptx
