#include "runtime/profile/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::rt {

std::string grouped(std::uint64_t n) {
  if (n == 0) return {};
  std::string out = std::to_string(n);
  for (std::size_t at = out.size(); at > 3;) out.insert(at -= 3, " ");
  return out;
}

std::string percent(double ratio, bool any) { return any ? fmt::format("{:.0f} %", 100 * ratio) : std::string(); }

std::string triple(const std::array<std::uint32_t, 3>& v) { return fmt::format("({}, {}, {})", v[0], v[1], v[2]); }

std::string byte_text(std::uint64_t n) {
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  double v = static_cast<double>(n);
  std::size_t unit = 0;
  for (; v >= 1024 && unit + 1 < kUnits.size(); ++unit) v /= 1024;
  return unit == 0 ? fmt::format("{} bytes", n) : fmt::format("{:.4g} {}", v, kUnits[unit]);
}

std::vector<std::pair<std::string, std::uint64_t>> sorted_mix(const InstMix& mix) {
  std::vector<std::pair<std::string, std::uint64_t>> out;
  for (std::size_t i = 0; i < kInstClasses; ++i)
    if (mix[i]) out.emplace_back(kInstClassNames[i], mix[i]);
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

namespace {

std::string global_text(std::uint64_t bytes, std::uint64_t requests, std::uint64_t sectors, std::uint64_t footprint,
                        double coalescing) {
  return fmt::format("{} asked for in {} requests, {} moved in sectors ({} used), {} distinct", byte_text(bytes),
                     grouped(requests), byte_text(32 * sectors), percent(coalescing), byte_text(footprint));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> kernel_facts(const Profile::Kernel& k) {
  const Counters& c = k.counters;
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&](const char* name, bool any, const std::string& text) {
    if (any) out.emplace_back(name, text);
  };
  const bool clusters = k.cluster != std::array<std::uint32_t, 3>{1, 1, 1};
  add("launches", true,
      fmt::format("{}, grid {}, {} threads{}{}", c.launches, triple(k.grid),
                  k.block[1] * k.block[2] == 1 ? std::to_string(k.block[0]) : triple(k.block),
                  clusters ? ", clusters of " + triple(k.cluster) : "",
                  k.shared_bytes ? ", " + byte_text(k.shared_bytes) + " shared" : ""));
  add("instructions", c.instructions,
      fmt::format("{} of warps, {:.1f} lanes active and {:.1f} executing on average", grouped(c.instructions),
                  average_active_lanes(c), average_executing_lanes(c)));
  add("divergence", c.divergent_branches, fmt::format("{} branches part a warp", grouped(c.divergent_branches)));
  add("global read", c.global_requests_read,
      global_text(c.global_bytes_read, c.global_requests_read, c.global_sectors_read, c.global_footprint_read,
                  coalescing_read(c)));
  add("global written", c.global_requests_written,
      global_text(c.global_bytes_written, c.global_requests_written, c.global_sectors_written,
                  c.global_footprint_written, coalescing_written(c)));
  add("uncoalesced", c.global_sectors_excess,
      fmt::format("{} sectors more than the bytes need", grouped(c.global_sectors_excess)));
  add("shared", c.shared_accesses,
      fmt::format("{} accesses, {} wavefronts, {} of them bank conflicts", grouped(c.shared_accesses),
                  grouped(c.shared_wavefronts), c.bank_conflicts ? grouped(c.bank_conflicts) : "none"));
  add("local", c.local_bytes, byte_text(c.local_bytes));
  add("barriers", c.barriers, grouped(c.barriers));
  add("async copies", c.async_copies,
      fmt::format("{} of {} in all", grouped(c.async_copies), byte_text(c.async_bytes)));
  for (const auto& [type, n] : k.flop) add("matrix", true, fmt::format("{} operations on {}", grouped(n), type));
  return out;
}

}  // namespace kiln::rt
