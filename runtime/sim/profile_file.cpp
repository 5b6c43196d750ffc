// One file for all simulators of the process. The state is global, behind one lock, and never destroyed: devices may
// live until the process ends (Device::best keeps one), so a handler at exit writes what they did.
#include "runtime/sim/profile_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <vector>

#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/profile.h"
#include "runtime/sim/device.h"

namespace kiln::rt::sim {
namespace {

struct ProfileFile {
  std::mutex mutex;
  std::vector<SimDevice*> open;
  Profile closed;  ///< of devices that are gone
};
ProfileFile& state() {
  static auto& s = *new ProfileFile;
  return s;
}

/// "%p" is the number of the process, so that several do not overwrite each other's file.
std::string file_name() {
  std::string name = env::KILN_SIM_PROFILE();
  if (const std::size_t at = name.find("%p"); at != name.npos) name.replace(at, 2, std::to_string(::getpid()));
  return name;
}

void append(Profile& to, Profile from) {
  std::move(from.kernels.begin(), from.kernels.end(), std::back_inserter(to.kernels));
}

void write(const Profile& closed, const std::vector<SimDevice*>& open) noexcept {
  try {
    Profile all = closed;
    for (const SimDevice* d : open) append(all, d->profile_for_file());
    if (!all.kernels.empty()) write_profile(all, file_name());
  } catch (const std::exception& e) {
    say(LogLevel::Error, fmt::format("KILN_SIM_PROFILE: {}", e.what()));
  }
}

void at_exit() {
  ProfileFile& s = state();
  const std::scoped_lock lock(s.mutex);
  if (!s.open.empty()) write(s.closed, s.open);
}

}  // namespace

void open_profile(SimDevice& device) {
  if (env::KILN_SIM_PROFILE().empty()) return;
  ProfileFile& s = state();
  static const int registered = std::atexit(at_exit);
  (void)registered;
  const std::scoped_lock lock(s.mutex);
  s.open.push_back(&device);
}

void close_profile(SimDevice& device) noexcept {
  ProfileFile& s = state();
  const std::scoped_lock lock(s.mutex);
  const auto known = std::find(s.open.begin(), s.open.end(), &device);
  if (known == s.open.end()) return;
  s.open.erase(known);
  try {
    append(s.closed, device.profile_for_file());
  } catch (const std::exception& e) {
    say(LogLevel::Error, fmt::format("KILN_SIM_PROFILE: {}", e.what()));
  }
  write(s.closed, s.open);
}

}  // namespace kiln::rt::sim
