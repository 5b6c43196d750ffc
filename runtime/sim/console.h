// The debugger's terminal: commands in, text out. One object serves all stops of a session.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "runtime/debugger.h"
#include "runtime/profile/source.h"

namespace kiln::rt::sim {

class Console {
 public:
  Console(Debugger& debugger, std::istream& in, std::ostream& out, bool prompt)
      : debugger_(debugger), in_(in), out_(out), prompt_(prompt) {}
  debug::Resume stopped(debug::Stop&);

  /// A command. It returns how to go on, or nothing: the next command is read.
  struct Command {
    const char *name, *brief, *arguments, *help;
    std::optional<debug::Resume> (Console::*run)();
    bool takes_suffix = false;  ///< as x/4f32
  };
  /// In the order in which help shows them; the beginning of a name means the first that begins so.
  static const std::vector<Command>& commands();

 private:
  using Result = std::optional<debug::Resume>;
  Result execute(const std::string& line);
  void show_stop();

  // Each reads the rest of the line from words_.
  Result do_help(), do_break(), do_delete(), do_watch(), do_rwatch(), do_awatch();
  Result do_continue(), do_step(), do_stepi(), do_finish(), do_detach(), do_quit();
  Result do_where(), do_warps(), do_info(), do_list(), do_ptx(), do_focus();
  Result do_print(), do_examine();

  Result step(debug::Resume how);
  void watch(debug::On);
  void print_value(const std::string& name);
  void show_names();
  void print_register(const std::string& name, bool all);
  void show_lines(const std::vector<std::string>& lines, unsigned at, unsigned around);

  bool has_word() const { return at_ < words_.size(); }
  std::string word(const char* what);
  std::uint64_t number(const char* what);
  bool accept(std::string_view);
  debug::Condition condition();
  /// `[space] term {+ term}` up to the end or a word that cannot be part of it.
  std::pair<debug::Space, std::uint64_t> address();
  std::uint64_t term(std::optional<debug::Space>&);
  debug::Index3 index3();

  Debugger& debugger_;
  std::istream& in_;
  std::ostream& out_;
  bool prompt_;
  debug::Stop* stop_ = nullptr;
  SourceFiles sources_;
  std::string suffix_;  ///< of the command: "4f32" of x/4f32
  std::vector<std::string> words_;
  std::size_t at_ = 0;
  std::string last_;          ///< command, for an empty line
  std::uint64_t repeat_ = 0;  ///< steps that are still to be made
  debug::Resume last_step_ = debug::Resume::StepLine;
};

}  // namespace kiln::rt::sim
