// One-line programs: a lambda over (Out<float> o, Int n), run on every device, its first outputs compared.
#pragma once
#include <algorithm>

#include "dsl/kiln.h"
#include "tests/support/devices.h"

namespace kiln::test {

/// Runs kernel `f`(o, n) with one program and expects o to begin with `want`; elements it does not write are -1.
template <class F>
void expect_output(std::vector<float> want, std::int64_t n, F f) {
  auto k = kernel("program", f);
  on_each_device([&](const Device& d) {
    Buffer<float> o = buffer_of(d, std::vector<float>(std::max<std::size_t>(want.size(), 16), -1.f));
    const Stream s(d);
    k.launch(s, 1, o, n);
    s.synchronize();
    std::vector<float> got = o.to_vector();
    got.resize(want.size());
    EXPECT_EQ(got, want);
  });
}

}  // namespace kiln::test
