// Many programs, one after the other, on the interpreter and on every device.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsl/tools/fuzz/compare.h"

namespace kiln::fuzz {

inline constexpr int kSteps = 24;  ///< of a program, those inside regions not counted

struct Failure {
  std::string device, difference;
  Program program;  ///< minimised
};

struct Campaign {
  std::uint64_t first = 1, count = 200;  ///< seeds
  double seconds = 0;                    ///< stops after this time; 0: does not
  std::optional<ir::Op> planted;
  bool show = false;  ///< prints every program before it runs, to stderr

  // Of run():
  std::uint64_t programs = 0;
  std::uint64_t refused = 0;                        ///< runs of a program that is too large for a device
  std::map<std::string, std::uint64_t> ops, types;  ///< instructions and results that the programs have
  std::vector<std::string> devices;
  std::optional<Failure> failure;

  /// Stops at the first difference. Devices: every one of Device::all() and a simulator of sm_80; a fourth of the
  /// programs runs on one of the other targets, too.
  void run();
  /// One program on all of these devices.
  void run_one(const Program&);
  /// One line: programs, refused, seed, devices, ops, types, differences.
  std::string json() const;

 private:
  void prepare();
  bool agrees(const Device&, const Program&);
  void count_contents(const ir::Function&);
  std::vector<Device> always_, sometimes_;
};

}  // namespace kiln::fuzz
