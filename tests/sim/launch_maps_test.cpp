// Tensor maps that a launch makes of its view arguments, end to end: kernels written by hand that copy a box through
// the hidden array of maps, on the simulator and on a GPU where there is one.
#include <gmock/gmock.h>

#include <numeric>

#include "runtime/device_impl.h"
#include "runtime/launch.h"
#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

using rt::ArgPack;
using ::testing::HasSubstr;

const std::string kTarget = "sm_90a";

std::vector<Device> devices() {
  std::vector<Device> out{Device::simulator(kTarget)};
  if (const auto gpu = gpu_for(kTarget)) out.push_back(*gpu);
  return out;
}

/// A view of i32 elements, and the box of it that a kernel copies: extents and place along each dimension.
struct Box {
  std::vector<std::int64_t> sizes, strides;
  std::vector<int> order;  ///< dimensions, the contiguous one first
  std::vector<std::uint32_t> box;
  std::vector<int> at;

  std::size_t rank() const { return sizes.size(); }
  std::size_t elements() const { return std::accumulate(box.begin(), box.end(), std::size_t{1}, std::multiplies<>()); }
  std::size_t memory() const {
    std::int64_t last = 0;
    for (std::size_t d = 0; d < rank(); ++d) last += (sizes[d] - 1) * strides[d];
    return static_cast<std::size_t>(last) + 1;
  }
  /// What the copy finds in `memory`, as it lies in shared memory: the contiguous dimension runs fastest.
  std::vector<std::int32_t> want(const std::vector<std::int32_t>& memory) const {
    std::vector<std::int32_t> out;
    for (std::size_t n = 0; n < elements(); ++n) {
      std::size_t rest = n;
      std::int64_t at_element = 0;
      bool inside = true;
      for (const int o : order) {
        const auto d = static_cast<std::size_t>(o);
        const std::int64_t c = at[d] + static_cast<std::int64_t>(rest % box[d]);
        rest /= box[d];
        inside = inside && c >= 0 && c < sizes[d];
        at_element += c * strides[d];
      }
      out.push_back(inside ? memory[static_cast<std::size_t>(at_element)] : 0);
    }
    return out;
  }
};

/// `k(x, its sizes and strides, y, its, [grid,] maps)`: copies the box of x by the first map to shared memory and from
/// there by the second to y, which has the box's shape.
std::string kernel(const Box& b, const std::string& hidden = "") {
  const std::string rank = std::to_string(b.rank());
  std::string params, at = "{", zero = "{";
  for (const char* v : {"x", "y"}) {
    params += std::string(".param .u64 ") + v + ", ";
    for (std::size_t i = 0; i < 2 * b.rank(); ++i) params += ".param .u64 " + std::string(v) + std::to_string(i) + ", ";
  }
  for (std::size_t i = 0; i < b.rank(); ++i) {
    at += (i ? ", " : "") + std::to_string(b.at[static_cast<std::size_t>(b.order[i])]);
    zero += i ? ", 0" : "0";
  }
  return ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(" + params + hidden +
         ".param .align 64 .b8 maps[256])\n{\n.reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<4>;\n"
         ".shared .align 128 .b8 tile[4096]; .shared .align 8 .b8 bar[8];\n"
         "mov.b64 %rd1, maps; cvta.param.u64 %rd1, %rd1; add.s64 %rd2, %rd1, 128; mov.u32 %r1, %tid.x; "
         "mov.u32 %r2, tile; mov.u32 %r3, bar; setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;\n"
         "mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;\n"
         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], " +
         std::to_string(4 * b.elements()) + ";\ncp.async.bulk.tensor." + rank +
         "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, " + at +
         "}], [%r3];\nW: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra W;\n"
         "cp.async.bulk.tensor." +
         rank + "d.global.shared::cta.tile.bulk_group [%rd2, " + zero +
         "}], [%r2]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nDONE: ret;\n}\n";
}

/// The launch of one box: x and y with their memory, and an image for them.
class Copy {
 public:
  Copy(const Device& on, Box box) : device(on), b(std::move(box)), x(device, b.memory()), y(device, b.elements()) {
    memory.resize(b.memory());
    std::iota(memory.begin(), memory.end(), 1000);
    x.upload(memory);
    y.fill_bytes(0xEE);
    std::int64_t next = 1;
    y_strides.resize(b.rank());
    for (const int o : b.order) {
      y_strides[static_cast<std::size_t>(o)] = next;
      next *= b.box[static_cast<std::size_t>(o)];
    }
  }

  void pack(ArgPack& p, const Buffer<std::int32_t>& from, const Buffer<std::int32_t>& to) const {
    p.pointer(i32, rt::Access::Read, from.ptr(), from.bytes(), &device);
    for (const std::int64_t n : b.sizes) p.extent(i32, n);
    for (const std::int64_t n : b.strides) p.extent(i32, n);
    p.pointer(i32, rt::Access::ReadWrite, to.ptr(), to.bytes(), &device);
    for (const std::uint32_t n : b.box) p.extent(i32, n);
    for (const std::int64_t n : y_strides) p.extent(i32, n);
  }

  rt::KernelImage image() const {
    rt::KernelImage image;
    image.name = "k";
    image.ptx = kernel(b);
    ArgPack p;
    pack(p, x, y);
    for (std::size_t i = 0; i < p.size(); ++i) image.signature.append(p.arg(i));
    rt::LaunchRecipe& r = image.candidates.emplace_back();
    r.block = {32, 1, 1};
    r.hidden = {rt::HiddenParam::TensorMaps};
    for (const std::size_t first : {std::size_t{0}, 1 + 2 * b.rank()}) {
      rt::TensorMapRecipe& m =
          r.tensor_maps.emplace_back(rt::view_map(static_cast<std::uint32_t>(first), i32, b.order));
      for (std::size_t i = 0; i < b.rank(); ++i) m.box[i] = b.box[static_cast<std::size_t>(b.order[i])];
    }
    return image;
  }

  void launch(rt::LoadedKernel& k, const Stream& s) const { launch(k, s, x, y); }
  void launch(rt::LoadedKernel& k, const Stream& s, const Buffer<std::int32_t>& from,
              const Buffer<std::int32_t>& to) const {
    ArgPack p;
    pack(p, from, to);
    rt::launch(k, s, {1}, p);
  }

  Device device;
  Box b;
  Buffer<std::int32_t> x, y;
  std::vector<std::int32_t> memory;
  std::vector<std::int64_t> y_strides;
};

void expect_copies(const Box& box) {
  expect_assembles(kernel(box), kTarget);
  for (const Device& d : devices()) {
    SCOPED_TRACE(d.name() + ", a box of rank " + std::to_string(box.rank()));
    try {
      const Copy c(d, box);
      const auto kernel = d.load(c.image());
      const Stream s(d);
      c.launch(*kernel, s);
      s.synchronize();
      EXPECT_EQ(c.y.to_vector(), box.want(c.memory));
    } catch (const DeviceError& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST(LaunchMaps, CoverViewsOfEveryRank) {
  expect_copies({{100}, {1}, {0}, {64}, {60}});
  expect_copies({{20, 40}, {40, 1}, {1, 0}, {4, 16}, {17, 28}});
  expect_copies({{5, 6, 20}, {160, 24, 1}, {2, 1, 0}, {2, 3, 8}, {-1, 4, 16}});
  expect_copies({{3, 4, 5, 12}, {240, 60, 12, 1}, {3, 2, 1, 0}, {2, 2, 3, 8}, {1, 3, -1, 4}});
  expect_copies({{2, 3, 2, 4, 8}, {192, 64, 32, 8, 1}, {4, 3, 2, 1, 0}, {2, 2, 2, 2, 4}, {0, 2, 1, -1, 4}});
}

TEST(LaunchMaps, CoverViewsWhoseContiguousDimensionIsAnyOne) {
  expect_copies({{40, 20}, {1, 40}, {0, 1}, {16, 4}, {28, 17}});
  expect_copies({{5, 20, 6}, {24, 1, 160}, {1, 0, 2}, {3, 8, 2}, {3, -4, 4}});
  expect_copies({{20, 5, 6}, {1, 160, 24}, {0, 2, 1}, {8, 2, 3}, {16, 4, 0}});
}

TEST(LaunchMaps, AreEncodedOnceForEachBase) {
  for (const Device& d : devices()) {
    SCOPED_TRACE(d.name());
    const Copy c(d, {{20, 40}, {40, 1}, {1, 0}, {4, 16}, {3, 8}});
    const auto kernel = d.load(c.image());
    const Stream s(d);
    for (int i = 0; i < 3; ++i) c.launch(*kernel, s);
    EXPECT_EQ(kernel->tensor_maps()->encoded(), 2u);  // x and y
    std::vector<std::int32_t> other = c.memory;
    for (std::int32_t& v : other) v = -v;
    const Buffer<std::int32_t> y(d, c.y.size());
    Buffer<std::int32_t> x(d, other.size());
    x.upload(other);
    c.launch(*kernel, s, x, y);
    EXPECT_EQ(kernel->tensor_maps()->encoded(), 4u);
    c.launch(*kernel, s);
    c.launch(*kernel, s, x, y);
    EXPECT_EQ(kernel->tensor_maps()->encoded(), 4u);
    s.synchronize();
    EXPECT_EQ(c.y.to_vector(), c.b.want(c.memory));
    EXPECT_EQ(y.to_vector(), c.b.want(other));
  }
}

TEST(LaunchMaps, AreKeptByAGraph) {
  for (const Device& d : devices()) {
    SCOPED_TRACE(d.name());
    Copy c(d, {{20, 40}, {40, 1}, {1, 0}, {4, 16}, {3, 8}});
    const auto kernel = d.load(c.image());
    const Stream s(d);
    const Graph graph = Graph::capture(s, [&] { c.launch(*kernel, s); });
    EXPECT_EQ(graph.kernels(), 1u);
    EXPECT_NE(c.y.to_vector(), c.b.want(c.memory));
    for (std::int32_t& v : c.memory) v += 5;
    c.x.upload(c.memory);
    graph.replay(s);
    s.synchronize();
    EXPECT_EQ(c.y.to_vector(), c.b.want(c.memory));
  }
}

TEST(LaunchMaps, StandBehindTheOtherHiddenParameters) {
  const Box box{{20, 40}, {40, 1}, {1, 0}, {4, 16}, {3, 8}};
  for (const Device& d : devices()) {
    SCOPED_TRACE(d.name());
    const Copy c(d, box);
    rt::KernelImage image = c.image();
    image.ptx = kernel(box, ".param .u64 gx, .param .u64 gy, .param .u64 gz, ");
    image.candidates[0].hidden = {rt::HiddenParam::UserGrid, rt::HiddenParam::TensorMaps};
    const auto kernel = d.load(image);
    const Stream s(d);
    c.launch(*kernel, s);
    s.synchronize();
    EXPECT_EQ(c.y.to_vector(), box.want(c.memory));
  }
}

TEST(LaunchMaps, ALaunchWithoutProgramsMakesNone) {
  const Device d = Device::simulator(kTarget);
  const Copy c(d, {{20, 40}, {40, 1}, {1, 0}, {4, 16}, {3, 8}});
  const auto kernel = d.load(c.image());
  ArgPack p;
  c.pack(p, c.x, c.y);
  rt::launch(*kernel, Stream(d), {0}, p);
  EXPECT_EQ(kernel->tensor_maps()->encoded(), 0u);
}

TEST(LaunchMaps, AnEmptyViewIsRefusedAtTheCallersLine) {
  const Device d = Device::simulator(kTarget);
  Copy c(d, {{20, 40}, {40, 1}, {1, 0}, {4, 16}, {3, 8}});
  const auto kernel = d.load(c.image());
  c.b.sizes[0] = 0;
  ArgPack p;
  c.pack(p, c.x, c.y);
  try {
    rt::launch(*kernel, Stream(d), {1}, p, SourceLoc("user.cpp", 7, 1));
    FAIL() << "launched";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(),
                HasSubstr("user.cpp:7: error: k: argument 2: value is 0, this image has a tensor map that takes"));
  }
}

TEST(LaunchMaps, OlderTargetsHaveNone) {
  const Device d = Device::simulator("sm_80");
  const Copy c(d, {{20, 40}, {40, 1}, {1, 0}, {4, 16}, {3, 8}});
  rt::KernelImage image = c.image();
  image.ptx.replace(image.ptx.find("sm_90a"), 6, "sm_80");
  const std::size_t body = image.ptx.find('{', image.ptx.find(".entry"));
  image.ptx.replace(body, std::string::npos, "{\n  ret;\n}\n");  // what it does with them needs a newer target, too
  try {
    c.launch(*d.load(image), Stream(d));
    FAIL() << "launched";
  } catch (const DeviceError& e) {
    EXPECT_THAT(e.what(), HasSubstr("has no tensor maps"));
  }
}

}  // namespace
}  // namespace kiln::test
