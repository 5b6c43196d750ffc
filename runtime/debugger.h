// Debugger: looks into the kernels that run on a simulator, while they run.
//
// A stop is a moment between two instructions of one warp: of all lanes that are together there, on the host thread
// that launched. The stop's handler reads whatever it likes and says how to go on. With a debugger attached a launch
// runs on one host thread, blocks and warps in a fixed order, so every run stops at the same places; without one it
// costs nothing.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/device.h"

namespace kiln {

namespace rt::sim {
class DebugSession;
struct Warp;
}  // namespace rt::sim

namespace debug {

/// Why a launch stopped.
enum class Reason : std::uint8_t {
  Breakpoint,  ///< a line, PTX line or kernel with a breakpoint is about to be executed
  Step,        ///< the warp has come to another line (or instruction) after a step
  Watch,       ///< a watched range was accessed
  Fault,       ///< the kernel made an error, with which the launch will end
  Finding,     ///< the last instruction made an error (a race, an uninitialised read) with which the launch goes on
  Interrupt,   ///< Debugger::interrupt() asked for it
  Exit,        ///< the warp that was stepped, or the block that was to finish, has exited
};

/// How to go on.
enum class Resume : std::uint8_t {
  Continue,         ///< to the next breakpoint, watch, finding or fault
  StepLine,         ///< until this warp begins another source line
  StepInstruction,  ///< one PTX instruction of this warp
  FinishBlock,      ///< until every warp of this block has exited
  Detach,           ///< to the end of the launch, and of all later ones, without a stop
  Abort,            ///< end the launch: a DeviceError "ended in the debugger"
};

/// Memory as an instruction names it. Shared addresses are those that the kernel sees (an offset into the window of its
/// block, which begins behind the bytes that the system keeps); local ones belong to one thread.
enum class Space : std::uint8_t { Global, Shared, Local, Param };

using Index3 = std::array<std::uint32_t, 3>;

/// Which stops count: those of this block, this warp of its block, with this lane among the active ones. Absent: any.
struct Condition {
  std::optional<Index3> block = std::nullopt;
  std::optional<std::uint32_t> warp = std::nullopt, lane = std::nullopt;
};

/// When a watch stops: after a write (also one of an equal value), a read, or both. Reads are seen of ld, atom and red;
/// of asynchronous copies and matrix instructions only writes are, and only those that change a byte.
enum class On : std::uint8_t { Write, Read, Access };

/// The 32 lanes of a PTX register, or of a special register.
struct Register {
  std::string name;
  std::string type;                      ///< as declared: "f32", "b64", "pred"
  std::array<std::uint64_t, 32> bits{};  ///< of each lane; a predicate is 0 or 1
  float f32(int lane) const;
  double f64(int lane) const;
  std::int64_t s64(int lane) const;  ///< extended from the width of its type
};

/// A kernel argument.
struct Parameter {
  std::string name;  ///< in the user's kernel where it is known, else in the PTX
  std::string type;  ///< "f32*", "i64", "b64"
  std::vector<std::byte> bytes;
};

/// A variable of the user's program, of a kernel that was compiled with names (CompileOptions::debug).
struct Value {
  std::string name;
  DType dtype{};
  bool pointer = false;             ///< elements are addresses
  bool tile = false;                ///< else a scalar
  std::vector<std::int64_t> shape;  ///< of a tile
  std::string where;                ///< "file:line" of the statement that gave the value
  std::uint64_t turn = 1;           ///< how often the warp in view had executed it
  /// Elements in row-major order, and which of them are known: a warp that has not come to the statement (as often as
  /// the one in view), or is past it, has no part in it.
  std::vector<std::uint64_t> bits;
  std::vector<bool> known;
  std::vector<std::string> absent;  ///< "warp 3: not yet here", for each warp without a part

  /// Element `index`; the only one of a scalar is 0.
  double number(std::size_t index) const;
  std::string text(std::size_t index) const;
  /// Row-major number of an element. Throws UserError if there is no such element.
  std::size_t at(const std::vector<std::int64_t>& index) const;
};

/// A warp that is resident now.
struct WarpInfo {
  Index3 block{};
  std::uint32_t warp = 0;
  std::uint32_t active = 0, live = 0;  ///< lanes at its place; lanes that have not exited
  std::string state;                   ///< "ready", "waits at barrier 0 (64 of 128 threads arrived)", "has exited"
  std::string place;                   ///< "softmax.cpp:12 (ptx line 80: …)" of its next instruction
};

/// One stop, valid until its handler returns. It shows one warp and lane, at first those that stopped; focus() moves
/// on. Functions throw UserError that says what there is instead when a name, a warp or an address is not there.
class Stop {
 public:
  Reason reason() const { return reason_; }
  /// "breakpoint 1", "watch 2: …", or the message of the fault or finding.
  const std::string& what() const { return what_; }
  int number() const { return number_; }  ///< of the breakpoint or watch; 0: none
  /// Of a watch: its bytes before and after the access.
  const std::vector<std::byte>& old_bytes() const { return old_; }
  const std::vector<std::byte>& new_bytes() const { return new_; }

  const std::string& kernel() const;
  Index3 block() const;
  std::uint32_t warp() const;
  std::uint32_t lane() const { return lane_; }
  std::uint32_t active() const;  ///< lanes at this place
  std::string file() const;      ///< of the user's line; empty where the PTX names none
  unsigned line() const;
  unsigned ptx_line() const;
  std::string ptx() const;            ///< the instruction
  const std::string& module() const;  ///< the whole PTX
  /// Functions around the place, innermost first; the kernel last.
  std::vector<std::string> functions() const;
  std::vector<WarpInfo> warps() const;
  /// Shows another resident warp or lane. What is absent stays; the lane becomes an active one if need be.
  void focus(std::optional<Index3> block, std::optional<std::uint32_t> warp, std::optional<std::uint32_t> lane);

  /// A register ("%r5") or special register ("%tid.x") of the warp.
  Register reg(const std::string& name) const;
  std::vector<std::string> register_names() const;
  std::vector<Parameter> parameters() const;
  /// What the variable has got last in the warp in view.
  Value value(const std::string& name) const;
  /// Variables of the kernel, in the order of its code.
  std::vector<std::string> value_names() const;
  std::vector<std::byte> read(Space, std::uint64_t address, std::size_t bytes) const;
  /// Where a variable of the PTX lies (shared, local, global), or where a pointer parameter points.
  std::pair<Space, std::uint64_t> address_of(const std::string& name) const;
  template <Element T>
  T load(Space space, std::uint64_t address) const {
    T value;
    const std::vector<std::byte> bytes = read(space, address, sizeof value);
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

 private:
  friend class rt::sim::DebugSession;
  Stop() = default;
  rt::sim::DebugSession* session_ = nullptr;
  rt::sim::Warp* warp_ = nullptr;
  std::uint32_t pc_ = 0, lane_ = 0;
  Reason reason_ = Reason::Step;
  std::string what_;
  int number_ = 0;
  std::vector<std::byte> old_, new_;
};

}  // namespace debug

/// Stops the launches of one simulator device. Detaches when it is destroyed, which must not be while one runs.
///
/// Example (tests/sim/debugger_test.cpp):
///   Debugger debugger(device);
///   debugger.break_line("softmax.cpp", 12, {.block = debug::Index3{3, 0, 0}, .warp = 1});
///   debugger.on_stop([](debug::Stop& stop) {
///     std::cout << stop.reg("%f3").f32(0) << "\n";
///     return debug::Resume::Continue;
///   });
class Debugger {
 public:
  using Handler = std::function<debug::Resume(debug::Stop&)>;

  /// Throws UserError if the device is no simulator, or has a debugger already.
  explicit Debugger(const Device& device, SourceLoc at = RawLoc::current());
  ~Debugger();
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  /// Called on the launching thread. It may read buffers with download(); it must not free memory of the device or
  /// launch. What it throws ends the launch and comes out of the call that launched. Without a handler every stop
  /// continues.
  void on_stop(Handler);

  /// Each returns the number of the new breakpoint. A place need not exist yet: it is looked for in every kernel that
  /// is launched.
  ///
  /// The code of a source line begins once in every stretch of code without branches; a stop is there, before its first
  /// instruction. `file`: the last parts of its name are enough. A line without code stands for the next one with code.
  int break_line(std::string file, unsigned line, debug::Condition = {});
  /// The first instruction at or behind this line of the kernel's PTX.
  int break_ptx(unsigned line, debug::Condition = {});
  /// The first instruction that a launch executes, of those that fulfil the condition; an empty name: of any kernel.
  int break_kernel(std::string name, debug::Condition = {});
  /// Stops after an access to one of `bytes` bytes. Shared: of every block, or of the condition's. The condition is
  /// also about who makes the access.
  int watch(debug::Space, std::uint64_t address, std::size_t bytes, debug::On = debug::On::Write,
            debug::Condition = {});
  /// Asks for a stop before the next instruction of any warp, of this launch or the next; from any thread or a signal
  /// handler. False: there is a request already, or the debugger has detached.
  bool interrupt();
  /// Throws UserError if there is none of this number.
  void remove(int number);
  /// Each breakpoint and watch, in words; of a line that has no code in the kernel that runs now, they say so.
  std::vector<std::string> breakpoints() const;

 private:
  Device device_;
  std::shared_ptr<rt::sim::DebugSession> session_;
};

namespace debug {
/// Whether KILN_SIM_DEBUG asks for a debugger on the terminal.
bool asked_for();

/// A handler that reads commands from `in` and answers on `out`, as docs/simulator.md describes. `prompt`: shows one,
/// and lets an empty line repeat the last command, as fits a terminal. At the end of the input it detaches. It sets
/// breakpoints of `debugger`, which must outlive it.
Debugger::Handler console(Debugger& debugger, std::istream& in, std::ostream& out, bool prompt);
}  // namespace debug
}  // namespace kiln
