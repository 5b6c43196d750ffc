// The variables of a C++ source file: which one a place in the file gives its value to.
//
// A compiler of C++ knows the names of variables, an embedded language does not: it sees the values that operators make,
// each with the place of its call. So the file is read again: split into statements, those that declare or assign a
// variable recognised by their form. Brackets, strings, comments and lambdas inside an expression are understood; macros
// and templates are not expanded.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/base/source_loc.h"

namespace kiln::ir {

class SourceNames {
 public:
  /// A statement, or one declarator of a declaration.
  struct Statement {
    std::size_t begin = 0, end = 0;   ///< offsets in the text
    std::vector<std::string> names;   ///< x of `Tile x = …` and `x += …`; a, b of `auto [a, b] = …`; else empty
    bool loop = false;                ///< the header of `for (auto x : …)`
  };

  explicit SourceNames(std::string text);
  /// Number of the innermost statement around a place, or npos.
  std::size_t at(unsigned line, unsigned column) const;
  static constexpr std::size_t npos = ~std::size_t{0};
  const Statement& statement(std::size_t i) const { return statements_[i]; }
  /// Names of the parameters of the first lambda at or behind a place; empty where one is missing.
  std::vector<std::string> parameters(unsigned line, unsigned column) const;

 private:
  struct Token {
    std::size_t begin, end;
    bool word;
  };
  std::size_t offset(unsigned line, unsigned column) const;
  std::string text(std::size_t token) const;
  bool is(std::size_t token, const char* what) const;
  void tokenise();
  std::size_t skip(std::size_t at) const;
  std::size_t closing(std::size_t open) const;
  void statements(std::size_t& t);
  void statement(std::size_t& t);
  void header(std::size_t& t);
  void record(std::size_t first, std::size_t last, bool body);
  std::size_t declared_name(std::size_t first, std::size_t last) const;
  void declarators(std::size_t name, std::size_t last);

  std::string text_;
  std::vector<std::size_t> lines_;  ///< where each begins
  std::vector<Token> tokens_;
  std::vector<Statement> statements_;
};

}  // namespace kiln::ir
