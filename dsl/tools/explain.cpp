// kiln explain: what one kernel is, in words or as one JSON object, on stdout and nothing else there.
//
// The kernel is compiled for a simulator of the target with a disk cache of its own, where its image is found: by the
// library's own function in this process, on arrays that are not there, or by the program named, which is killed once
// the image is kept. Where a GPU of the target is, it assembles the kernel, so that registers and spills are known.
#include "runtime/explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "dsl/tools/kernel_choice.h"
#include "dsl/tools/verbs.h"
#include "runtime/base/error.h"
#include "runtime/cache.h"
#include "runtime/device.h"
#include "runtime/device_impl.h"

namespace kiln::tools {
namespace {

struct Options {
  KernelChoice choice;
  bool json = false;
};

/// The simulator that the library's kernels are compiled for.
Device device_of(const KernelChoice& choice) { return Device::simulator(choice.target, 132, {}); }

/// Images go to `scratch`; nothing that would keep them from the cache, or ask for somebody's attention.
void ask_for_images(const Scratch& scratch, const KernelChoice& choice) {
  set_environment(choice, {{"KILN_CACHE_DIR", scratch.path().string()},
                           {"KILN_CACHE_BYTES", ""},
                           {"KILN_DUMP", ""},
                           {"KILN_STOP_AFTER", ""},
                           {"KILN_OVERRIDE", ""},
                           {"KILN_TIME", "0"},
                           {"KILN_SIM_DEBUG", ""}});
}

/// The first image in `scratch` of this name; of any name where it is empty.
std::optional<rt::KernelImage> first_image(const Scratch& scratch, const std::string& name) {
  for (rt::KernelImage& image : rt::DiskCache(scratch.path().string(), 1 << 30).images())
    if (name.empty() || image.name == name) return std::move(image);
  return std::nullopt;
}

rt::KernelImage library_image(const LibraryKernel& kernel, const KernelChoice& choice, const Scratch& scratch) {
  std::optional<rt::KernelImage> image;
  try {
    const Stream stream(device_of(choice));
    kernel.call(stream);
    stream.synchronize();
  } catch (const Error&) {  // its arrays are not there
    image = first_image(scratch, "");
    if (!image) throw;
  }
  if (!image) image = first_image(scratch, "");
  if (!image)
    throw UserError(
        fmt::format("explain: the image of {} could not be kept in {}", choice.kernel, scratch.path().string()));
  return *image;
}

rt::KernelImage program_image(const KernelChoice& choice, const Scratch& scratch) {
  const int status = run_program(choice, [&] { return first_image(scratch, choice.kernel).has_value(); });
  if (const auto image = first_image(scratch, choice.kernel)) return *image;
  std::set<std::string> compiled;
  for (const rt::KernelImage& image : rt::DiskCache(scratch.path().string(), 1 << 30).images())
    compiled.insert(image.name);
  throw UserError(fmt::format("explain: {} ended with status {} and did not compile '{}'; it compiled: {}",
                              choice.program, status, choice.kernel,
                              compiled.empty() ? "nothing" : fmt::format("{}", fmt::join(compiled, ", "))));
}

/// The first GPU that the image is for.
std::optional<Device> gpu_for(const rt::KernelImage& image) {
  for (int i = 0; i < Device::cuda_count(); ++i)
    if (const Device gpu = Device::cuda(i, {}); gpu.target() == image.target) return gpu;
  return std::nullopt;
}

Explanation explained(const rt::KernelImage& image) {
  if (const auto gpu = gpu_for(image)) return kiln::explain(gpu->load(image, {})->image(), *gpu);
  return kiln::explain(image, Device::simulator(image.target, 132, {}));
}

std::string json_of(const lib::LinearExplanation& e, bool planned) {
  nlohmann::ordered_json j;
  if (planned) {
    j["plan"] = e.plan;
    j["why"] = e.why;
    j["flop"] = e.flop;
    j["bytes"] = e.bytes;
    j["bound"] = e.bound;
  }
  j["kernels"] = nlohmann::json::array();
  for (const Explanation& k : e.kernels) j["kernels"].push_back(nlohmann::ordered_json::parse(k.json()));
  return j.dump() + "\n";
}

std::string explain(const Options& options) {
  const KernelChoice& choice = options.choice;
  const bool from_library = choice.program.empty();
  const LibraryKernel* kernel = from_library ? &library_kernel(choice) : nullptr;
  const Scratch scratch(choice);
  ask_for_images(scratch, choice);
  const Explanation e =
      explained(from_library ? library_image(*kernel, choice, scratch) : program_image(choice, scratch));
  const bool planned = from_library && kernel->plan;
  lib::LinearExplanation all = planned ? kernel->plan(device_of(choice)) : lib::LinearExplanation{};
  all.kernels = {e};
  if (options.json) return json_of(all, planned);
  return planned ? all.text() : e.text();
}

}  // namespace

void add_explain(CLI::App& app, int&) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("explain", "say how a kernel is launched, what it takes and what it relies on");
  add_choice(*verb, options->choice);
  verb->add_flag("--json", options->json, "one JSON object");
  verb->callback([options] { fmt::print("{}", explain(*options)); });
}

}  // namespace kiln::tools
