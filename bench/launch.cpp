#include "bench/launch.h"

#include <algorithm>
#include <functional>
#include <random>

#include "backend/target.h"
#include "bench/kernels.h"
#include "bench/timer.h"
#include "runtime/cuda/driver.h"
#include "runtime/device_impl.h"
#include "runtime/image/kernel_image.h"
#include "runtime/launch.h"
#include "runtime/tensor_map.h"

namespace kiln::bench {
namespace {

constexpr std::int64_t kSmall = 100;

struct Arguments {
  Buffer<float> a, b, c;
  explicit Arguments(const Device& device) : a(device, kSmall), b(device, kSmall), c(device, kSmall) {
    a.fill_bytes(0);
    b.fill_bytes(0);
  }
  void launch(const Stream& stream) { add_relu.launch(stream, 1, a, b, c, kSmall, Const(kBlock)); }
};

/// A launch by Kiln, and what it takes to do the same through the driver alone.
struct Launched {
  std::string name;  ///< of its figures
  std::function<void()> by_kiln;
  rt::KernelImage image;
  std::vector<std::uint64_t> args;  ///< of 8 bytes each
  std::vector<TensorMap> maps = {};
};

Launched few_arguments(const Stream& stream, Arguments args) {
  const rt::KernelImage image = add_relu.image(stream.device(), args.a, args.b, args.c, kSmall, Const(kBlock));
  return {"call_overhead",
          [=]() mutable { args.launch(stream); },
          image,
          {args.a.ptr(), args.b.ptr(), args.c.ptr(), std::uint64_t{kSmall}}};
}

/// Fourteen pointers and two numbers: arguments are what a launch by Kiln looks at one by one.
constinit auto sixteen = kernel("sixteen", [](In<float> a, In<float> b, In<float> c, In<float> d, In<float> e,
                                              In<float> f, In<float> g, In<float> h, In<float> i, In<float> j,
                                              In<float> k, In<float> l, In<float> m, Out<float> y, Int first, Int n) {
  Tile at = arange(128), inside = at < n;
  Tile sum = load(a + at, inside);
  for (const Scalar& x : std::initializer_list<Scalar>{b, c, d, e, f, g, h, i, j, k, l, m}) sum += load(x + at, inside);
  store(y + first + at, sum, inside);
});

Launched sixteen_arguments(const Stream& stream, Arguments args) {
  auto& [a, b, c] = args;
  const auto with_arguments = [&](auto&& f) { return f(a, b, a, b, a, b, a, b, a, b, a, b, a, c, 0, kSmall); };
  std::vector<std::uint64_t> words;
  for (int i = 0; i < 13; ++i) words.push_back(i % 2 ? b.ptr() : a.ptr());
  words.insert(words.end(), {c.ptr(), 0, std::uint64_t{kSmall}});
  return {"call_overhead_16_arguments",
          [=]() mutable { sixteen.launch(stream, 1, a, b, a, b, a, b, a, b, a, b, a, b, a, c, 0, kSmall); },
          with_arguments([&](auto&&... x) { return sixteen.image(stream.device(), x...); }), words};
}

/// The arguments of a matrix product, three views, each of which becomes a tensor map. The kernel does nothing.
Launched three_maps(const Stream& stream) {
  constexpr std::int64_t kSide = 128;
  const Device device = stream.device();
  std::vector<Buffer<float>> matrices;
  for (int i = 0; i < 3; ++i) matrices.emplace_back(device, std::size_t(kSide * kSide));
  Launched l{"call_overhead_3_maps", {}, {}, {}};
  const auto pack = [=](rt::ArgPack& p) {
    for (const Buffer<float>& m : matrices) {
      p.pointer(f32, rt::Access::Read, m.ptr(), m.bytes(), m.raw().owner());
      for (const std::int64_t extent : {kSide, kSide, kSide, std::int64_t{1}}) p.extent(f32, extent);
    }
  };
  rt::ArgPack packed;
  pack(packed);
  l.image.name = "maps";
  l.image.ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry maps(";
  for (std::size_t i = 0; i < packed.size(); ++i) {
    l.image.signature.append(packed.arg(i));
    l.image.ptx += ".param .u64 p" + std::to_string(i) + ", ";
    l.args.push_back(packed.packed(i).value);
  }
  l.image.ptx += ".param .align 64 .b8 maps[384])\n{ ret; }\n";
  rt::LaunchRecipe& recipe = l.image.candidates.emplace_back();
  recipe.block = {128, 1, 1};
  recipe.hidden = {rt::HiddenParam::TensorMaps};
  for (std::uint32_t i = 0; i < 3; ++i) {
    recipe.tensor_maps.push_back(rt::view_map(5 * i, f32, {1, 0}));
    recipe.tensor_maps.back().box = {32, 64, 1, 1, 1};
    l.maps.push_back(TensorMap::encode(device, {.dtype = f32,
                                                .base = matrices[i].ptr(),
                                                .rank = 2,
                                                .sizes = {kSide, kSide},
                                                .strides = {4 * kSide},
                                                .box = {32, 64}}));
  }
  const std::shared_ptr<rt::LoadedKernel> kernel = device.load(l.image);
  l.by_kiln = [=] {
    rt::ArgPack p;
    pack(p);
    rt::launch(*kernel, stream, 1, p);
  };
  return l;
}

/// The kernel that Kiln launches, loaded once more and launched through the driver alone.
class BareKernel {
 public:
  BareKernel(const Stream& stream, const Launched& l)
      : driver_(cu::Driver::process()),
        stream_(static_cast<cu::Stream>(stream.native())),
        recipe_(l.image.recipe()),
        args_(l.args),
        maps_(l.maps) {
    const auto what = [&] { return l.image.name; };
    driver_->call(driver_->module_load, what, &module_, l.image.ptx.c_str(), 0u, nullptr, nullptr);
    driver_->call(driver_->module_function, what, &function_, module_, l.image.name.c_str());
    for (std::uint64_t& word : args_) params_.push_back(&word);
    if (!maps_.empty()) params_.push_back(maps_.data());
  }
  ~BareKernel() { driver_->module_unload(module_); }
  BareKernel(const BareKernel&) = delete;
  BareKernel& operator=(const BareKernel&) = delete;

  void launch() {
    const auto& block = recipe_.block;
    driver_->call(
        driver_->launch, [] { return std::string("a bare kernel"); }, function_, 1u, 1u, 1u, block[0], block[1],
        block[2], recipe_.smem_bytes, stream_, params_.data(), nullptr);
  }

 private:
  std::shared_ptr<const cu::Driver> driver_;
  cu::Stream stream_;
  cu::Module module_ = nullptr;
  cu::Function function_ = nullptr;
  rt::LaunchRecipe recipe_;
  std::vector<std::uint64_t> args_;
  std::vector<TensorMap> maps_;
  std::vector<void*> params_;
};

void measure(const Stream& stream, const Launched& l, std::vector<Figure>& out) {
  constexpr int kRounds = 21, kCalls = 500;
  l.by_kiln();
  BareKernel bare(stream, l);
  struct Candidate {
    std::string peer;
    std::function<void()> call;
    std::vector<double> us = {};
  };
  std::vector<Candidate> candidates{{"kiln", l.by_kiln}, {"bare cuLaunchKernel", [&] { bare.launch(); }}};
  for (const Candidate& c : candidates) host_us_per_call(stream, 2 * kCalls, c.call);

  std::mt19937 random(1);
  std::vector<std::size_t> order{0, 1};
  for (int round = 0; round < kRounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t i : order) candidates[i].us.push_back(host_us_per_call(stream, kCalls, candidates[i].call));
  }
  for (const Candidate& c : candidates)
    out.push_back({.what = {l.name, {}, ""}, .peer = c.peer, .us = median(c.us), .samples = kRounds});
}

std::vector<Launched> launches(const Stream& stream) {
  const Arguments args(stream.device());
  std::vector<Launched> all{few_arguments(stream, args), sixteen_arguments(stream, args)};
  if (target_named(stream.device().target()).compute() >= 90) all.push_back(three_maps(stream));
  return all;
}

}  // namespace

std::vector<Figure> measure_call_overhead(const Stream& stream) {
  std::vector<Figure> out;
  for (const Launched& l : launches(stream)) measure(stream, l, out);
  return out;
}

void launch_each(const Stream& stream) {
  for (const Launched& l : launches(stream)) l.by_kiln();
}

Figure measure_graph_node(const Stream& stream) {
  Arguments args(stream.device());
  args.launch(stream);
  stream.synchronize();
  GraphTimer timer(stream, 200, [&](const Stream& s, int) { args.launch(s); });
  return {.what = {"graph_node", {}, ""}, .peer = "kiln add_relu, graph of 200", .us = timer.us_per_launch()};
}

}  // namespace kiln::bench
