// Ctrl-C on the terminal of a debugger: stops the kernel that runs instead of ending the program.
#pragma once
#include <csignal>

#include "runtime/debugger.h"

namespace kiln::rt::sim {

/// While it lives, SIGINT asks the debugger for a stop. A second one before that stop, or one after the debugger has
/// detached, does what it did before.
class Interrupts {
 public:
  explicit Interrupts(Debugger&);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  Debugger* outer_;  ///< that of another launch, in whose life this one began
  struct sigaction before_;
};

}  // namespace kiln::rt::sim
