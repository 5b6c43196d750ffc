// `kiln bench --serve`: answers one case a line, so that a script alternates Kiln with its peers on one GPU.
#pragma once
#include <iosfwd>

#include "runtime/device.h"

namespace kiln::bench {

/// Reads lines {"case":"add_relu","shape":[100],"dtype":"f32"} until the end of `in` and answers each with one line: a
/// figure, or {"error":"…"} for a line that cannot be read or measured. The buffers and the graph of a case stay until
/// another case is asked for; what this library compiled stays.
void serve(const Device& device, std::istream& in, std::ostream& out);

}  // namespace kiln::bench
