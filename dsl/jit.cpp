// From a launch to code, and the memo that makes the second launch cheap.
//
//   key    words of the ArgPack (Const and Tune values, facts of the arguments), device, options
//   hit    one pass over an append-only list of specialisations, without a lock or an allocation
//   miss   trace (twice, compared) → disk cache by IR text, target, options and compiler version → compile → load →
//   publish
//
// Threads that miss on one key compile once (once_per_key.h). A kernel may be launched while another one is traced, or
// compiled on another thread.
#include "dsl/jit.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "backend/compile.h"
#include "backend/ir/text.h"
#include "dsl/interpreter.h"
#include "dsl/lang/kernel.h"
#include "dsl/lang/once_per_key.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/cache.h"
#include "runtime/debugger.h"
#include "runtime/device_impl.h"

namespace kiln::detail {
namespace {

/// What a specialisation is for. `words` borrows from an ArgPack, or from the specialisation itself.
struct Key {
  const rt::DeviceImpl* device;
  const CompileOptions& options;
  const std::uint64_t* words;
  std::size_t size;
  bool operator==(const Key& o) const {
    return device == o.device && size == o.size && std::memcmp(words, o.words, size * sizeof *words) == 0 &&
           options == o.options;
  }
};

struct Specialisation {
  Device device;  // keeps the address in the key from being reused
  CompileOptions options;
  std::vector<std::uint64_t> words;
  std::shared_ptr<const ir::Function> function;
  std::shared_ptr<rt::LoadedKernel> kernel;
  std::atomic<std::uint64_t> launches{0};
  Specialisation* older = nullptr;
  Key key() const { return {&device.impl(), options, words.data(), words.size()}; }
};

struct JitMemo final : Memo {
  OncePerKey<Specialisation> specialisations;
};

JitMemo& memo_of(const KernelCore& core) {
  return static_cast<JitMemo&>(core.memo([]() -> Memo* { return new JitMemo; }));
}

Target target_of(const Device& device) {
  Target t = target_named(device.target(), device.ptx_version());
  t.sms = device.sm_count();
  t.max_shared_bytes = device.max_shared_bytes();
  return t;
}

/// Everything that decides the code and what is said about it: equal texts may share an image. Lines are part of it, so
/// that an edit which only moves a kernel compiles it again: what a profiler or a fault names is never stale.
std::string disk_key(const ir::Function& f, const Target& t, const CompileOptions& o) {
  return fmt::format(
      "{}target {} ptx={} sms={} threads={} shared={}\noptions warps={} cluster={} registers={} stages={} lines={} "
      "strict={}{}\n{}\n",
      ir::print(f, {.locations = true}), t.arch, t.ptx, t.sms, t.max_threads_per_sm, t.max_shared_bytes, o.num_warps,
      o.cluster, o.max_registers, o.stages, o.line_info, o.strict, o.debug ? " debug" : "", compiler_version());
}

/// Somebody wants to see or to change what the compiler does: cached images would hide it.
bool watching_the_compiler() {
  return !env::KILN_DUMP().empty() || !env::KILN_STOP_AFTER().empty() || !env::KILN_OVERRIDE().empty() ||
         env::KILN_TIME();
}

double us_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

struct Compiled {
  rt::KernelImage image;
  std::string key;
  bool cached = false;
  CompileStats stats;
};

Compiled compile_or_find(const ir::Function& f, const Device& device, CompileOptions options,
                         const rt::DiskCache& cache) {
  options.debug = options.debug || (device.is_simulator() && debug::asked_for());
  const auto begin = std::chrono::steady_clock::now();
  const Target target = target_of(device);
  Compiled c;
  c.key = disk_key(f, target, options);
  if (auto hit = cache.find(c.key)) {
    c.image = std::move(*hit);
    c.cached = true;
  } else {
    c.image = compile(f, target, options, &c.stats);
  }
  if (rt::log_enabled(rt::LogLevel::Debug))
    rt::say(rt::LogLevel::Debug, fmt::format("kernel '{}' for {}: {} in {:.0f} us", f.name, target.arch,
                                             c.cached ? "found in the disk cache" : "compiled", us_since(begin)));
  return c;
}

rt::DiskCache cache_to_use() { return watching_the_compiler() ? rt::DiskCache({}, 0) : rt::DiskCache::from_env(); }

/// The table of KILN_TIME.
void show_times(const ir::Function& f, const Device& device, const std::vector<StageTime>& times) {
  std::string table = fmt::format("time of kernel '{}' for {}, in us", f.name, device.target());
  double sum = 0;
  for (const StageTime& t : times) {
    table += fmt::format("\n  {:<20}{:>10.1f}", t.stage, t.us);
    sum += t.us;
  }
  rt::say(rt::LogLevel::Info, table + fmt::format("\n  {:<20}{:>10.1f}", "sum", sum));
}

std::shared_ptr<rt::LoadedKernel> compile_and_load(const ir::Function& f, const Device& device,
                                                   const CompileOptions& options, double trace_us, SourceLoc at) {
  const rt::DiskCache cache = cache_to_use();
  Compiled c = compile_or_find(f, device, options, cache);
  const auto begin = std::chrono::steady_clock::now();
  std::shared_ptr<rt::LoadedKernel> kernel = device.load(c.image, at);
  if (env::KILN_TIME()) {
    c.stats.times.insert(c.stats.times.begin(), {"trace", trace_us});
    c.stats.times.push_back({"load", us_since(begin)});
    show_times(f, device, c.stats.times);
  }
  const std::string cubin = kernel->cubin();
  if (!c.cached || (c.image.cubin.empty() && !cubin.empty())) {
    c.image.cubin = cubin;
    c.image.accepted = kernel->image().accepted;
    cache.store(c.key, c.image);
  }
  return kernel;
}

std::unique_ptr<Specialisation> specialise(const KernelCore& core, const Device& device, SourceLoc at,
                                           const rt::ArgPack& pack, const CompileOptions& options, Body body) {
  const auto begin = std::chrono::steady_clock::now();
  std::shared_ptr<const ir::Function> f = core.trace(pack, body);
  const double trace_us = us_since(begin);
  std::shared_ptr<rt::LoadedKernel> kernel = device.kind() == DeviceKind::Interpreter
                                                 ? interpreted_kernel(f, device)
                                                 : compile_and_load(*f, device, options, trace_us, at);
  return std::make_unique<Specialisation>(device, options,
                                          std::vector(pack.key_words(), pack.key_words() + pack.key_size()),
                                          std::move(f), std::move(kernel));
}

Specialisation& specialisation(const KernelCore& core, JitMemo& memo, const Device& device, SourceLoc at,
                               const rt::ArgPack& pack, const CompileOptions& options, Body body) {
  const Key key{&device.impl(), options, pack.key_words(), pack.key_size()};
  return memo.specialisations.find_or_make(
      key, [&] { throw UserError(at, fmt::format("kernel '{}' launches itself while it is traced", core.name())); },
      [&] { return specialise(core, device, at, pack, options, body); });
}

/// C++ variables that a kernel reads are in no key: a changed one shows only in another trace.
void check_unchanged(const KernelCore& core, const Specialisation& s, const rt::ArgPack& pack, Body body) {
  const auto now = core.trace_once(pack, body);
  if (ir::print(*now, {.locations = false}) != ir::print(*s.function, {.locations = false}))
    throw_trace_difference(*s.function, *now,
                           "traces differently than at its first launch: it reads a C++ variable that has changed; "
                           "pass it as a Const or an Int parameter");
}

}  // namespace

void KernelCore::launch(const OnStream& on, const Grid& grid, const rt::ArgPack& pack, const CompileOptions& options,
                        Body body) const {
  JitMemo& memo = memo_of(*this);
  Specialisation* s =
      memo.specialisations.find({&on.stream.impl().device(), options, pack.key_words(), pack.key_size()});
  if (!s) {
    if (grid.empty()) return;
    if (on.stream.capturing())
      throw UserError(
          on.at,
          fmt::format("kernel '{}' is not loaded for these arguments, and the stream is being captured: call preload() "
                      "with the device and the same arguments, or launch it once, before the capture",
                      name_));
    s = &specialisation(*this, memo, on.stream.device(), on.at, pack, options, body);
  }
  const std::uint64_t n = s->launches.fetch_add(1, std::memory_order_relaxed) + 1;
  if ((n > 1 && (n & (n - 1)) == 0) || env::KILN_RETRACE()) check_unchanged(*this, *s, pack, body);
  rt::launch(*s->kernel, on.stream, grid, pack, on.at);
}

void KernelCore::preload(const OnDevice& on, const rt::ArgPack& pack, const CompileOptions& options, Body body) const {
  (void)specialisation(*this, memo_of(*this), on.device, on.at, pack, options, body);
}

rt::KernelImage KernelCore::image(const OnDevice& on, const rt::ArgPack& pack, const CompileOptions& options,
                                  Body body) const {
  if (on.device.kind() == DeviceKind::Interpreter)
    throw UserError(on.at, fmt::format("kernel '{}': the interpreter compiles nothing and has no image", name_));
  return compile_or_find(*trace(pack, body), on.device, options, cache_to_use()).image;
}

std::uint64_t KernelCore::specialisations() const {
  Memo* m = memo_if_any();
  return m ? static_cast<JitMemo*>(m)->specialisations.size() : 0;
}

}  // namespace kiln::detail
