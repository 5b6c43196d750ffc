// The GPU beside the simulator: PTX that both can run must leave the same words on both.
#pragma once
#include <optional>
#include <string>

#include "runtime/device.h"

namespace kiln::test {

/// The first GPU, if it runs PTX of `target`: code of a family (sm_80, sm_90) runs on every later one, code of one
/// architecture (sm_90a) only there. Opened once.
inline std::optional<Device> gpu_for(const std::string& target) {
  static const std::optional<Device> gpu =
      Device::cuda_count() > 0 ? std::optional<Device>(Device::cuda()) : std::nullopt;
  if (!gpu) return std::nullopt;
  const auto number = [](const std::string& t) { return std::stoi(t.substr(3)); };
  const std::string own = gpu->target();
  const bool exact = target.back() == 'a' || target.back() == 'f';
  if (exact ? number(own) != number(target) : number(own) < number(target)) return std::nullopt;
  return gpu;
}

}  // namespace kiln::test
