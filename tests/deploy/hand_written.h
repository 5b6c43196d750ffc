// An image of add_relu whose PTX was written by hand, so that deployment is tested in builds without the compiler.
#pragma once
#include "runtime/image/kernel_image.h"

namespace kiln::test {

inline constexpr int kHandWrittenBlock = 128;

/// One element a thread, kHandWrittenBlock threads a program; parameters a, b, c, n.
inline rt::KernelImage hand_written_image() {
  rt::KernelImage image;
  image.name = "add_relu";
  image.target = "sm_80";
  image.ptx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry add_relu(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u64 %rd4, [n];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  shl.b32 %r3, %r1, 7;
  or.b32 %r3, %r3, %r2;
  cvt.u64.u32 %rd5, %r3;
  setp.ge.s64 %p1, %rd5, %rd4;
  @%p1 bra $done;
  shl.b64 %rd6, %rd5, 2;
  add.s64 %rd7, %rd1, %rd6;
  add.s64 %rd8, %rd2, %rd6;
  add.s64 %rd9, %rd3, %rd6;
  ld.global.f32 %f1, [%rd7];
  ld.global.f32 %f2, [%rd8];
  add.rn.f32 %f3, %f1, %f2;
  max.f32 %f4, %f3, 0f00000000;
  st.global.f32 [%rd9], %f4;
$done:
  ret;
}
)";
  for (const char* name : {"a", "b", "c"}) {
    rt::Arg pointer;
    pointer.kind = rt::ArgKind::Pointer;
    pointer.dtype = f32;
    pointer.access = *name == 'c' ? rt::Access::Write : rt::Access::Read;
    pointer.name = name;
    pointer.size = 8;
    pointer.align = 4;
    image.signature.append(pointer);
  }
  rt::Arg n;
  n.dtype = DType::index;
  n.name = "n";
  n.size = 8;
  image.signature.append(n);
  rt::LaunchRecipe recipe;
  recipe.block = {kHandWrittenBlock, 1, 1};
  image.candidates.push_back(recipe);
  return image;
}

}  // namespace kiln::test
