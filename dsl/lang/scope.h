// Scopes: the traced bodies that are open while a kernel is traced, and what each did to the variables around it.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backend/ir/function.h"
#include "dsl/lang/handle.h"

namespace kiln::detail {

enum class ScopeKind : std::uint8_t {
  Kernel,     ///< the kernel's own body
  Loop,       ///< the body of a range loop
  While,      ///< the body of while_
  Condition,  ///< the condition lambda of while_, inside While
  Branch,     ///< one lambda of if_
  Rest,       ///< what follows return_if, continue_if or break_if: a region of the IR, but no C++ body
  Combine,    ///< the lambda of a reduction or scan
};

/// A number made of a path and one more step.
constexpr std::uint64_t path_step(std::uint64_t path, std::uint64_t step) {
  path ^= step + 0x9e3779b97f4a7c15u + (path << 6) + (path >> 2);
  return path * 0xff51afd7ed558ccdu;
}

/// A variable of the outside that was touched in a scope.
struct Touched {
  Handle* variable;                ///< null once it died
  ValueId entry;                   ///< its value at entry
  ValueId header = kNoValue;       ///< loops: the region parameter that stands for it
};

struct Scope {
  ScopeKind kind;
  std::uint32_t id;
  SourceLoc at;
  ir::InstId inst;                 ///< the for, while, if or reduction that owns the region
  ir::RegionId region;             ///< where instructions go
  std::uint64_t path;              ///< the same in every replay
  std::uint64_t first_serial;      ///< handles from here on were made inside
  int depth;                       ///< C++ bodies around and including this one
  std::uint32_t next_child = 0, next_local = 0;
  std::vector<Touched> touched = {};
  int runs = 0;                    ///< loops: completed runs of the body
  bool returns = false;            ///< Rest: opened by return_if, so nothing follows it
  std::unique_ptr<Handle> stop = {};  ///< Loop: hidden variable of break_if

  bool is_loop() const { return kind == ScopeKind::Loop || kind == ScopeKind::While; }
};

/// What a body did to the variables around it: enough to stand in for running it.
struct Summary {
  struct Merged {
    std::uint64_t variable;        ///< Handle::name_
    ir::Type type;
  };
  std::vector<Merged> merged;
  std::vector<ir::Type> yielded;   ///< what the lambdas of if_ return
  int stop = -1;                   ///< position of the hidden variable of break_if in `merged`
};
/// By Scope::path of the loop, or of the if_.
using Summaries = std::unordered_map<std::uint64_t, Summary>;

/// How a trace runs the traced bodies of a kernel (replay.h).
struct Replay {
  enum Mode : std::uint8_t {
    Once,   ///< each body once: the trace that is compiled
    Twice,  ///< loops and combine lambdas at `depth` twice, the second run counts; else branches before then branches
    Skip,   ///< bodies at `depth` or deeper not at all: their Summary stands in
  };
  Mode mode = Once;
  int depth = 0;
};

}  // namespace kiln::detail
