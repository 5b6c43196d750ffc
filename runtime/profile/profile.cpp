#include "runtime/profile.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace kiln {
namespace {

constexpr double kSectorBytes = 32;

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }
double number(std::uint64_t n) { return static_cast<double>(n); }

}  // namespace

double coalescing_read(const Counters& c) {
  return ratio(number(c.global_bytes_read), kSectorBytes * number(c.global_sectors_read));
}
double coalescing_written(const Counters& c) {
  return ratio(number(c.global_bytes_written), kSectorBytes * number(c.global_sectors_written));
}
double average_active_lanes(const Counters& c) { return ratio(number(c.active_lanes), number(c.instructions)); }
double average_executing_lanes(const Counters& c) { return ratio(number(c.executing_lanes), number(c.instructions)); }

void write_profile(const Profile& profile, const std::filesystem::path& path) {
  const std::string kind = path.extension().string();
  if (kind == ".json") return rt::write_whole(path, to_json(profile));
  if (kind == ".html") return rt::write_whole(path, to_html(profile));
  if (kind == ".txt") return rt::write_whole(path, to_table(profile));
  throw UserError(fmt::format("{}: a profile's name must end in .json, .html or .txt, not '{}'", path.string(), kind));
}

}  // namespace kiln
