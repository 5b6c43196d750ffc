// A test with CUDA devices on the fake driver. After each test nothing may be left: contexts, modules, streams, memory.
#pragma once
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "runtime/cuda/device.h"
#include "runtime/device.h"
#include "tests/runtime/fake_cuda.h"
#include "tests/support/build_tree.h"

namespace kiln::rt {

/// The tests' own libcuda, beside the other libraries of the build folder wherever that was moved to.
inline std::string fake_cuda_path() { return test::lib_dir() / "libfake_cuda.so"; }

class OnFakeCuda : public ::testing::Test {
 protected:
  OnFakeCuda() {
    void* library = ::dlopen(fake_cuda_path().c_str(), RTLD_NOW | RTLD_LOCAL);  // the handle the driver table gets, too
    if (!library) throw std::runtime_error(::dlerror());
    fake_ = reinterpret_cast<FakeCuda* (*)()>(::dlsym(library, "fake_cuda"))();
    *fake_ = FakeCuda{};
  }
  ~OnFakeCuda() override {
    EXPECT_EQ(fake_->contexts_retained, 0);
    EXPECT_EQ(fake_->modules, 0);
    EXPECT_EQ(fake_->streams, 0);
    EXPECT_EQ(fake_->graphs, 0);
    EXPECT_EQ(fake_->memory_used, 0u);
  }

  Device open(int ordinal = 0) const {
    return Device(std::make_shared<CudaDevice>(cu::Driver::open(fake_cuda_path().c_str()), ordinal));
  }
  void fail_next(const char* call, int code) const {
    fake_->fail_call = call;
    fake_->fail_code = code;
  }
  bool called_since(const char* call, std::uint64_t from) const { return fake_->called(call, from); }

  FakeCuda* fake_;
};

/// What `body` throws as E, or "nothing was thrown".
template <class E, class F>
std::string thrown(F&& body) {
  try {
    body();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

/// An image whose PTX the fake takes; pointers a and c, index n.
inline KernelImage add_image(const std::string& name = "add") {
  KernelImage image;
  image.name = name;
  image.target = "sm_90a";
  image.ptx = ".visible .entry " + name + "()";
  for (const char* pointer : {"argument 1 (a)", "argument 2 (c)"}) {
    Arg p;
    p.kind = ArgKind::Pointer;
    p.dtype = DType::f32;
    p.access = image.signature.args.empty() ? Access::Read : Access::Write;
    p.name = pointer;
    image.signature.append(p);
  }
  Arg n;
  n.dtype = DType::index;
  n.name = "argument 3 (n)";
  image.signature.append(n);
  image.candidates.emplace_back();
  image.candidates[0].block = {128, 1, 1};
  return image;
}

}  // namespace kiln::rt
