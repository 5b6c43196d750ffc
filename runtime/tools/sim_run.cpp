#include "runtime/tools/sim_run.h"

#include <algorithm>
#include <map>

#include "runtime/base/error.h"
#include "runtime/device_impl.h"
#include "runtime/tools/sim_args.h"

namespace kiln::rt::tools {
namespace {

constexpr int kSms = 132;
/// Errors name the user's files; places in this program would only confuse.
constexpr SourceLoc kNowhere{};

KernelImage image_of(const Case& c) {
  KernelImage image;
  image.name = c.entry;
  image.target = c.target;
  image.ptx = c.ptx;
  LaunchRecipe recipe;
  recipe.block = c.block;
  recipe.cluster = c.cluster;
  recipe.smem_bytes = c.shared_bytes;
  recipe.nonportable_cluster = true;
  image.candidates.push_back(recipe);
  return image;
}

Buffer<std::uint8_t> upload(const Device& device, const Argument& a) {
  Buffer<std::uint8_t> b(device, a.size, kNowhere);
  if (!a.before.empty()) b.upload(a.before, 0, kNowhere);
  return b;
}

/// The bytes of each map; buffers are as in `addresses`.
std::vector<Bytes> tensor_maps(const Case& c, const Device& device, const std::vector<std::uint64_t>& addresses) {
  std::map<std::string, std::uint64_t> of;
  std::size_t buffer = 0;
  for (const Argument& a : c.args)
    if (a.kind == Argument::Kind::Buffer) of[a.name] = addresses[buffer++];
  std::vector<Bytes> out;
  for (const Argument& a : c.args)
    if (a.kind == Argument::Kind::TensorMap) out.push_back(encoded(device, a, of.at(a.of)));
  return out;
}

}  // namespace

bool Outcome::compared() const {
  return std::any_of(results.begin(), results.end(), [](const Result& r) { return r.comparison.has_value(); });
}
bool Outcome::matches() const {
  return std::all_of(results.begin(), results.end(),
                     [](const Result& r) { return !r.comparison || r.comparison->matches(); });
}

Outcome run_case(const Case& c) {
  const Device device = Device::simulator(c.target, kSms, kNowhere);
  device.record_profile();
  Outcome out;
  out.device = device.name();
  const auto kernel = device.load(image_of(c), kNowhere);
  std::vector<Buffer<std::uint8_t>> buffers;
  std::vector<std::uint64_t> addresses;
  for (const Argument& a : c.args) {
    if (a.kind != Argument::Kind::Buffer) continue;
    buffers.push_back(upload(device, a));
    addresses.push_back(buffers.back().ptr());
  }
  const Bytes params = pack(c, addresses, tensor_maps(c, device, addresses));
  const Stream stream(device);
  try {
    kernel->launch(stream.impl(), LaunchDims{c.grid}, params.data(), params.size());
    stream.synchronize(kNowhere);
  } catch (const DeviceError& e) {
    out.error = e.what();
  }
  out.findings = device.findings();
  if (!out.findings.empty()) out.error.clear();  // it repeats one of them
  std::size_t buffer = 0;
  for (const Argument& a : c.args) {
    if (a.kind != Argument::Kind::Buffer) continue;
    Result r{&a, buffers[buffer++].to_vector(kNowhere), {}};
    if (a.want) r.comparison = compare(a.dtype, r.after, *a.want);
    out.results.push_back(std::move(r));
  }
  out.profile = device.profile();
  return out;
}

}  // namespace kiln::rt::tools
