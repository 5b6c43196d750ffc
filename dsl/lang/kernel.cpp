#include "dsl/lang/kernel.h"

#include <fmt/format.h>

#include <string_view>

#include "backend/ir/text.h"
#include "dsl/lang/replay.h"
#include "dsl/lang/tracer.h"

namespace kiln {

std::string Trace::text(bool locations) const { return ir::print(*function_, {.locations = locations}); }

namespace detail {
namespace {

/// The line numbered `n` of `text`, without its indentation.
std::string_view line_of(std::string_view text, std::size_t n) {
  while (n-- > 0) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  text = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.empty() ? "(nothing)" : text;
}

std::size_t first_difference(std::string_view a, std::string_view b) {
  std::size_t line = 0;
  for (std::size_t i = 0; i < a.size() && i < b.size() && a[i] == b[i]; ++i) line += a[i] == '\n';
  return line;
}

/// `words[position]` of a list of words separated by spaces.
std::string_view word_of(std::string_view words, int position) {
  for (;; --position) {
    words.remove_prefix(std::min(words.find_first_not_of(' '), words.size()));
    const std::size_t end = std::min(words.find(' '), words.size());
    if (position == 0) return words.substr(0, end);
    words.remove_prefix(end);
  }
}

}  // namespace

void throw_trace_difference(const ir::Function& first, const ir::Function& second, const std::string& what,
                            const char* when) {
  std::vector<SourceLoc> first_locs, second_locs;
  const std::string a = ir::print(first, {.locations = false}, first_locs),
                    b = ir::print(second, {.locations = false}, second_locs);
  const std::size_t line = first_difference(a, b);
  SourceLoc at = first.loc;
  for (const auto& locs : {second_locs, first_locs})
    if (line < locs.size() && locs[line].known()) at = locs[line];
  throw UserError(at, fmt::format("kernel '{}' {}: here it traced `{}`, and {} `{}`", first.name, what,
                                  line_of(a, line), when, line_of(b, line)));
}

std::string KernelCore::argument(int position, const std::string& type, const std::string& part) const {
  return fmt::format("argument {} ({}{})", position + 1, names_ ? word_of(names_, position) : type, part);
}

std::shared_ptr<const ir::Function> KernelCore::trace_once(const rt::ArgPack& pack, Body body) const {
  Tracer t(name_, at_);
  Maker m{pack, *this};
  body(m);
  return std::make_shared<const ir::Function>(t.finish());
}

std::shared_ptr<const ir::Function> KernelCore::trace(const rt::ArgPack& pack, Body body) const {
  return std::make_shared<const ir::Function>(verified_trace(name_, at_, [&] {
    Maker m{pack, *this};
    body(m);
  }));
}

Memo& KernelCore::memo(Memo* (*make)()) const {
  Memo* m = memo_.load(std::memory_order_acquire);
  if (m) return *m;
  Memo* fresh = make();
  if (memo_.compare_exchange_strong(m, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *m;
}

}  // namespace detail
}  // namespace kiln
