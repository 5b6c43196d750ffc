// A signal handler takes no argument, so the debugger that it asks is one of the process's few globals.
#include "runtime/sim/interrupt.h"

#include <atomic>

namespace kiln::rt::sim {
namespace {

std::atomic<Debugger*> asked{nullptr};
static_assert(std::atomic<Debugger*>::is_always_lock_free);

void on_interrupt(int signal) {
  Debugger* const debugger = asked.load();
  if (debugger && debugger->interrupt()) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

Interrupts::Interrupts(Debugger& debugger) : outer_(asked.exchange(&debugger)) {
  struct sigaction own {};
  own.sa_handler = on_interrupt;
  own.sa_flags = SA_RESTART;  // the prompt goes on reading
  sigemptyset(&own.sa_mask);
  sigaction(SIGINT, &own, &before_);
}

Interrupts::~Interrupts() {
  sigaction(SIGINT, &before_, nullptr);
  asked.store(outer_);
}

}  // namespace kiln::rt::sim
