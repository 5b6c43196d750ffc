// What stands behind a Debugger: its breakpoints and watches, and the launch that runs.
#pragma once
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/debugger.h"
#include "runtime/sim/debug_hook.h"
#include "runtime/sim/named_value.h"

namespace kiln::rt::sim {

/// A place of the program: (file, line) of .loc, file 0: none.
struct Line {
  std::uint32_t file = 0, line = 0;
  bool operator==(const Line&) const = default;
};
inline Line line_of(const InstInfo& i) { return {i.loc.file, i.loc.file ? i.loc.line : 0}; }

struct Breakpoint {
  enum class Kind : std::uint8_t { Line, Ptx, Kernel, Watch };
  Kind kind = Kind::Line;
  std::string name;   ///< of the file or kernel
  unsigned line = 0;  ///< of the file or PTX
  debug::Condition condition;
  debug::Space space = debug::Space::Global;  ///< Watch
  std::uint64_t address = 0;
  std::size_t bytes = 0;
  debug::On on = debug::On::Write;
  int number = 0;
};

/// Where the source lines of a program begin, and which instructions have breakpoints.
class CodeMap {
 public:
  explicit CodeMap(const Program&);
  /// Whether a source line begins at an instruction: the first of its line since the last branch or label.
  bool begins_line(std::uint32_t pc) const { return begins_[pc]; }
  /// Instructions at which the breakpoint, of a line or of the PTX, stops; empty: it is not in this program.
  std::vector<std::uint32_t> places(const Breakpoint&) const;

 private:
  std::vector<std::uint32_t> line_places(const Breakpoint&) const;
  const Program& program_;
  std::vector<bool> begins_;
};

/// The innermost function around an instruction; null for the exit at the end.
const Expansion* expansion_at(const Program&, std::uint32_t pc);

/// What one access of a warp touches, of the instructions whose addresses stand in registers: ld, st, atom, red.
struct Touch {
  debug::Space space = debug::Space::Global;
  bool reads = false, writes = false;
  std::uint32_t bytes = 0;  ///< of one lane
  std::uint32_t lanes = 0;
  std::array<std::uint64_t, kLanes> address{};
  std::array<const Block*, kLanes> block{};  ///< whose shared memory it is
};
/// The accesses that the warp is about to make with `in`: one for each space.
std::vector<Touch> touches(const Warp&, const Inst& in);

/// What a variable of the user's program got last in a warp.
struct Seen {
  std::uint32_t pc = 0;    ///< of the statement that says so
  std::uint64_t turn = 0;  ///< its executions by the warp, this one included
  std::uint32_t lanes = 0;
  std::vector<std::array<std::uint64_t, kLanes>> registers;
};

class DebugSession final : public DebugHook {
 public:
  explicit DebugSession(Debugger::Handler handler = {}) : handler_(std::move(handler)) {}
  void on_stop(Debugger::Handler h) { handler_ = std::move(h); }
  int add(Breakpoint);
  void remove(int number);
  const std::vector<Breakpoint>& breakpoints() const { return breakpoints_; }
  /// The kernel that runs, if no instruction of it is at the breakpoint's line; otherwise empty.
  std::string lacks_code_of(const Breakpoint&) const;
  bool interrupt() { return !detached_ && !interrupted_.exchange(true); }

  void begin(const Launch&, const KernelImage&) override;
  void end() noexcept override;
  void started(Cluster&) override;
  bool before(Warp&, const Inst&) override;
  void after(Warp&, const Inst&) override;
  void found(const Finding&) override;
  void faulted(const Fault&) override;

  // --- for Stop, while a launch runs ---
  const Launch& launch() const { return *launch_; }
  const KernelImage& image() const { return *image_; }
  /// Blocks that have started and not ended, in the order of the clusters.
  std::vector<Block*> resident() const;
  /// The variables that are named in the program, by the place of the statement.
  const std::map<std::uint32_t, NamedValue>& named() const { return named_; }
  /// What the variable got last in the warp, or null.
  const Seen* seen(const Warp&, const std::string& name) const;

 private:
  /// What is remembered of a warp.
  struct Past {
    std::uint32_t pc = UINT32_MAX, active = 0;  ///< of its last instruction
    std::map<std::string, Seen> values;
    std::map<std::uint32_t, std::uint64_t> turns;
  };
  struct Watched {
    int number;
    struct Copy {
      Block* block;  ///< null: global memory
      std::vector<std::byte> bytes;
    };
    std::vector<Copy> copies;  ///< what was there last
  };
  /// What the launch does until the next stop.
  struct Going {
    debug::Resume how = debug::Resume::Continue;
    const Warp* warp = nullptr;
    const Block* block = nullptr;
    Line line;
    std::uint32_t lane = 0;
  };

  void stop_for_findings(Warp&, std::uint32_t pc);

  /// An access to a watched range.
  struct Hit {
    int number;
    std::string what;
    std::vector<std::byte> old, now;
    std::uint32_t lanes;  ///< that made it; 0: not known
  };

  const Breakpoint* breakpoint(int number) const;
  const Breakpoint* breakpoint_at(const Warp&) const;
  void map_breakpoints();
  void read_names();
  void keep_value(const Warp&, const Inst&, std::uint32_t pc);
  void start_watches();
  void note_accesses(const Warp&, const Inst&);
  void check_watches(Warp&, const Inst*);
  std::optional<Hit> check_watch(const Warp&, const Breakpoint&, Watched::Copy&);
  void note_access(int number, const Touch&, const Block*, std::uint32_t lane);
  const std::byte* watched_bytes(const Breakpoint&, Block*) const;
  bool steps_to(const Warp&) const;
  void stop(Warp&, std::uint32_t pc, debug::Reason, std::string what, int number, std::vector<std::byte> old = {},
            std::vector<std::byte> now = {}, std::uint32_t lanes = 0);

  Debugger::Handler handler_;
  std::vector<Breakpoint> breakpoints_;
  int last_number_ = 0;
  std::atomic<bool> detached_{false}, interrupted_{false};

  // Of the launch that runs.
  const Launch* launch_ = nullptr;
  const KernelImage* image_ = nullptr;
  std::optional<CodeMap> map_;
  std::map<std::uint32_t, NamedValue> named_;
  std::vector<std::vector<int>> at_;  ///< numbers of the breakpoints at each instruction; empty: none anywhere
  std::vector<int> entry_;            ///< numbers of the kernel breakpoints that have not stopped yet
  std::vector<Watched> watched_;
  struct Access {
    int number;
    std::uint32_t lanes;
    const Block* block;
    bool reads, writes;
  };
  std::vector<Access> accesses_;  ///< to watched ranges by the instruction that is executed now
  std::vector<Cluster*> clusters_;
  std::unordered_map<const Warp*, Past> past_;  ///< looked up only
  Going going_;
  Warp* current_ = nullptr;     ///< executes an instruction now
  std::vector<Finding> found_;  ///< since the last stop for one
  bool aborted_ = false;
};

}  // namespace kiln::rt::sim
