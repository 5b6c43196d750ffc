// What a debugger is told while a launch runs. A launch that has one runs on one host thread.
#pragma once
#include "runtime/image/kernel_image.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

class DebugHook {
 public:
  virtual ~DebugHook() = default;
  virtual void begin(const Launch&, const KernelImage&) = 0;
  virtual void end() noexcept = 0;
  /// Its blocks start; the object may have held an earlier cluster of the launch.
  virtual void started(Cluster&) = 0;
  /// The warp is about to execute `in`, at w.pc, for the lanes of w.mask; it may be none. False: other warps have
  /// their turn first. Throws Fault to end the launch.
  virtual bool before(Warp& w, const Inst& in) = 0;
  /// It has.
  virtual void after(Warp& w, const Inst& in) = 0;
  /// Something wrong was found with which the launch goes on.
  virtual void found(const Finding&) = 0;
  /// The launch ends with this fault; warps are as they were when it was found.
  virtual void faulted(const Fault&) = 0;
};

}  // namespace kiln::rt::sim
