// An application as it is deployed: it links libkiln_runtime.so alone, reads a compiled kernel from a .kimg file, runs
// it on the simulator and checks the result. Prints the shared objects that were loaded, one a line, then "ok".
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <vector>

#include "runtime/device.h"
#include "runtime/image/kernel_image.h"
#include "runtime/launch.h"

namespace {

using namespace kiln;

std::string read_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError(std::string("cannot read ") + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool run(const rt::KernelImage& image, std::int64_t n, std::int64_t block) {
  const Device device = Device::simulator(image.target);
  const Stream stream(device);
  std::vector<float> a(static_cast<std::size_t>(n)), b(a.size()), want(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 7) - 3, b[i] = static_cast<float>(i % 5) - 2.5f;
    want[i] = std::max(a[i] + b[i], 0.0f);
  }
  Buffer<float> x(device, a.size()), y(device, a.size()), z(device, a.size());
  x.upload(a);
  y.upload(b);
  rt::ArgPack args;
  args.pointer(f32, rt::Access::Read, x.ptr(), x.bytes(), &device);
  args.pointer(f32, rt::Access::Read, y.ptr(), y.bytes(), &device);
  args.pointer(f32, rt::Access::Write, z.ptr(), z.bytes(), &device);
  args.index(n);
  const auto kernel = device.load(image);
  rt::launch(*kernel, stream, {(n + block - 1) / block}, args);
  stream.synchronize();
  return z.to_vector() == want;
}

void print_loaded_objects() {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> seen;
  for (std::string line; std::getline(maps, line);) {
    const auto at = line.find('/');
    if (at != line.npos && line.find(".so") != line.npos && seen.insert(line.substr(at)).second)
      std::cout << line.substr(at) << "\n";
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return std::fprintf(stderr, "usage: runtime_app IMAGE.kimg ELEMENTS_PER_PROGRAM\n"), 2;
  const bool ok = run(rt::deserialise(read_file(argv[1]), argv[1]), 1001, std::stoll(argv[2]));
  print_loaded_objects();
  std::cout << (ok ? "ok" : "wrong result") << "\n";
  return ok ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
