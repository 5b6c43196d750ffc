// A fixture whose tests run once for each oracle: the interpreter, the simulator, every GPU kind found.
#pragma once
#include <string>

#include "tests/support/devices.h"

namespace kiln::test {

class EveryDevice : public testing::TestWithParam<std::size_t> {
 protected:
  const Device& device() const { return devices().at(GetParam()); }
};

inline std::string device_label(const testing::TestParamInfo<std::size_t>& info) {
  switch (devices().at(info.param).kind()) {
    case DeviceKind::Interpreter: return "Interpreter";
    case DeviceKind::Simulator: return "Simulator";
    case DeviceKind::Cuda: break;
  }
  return "Gpu" + std::to_string(info.param);
}

}  // namespace kiln::test

#define KILN_ON_EVERY_DEVICE(Fixture)                                                                      \
  INSTANTIATE_TEST_SUITE_P(Devices, Fixture, testing::Range(std::size_t(0), kiln::test::devices().size()), \
                           kiln::test::device_label)
