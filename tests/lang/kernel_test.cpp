// Kernels as objects: definition forms, specialisation, captures, options, threads, capture of streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "dsl/kiln.h"
#include "runtime/base/env.h"
#include "tests/support/devices.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

using testing::HasSubstr;

constinit auto add_relu = kernel("add_relu", [](In<float> a, In<float> b, Out<float> c, Int n, Const<int> BLOCK) {
                            Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
                            store(c + i, relu(load(a + i, mask) + load(b + i, mask)), mask);
                          }).names("a b c n BLOCK");

template <class T>
constinit auto twice = kernel("twice", [](In<T> a, Out<T> c, Int n, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK);
  store(c + i, load(a + i, i < n) * 2, i < n);
});

void square_body(In<float> a, Out<float> c, const Const<int>& N) {
  Tile x = load(a + arange(N));
  store(c + arange(N), x * x);
}
constinit auto square = kernel("square", &square_body);

auto add_constant(float k) {
  return kernel("add_constant", [k](Out<float> c) { store(c, k); });
}

const Device& interpreter_in_use() {
  static const Device d = interpreter();
  return d;
}

int g_mode = 1;
constinit auto reads_global = kernel("reads_global", [](Out<float> c) { store(c, float(g_mode)); });

TEST(LangKernel, GlobalKernelRunsTheMainExample) {
  on_each_device([](const Device& d) {
    for (int n : {0, 1, 31, 33, 100}) {
      std::vector<float> x(128), y(128);
      for (int i = 0; i < 128; ++i) x[std::size_t(i)] = float(i % 9) - 4, y[std::size_t(i)] = float(i % 5) - 2;
      Buffer<float> a = buffer_of(d, x), b = buffer_of(d, y), c = buffer_of(d, std::vector<float>(128, -9));
      add_relu.launch(Stream(d), cdiv(n, 32), a, b, c, n, Const(32));
      const std::vector<float> got = c.to_vector();
      for (int i = 0; i < 128; ++i) {
        const std::size_t at = std::size_t(i);
        EXPECT_EQ(got[at], i < n ? std::max(x[at] + y[at], 0.f) : -9.f) << "n " << n << " at " << i;
      }
    }
  });
}

TEST(LangKernel, ConstIsInTheKeyAndFactsOfArgumentsAre) {
  const Device d = interpreter();
  const Stream s(d);
  auto k = add_relu;
  Buffer<float> a(d, 64), c(d, 64);
  k.launch(s, 3, a, a, c, 10, Const(4));
  k.launch(s, 3, a, a, c, 11, 4);
  EXPECT_EQ(k.specialisations(), 1u);
  k.launch(s, 3, a, a, c, 10, 8);
  EXPECT_EQ(k.specialisations(), 2u);
  k.launch(s, 3, a, a, c, 16, 8);
  EXPECT_EQ(k.specialisations(), 3u) << "divisible by 16";
  k.launch(s, 3, a, device_ptr<float>(a.ptr() + 4), c, 10, 8);
  EXPECT_EQ(k.specialisations(), 4u) << "aligned to 4 bytes only";
  k.with({.num_warps = 8}).launch(s, 3, a, a, c, 10, 8);
  EXPECT_EQ(k.specialisations(), 5u) << "options";
  k.launch(Stream(interpreter()), 0, a, a, c, 0, 8);
  EXPECT_EQ(k.specialisations(), 5u) << "an empty grid compiles nothing";
}

TEST(LangKernel, TemplateAndPlainFunction) {
  on_each_device([](const Device& d) {
    const Stream s(d);
    Buffer<std::int32_t> a = buffer_of(d, std::vector<std::int32_t>{1, 2, 3, 4}), c(d, 4);
    twice<std::int32_t>.launch(s, 1, a, c, 4, 4);
    EXPECT_EQ(c.to_vector(), (std::vector<std::int32_t>{2, 4, 6, 8}));
    Buffer<float> x = buffer_of(d, std::vector<float>{1, 2, 3, 4}), y(d, 4);
    twice<float>.launch(s, 1, x, y, 3, 4);
    square.launch(s, 1, x, y, 4);
    EXPECT_EQ(y.to_vector(), (std::vector<float>{1, 4, 9, 16}));
  });
}

TEST(LangKernel, CapturesBelongToTheObject) {
  on_each_device([](const Device& d) {
    const Stream s(d);
    Buffer<float> c(d, 1);
    auto one = add_constant(1.5f), two = add_constant(2.5f);
    one.launch(s, 1, c);
    EXPECT_EQ(c.to_vector()[0], 1.5f);
    two.launch(s, 1, c);
    EXPECT_EQ(c.to_vector()[0], 2.5f);
    auto copy = one;
    copy.launch(s, 1, c);
    EXPECT_EQ(c.to_vector()[0], 1.5f);
    EXPECT_EQ(copy.specialisations(), 1u);
  });
}

TEST(LangKernel, ConstsAreNumbersAmongThemselves) {
  auto k = kernel("consts", [](Out<float> o, Const<int> a, Const<int> b, Const<float> f) {
    static_assert(std::same_as<decltype(a * b), int> && std::same_as<decltype(a < b), bool>);
    Tile t = full(DType::f32, {a * b - b}, f * f + float(a));
    if (a < b && a != b && (a << a) % b == 3) store(o + arange(a * b - b), t + arange(a, a * b - b + a).cast(f32));
  });
  on_each_device([&](const Device& d) {
    Buffer<float> o = buffer_of(d, std::vector<float>(6, -1.f));
    k.launch(Stream(d), 1, o, 2, 5, 0.5f);
    EXPECT_EQ(o.to_vector(), (std::vector<float>{4.25f, 5.25f, 6.25f, 7.25f, 8.25f, -1}));
  });
}

TEST(LangKernel, FloatConstIsKeyedByItsBits) {
  auto k = kernel("const_float", [](Out<float> c, Const<float> v) { store(c, v); });
  on_each_device([&](const Device& d) {
    Buffer<float> c(d, 1);
    for (float v : {0.25f, 0.75f, -0.f}) {
      k.launch(Stream(d), 1, c, v);
      EXPECT_EQ(c.to_vector()[0], v);
    }
  });
}

enum class Mode { Plain, Negated = 7 };
struct Cfg {
  int BLOCK = 4;
  bool twice = false;
  float add = 0.5f;
  Mode mode = Mode::Plain;
};
constinit auto tuned = kernel("tuned", [](Out<float> c, Tune<Cfg> t) {
  Tile x = arange(t.BLOCK).cast(f32) + t.add;
  if (t.twice) x *= 2;
  if (t.mode == Mode::Negated) x = -x;
  store(c + arange(t.BLOCK), x);
});

TEST(LangKernel, TuningStructWithDesignatedInitialisers) {
  const Device d = interpreter();
  const Stream s(d);
  auto k = tuned;
  Buffer<float> c = buffer_of(d, std::vector<float>(4, -1));
  k.launch(s, 1, c, {.BLOCK = 2});
  EXPECT_EQ(c.to_vector(), (std::vector<float>{0.5f, 1.5f, -1, -1}));
  k.launch(s, 1, c, {.BLOCK = 2, .twice = true});
  EXPECT_EQ(c.to_vector(), (std::vector<float>{1, 3, -1, -1}));
  k.launch(s, 1, c, {.BLOCK = 2, .add = 0.25f});
  EXPECT_EQ(c.to_vector(), (std::vector<float>{0.25f, 1.25f, -1, -1}));
  k.launch(s, 1, c, {.BLOCK = 2, .mode = Mode::Negated});
  EXPECT_EQ(c.to_vector(), (std::vector<float>{-0.5f, -1.5f, -1, -1}));
  k.launch(s, 1, c, {});
  EXPECT_EQ(c.to_vector(), (std::vector<float>{0.5f, 1.5f, 2.5f, 3.5f}));
  EXPECT_EQ(k.specialisations(), 5u) << "every field is in the key";
}

struct SixteenFields {
  int a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1, i = 1, j = 1, k = 1, l = 1, m = 1, n = 1, o = 1, p = 1;
};
TEST(LangKernel, TuningStructOfSixteenFields) {
  auto k = kernel("sixteen", [](Out<float> out, Tune<SixteenFields> t) { store(out, float(t.a + t.p * 100)); });
  const Device d = interpreter();
  Buffer<float> c(d, 1);
  k.launch(Stream(d), 1, c, {.a = 2, .p = 3});
  EXPECT_EQ(c.to_vector()[0], 302.f);
  k.launch(Stream(d), 1, c, {.a = 2, .p = 4});
  EXPECT_EQ(c.to_vector()[0], 402.f);
}

TEST(LangKernel, ScalarParametersOfEveryKind) {
  auto k = kernel("scalars", [](Out<double> o, Float f, Double d, Int32 i, Int64 l, Bool b, Val<std::uint8_t> u,
                                Val<f16> h, Int n) {
    store(o, f.cast(f64) + d);
    store(o + 1, i.cast(f64));
    store(o + 2, l.cast(f64));
    store(o + 3, select(b, 1.0, 2.0).cast(f64));
    store(o + 4, u.cast(f64) + h.cast(f64));
    store(o + 5, n.cast(f64));
  });
  on_each_device([&](const Device& d) {
    Buffer<double> o(d, 6);
    k.launch(Stream(d), 1, o, 0.5f, 0.25, -3, 1ll << 40, true, 200, f16(1.5f), std::size_t(7));
    EXPECT_EQ(o.to_vector(), (std::vector<double>{0.75, -3, double(1ll << 40), 1, 201.5, 7}));
  });
}

TEST(LangKernel, AnyIntegerIsAnInt) {
  auto k = kernel("int", [](Out<std::int64_t> o, Int n) { store(o, (n + 1).cast(i64)); });
  on_each_device([&](const Device& d) {
    Buffer<std::int64_t> o(d, 1);
    const Stream s(d);
    k.launch(s, 1, o, 5000000000ll);
    EXPECT_EQ(o.to_vector()[0], 5000000001ll);
    k.launch(s, 1, o, std::uint8_t(3));
    EXPECT_EQ(o.to_vector()[0], 4);
    k.launch(s, 1, o, -1);
    EXPECT_EQ(o.to_vector()[0], 0);
  });
}

// clang-format off: each expectation takes its own line
TEST(LangKernel, ValuesThatDoNotFitNameTheArgument) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> o(d, 1);
  auto plain = kernel("plain", [](Out<float> out, Int32 n) { store(out, n.cast(f32)); });
  expect_user_error([&] { plain.launch(s, 1, o, 3000000000ll); }, "plain: argument 2 (Int32): 3000000000 does not fit i32", __FILE__, __LINE__);
  auto named = plain.names("out count");
  expect_user_error([&] { named.launch(s, 1, o, -3000000000ll); }, "plain: argument 2 (count): -3000000000 does not fit i32", __FILE__, __LINE__);
  auto index = kernel("index", [](Out<float> out, Int n) { store(out, n.cast(f32)); });
  expect_user_error([&] { index.launch(s, 1, o, ~0ull); }, "index: argument 2 (Int): 18446744073709551615 does not fit index, a signed 64-bit integer", __FILE__, __LINE__);
}

TEST(LangKernel, BadOptionsNameTheLineOfWith) {
  const Device d = Device::simulator();
  const Stream s(d);
  Buffer<float> o(d, 64);
  auto k = kernel("fill", [](Out<float> x) { store(x + arange(64), 1.f); });
  const auto three = k.with({.num_warps = 3}); constexpr int kLine = __LINE__;
  expect_user_error([&] { three.launch(s, 1, o); }, "fill: num_warps is 3, must be 1, 2, 4, 8, 16 or 32", __FILE__, kLine);
  expect_user_error([&] { three.preload(d, o); }, "num_warps is 3", __FILE__, kLine);
  expect_user_error([&] { (void)three.image(d, o); }, "num_warps is 3", __FILE__, kLine);
  expect_user_error([&] { k.with({.num_warps = 1 << 27}).launch(s, 1, o); }, "num_warps 134217728 is 4294967296 threads, at most 1024 fit", __FILE__, __LINE__);
  expect_user_error([&] { k.with({.max_registers = 9}).launch(s, 1, o); }, "max_registers is 9, must be 16 to 255", __FILE__, __LINE__);
  expect_user_error([&] { k.with({.num_warps = 32, .max_registers = 80}).launch(s, 1, o); }, "80 registers on 1024 threads are 81920", __FILE__, __LINE__);
}

TEST(LangKernel, BadPointersNameTheArgument) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> o(d, 4);
  auto k = kernel("copy", [](In<float> x, Const<int> N, Out<float> y) { store(y + arange(N), load(x + arange(N))); });
  expect_user_error([&] { k.launch(s, 1, Buffer<float>(), 1, o); }, "copy: argument 1 (In<float>): null pointer", __FILE__, __LINE__);
  expect_user_error([&] { k.names("x N y").launch(s, 1, o, 1, device_ptr<float>(o.ptr() + 2)); }, "copy: argument 3 (y): address", __FILE__, __LINE__);
  const Device other = interpreter();
  Buffer<float> foreign(other, 4);
  expect_user_error([&] { k.launch(s, 1, foreign, 1, o); }, "argument 1 (In<float>): memory of", __FILE__, __LINE__);
  k.launch(s, 1, o, 1, o);
  s.synchronize();
}
// clang-format on

TEST(LangKernel, ChangedGlobalIsFoundWhenItIsTracedAgain) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> c(d, 1);
  auto k = reads_global;
  g_mode = 1;
  k.launch(s, 1, c);
  g_mode = 2;
  const std::string what = error_of<UserError>([&] { k.launch(s, 1, c); });
  EXPECT_THAT(what, HasSubstr("kernel 'reads_global' traces differently than at its first launch"));
  EXPECT_THAT(what, HasSubstr("f32(1)"));
  EXPECT_THAT(what, HasSubstr("f32(2)"));
  g_mode = 1;
  k.launch(s, 1, c);
}

TEST(LangKernel, RetraceKnobFindsAChangeAtEveryLaunch) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> c(d, 1);
  auto k = reads_global;
  g_mode = 1;
  k.launch(s, 1, c);
  k.launch(s, 1, c);
  setenv("KILN_RETRACE", "1", 1);
  env::reload();
  g_mode = 2;
  const std::string what = error_of<UserError>([&] { k.launch(s, 1, c); });
  unsetenv("KILN_RETRACE");
  env::reload();
  g_mode = 1;
  EXPECT_THAT(what, HasSubstr("traces differently than at its first launch"));
}

TEST(LangKernel, InputAndOutputMayBeOneBuffer) {
  on_each_device([](const Device& d) {
    Buffer<float> a = buffer_of(d, std::vector<float>{-3, 1, 2, -1}), b = buffer_of(d, std::vector<float>{1, 1, 1, 1});
    add_relu.launch(Stream(d), 1, a, b, a, 4, 4);
    EXPECT_EQ(a.to_vector(), (std::vector<float>{0, 2, 3, 0}));
    auto shift =
        kernel("shift", [](In<float> x, Out<float> y) {  // x + 1 == y: loads of a program come before its stores
          Tile i = arange(3);
          store(y + i, load(x + i) + 10);
        });
    shift.launch(Stream(d), 1, a, device_ptr<float>(a.ptr() + 4));
    EXPECT_EQ(a.to_vector(), (std::vector<float>{0, 10, 12, 13}));
  });
}

TEST(LangKernel, CompilesForTheDeviceOfTheLaunch) {
  auto k = add_constant(6.f);
  for (const char* target : {"sm_86", "sm_120a"}) {
    const Device d = Device::simulator(target);
    Buffer<float> c(d, 1);
    k.launch(Stream(d), 1, c);
    EXPECT_EQ(c.to_vector()[0], 6.f);
    const rt::KernelImage image = k.image(d, c);
    EXPECT_EQ(image.target, target);
    EXPECT_THAT(image.ptx, HasSubstr(std::string(".target ") + target));
    EXPECT_EQ(image.signature.args.at(0).name, "argument 1 (Out<float>)");
  }
  EXPECT_EQ(k.specialisations(), 2u);
}

TEST(LangKernel, CounterInAKernelDependsOnCppState) {
  const Device d = interpreter();
  Buffer<float> c(d, 1);
  auto k = kernel("counter", [](Out<float> o) {
    static int calls = 0;
    store(o, float(++calls));
  });
  EXPECT_THAT(error_of<UserError>([&] { k.launch(Stream(d), 1, c); }),
              HasSubstr("kernel 'counter' depends on C++ state"));
}

TEST(LangKernel, EightThreadsTraceThreeKeysThreeTimes) {
  static std::atomic<int> bodies{0};
  auto k = kernel("shared", [](Out<float> c, Int n, Const<int> B) {
    ++bodies;
    store(c, (n * B).cast(f32));
  });
  const Device d = interpreter();
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const Stream s(d);
      Buffer<float> c(d, 1);
      for (int r = 0; r < 20; ++r) {
        k.launch(s, 1, c, 5, t % 3);
        good += c.to_vector()[0] == float(5 * (t % 3));
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(good, 160);
  EXPECT_EQ(k.specialisations(), 3u);
  // Each key is traced twice to begin with, then once on launches 2, 4, 8, … of its 40 to 60.
  EXPECT_EQ(bodies, 3 * (2 + 5));
}

TEST(LangKernel, EveryThreadHearsOfAFailedTrace) {
  auto k = kernel("bad", [](Out<float> o) { store(o, Scalar(1)); });
  const Device d = interpreter();
  Buffer<float> c(d, 1);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      refused += error_of<UserError>([&] { k.launch(Stream(d), 1, c); }).find("cast first") != std::string::npos;
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(refused, 4);
}

void launch_recursive(const Device& d);
constinit auto recursive = kernel("recursive", [](Out<float> o) {
  launch_recursive(interpreter_in_use());
  store(o, 1.f);
});
void launch_recursive(const Device& d) {
  Buffer<float> c(d, 1);
  recursive.launch(Stream(d), 1, c);
}

TEST(LangKernel, LaunchingItselfWhileItIsTracedIsAnError) {
  EXPECT_THAT(error_of<UserError>([] { launch_recursive(interpreter_in_use()); }),
              HasSubstr("kernel 'recursive' launches itself while it is traced"));
}

void launch_ping();
void launch_pong();
std::latch both_traced(2);
constinit auto ping = kernel("ping", [](Out<float> o) {
  static std::once_flag first;
  std::call_once(first, [] { both_traced.arrive_and_wait(); });
  launch_pong();
  store(o, 1.f);
});
constinit auto pong = kernel("pong", [](Out<float> o) {
  static std::once_flag first;
  std::call_once(first, [] { both_traced.arrive_and_wait(); });
  launch_ping();
  store(o, 1.f);
});
void launch_ping() {
  Buffer<float> c(interpreter_in_use(), 1);
  ping.launch(Stream(interpreter_in_use()), 1, c);
}
void launch_pong() {
  Buffer<float> c(interpreter_in_use(), 1);
  pong.launch(Stream(interpreter_in_use()), 1, c);
}

TEST(LangKernel, KernelsThatLaunchEachOtherOnTwoThreadsAreAnErrorOnBoth) {
  std::string errors[2];
  std::thread other([&] { errors[1] = error_of<UserError>(launch_pong); });
  errors[0] = error_of<UserError>(launch_ping);
  other.join();
  for (const std::string& e : errors) EXPECT_THAT(e, HasSubstr("launches itself while it is traced"));
}

TEST(LangKernel, LaunchInsideATraceHasItsOwn) {
  const Device d = interpreter();
  auto outer = kernel("outer", [](Out<float> o) {
    const Device inner_device = interpreter();
    Buffer<float> c(inner_device, 1);
    Scalar before = 1.f;
    add_constant(4.f).launch(Stream(inner_device), 1, c);
    store(o, before + c.to_vector()[0]);
  });
  Buffer<float> o(d, 1);
  outer.launch(Stream(d), 1, o);
  EXPECT_EQ(o.to_vector()[0], 5.f);
}

TEST(LangKernel, FirstLaunchInACaptureIsAnErrorAndPreloadMakesItSafe) {
  on_each_device([](const Device& d) {
    const Stream s(d);
    Buffer<float> c = buffer_of(d, std::vector<float>(1, 0));
    auto k = add_constant(3.f);
    EXPECT_THAT(error_of<UserError>([&] { (void)Graph::capture(s, [&] { k.launch(s, 1, c); }); }),
                HasSubstr("kernel 'add_constant' is not loaded for these arguments, and the stream is being captured: "
                          "call preload()"));
    k.preload(d, c);
    const Graph g = Graph::capture(s, [&] { k.launch(s, 1, c); });
    EXPECT_EQ(g.kernels(), 1u);
    EXPECT_EQ(c.to_vector()[0], 0.f);
    g.replay(s);
    s.synchronize();
    EXPECT_EQ(c.to_vector()[0], 3.f);
  });
}

TEST(LangKernel, FailedTraceLeavesTheKernelUsable) {
  const Device d = interpreter();
  Buffer<float> c(d, 4);
  auto k = kernel("maybe_bad", [](Out<float> o, Const<bool> bad) {
    if (bad) store(o + arange(4), zeros(f64, {4}));
    store(o, 1.f);
  });
  EXPECT_THAT(error_of<UserError>([&] { k.launch(Stream(d), 1, c, true); }), HasSubstr("cast first"));
  k.launch(Stream(d), 1, c, false);
  EXPECT_EQ(c.to_vector()[0], 1.f);
  EXPECT_EQ(k.specialisations(), 1u);
}

TEST(LangKernel, AccessOutsideMemoryIsADeviceErrorAndTheDeviceLives) {
  on_each_device([](const Device& d) {
    if (d.kind() == DeviceKind::Cuda) return;  // a GPU reports none of this
    const Stream s(d);
    Buffer<float> c = buffer_of(d, std::vector<float>(4, 0));
    auto k = kernel("beyond", [](Out<float> o, Int at) { store(o + at, 1.f); });
    k.launch(s, 1, c, 1 << 20);
    EXPECT_NE(error_of<DeviceError>([&] { s.synchronize(); }), "(no error)");
    k.launch(s, 1, c, 2);
    s.synchronize();
    EXPECT_EQ(c.to_vector(), (std::vector<float>{0, 0, 1, 0}));
  });
}

TEST(LangKernel, TextShowsTheKernelAndItsLines) {
  Buffer<float> none;
  auto k = kernel("text", [](Out<float> o) { store(o, 1.f); });
  const Trace t = k.trace(none);
  EXPECT_THAT(t.text(false), HasSubstr("store %0"));
  EXPECT_THAT(t.text(), HasSubstr("kernel_test.cpp\":" + std::to_string(__LINE__ - 3)));
  EXPECT_THAT(error_of<UserError>([&] { (void)k.image(interpreter(), none); }),
              HasSubstr("the interpreter compiles nothing"));
}

}  // namespace
}  // namespace kiln::test
