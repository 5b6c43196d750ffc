#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <optional>

#include "runtime/base/error.h"

namespace kiln::cu {
namespace {

/// Address of `entry.symbol` in the library, typed as the entry's function.
template <class... Params>
void resolve(void* library, const std::string& path, Entry<Params...>& entry) {
  entry.function = reinterpret_cast<Result (*)(Params...)>(::dlsym(library, entry.symbol));
  if (!entry.function) throw DeviceError(fmt::format("CUDA driver too old: {} has no {}", path, entry.symbol));
}

}  // namespace

std::shared_ptr<const Driver> Driver::open(const std::string& library) {
  // Never closed: the driver starts threads and registers exit handlers of its own.
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw DeviceError(fmt::format("no CUDA driver: {}", ::dlerror()));
  const std::shared_ptr<Driver> driver(new Driver);
#define KILN_CU(member, symbol, ...) resolve(handle, library, driver->member);
#include "runtime/cuda/driver.def"
  driver->call(
      driver->init, [&] { return "initialising " + library; }, 0u);
  driver->call(
      driver->driver_version, [&] { return "asking the version of " + library; }, &driver->version_);
  if (driver->version_ < kOldestVersion)
    throw DeviceError(fmt::format("CUDA driver too old: it runs CUDA {}.{}, Kiln needs {}.0", driver->version_ / 1000,
                                  driver->version_ % 1000 / 10, kOldestVersion / 1000));
  return driver;
}

std::shared_ptr<const Driver> Driver::process() {
  struct Opened {
    std::shared_ptr<const Driver> driver;
    std::optional<DeviceError> error;
  };
  static const auto& opened = *new Opened([] {
    try {
      return Opened{open("libcuda.so.1"), std::nullopt};
    } catch (const DeviceError& e) {
      return Opened{nullptr, e};
    }
  }());
  if (opened.error) throw DeviceError(*opened.error);
  return opened.driver;
}

void Driver::fail(const char* symbol, Result code, const std::string& what) const {
  throw DeviceError(fmt::format("{}: {}: {}", symbol, describe(code), what), code);
}

std::string Driver::describe(Result code) const {
  const char *label = nullptr, *text = nullptr;
  if (error_name(code, &label) != kSuccess || !label) label = "unknown error";
  if (error_string(code, &text) != kSuccess || !text) text = "no description";
  return fmt::format("{} ({}, {})", label, code, text);
}

}  // namespace kiln::cu
