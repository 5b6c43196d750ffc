// Compiles add_relu for every target and writes add_relu-<target>.kimg into a folder; run by the build.
#include <kiln/kiln.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "backend/target.h"
#include "runtime/image/kernel_image.h"

using namespace kiln;

static constinit auto add_relu =
    kernel("add_relu", [](In<float> a, In<float> b, Out<float> c, Int n, Const<int> BLOCK) {
      Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
      store(c + i, relu(load(a + i, mask) + load(b + i, mask)), mask);
    });

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: make_image FOLDER\n"), 2;
  for (const std::string& target : known_targets()) {
    const Device device = Device::simulator(target);
    Buffer<float> x(device, 1001);
    const std::string path = std::string(argv[1]) + "/add_relu-" + target + ".kimg";
    std::ofstream out(path, std::ios::binary);
    out << rt::serialise(add_relu.image(device, x, x, x, 1001, Const(256)));
    if (!out.flush()) return std::fprintf(stderr, "cannot write %s\n", path.c_str()), 1;
  }
  return 0;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
