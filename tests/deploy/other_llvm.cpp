// Uses Kiln's compiler and another LLVM in one process, in turns. Arguments: the other library's file or soname, and
// "before" or "after": when it is loaded, relative to Kiln's first compilation. Exit status 77: no such library here.
#include <dlfcn.h>
#include <kiln/kiln.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

using namespace kiln;

static constinit auto add_relu =
    kernel("add_relu", [](In<float> a, In<float> b, Out<float> c, Int n, Const<int> BLOCK) {
      Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
      store(c + i, relu(load(a + i, mask) + load(b + i, mask)), mask);
    });

static bool kiln_compiles_and_runs(int block) {
  const Device device = Device::simulator();
  const Stream stream(device);
  const std::vector<float> x{-3, -1, 0, 2, 5}, want{0, 0, 0, 4, 10};
  Buffer<float> a(device, x.size()), c(device, x.size());
  a.upload(x);
  add_relu.launch(stream, 1, a, a, c, x.size(), Const(block));
  stream.synchronize();
  return c.to_vector() == want;
}

// A module made, printed and freed through the other LLVM's C interface.
static bool other_llvm_works(void* library) {
  const auto symbol = [&]<class F>(const char* name, F*& f) {
    return (f = reinterpret_cast<F*>(dlsym(library, name))) != nullptr;
  };
  void* (*create_context)();
  void* (*create_module)(const char*, void*);
  char* (*print_module)(void*);
  void (*free_text)(char*);
  void (*free_module)(void*);
  void (*free_context)(void*);
  if (!symbol("LLVMContextCreate", create_context) || !symbol("LLVMModuleCreateWithNameInContext", create_module) ||
      !symbol("LLVMPrintModuleToString", print_module) || !symbol("LLVMDisposeMessage", free_text) ||
      !symbol("LLVMDisposeModule", free_module) || !symbol("LLVMContextDispose", free_context))
    return false;
  void* context = create_context();
  void* module = create_module("beside_kiln", context);
  char* text = print_module(module);
  const bool ok = std::strstr(text, "beside_kiln") != nullptr;
  free_text(text);
  free_module(module);
  free_context(context);
  return ok;
}

int main(int argc, char** argv) try {
  if (argc != 3) return std::fprintf(stderr, "usage: other_llvm LIBRARY before|after\n"), 2;
  if (std::strcmp(argv[2], "after") == 0 && !kiln_compiles_and_runs(64))
    return std::puts("kiln alone: wrong result"), 1;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (!library) return std::puts(dlerror()), 77;
  for (int block : {128, 256}) {
    if (!other_llvm_works(library)) return std::puts("the other LLVM does not work"), 1;
    if (!kiln_compiles_and_runs(block)) return std::puts("kiln beside the other LLVM: wrong result"), 1;
  }
  std::puts("ok");
  return 0;
} catch (const kiln::Error& e) {
  std::puts(e.what());
  return 1;
}
