// The devices that tests of values run on: one body, every oracle.
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "dsl/jit.h"
#include "runtime/device.h"

namespace kiln::test {

/// The interpreter, the simulator, and each GPU kind found; opened once.
inline const std::vector<Device>& devices() {
  static const std::vector<Device> all = [] {
    std::vector<Device> v = Device::all();
    v.insert(v.begin(), interpreter());
    return v;
  }();
  return all;
}

/// Runs `body(device)` on each, and says in failures which one it was.
template <class F>
void on_each_device(F&& body) {
  for (const Device& d : devices()) {
    SCOPED_TRACE(d.name() + " " + d.target());
    body(d);
  }
}

template <Element T>
Buffer<T> buffer_of(const Device& d, const std::vector<T>& values) {
  Buffer<T> b(d, values.size());
  b.upload(values);
  return b;
}

}  // namespace kiln::test
