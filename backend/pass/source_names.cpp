#include "backend/pass/source_names.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace kiln::ir {
namespace {

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

SourceNames::SourceNames(std::string text) : text_(std::move(text)) {
  lines_.push_back(0);
  for (std::size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') lines_.push_back(i + 1);
  tokenise();
  for (std::size_t t = 0; t < tokens_.size(); ++t) statements(t);  // a '}' too many ends one round
}

std::size_t SourceNames::offset(unsigned line, unsigned column) const {
  if (line == 0 || line > lines_.size()) return npos;
  return lines_[line - 1] + (column > 0 ? column - 1 : 0);
}

std::size_t SourceNames::at(unsigned line, unsigned column) const {
  const std::size_t where = offset(line, column);
  std::size_t best = npos;
  for (std::size_t i = 0; i < statements_.size() && where != npos; ++i) {
    const Statement& s = statements_[i];
    if (where < s.begin || where >= s.end) continue;
    if (best == npos || s.end - s.begin < statements_[best].end - statements_[best].begin) best = i;
  }
  return best;
}

// --- tokens ----------------------------------------------------------------------------------------------------------

std::string SourceNames::text(std::size_t t) const {
  return t < tokens_.size() ? text_.substr(tokens_[t].begin, tokens_[t].end - tokens_[t].begin) : "";
}
bool SourceNames::is(std::size_t t, const char* what) const {
  if (t >= tokens_.size()) return false;
  const std::size_t n = tokens_[t].end - tokens_[t].begin;
  return n == std::strlen(what) && text_.compare(tokens_[t].begin, n, what) == 0;
}

/// Behind white space, comments, preprocessor lines and literals of text, of which nothing is needed.
std::size_t SourceNames::skip(std::size_t i) const {
  const auto behind = [&](const std::string& mark, std::size_t from) {
    const std::size_t found = text_.find(mark, from);
    return found == std::string::npos ? text_.size() : found + mark.size();
  };
  for (;;) {
    while (i < text_.size() && std::isspace(static_cast<unsigned char>(text_[i]))) ++i;
    const std::size_t begin = i;
    const std::size_t line = text_.find_last_of('\n', i == 0 ? 0 : i - 1);
    const bool first = text_.find_first_not_of(" \t", line == std::string::npos || i == 0 ? 0 : line + 1) == i;
    if (text_.compare(i, 2, "//") == 0) i = behind("\n", i);
    else if (text_.compare(i, 2, "/*") == 0) i = behind("*/", i + 2);
    else if (i < text_.size() && text_[i] == '#' && first) {
      do i = behind("\n", i);
      while (i < text_.size() && i >= 2 && text_[i - 2] == '\\');
    } else if (text_.compare(i, 2, "R\"") == 0) {
      const std::size_t open = text_.find('(', i);
      if (open == std::string::npos) return text_.size();
      i = behind(")" + text_.substr(i + 2, open - i - 2) + "\"", open);
    } else if (i < text_.size() && (text_[i] == '"' || text_[i] == '\'')) {
      const char quote = text_[i];
      for (++i; i < text_.size() && text_[i] != quote && text_[i] != '\n'; ++i) i += text_[i] == '\\';
      i = std::min(i + 1, text_.size());
    }
    if (i == begin) return i;
  }
}

void SourceNames::tokenise() {
  static constexpr const char* kLong[] = {"<<=", ">>=", "->", "::", "==", "!=", "<=", ">=", "+=", "-=",
                                          "*=",  "/=",  "%=", "&=", "|=", "^=", "&&", "||", "++", "--"};
  for (std::size_t i = skip(0); i < text_.size(); i = skip(i)) {
    const std::size_t begin = i;
    if (word_char(text_[i])) {
      // 1'000'000 and 0x1.8p3 are one word.
      const bool number = std::isdigit(static_cast<unsigned char>(text_[i])) != 0;
      while (i < text_.size() && (word_char(text_[i]) || (number && (text_[i] == '\'' || text_[i] == '.')))) ++i;
      tokens_.push_back({begin, i, !number});
      continue;
    }
    std::size_t n = 1;
    for (const char* op : kLong)
      if (n == 1 && text_.compare(i, std::strlen(op), op) == 0) n = std::strlen(op);
    i += n;
    tokens_.push_back({begin, i, false});
  }
}

/// The token that closes the bracket `open`, or the last one.
std::size_t SourceNames::closing(std::size_t open) const {
  int depth = 0;
  for (std::size_t t = open; t < tokens_.size(); ++t) {
    if (is(t, "(") || is(t, "[") || is(t, "{")) ++depth;
    if ((is(t, ")") || is(t, "]") || is(t, "}")) && --depth == 0) return t;
  }
  return tokens_.size() - 1;
}

// --- statements ------------------------------------------------------------------------------------------------------

/// Up to the '}' of the block, or the end.
void SourceNames::statements(std::size_t& t) {
  while (t < tokens_.size() && !is(t, "}")) {
    const std::size_t begin = t;
    statement(t);
    if (t == begin) ++t;
  }
}

/// `if (…)`, `for (…)`: what follows is a statement of its own.
void SourceNames::header(std::size_t& t) {
  const bool loop = is(t, "for");
  if (is(++t, "constexpr")) ++t;
  if (!is(t, "(")) return;
  const std::size_t open = t, close = closing(t);
  for (std::size_t k = open + 1; loop && k < close; ++k) {
    if (is(k, ";")) break;
    if (!is(k, ":") || k < open + 2 || !tokens_[k - 1].word) continue;
    statements_.push_back({tokens_[open].begin, tokens_[close].end, {text(k - 1)}, true});
    break;
  }
  for (std::size_t k = open + 1; k < close; ++k)
    if (is(k, "{")) statements(++k);
  t = close + 1;
}

void SourceNames::statement(std::size_t& t) {
  for (const char* word : {"if", "for", "while", "switch", "catch"})
    if (is(t, word)) return header(t);
  for (const char* word : {"else", "do", "try"})
    if (is(t, word)) return void(++t);
  const std::size_t first = t;
  bool assigned = false, ends = false;
  for (int depth = 0; t < tokens_.size(); ++t) {
    if (is(t, "(") || is(t, "[")) ++depth;
    else if (is(t, ")") || is(t, "]")) --depth;
    else if (is(t, "}")) break;  // of the block around, without a ';'
    else if (depth == 0 && is(t, "=")) assigned = true;
    else if (depth == 0 && is(t, ";")) break;
    else if (is(t, "{")) {
      const bool initialises = depth == 0 && !assigned && declared_name(first, t) == t - 1;
      const std::size_t close = closing(t);
      if (!initialises) statements(++t);
      t = close;
      // The body of a function, a class, a namespace, a branch.
      if (depth == 0 && !assigned && !initialises) {
        ends = true;
        break;
      }
    }
  }
  record(first, t, ends);
  if (ends || is(t, ";")) ++t;
}

/// `Type name`: the token of the name, or npos. Type: words with ::, <…>, const, & and *.
std::size_t SourceNames::declared_name(std::size_t first, std::size_t last) const {
  std::size_t t = first;
  while (is(t, "const") || is(t, "static") || is(t, "constexpr")) ++t;
  for (const char* word : {"return", "namespace", "class", "struct", "union", "enum", "using", "typedef", "template",
                           "throw", "new", "delete", "case", "goto", "extern"})
    if (is(t, word)) return npos;
  if (t >= last || !tokens_[t].word) return npos;
  for (++t; t + 1 < last && is(t, "::"); t += 2) {
  }
  if (is(t, "<"))
    for (int depth = 0; t < last; ++t) {
      depth += is(t, "<") - is(t, ">");
      if (depth == 0) {
        ++t;
        break;
      }
    }
  while (t < last && (is(t, "const") || is(t, "&") || is(t, "&&") || is(t, "*"))) ++t;
  return t < last && tokens_[t].word ? t : npos;
}

void SourceNames::declarators(std::size_t name, std::size_t last) {
  for (std::size_t t = name; t < last;) {
    std::size_t end = t;
    for (int depth = 0; end < last; ++end) {
      if (is(end, "(") || is(end, "[") || is(end, "{")) ++depth;
      else if (is(end, ")") || is(end, "]") || is(end, "}")) --depth;
      else if (depth == 0 && is(end, ",")) break;
    }
    const std::size_t stop = end < tokens_.size() ? tokens_[end].begin : text_.size();
    if (tokens_[t].word) statements_.push_back({tokens_[t].begin, stop, {text(t)}});
    t = end + 1;
  }
}

/// The tokens [first, last) are a statement; `body`: of a function, a class, a branch.
void SourceNames::record(std::size_t first, std::size_t last, bool body) {
  if (first >= last) return;
  const std::size_t end = last < tokens_.size() ? tokens_[last].end : text_.size();
  Statement s{tokens_[first].begin, end, {}};
  static constexpr const char* kAssign[] = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
  const bool assigns = tokens_[first].word && std::any_of(std::begin(kAssign), std::end(kAssign),
                                                          [&](const char* op) { return is(first + 1, op); });
  std::size_t binding = first;
  while (is(binding, "const") || is(binding, "auto") || is(binding, "&") || is(binding, "&&")) ++binding;
  if (body) {
    // It gives no variable a value.
  } else if (assigns) {
    s.names = {text(first)};
  } else if (binding > first && is(binding, "[")) {
    for (std::size_t t = binding + 1; t < closing(binding); ++t)
      if (tokens_[t].word) s.names.push_back(text(t));
  } else if (const std::size_t name = declared_name(first, last); name != npos && name + 1 < last) {
    if (is(name + 1, "=") || is(name + 1, "{") || is(name + 1, "(") || is(name + 1, ",")) declarators(name, last);
  }
  statements_.push_back(std::move(s));
}

std::vector<std::string> SourceNames::parameters(unsigned line, unsigned column) const {
  const std::size_t where = offset(line, column);
  std::size_t t = 0;
  while (t < tokens_.size() && (where == npos || tokens_[t].begin < where)) ++t;
  while (t < tokens_.size() && !(is(t, "[") && is(closing(t) + 1, "("))) ++t;
  if (t >= tokens_.size()) return {};
  const std::size_t open = closing(t) + 1, close = closing(open);
  std::vector<std::string> names(1);
  int depth = 0;
  bool fixed = false;                             // a default value follows
  const auto names_one = [&](std::size_t word) {  // and is not the type
    const std::size_t before = word - 1;
    return (tokens_[before].word && !is(before, "const")) || is(before, ">") || is(before, "&") || is(before, "*") ||
           is(before, "&&");
  };
  for (t = open + 1; t < close; ++t) {
    if (is(t, "<") || is(t, "(") || is(t, "{")) ++depth;
    else if (is(t, ">") || is(t, ")") || is(t, "}")) --depth;
    else if (depth == 0 && is(t, ",")) names.emplace_back(), fixed = false;
    else if (depth == 0 && is(t, "=")) fixed = true;
    else if (depth == 0 && !fixed && tokens_[t].word && names_one(t)) names.back() = text(t);
  }
  return names;
}

}  // namespace kiln::ir
