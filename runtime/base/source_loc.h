// SourceLoc: a place in the user's program, captured by a defaulted argument.
//
// Operators cannot have default arguments; the converting constructor of an operator's parameter type can, and its
// default is evaluated where the conversion is written (dsl/lang/operand.h).
#pragma once
#include <string>
#ifdef __has_include
#if __has_include(<source_location>)
#include <source_location>
#endif
#endif

namespace kiln {

#ifdef __cpp_lib_source_location
using RawLoc = std::source_location;
#else
/// clang 14 with libstdc++ has no std::source_location but has the builtins behind it.
struct RawLoc {
  static constexpr RawLoc current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE(),
                                  unsigned column = __builtin_COLUMN()) noexcept {
    return {file, line, column};
  }
  constexpr const char* file_name() const noexcept { return file_; }
  constexpr unsigned line() const noexcept { return line_; }
  constexpr unsigned column() const noexcept { return column_; }
  const char* file_ = "";
  unsigned line_ = 0, column_ = 0;
};
#endif

/// `file` points at storage that is never freed: a string literal of the program, or an entry of intern_file().
struct SourceLoc {
  const char* file = "";
  unsigned line = 0, column = 0;
  constexpr SourceLoc() = default;
  constexpr SourceLoc(RawLoc r) noexcept : file(r.file_name()), line(r.line()), column(r.column()) {}
  constexpr SourceLoc(const char* f, unsigned l, unsigned c = 0) noexcept : file(f), line(l), column(c) {}
  constexpr bool known() const { return line != 0; }
  /// "file:line", or "unknown location".
  std::string str() const;
};

/// A copy of `file` that lives as long as the process; equal names give equal pointers.
const char* intern_file(const std::string& file);

}  // namespace kiln
