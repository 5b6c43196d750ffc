// Linear: a product and the chain behind it, as linear() and its kin (linear.h) make them.
#pragma once
#include "dsl/lib/linear_job.h"

namespace kiln::lib {

/// A product and the chain behind it, not launched yet: see linear(), linear_batched(), linear_grouped().
template <class Job, class Then>
class Linear {
  using O = typename Job::Operands;
  template <class Y>
  using Array = typename Param<View<Y, Job::kRank>>::Host;
  using Default = chain::Result<typename O::X, typename O::W>;

 public:
  Linear(const Job& job, const Then& then) : job_(job), then_(then) {}

  /// One more stage: `f` is called with the tiles so far (one at first), [BM, BN] each, then a tile for each extra
  /// tensor, and returns a tile of the same extents; a pair, tuple or array of them makes that many results, and the
  /// next stage takes them all. Captures by value.
  template <class F, class... E>
  auto then(const F& f, const E&... extras) const {
    check_extras<E...>();
    if constexpr ((chain::IsExtra<E> && ...)) return with_chain(chain::append(then_, f, extras...));
    else return *this;
  }
  /// A ready-made stage (epilogue.h).
  template <class F, class... E>
  auto then(const chain::Stage<F, E...>& s) const {
    return std::apply([&](const E&... e) { return then(s.f, e...); }, s.extras);
  }
  /// The same for x before it is multiplied: `f` takes a tile [BM, BK] of x's dtype, with extra tensors that fit x, and
  /// returns one of a float dtype. What it makes of x's padding does not count.
  template <class F, class... E>
  auto before(const F& f, const E&... extras) const {
    check_extras<E...>();
    using C = decltype(chain::append(job_.o.before, f, extras...));
    static_assert(C::kResults == 1 && chain::kFolds<C> == 1,
                  "kiln: a function of before returns one Tile of the extents that it is given");
    return with_job(job_.with(job_.o.template with<C, O::kHasX, O::kHasW>(chain::append(job_.o.before, f, extras...))));
  }

  /// Scales of x: s [M, K / group] (of batches [B, M, K / group]), one for `group` steps of k of a row, a multiple
  /// of 16. Each part of a sum is multiplied by its scale before it is added.
  auto x_scaled(const typename Job::XScales& s, int group, RawLoc at = RawLoc::current()) const {
    chain::check_scale_groups(Job::kName, at, group, job_.o.k_group, 1);
    auto o = job_.o.template with<typename O::Before, true, O::kHasW>(job_.o.before);
    o.scales.x = chain::one_of(s);
    o.k_group = group;
    return with_job(job_.with(o));
  }
  /// Scales of w: s [N / rows, K / group] (of batches and groups with one more dimension in front), one for `rows` rows
  /// and `group` steps of k.
  auto w_scaled(const typename Job::WScales& s, int group, int rows = 1, RawLoc at = RawLoc::current()) const {
    chain::check_scale_groups(Job::kName, at, group, job_.o.k_group, rows);
    auto o = job_.o.template with<typename O::Before, O::kHasX, true>(job_.o.before);
    o.scales.w = chain::one_of(s);
    o.k_group = group;
    o.w_group = rows;
    return with_job(job_.with(o));
  }

  /// Floats of workspace that run() needs on a device; 0 unless k is split or a stage reduces.
  std::int64_t workspace_size(const Device& device) const {
    Then then = then_;
    std::int64_t most = 0;  // run() knows whether something is in place, which may change the blocks
    for (bool crowded : {false, true})
      most = std::max(most, layout(then, device, job_.o.cut(device, Job::kName, crowded), 0, {}));
    return cdiv(most, std::int64_t(sizeof(float)));
  }
  /// The memory for it, 16-byte aligned, instead of some that run() takes from the stream's pool; needed while the
  /// stream is captured.
  Linear workspace(Vector<float> w) const {
    Linear l = *this;
    l.workspace_ = w;
    return l;
  }

  /// Launches the kernel. y: [M, N] (of batches [B, M, N]), one for each result of the chain, of any type; without a
  /// type it is x's, where that is an integer or has one byte the sums'. Errors: UserError at this line, see linear().
  void run(On on, Array<Default> y) const { launch<Default>(on, {{y}}); }
  template <Element... Y>
  requires(sizeof...(Y) > 0) void run(On on, Array<Y>... y) const { launch<Y...>(on, {{y...}}); }

  /// Measures the plans for this shape on the stream's device, and keeps the fastest for run(): of this kind of product
  /// and these element types, N and K, and M up to the next power of two; in the cache folder, too. y is put back
  /// afterwards (copied by way of the host). On a simulator nothing is measured or kept (runtime/tuning.h). Products
  /// with blocks or batch_invariant in their options are not affected.
  /// Errors: UserError as run(), while the stream is captured, or where no plan runs on the device.
  Tuning tune(On on, Array<Default> y) const { return contest<Default>(on, {{y}}); }
  template <Element... Y>
  requires(sizeof...(Y) > 0) Tuning tune(On on, Array<Y>... y)
  const { return contest<Y...>(on, {{y...}}); }
  /// What run() would launch on a device: why it is cut this way, the bound to expect, and each kernel's registers,
  /// shared memory, occupancy and instructions. Launches nothing. Errors: UserError as run().
  LinearExplanation explain(kiln::detail::OnDevice on, Array<Default> y) const { return explained<Default>(on, {{y}}); }
  template <Element... Y>
  requires(sizeof...(Y) > 0) LinearExplanation explain(kiln::detail::OnDevice on, Array<Y>... y)
  const { return explained<Y...>(on, {{y...}}); }
  /// The same by another clock, on any device (runtime/tuning.h).
  [[nodiscard]] Linear measured_by(rt::Stopwatch stopwatch) const {
    Linear l = *this;
    l.stopwatch_ = std::move(stopwatch);
    return l;
  }

 private:
  template <class... E>
  static constexpr void check_extras() {
    static_assert((chain::IsExtra<E> && ...),
                  "kiln: what follows the function in then are extra tensors: per_column<T>(…), per_row<T>(…), "
                  "per_element<T>(…), per_tensor<T>(…), number(…)");
    static_assert(((Job::kRank == 2 || !chain::NeedsOneMatrix<E>)&&...),
                  "kiln: this stage writes one matrix, so it cannot stand behind products in batches");
    static_assert(((Job::kWhole || !chain::HasWorkspace<E>)&&...),
                  "kiln: this stage reduces a whole matrix, so it cannot stand behind products in batches or groups");
  }
  /// Another product with what the caller set here.
  template <class L>
  L like_this(L l) const {
    l.workspace_ = workspace_;
    l.stopwatch_ = stopwatch_;
    return l;
  }
  template <class C>
  Linear<Job, C> with_chain(const C& c) const {
    return like_this(Linear<Job, C>(job_, c));
  }
  template <class J>
  Linear<J, Then> with_job(const J& j) const {
    return like_this(Linear<J, Then>(j, then_));
  }

  std::int64_t pieces(const Device& device, const typename O::Cut& c) const {
    if constexpr (Job::kSplits) {
      const std::int64_t k = std::max<std::int64_t>(job_.o.depth(), 1), wanted = job_.o.options.splits;
      if (wanted > 0) return std::min(wanted, cdiv(k, c.t.BK));
      const Grid g = job_.grid(c.t);
      return job_.o.options.batch_invariant ? 1 : chain::pieces_for(g.x * g.y, k, c.t.BK, device.sm_count());
    } else {
      return 1;
    }
  }
  /// Gives each part of the workspace its place from `base` on; the bytes of all.
  std::int64_t layout(Then& then, const Device& device, const typename O::Cut& c, DevicePtr base, SourceLoc at) const {
    std::int64_t used = 0;
    if constexpr (Job::kSplits) {
      const std::int64_t n = pieces(device, c);
      if (n > 1)
        used = n * job_.o.rows() * job_.o.cols() * std::int64_t(sizeof(chain::Sum<typename O::X, typename O::W>));
    }
    if constexpr (Job::kWhole) {
      chain::each_extra(then, Job::kName, at, job_.extents(), [&]<class E>(E& e, const chain::Fits& f) {
        if constexpr (chain::HasWorkspace<E>) {
          used = cdiv(used, 16) * 16;
          used += e.place(base + std::uint64_t(used), f, job_.grid(c.t));
        }
      });
    }
    return used;
  }

  template <class... Y>
  using Results = chain::Results<Job::kRank, Y...>;

  /// Also returns whether the chain needs many registers beside the sums: what is replaced in place must be read before
  /// anything is written.
  template <class... Y>
  bool check(SourceLoc at, Then& then, const typename Param<Results<Y...>>::Host& y) const {
    const chain::Extents e = job_.extents();
    job_.check(at);
    chain::check_options(Job::kName, at, job_.o.options, Job::kSplits);
    chain::Conflicts memory;
    memory.reads(chain::reach("x", job_.o.x));
    memory.reads(chain::reach("w", job_.o.w));
    std::apply([&](const auto&... one) { (memory.writes(chain::reach("y", one)), ...); }, y.y);
    bool in_place = false;
    const auto look = [&](auto& extra, const chain::Fits& f) {
      extra.check(f);
      extra.declare(memory, f, in_place);
    };
    typename O::Before before = job_.o.before;
    chain::each_extra(before, Job::kName, at, {e.rows, job_.o.depth(), e.groups}, look);
    in_place = true;
    chain::each_extra(then, Job::kName, at, e, look);
    const auto written = job_.written(e.cols / chain::kFolds<Then>);
    std::apply([&](const auto&... one) { (chain::check_written(Job::kName, at, one.size, written), ...); }, y.y);
    memory.check(Job::kName, at);
    return memory.in_place() || chain::kCrowded<Then>;
  }

  template <class... Y>
  void launch(const On& on, const typename Param<Results<Y...>>::Host& y) const {
    static_assert(int(sizeof...(Y)) == Then::kResults,
                  "kiln: run takes one matrix for each result of the chain: name their types, as in run<bf16, float>");
    Then then = then_;
    const bool crowded = check<Y...>(on.at, then, y);
    const chain::Extents e = job_.extents();
    if (e.rows == 0 || e.cols == 0 || e.groups == 0) return;
    const Device device = on.stream.device();
    const auto cut = job_.o.cut(device, Job::kName, crowded);
    const std::int64_t bytes = layout(then, device, cut, 0, on.at);
    const chain::Workspace memory(Job::kName, on, bytes, workspace_);
    layout(then, device, cut, memory.address(), on.at);
    job_.template kernels<Then, Results<Y...>>(
        cut, then, y, pieces(device, cut), memory.address(),
        [&](const auto& kernel, const Grid& grid, const auto&... args) { kernel.launch(on, grid, args...); });
    chain::each_extra(then, Job::kName, on.at, e, [&]<class E>(E& extra, const chain::Fits& f) {
      if constexpr (chain::HasWorkspace<E>) extra.finish(on, f);
    });
  }

  /// This product by another plan.
  Linear by(const LinearPlan& plan) const {
    Linear l = *this;
    l.job_.o.options.blocks = plan.blocks;
    l.job_.o.options.num_warps = plan.num_warps;
    return l;
  }
  template <class... Y>
  Tuning contest(const On& on, const typename Param<Results<Y...>>::Host& y) const {
    const Device device = on.stream.device();
    Then then = then_;
    const LinearShape shape = job_.o.shape(device, check<Y...>(on.at, then, y));
    const std::vector<LinearPlan> plans = linear_candidates(shape);
    std::vector<rt::Candidate> candidates;
    for (const LinearPlan& p : plans)
      candidates.push_back({name(p), [&, p](const Stream& s) { by(p).template launch<Y...>(On(s, on.at), y); }});
    kiln::detail::SavedMemory saved(on.stream, on.at);
    std::apply([&](const auto&... one) { (chain::save(saved, one), ...); }, y.y);
    const Tuning t = stopwatch_ ? rt::tune(on.stream, linear_subject(Job::kName, shape), candidates, stopwatch_, on.at)
                                : rt::tune(on.stream, linear_subject(Job::kName, shape), candidates, on.at);
    saved.restore();
    if (t.measured) keep_linear_plan(device, Job::kName, shape, plans[t.chosen]);
    return t;
  }

  template <class... Y>
  LinearExplanation explained(const kiln::detail::OnDevice& on, const typename Param<Results<Y...>>::Host& y) const {
    Then then = then_;
    const bool crowded = check<Y...>(on.at, then, y);
    const auto cut = job_.o.cut(on.device, Job::kName, crowded);
    const chain::Extents e = job_.extents();
    LinearExplanation x =
        chain::explained(on.device, Job::kName, job_.o.shape(on.device, crowded), job_.o.options, e.groups);
    layout(then, on.device, cut, 256, on.at);  // an address that is aligned; nothing is launched
    job_.template kernels<Then, Results<Y...>>(
        cut, then, y, pieces(on.device, cut), 256, [&](const auto& kernel, const Grid&, const auto&... args) {
          x.kernels.push_back(kiln::explain(kernel.image(on, args...), on.device));
        });
    return x;
  }

  template <class, class>
  friend class Linear;
  Job job_;
  Then then_;
  std::optional<Vector<float>> workspace_;
  rt::Stopwatch stopwatch_;
};

}  // namespace kiln::lib
