// A kernel that is measured: k.tune({{.BM = 64}, {.BM = 128}}) takes, for each device and class of arguments, the one
// of the candidates that ran fastest there.
//
//   auto fast = gemm.tune({{.BM = 64}, {.BM = 128}}, {{.num_warps = 4}, {.num_warps = 8}});
//   fast.launch(stream, [&](const Blocks& b) { return Grid{cdiv(M, b.BM), cdiv(N, b.BN)}; }, x, w, y);
//
// Keep the object: it remembers its choices without a lock. They are kept in the cache folder, too.
#pragma once
#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "dsl/lang/kernel.h"
#include "dsl/lang/once_per_key.h"
#include "runtime/tuning.h"

namespace kiln {
namespace detail {

/// Memory that launches change, to be put back; it goes by way of the host.
class SavedMemory {
 public:
  /// Waits for the stream.
  SavedMemory(const Stream& stream, SourceLoc at);
  void add(DevicePtr address, std::size_t bytes);
  void restore();

 private:
  Device device_;
  SourceLoc at_;
  std::vector<std::pair<Buffer<std::uint8_t>, std::vector<std::uint8_t>>> saved_;
};

/// The choices of one tuned kernel; without its types.
class TunedCore {
 public:
  /// One candidate on a stream, with the arguments of the call.
  struct Run {
    FunctionRef<void(std::size_t, const Stream&)> launch;
    FunctionRef<void(std::size_t)> preload;  ///< for the stream's device
  };
  TunedCore(const KernelCore& kernel, std::vector<std::string> names, rt::Stopwatch stopwatch)
      : kernel_(kernel), names_(std::move(names)), stopwatch_(std::move(stopwatch)) {}
  TunedCore(const TunedCore& o) : TunedCore(o.kernel_, o.names_, o.stopwatch_) {}

  /// The candidate for these arguments. `ends`: how many arguments of the pack belong to each parameter and those
  /// before.
  std::size_t choose(const OnStream&, const rt::ArgPack&, std::span<const std::size_t> ends, const Run&) const;
  /// Measures now, whatever is known.
  Tuning measure(const OnStream&, const rt::ArgPack&, std::span<const std::size_t> ends, const Run&) const;

 private:
  struct Key {
    const rt::DeviceImpl* device;
    std::span<const std::uint64_t> words;  ///< of the pack, then the class of each number in it
    bool operator==(const Key& o) const;
  };
  struct Choice {
    Device device;  // keeps the address in the key from being reused
    std::vector<std::uint64_t> words;
    std::atomic<std::size_t> candidate;
    Choice* older = nullptr;
    Key key() const { return {&device.impl(), words}; }
  };
  std::string subject(std::span<const std::uint64_t> words) const;
  std::size_t decide(const OnStream&, const rt::ArgPack&, std::span<const std::size_t> ends, const std::string& subject,
                     const Run&) const;
  std::size_t first_that_compiles(const OnStream&, const Run&) const;
  Tuning contest(const OnStream&, const rt::ArgPack&, std::span<const std::size_t> ends, const std::string& subject,
                 const Run&) const;

  const KernelCore& kernel_;
  const std::vector<std::string> names_;
  const rt::Stopwatch stopwatch_;
  mutable OncePerKey<Choice> choices_;
};

/// What the values of Tune<S> and the options look like in tables: "{64, 128, true} num_warps=8".
void append_value(std::string& out, long long);
void append_value(std::string& out, double);
void append_value(std::string& out, bool);
void append_options(std::string& out, const CompileOptions&);

template <class S>
std::string candidate_name(const S& values, const CompileOptions& options) {
  std::string out;
  each_field(values, [&]<class T>(T field) {
    out += out.empty() ? "{" : ", ";
    if constexpr (std::same_as<T, bool>) append_value(out, field);
    else if constexpr (std::floating_point<T>) append_value(out, double(field));
    else append_value(out, static_cast<long long>(field));
  });
  out += "}";
  append_options(out, options);
  return out;
}

}  // namespace detail

/// See Kernel::tune().
template <class F, class S, class List>
class Tuned;

template <class F, class S, class... P>
class Tuned<F, S, detail::Params<P...>> {
  using Params = detail::Params<P..., Tune<S>>;
  using Ends = std::span<const std::size_t>;

 public:
  using OnStream = detail::OnStream;
  /// The grid of programs for the values of a candidate.
  using GridOf = detail::FunctionRef<Grid(const S&)>;

  struct Candidate {
    S values;
    CompileOptions options;
  };
  Tuned(const Kernel<F, Params>& kernel, std::vector<Candidate> candidates, rt::Stopwatch stopwatch = {})
      : kernel_(kernel), candidates_(std::move(candidates)), core_(kernel.core(), named(), std::move(stopwatch)) {}

  /// The same candidates, judged by something else than the GPU's clock: on any device, lower is better.
  [[nodiscard]] Tuned by(rt::Stopwatch stopwatch) const { return Tuned(kernel_, candidates_, std::move(stopwatch)); }

  /// Launches the candidate for these arguments, all but the Tune<S>, which is the last of the kernel's.
  ///
  /// The first launch of a class of arguments measures all candidates on `on`'s device, unless a result is kept from
  /// before; they run many times then, and memory that the kernel reads and writes is put back (copied by way of the
  /// host). A class: the facts that a kernel is specialised for, and the magnitude (power of two) of each integer.
  /// Nothing is measured on a simulator and with KILN_TUNE=0: the kept result is used, else the first candidate that
  /// the device takes. While the stream is captured it is the kept result, else the first candidate, which must be
  /// loaded. Errors: those of launch(); where the kernel reads and writes memory of unknown extent a UserError, and
  /// where the device takes no candidate one with the first reason.
  void launch(OnStream on, GridOf grid, typename Param<P>::Host... args) const {
    const auto run = [&](std::size_t i, const Stream& stream) {
      launch_one(i, OnStream(stream, on.at), grid, args...);
    };
    const auto preload = [&](std::size_t i) { preload_one(i, on, args...); };
    std::size_t best = 0;
    with_pack(
        on.at,
        [&](const rt::ArgPack& pack, Ends ends) {
          best = core_.choose(on, pack, ends, {run, preload});
        },
        args...);
    run(best, on.stream);
  }
  /// Measures all candidates now and keeps the result, whatever was known; what the kernel did is undone.
  Tuning measure(OnStream on, GridOf grid, typename Param<P>::Host... args) const {
    const auto run = [&](std::size_t i, const Stream& stream) {
      launch_one(i, OnStream(stream, on.at), grid, args...);
    };
    const auto preload = [&](std::size_t i) { preload_one(i, on, args...); };
    Tuning t;
    with_pack(
        on.at,
        [&](const rt::ArgPack& pack, Ends ends) {
          t = core_.measure(on, pack, ends, {run, preload});
        },
        args...);
    return t;
  }

 private:
  std::vector<std::string> named() const {
    std::vector<std::string> names;
    for (const Candidate& c : candidates_) names.push_back(detail::candidate_name(c.values, c.options));
    return names;
  }

  Configured<F, Params> configured(const Candidate& c) const { return {kernel_, c.options, c.options.at}; }
  void launch_one(std::size_t i, const OnStream& on, GridOf grid, const typename Param<P>::Host&... args) const {
    const Candidate& c = candidates_[i];
    configured(c).launch(on, grid(c.values), args..., c.values);
  }
  void preload_one(std::size_t i, const OnStream& on, const typename Param<P>::Host&... args) const {
    const Device device = on.stream.device();
    configured(candidates_[i]).preload({device, on.at}, args..., candidates_[i].values);
  }

  template <class Use>
  void with_pack(SourceLoc at, const Use& use, const typename Param<P>::Host&... args) const {
    rt::ArgPack pack(at);
    detail::Binder b{pack, kernel_.core(), at};
    std::array<std::size_t, sizeof...(P)> ends{};
    std::size_t n = 0;
    ((Param<P>::bind(args, b.next()), ends[n++] = pack.size()), ...);
    use(pack, Ends(ends));
  }

  const Kernel<F, Params>& kernel_;
  const std::vector<Candidate> candidates_;
  const detail::TunedCore core_;
};

template <class F, class... P>
template <class T>
auto Kernel<F, detail::Params<P...>>::tune(std::initializer_list<typename T::Values> values,
                                           std::initializer_list<CompileOptions> options, RawLoc at) const& {
  static_assert(T::kTuned, "kiln: tune needs a kernel whose last parameter is a Tune<S>");
  using Result = Tuned<F, typename T::Values, typename T::Others>;
  std::vector<typename Result::Candidate> all;
  for (const auto& v : values)
    for (CompileOptions o : options) {
      o.at = at;
      all.push_back({v, o});
    }
  return Result(*this, std::move(all));
}

}  // namespace kiln
