#include "runtime/sim/load.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/base/error.h"
#include "runtime/image/ptx_line.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/ptx.h"

namespace kiln::rt::sim {
namespace {

/// Memory of the module's .global and .const variables; freed again if loading fails.
class Variables {
 public:
  Variables(SimDevice& device, const ptx::Module& module) : device_(device) {
    for (const ptx::Variable& v : module.variables) {
      if (v.space != Space::Global && v.space != Space::Const) continue;
      if (symbols_.contains(v.name) && v.external) continue;
      if (symbols_.contains(v.name)) throw DeviceError(fmt::format("variable {} is declared twice", v.name));
      const std::uint64_t at = device.heap().allocate_zeroed(v.bytes);
      owned_.push_back(at);
      symbols_[v.name] = {Space::Global, at};
      auto* bytes = reinterpret_cast<std::byte*>(at);
      if (!v.init.empty()) std::memcpy(bytes, v.init.data(), v.init.size());
      device.heap().written(at, v.bytes);
    }
    for (const ptx::Variable& v : module.variables)
      for (const ptx::Variable::Fixup& f : v.addresses) point(v, f);
  }
  ~Variables() {
    for (std::uint64_t at : owned_) device_.heap().free(at);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

  const Symbols& symbols() const { return symbols_; }
  std::vector<std::uint64_t> release() { return std::exchange(owned_, {}); }

 private:
  /// Adds the address of a variable to the offset that the initialiser holds.
  void point(const ptx::Variable& v, const ptx::Variable::Fixup& f) {
    const auto target = symbols_.find(f.symbol);
    if (target == symbols_.end())
      throw DeviceError(fmt::format("the initialiser of {} names unknown {}", v.name, f.symbol));
    auto* at = reinterpret_cast<std::byte*>(symbols_.at(v.name).at + f.at);
    std::uint64_t value = 0;
    std::memcpy(&value, at, sizeof value);
    value += target->second.at;
    std::memcpy(at, &value, sizeof value);
  }

  SimDevice& device_;
  std::vector<std::uint64_t> owned_;
  Symbols symbols_;
};

std::string text(const std::array<std::uint32_t, 3>& v) { return fmt::format("({}, {}, {})", v[0], v[1], v[2]); }

void check_recipe(const KernelImage& image, const ptx::Function& f, const Arch& arch) {
  const LaunchRecipe& r = image.recipe();
  const std::uint64_t threads = std::uint64_t{r.block[0]} * r.block[1] * r.block[2];
  if (threads == 0 || threads > 1024)
    throw DeviceError(fmt::format("kernel {}: a block of {} threads; must be 1 to 1024", image.name, threads));
  if (r.block[2] > 64)
    throw DeviceError(fmt::format("kernel {}: blocks of {} threads along z; must be 1 to 64", image.name, r.block[2]));
  if (f.reqntid[0] != 0 && f.reqntid != r.block)
    throw DeviceError(
        fmt::format("kernel {}: blocks are {}, its PTX requires {}", image.name, text(r.block), text(f.reqntid)));
  const std::uint64_t most = std::uint64_t{f.maxntid[0]} * f.maxntid[1] * f.maxntid[2];
  if (most != 0 && threads > most)
    throw DeviceError(fmt::format("kernel {}: blocks have {} threads, its PTX allows {}", image.name, threads, most));
  constexpr std::array<std::uint32_t, 3> kOne{1, 1, 1};
  if (f.cluster != kOne && f.cluster != r.cluster)
    throw DeviceError(
        fmt::format("kernel {}: clusters are {}, its PTX requires {}", image.name, text(r.cluster), text(f.cluster)));
  const std::uint64_t blocks = std::uint64_t{r.cluster[0]} * r.cluster[1] * r.cluster[2];
  const std::uint64_t most_blocks = r.nonportable_cluster ? 16 : 8;
  if (blocks == 0 || blocks > most_blocks)
    throw DeviceError(
        fmt::format("kernel {}: clusters of {} blocks; must be 1 to {}", image.name, blocks, most_blocks));
  if (blocks > 1 && arch.number < 90)
    throw DeviceError(fmt::format("kernel {}: clusters of {} blocks; {} has none", image.name, blocks, arch.name()));
}

const ptx::Function& find_entry(const ptx::Module& module, const KernelImage& image) {
  const ptx::Function* f = module.find(image.name);
  if (f && f->entry) return *f;
  std::string entries;
  for (const ptx::Function& g : module.functions)
    if (g.entry) entries += fmt::format("{}{}", entries.empty() ? "" : ", ", g.name);
  throw DeviceError(
      fmt::format("the PTX has no entry {}; its entries: {}", image.name, entries.empty() ? "none" : entries));
}

}  // namespace

std::shared_ptr<SimKernel> load_kernel(std::shared_ptr<SimDevice> device, const KernelImage& image) {
  if (image.ptx.empty()) throw DeviceError(fmt::format("kernel {} has no PTX, which the simulator needs", image.name));
  auto module = std::make_shared<ptx::Module>();
  try {
    ptx::parse(image.ptx, *module);
  } catch (const DeviceError& e) {
    throw DeviceError(fmt::format("{}kernel {}: {}", blamed_place(e.what(), image.ptx), image.name, e.what()));
  }
  if (module->version > SimDevice::kPtxVersion)
    throw DeviceError(fmt::format("kernel {}: PTX {}.{}, the simulator takes up to {}.{}", image.name,
                                  module->version / 10, module->version % 10, SimDevice::kPtxVersion / 10,
                                  SimDevice::kPtxVersion % 10));
  const Arch code = Arch::parse(module->target);
  if (module->version < code.least_ptx())
    throw DeviceError(fmt::format("kernel {}: {} needs PTX {}.{} or later, the module is of {}.{}", image.name,
                                  code.name(), code.least_ptx() / 10, code.least_ptx() % 10, module->version / 10,
                                  module->version % 10));
  if (!device->arch().runs(code))
    throw DeviceError(
        fmt::format("kernel {} is compiled for {}, the device is {}", image.name, code.name(), device->arch().name()));
  const ptx::Function& entry = find_entry(*module, image);
  check_recipe(image, entry, device->arch());
  Variables variables(*device, *module);
  auto program = decode(module, entry, variables.symbols());
  return std::make_shared<SimKernel>(std::move(device), image, std::move(program), variables.release());
}

}  // namespace kiln::rt::sim
