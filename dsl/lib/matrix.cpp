#include "dsl/lib/matrix.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace kiln::lib {

void check_sizes(const char* function, SourceLoc at, const char* name, std::span<const std::int64_t> sizes) {
  if (std::all_of(sizes.begin(), sizes.end(), [](std::int64_t n) { return n >= 0; })) return;
  throw UserError(at, fmt::format("{}: {} is {}, must have no negative size", function, name, fmt::join(sizes, "x")));
}

bool check_rows(const char* function, SourceLoc at, std::initializer_list<Named> arrays) {
  const Named& first = *arrays.begin();
  bool dense = true;
  for (const Named& a : arrays) {
    check_sizes(function, at, a.name, a.size);
    if (a.size != first.size)
      throw UserError(at, fmt::format("{}: {} is {}x{}, but {} is {}x{}: they must have one shape", function, a.name,
                                      a.size[0], a.size[1], first.name, first.size[0], first.size[1]));
    if (a.stride[1] != 1 && a.size[1] > 1)
      throw UserError(
          at, fmt::format("{}: the elements of a row of {} are {} apart, must be 1", function, a.name, a.stride[1]));
    dense = dense && a.stride[0] == a.size[1];
  }
  return dense;
}

void check_vector(const char* function, SourceLoc at, const char* name, std::int64_t size, std::int64_t stride,
                  std::int64_t extent) {
  check_sizes(function, at, name, {&size, 1});
  if (size != extent)
    throw UserError(at, fmt::format("{}: {} has {} elements, must have {}", function, name, size, extent));
  if (stride != 1 && size > 1)
    throw UserError(at, fmt::format("{}: the elements of {} are {} apart, must be 1", function, name, stride));
}

}  // namespace kiln::lib
