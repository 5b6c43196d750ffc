// Conversions between random layouts, run: every element of every type arrives.
#include <cstring>
#include <random>

#include "backend/ir/exchange_plan.h"
#include "backend/ir/layout_zoo.h"
#include "runtime/device.h"
#include "runtime/device_impl.h"
#include "tests/emit/emit_fixture.h"
#include "tests/layout/random_layout.h"

namespace kiln::test {
namespace {

constexpr int kRounds = 3;  // values converted one after another, so that they share scratch

/// y[k][e] = convert(x[k][e]) for a tile of `extents` in padded layouts `from` and `to`.
ir::Function conversion(DType dtype, const std::vector<std::int64_t>& extents, const ir::LinearLayout& from,
                        const ir::LinearLayout& to, int warps) {
  std::string shape, text;
  std::int64_t elements = 1;
  for (std::int64_t e : extents) {
    shape += std::to_string(e) + "x";
    elements *= e;
  }
  int next = 0;
  const auto value = [&](const std::string& op, const std::string& type) {
    text += "  %" + std::to_string(next) + " = " + op + " : " + type + "\n";
    return "%" + std::to_string(next++);
  };
  std::string layouts = "layout #0 = " + from.str() + "\nlayout #1 = " + to.str() + "\n";
  int made = 2;
  // Offsets in row-major order, in the layout numbered `l`.
  const auto offsets = [&](int l, const ir::LinearLayout& layout) {
    const std::string id = ", #" + std::to_string(l) + ">";
    std::string sum;
    std::int64_t stride = elements;
    const auto rank = int(extents.size());
    for (int k = 0; k < rank; ++k) {
      stride /= extents[std::size_t(k)];
      // Slice, expanded axis by axis.
      ir::LinearLayout line = layout;
      for (int a = rank - 1; a >= 0; --a)
        if (a != k) line = line.slice(a);
      std::vector<ir::LinearLayout> steps{line};
      for (int a = 0; a < rank; ++a)
        if (a != k) steps.push_back(steps.back().expand(a));
      const auto name_of = [&](const ir::LinearLayout& step) {
        layouts += "layout #" + std::to_string(made) + " = " + step.str() + "\n";
        return ", #" + std::to_string(made++) + ">";
      };
      std::vector<std::int64_t> box{extents[std::size_t(k)]};
      const auto type = [&](const std::string& name) {
        std::string t = "tile<";
        for (std::int64_t b : box) t += std::to_string(b) + "x";
        return t + "index" + name;
      };
      std::string name = rank == 1 ? id : name_of(steps[0]);
      std::string v = value("arange start=0 end=" + std::to_string(extents[std::size_t(k)]), type(name));
      const std::string s = value("constant value=index(" + std::to_string(stride) + ")", "index");
      v = value("mul " + v + ", " + value("splat " + s, type(name)), type(name));
      std::size_t step = 1;
      for (int a = 0; a < rank; ++a) {
        if (a == k) continue;
        box.insert(box.begin() + a, 1);
        v = value("expand_dims axis=" + std::to_string(a) + " " + v, type(name_of(steps[step++])));
      }
      box = extents;
      if (rank > 1) v = value("broadcast " + v, type(id));
      sum = sum.empty() ? v : value("add " + sum + ", " + v, type(id));
    }
    return sum;
  };
  const std::string d = kiln::name(dtype), in = "tile<" + shape, a = ", #0>", b = ", #1>";
  const std::string x = value("param index=0", "ptr<const " + d + ">"), y = value("param index=1", "ptr<" + d + ">");
  const std::string from_offsets = offsets(0, from), to_offsets = offsets(1, to);
  for (int k = 0; k < kRounds; ++k) {
    const std::string shift = value("constant value=index(" + std::to_string(k * elements) + ")", "index");
    const auto pointer = [&](const std::string& base, const std::string& at, const std::string& type,
                             const std::string& id) {
      const std::string moved = value("ptr_add " + base + ", " + shift, type);
      return value("ptr_add " + value("splat " + moved, in + type + id) + ", " + at, in + type + id);
    };
    const std::string loaded = value("load " + pointer(x, from_offsets, "ptr<const " + d + ">", a), in + d + a);
    const std::string converted = value("convert " + loaded, in + d + b);
    text += "  store " + pointer(y, to_offsets, "ptr<" + d + ">", b) + ", " + converted + "\n";
  }
  const int align = bytes(dtype);
  return ir::parse("kernel \"convert\" stage=laid\nexec team=cta warps=" + std::to_string(warps) +
                       " programs_per_cta=1 cluster=1 max_registers=0 register_goal=0\n" + "param \"x\" : ptr<const " +
                       d + "> access=read align=" + std::to_string(align) + "\nparam \"y\" : ptr<" + d +
                       "> access=write align=" + std::to_string(align) + "\n" + layouts + "{\n" + text + "}\n",
                   "convert.kir");
}

std::vector<std::uint8_t> run(const Device& device, const rt::KernelImage& image,
                              const std::vector<std::uint8_t>& input) {
  const auto kernel = device.load(image);
  Stream stream(device);
  Buffer<std::uint8_t> x(device, input.size()), y(device, input.size());
  x.upload(input);
  y.upload(std::vector<std::uint8_t>(input.size(), 0xEE));
  const std::uint64_t params[2] = {x.ptr(), y.ptr()};
  kernel->launch(stream.impl(), {}, params, sizeof params);
  stream.synchronize();
  std::vector<std::uint8_t> out(input.size());
  y.download(out);
  return out;
}

void expect_copied(DType dtype, const std::vector<std::int64_t>& extents, const ir::LinearLayout& from,
                   const ir::LinearLayout& to, int warps, bool conflicts_allowed = false) {
  std::size_t size = std::size_t(kRounds * bytes(dtype));
  for (std::int64_t e : extents) size *= std::size_t(e);
  std::vector<std::uint8_t> input(size);
  for (std::size_t i = 0; i < size; ++i)
    input[i] = std::uint8_t(dtype == DType::i1 ? i * 2654435761u >> 7 & 1 : i * 2654435761u >> 5);
  const ir::Function f = conversion(dtype, extents, from, to, warps);
  for (Device device : Device::all()) {
    device.reset_counters();
    EXPECT_EQ(run(device, compile(f, target_named(device.target(), device.ptx_version()), {}), input), input)
        << device.name() << ", " << name(dtype) << ": " << from.str() << " to " << to.str();
    EXPECT_TRUE(conflicts_allowed || device.counters().bank_conflicts == 0) << from.str() << " to " << to.str();
  }
}

constexpr DType kDtypes[] = {DType::i1,   DType::u8,  DType::f8e4m3, DType::f8e5m2, DType::i16, DType::f16,
                             DType::bf16, DType::f32, DType::i32,    DType::i64,    DType::f64, DType::index};

TEST(Exchange, RandomLayoutsOfEveryType) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 96; ++trial) {
    const LayoutKind kind = random_kind(random);
    const ir::LinearLayout from = random_layout(random, kind), to = random_layout(random, kind);
    expect_copied(kDtypes[std::size_t(trial) % std::size(kDtypes)], kind.shape, from, to, kind.warps, kind.mixed);
  }
}

TEST(Exchange, PaddedTilesKeepTheirElements) {
  for (DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64})
    for (const auto& extents : {std::vector<std::int64_t>{24, 40}, {3, 100}, {33, 5}, {1, 7}, {5, 3, 9}}) {
      std::vector<int> order = ir::row_major(int(extents.size())), reversed(order.rbegin(), order.rend());
      expect_copied(dtype, extents, ir::blocked(extents, 1, order, 2), ir::blocked(extents, 1, reversed, 2), 2);
    }
}

TEST(Exchange, AStoreThatIsMissingIsFound) {
  // The padding of such a tile is loaded and dropped without a report; elements that were not stored are not.
  const std::vector<std::int64_t> extents{24, 40};
  const Device device = Device::simulator("sm_90a");
  rt::KernelImage image = compile(
      conversion(DType::f32, extents, ir::blocked(extents, 1, {1, 0}, 2), ir::blocked(extents, 1, {0, 1}, 2), 2),
      target_named(device.target(), device.ptx_version()), {});
  const std::vector<std::uint8_t> input(std::size_t{kRounds} * 24 * 40 * 4, 1);
  EXPECT_EQ(run(device, image, input), input);
  EXPECT_TRUE(device.findings().empty());
  const std::size_t store = image.ptx.find("st.shared");
  image.ptx.replace(store, 2, "//");
  EXPECT_THROW(run(device, image, input), DeviceError);
  ASSERT_FALSE(device.findings().empty());
  EXPECT_EQ(device.findings()[0].kind, FindingKind::Uninitialised);
  EXPECT_THAT(device.findings()[0].message, testing::HasSubstr("is needed at"));
}

TEST(Exchange, TranspositionsHaveNoBankConflicts) {
  for (DType dtype : {DType::bf16, DType::f32}) {
    const std::int64_t vector = 16 / bytes(dtype);
    const ir::LinearLayout rows = ir::blocked({64, 64}, {vector, vector}, {1, 0}, 4),
                           columns = ir::blocked({64, 64}, {vector, vector}, {0, 1}, 4);
    const std::string ptx = compile(conversion(dtype, {64, 64}, rows, columns, 4), target_named("sm_90a"), {}).ptx;
    EXPECT_THAT(ptx, testing::HasSubstr("st.shared.v4.b32"));
    EXPECT_THAT(ptx, testing::HasSubstr("ld.shared.v4.b32"));
    EXPECT_EQ(count(ptx, "st.shared"), count(ptx, "st.shared.v4.b32"));
    expect_copied(dtype, {64, 64}, rows, columns, 4);
  }
}

}  // namespace
}  // namespace kiln::test
