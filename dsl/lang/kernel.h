// kernel("name", lambda): a kernel, and what can be done with it.
//
// A kernel specialises on first use with each new key: the values of Const and Tune parameters, facts about the other
// arguments (pointers aligned to 16 bytes, integers that are 1 or divisible by 16, views whose strides are multiples of
// 16 bytes), the device and the options.
// Captures are frozen with the kernel object; each object, copies included, specialises on its own.
//
//   constinit auto scale = kernel("scale", [](In<float> x, Out<float> y, Int n, Const<int> BLOCK) {
//     Tile i = program_id(0) * BLOCK + arange(BLOCK);
//     store(y + i, load(x + i, i < n) * 2, i < n);
//   }).names("x y n BLOCK");
//   scale.launch(stream, cdiv(n, 1024), x, y, n, 1024);
//
// The lambda runs when it is traced, several times for each key: C++ side effects in it happen as often. It must not
// read C++ variables that change; Kiln traces again on the 2nd, 4th, 8th … launch of a key and reports a difference
// (KILN_RETRACE=1: on every launch).
#pragma once
#include <atomic>
#include <initializer_list>
#include <memory>
#include <type_traits>

#include "backend/options.h"
#include "dsl/lang/function_ref.h"
#include "dsl/lang/host.h"
#include "dsl/lang/signature.h"

namespace kiln {

namespace ir {
class Function;
}

/// A traced kernel.
class Trace {
 public:
  explicit Trace(std::shared_ptr<const ir::Function> f) : function_(std::move(f)) {}
  /// The tile IR in its text form; with locations, each instruction names the user's line.
  std::string text(bool locations = true) const;
  /// For tools and tests of the inner layers (backend/ir/function.h).
  const ir::Function& function() const { return *function_; }

 private:
  std::shared_ptr<const ir::Function> function_;
};

namespace detail {

/// Throws UserError at the first line where two traces of one kernel differ: "kernel 'k' `what`: here it traced …, and
/// `when` …".
[[noreturn]] void throw_trace_difference(const ir::Function& first, const ir::Function& second, const std::string& what,
                                         const char* when = "now");

/// The specialisations of one kernel object; dsl/jit.cpp owns the only implementation.
struct Memo {
  virtual ~Memo() = default;
};

/// Where to launch, and the line of the call.
struct OnStream {
  const Stream& stream;
  SourceLoc at;
  OnStream(const Stream& s, RawLoc l = RawLoc::current()) : stream(s), at(l) {}
  OnStream(const Stream& s, SourceLoc l) : stream(s), at(l) {}
};
struct OnDevice {
  const Device& device;
  SourceLoc at;
  OnDevice(const Device& d, RawLoc l = RawLoc::current()) : device(d), at(l) {}
  OnDevice(const Device& d, SourceLoc l) : device(d), at(l) {}
};

/// Runs the user's lambda once, making its parameters with the Maker.
using Body = FunctionRef<void(Maker&)>;

/// A kernel without its types. Tracing is in dsl/lang/kernel.cpp, everything that needs a compiler in dsl/jit.cpp.
class KernelCore {
 public:
  constexpr KernelCore(const char* name, SourceLoc l) : name_(name), at_(l) {}
  constexpr KernelCore(const KernelCore& o) : name_(o.name_), names_(o.names_), at_(o.at_) {}
  KernelCore& operator=(const KernelCore&) = delete;
  constexpr ~KernelCore() {
    if (!std::is_constant_evaluated()) delete memo_.load(std::memory_order_acquire);
  }
  constexpr void set_names(const char* words) { names_ = words; }

  const char* name() const { return name_; }
  SourceLoc at() const { return at_; }
  /// "argument 4 (n)", or "argument 4 (Int)" where the user gave no names.
  std::string argument(int position, const std::string& type, const std::string& part = {}) const;

  /// One trace. / The same, verified by replays (replay.h): a difference is C++ state that the kernel changes.
  std::shared_ptr<const ir::Function> trace_once(const rt::ArgPack&, Body) const;
  std::shared_ptr<const ir::Function> trace(const rt::ArgPack&, Body) const;

  void launch(const OnStream&, const Grid&, const rt::ArgPack&, const CompileOptions&, Body) const;
  void preload(const OnDevice&, const rt::ArgPack&, const CompileOptions&, Body) const;
  rt::KernelImage image(const OnDevice&, const rt::ArgPack&, const CompileOptions&, Body) const;
  std::uint64_t specialisations() const;
  /// The memo, made on first use by `make`.
  Memo& memo(Memo* (*make)()) const;
  Memo* memo_if_any() const { return memo_.load(std::memory_order_acquire); }

 private:
  const char* name_;
  const char* names_ = nullptr;
  SourceLoc at_;
  mutable std::atomic<Memo*> memo_{nullptr};
};

/// Calls f(args…) with the arguments made from left to right (they are written in braces).
struct InOrder {
  template <class F, class... A>
  InOrder(const F& f, const A&... args) {
    f(args...);
  }
};

/// What can be done with a kernel and its options. None of these is a template: every argument converts to the Host of
/// its parameter. Errors: UserError at the caller's line (arguments) or the kernel's lines (tracing), DeviceError from
/// the device.
template <class Self, class... P>
class Verbs {
 public:
  /// Runs the kernel on `grid` programs: a number or {x, y, z}; an axis of 0 launches nothing.
  /// Cost when the key is known: packing, one comparison a specialisation, the driver's launch; no allocation, no lock.
  /// While the stream is captured a key that was not loaded before is a UserError: preload() it.
  void launch(OnStream on, Grid grid, typename Param<P>::Host... args) const {
    rt::ArgPack pack(on.at);
    bind(pack, on.at, args...);
    core().launch(on, grid, pack, self().options(), [&](Maker& m) { run(m, args...); });
  }
  /// Compiles and loads for a device, without launching.
  void preload(OnDevice on, typename Param<P>::Host... args) const {
    rt::ArgPack pack(on.at);
    bind(pack, on.at, args...);
    core().preload(on, pack, self().options(), [&](Maker& m) { run(m, args...); });
  }
  /// The compiled kernel for a device: PTX, argument signature, launch recipe, report. Loads nothing.
  [[nodiscard]] rt::KernelImage image(OnDevice on, typename Param<P>::Host... args) const {
    rt::ArgPack pack(on.at);
    bind(pack, on.at, args...);
    return core().image(on, pack, self().options(), [&](Maker& m) { run(m, args...); });
  }
  /// The kernel as tile IR, before any pass.
  [[nodiscard]] Trace trace(typename Param<P>::Host... args) const {
    rt::ArgPack pack(core().at());
    bind(pack, core().at(), args...);
    return Trace(core().trace(pack, [&](Maker& m) { run(m, args...); }));
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
  const KernelCore& core() const { return self().core(); }
  void bind(rt::ArgPack& pack, SourceLoc at, const typename Param<P>::Host&... args) const {
    Binder b{pack, core(), at};
    (Param<P>::bind(args, b.next()), ...);
  }
  void run(Maker& m, const typename Param<P>::Host&... args) const {
    (void)m;
    InOrder{self().body(), Param<P>::make(args, m.next())...};
  }
};

/// P… without the last one, which must be a Tune<S>.
template <class Before, class... P>
struct TunedParams {
  static constexpr bool kTuned = false;
  struct Values {};
};
template <class... A, class S>
struct TunedParams<Params<A...>, Tune<S>> {
  static constexpr bool kTuned = true;
  using Values = S;
  using Others = Params<A...>;
};
template <class... A, class P, class Next, class... Rest>
struct TunedParams<Params<A...>, P, Next, Rest...> : TunedParams<Params<A..., P>, Next, Rest...> {};

}  // namespace detail

template <class F, class List>
class Kernel;
template <class F, class List>
class Configured;
template <class F, class S, class List>
class Tuned;

template <class F, class... P>
class Kernel<F, detail::Params<P...>> : public detail::Verbs<Kernel<F, detail::Params<P...>>, P...> {
 public:
  constexpr Kernel(const char* name, F f, SourceLoc l) : core_(name, l), f_(std::move(f)) {}

  /// A kernel with names for its parameters, used in messages: one word each.
  constexpr Kernel names(detail::Names<int(sizeof...(P))> n) const {
    Kernel named(*this);
    named.core_.set_names(n.words);
    return named;
  }
  /// The kernel with compile options, as in k.with({.num_warps = 8}).launch(…). It refers to this kernel.
  /// Errors about the options name the line of this call.
  [[nodiscard]] Configured<F, detail::Params<P...>> with(const CompileOptions& o,
                                                         RawLoc at = RawLoc::current()) const& {
    return {*this, o, at};
  }
  void with(const CompileOptions&) const&& = delete;
  /// Candidates for the Tune<S> that is this kernel's last parameter, each with each of `options`; the fastest is found
  /// by measuring (dsl/lang/tuned.h, which must be included). The first is the default. It refers to this kernel.
  template <class T = detail::TunedParams<detail::Params<>, P...>>
  [[nodiscard]] auto tune(std::initializer_list<typename T::Values> values,
                          std::initializer_list<CompileOptions> options = {{}}, RawLoc at = RawLoc::current()) const&;

  const char* name() const { return core_.name(); }
  /// Specialisations made so far, over all keys, devices and options.
  std::uint64_t specialisations() const { return core_.specialisations(); }

 private:
  friend class detail::Verbs<Kernel, P...>;
  friend class Configured<F, detail::Params<P...>>;
  template <class, class, class>
  friend class Tuned;
  const detail::KernelCore& core() const { return core_; }
  const F& body() const { return f_; }
  CompileOptions options() const { return {}; }

  detail::KernelCore core_;
  F f_;
};

template <class F, class... P>
class Configured<F, detail::Params<P...>> : public detail::Verbs<Configured<F, detail::Params<P...>>, P...> {
 public:
  Configured(const Kernel<F, detail::Params<P...>>& k, const CompileOptions& o, SourceLoc at)
      : kernel_(k), options_(o) {
    options_.at = at;
  }

 private:
  friend class detail::Verbs<Configured, P...>;
  const detail::KernelCore& core() const { return kernel_.core(); }
  const F& body() const { return kernel_.body(); }
  const CompileOptions& options() const { return options_; }

  const Kernel<F, detail::Params<P...>>& kernel_;
  CompileOptions options_;
};

/// Declares a kernel. `f`: a lambda (captures by value only) or function of parameter types (params.h), returning void.
/// Constant-initialised: a global `constinit auto k = kernel(…)` needs no code at start-up.
template <class F>
constexpr auto kernel(const char* name, F f, RawLoc l = RawLoc::current()) {
  static_assert(
      std::is_pointer_v<F> || detail::captures_values<F>(),
      "kiln: a kernel lambda must not capture by reference or capture a pointer: it would read the variable once, "
      "when it is traced; capture by value or pass a parameter");
  return Kernel<F, decltype(detail::params_of<F>())>(name, std::move(f), l);
}

}  // namespace kiln
