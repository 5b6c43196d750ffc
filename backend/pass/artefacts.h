// Artefacts: the numbered files that one compilation writes and reads, as the environment asks.
//
//     KILN_DUMP=all|name,…[@kernel]  writes  $KILN_DUMP_DIR/<kernel>-<key8>/<NN>-<name>.kir|.ll|.ptx
//     KILN_STOP_AFTER=name[@kernel]  writes that file and stops with an error that names it
//     KILN_OVERRIDE=folder           a file <folder>/<kernel>-<key8>/<NN>-<name>.<ext> replaces what the compiler made
//
// Names are "traced", the passes, "llvm" and "ptx"; NN counts from 00 in the order of publication, so a listing of the
// folder is the journey of the kernel. An unchanged artefact is a file of one line, "(unchanged)".
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/ir/function.h"
#include "backend/options.h"
#include "backend/target.h"

namespace kiln::ir {

class Artefacts {
 public:
  /// key8 is a hash of the traced text, the target and the options. Throws UserError that lists the names when
  /// KILN_DUMP or KILN_STOP_AFTER name an artefact that does not exist, or when KILN_OVERRIDE names no folder.
  Artefacts(const Function& traced, const Target& target, const CompileOptions& options);

  /// Registers the next artefact; `text` is only called where the environment asks for it. Gives the text that replaces
  /// it, if there is one. Throws UserError after writing the artefact named by KILN_STOP_AFTER.
  std::optional<std::string> publish(const std::string& name, const std::string& extension,
                                     const std::function<std::string()>& text, bool changed = true);
  /// As publish() for a function, replaced in place.
  void publish(const std::string& name, Function& f, bool changed = true);

  /// Writes `text` as <NN>-before-<name>.<extension>, whatever the environment says, for a bug report. The path, or why
  /// it could not be written.
  std::string reproducer(const std::string& name, const std::string& extension, const std::string& text) const;

  /// $KILN_DUMP_DIR/<kernel>-<key8>
  const std::string& dir() const { return dir_; }

 private:
  bool wanted(const std::string& name) const;
  std::optional<std::string> replacement(const std::string& file_name) const;
  std::string file(const std::string& name, const std::string& extension) const;

  std::string kernel_, folder_, dir_, stop_after_, override_;
  std::vector<std::string> dump_;  // names; "all"
  bool dump_kernel_ = true;        // the @kernel filter lets this one through
  int number_ = 0;
};

}  // namespace kiln::ir
