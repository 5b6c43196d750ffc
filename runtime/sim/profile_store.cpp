#include "runtime/sim/profile_store.h"

#include <algorithm>
#include <tuple>

#include "runtime/base/env.h"
#include "runtime/sim/report.h"

namespace kiln::rt::sim {
namespace {

Counters of_launch(const Tally& t) {
  Counters c;
  c.launches = 1;
  c.global_footprint_read = t.footprint.bytes_read();
  c.global_footprint_written = t.footprint.bytes_written();
  return c;
}

void count_class(InstMix& to, InstClass kind, std::uint64_t n) { to[static_cast<std::size_t>(kind)] += n; }

/// Adds an instruction to the line's, or to what the same PTX gave where its function was expanded before.
void add_instruction(Profile::Line& line, const InstInfo& info, const Counters& c) {
  if (!info.implicit) count_class(line.mix, info.kind, c.instructions);
  sim::add(line.counters, c);
  const auto at = std::lower_bound(
      line.instructions.begin(), line.instructions.end(), info, [](const Profile::Instruction& i, const InstInfo& n) {
        return std::tuple(i.ptx_line, std::string_view(i.text)) < std::tuple(n.line, n.text);
      });
  if (at != line.instructions.end() && at->ptx_line == info.line && at->text == info.text) {
    sim::add(at->counters, c);
  } else if (!info.implicit) {
    line.instructions.insert(at, {info.line, std::string(info.text), info.kind, c});
  }
}

}  // namespace

// --- details ---

Details::Record& Details::record(const Program& p) {
  for (Record& r : kernels_)
    if (r.program->kernel == p.kernel && r.program->module->text == p.module->text) return r;
  Record r;
  r.program = p.shared_from_this();
  r.counts.resize(p.infos.size());
  return kernels_.emplace_back(std::move(r));
}

void Details::add(const Launch& launch, const Tally& tally) {
  Record& r = record(launch.program);
  r.grid = launch.grid, r.block = launch.block, r.cluster = launch.cluster;
  r.shared_bytes = launch.program.shared_bytes + launch.dynamic_smem;
  sim::add(r.total, of_launch(tally));
  for (std::uint32_t i = 0; i < r.counts.size(); ++i) sim::add(r.counts[i], tally.of(launch.program, i));
}

Profile Details::profile(const std::string& device) const {
  Profile out;
  for (const Record& r : kernels_) {
    const Program& p = *r.program;
    Profile::Kernel k;
    k.name = p.kernel, k.device = device, k.ptx = p.module->text;
    k.grid = r.grid, k.block = r.block, k.cluster = r.cluster, k.shared_bytes = r.shared_bytes;
    k.counters = r.total;
    std::map<std::pair<std::string, std::uint32_t>, Profile::Line> lines;
    for (std::uint32_t i = 0; i < r.counts.size(); ++i) {
      const InstInfo& info = p.infos[i];
      const auto file = p.module->files.find(info.loc.file);
      const bool placed = info.loc.line != 0 && file != p.module->files.end();
      Profile::Line& line = lines[placed ? std::pair(file->second, info.loc.line) : std::pair(std::string(), 0u)];
      add_instruction(line, info, r.counts[i]);
      sim::add(k.counters, r.counts[i]);
      if (!info.implicit) count_class(k.mix, info.kind, r.counts[i].instructions);
      if (r.counts[i].matrix_flop) k.flop[std::string(name(info.multiplied))] += r.counts[i].matrix_flop;
    }
    for (auto& [place, line] : lines) {
      if (line.instructions.empty()) continue;
      std::tie(line.file, line.line) = place;
      k.lines.push_back(std::move(line));
    }
    out.kernels.push_back(std::move(k));
  }
  return out;
}

// --- store ---

ProfileStore::ProfileStore() : for_file_(!env::KILN_SIM_PROFILE().empty()) {}

ProfileStore::Total& ProfileStore::total(const std::string& kernel) {
  for (Total& t : kernels_)
    if (t.kernel == kernel) return t;
  return kernels_.emplace_back(Total{kernel, {}, {}});
}

void ProfileStore::add(const Launch& launch, const Tally& tally) {
  const Program& p = launch.program;
  const std::scoped_lock lock(mutex_);
  Total& t = total(p.kernel);
  Counters c = of_launch(tally);
  for (std::uint32_t i = 0; i < p.infos.size(); ++i) {
    sim::add(c, tally.of(p, i));
    if (const std::uint64_t n = tally.counts[i].bank_conflicts) t.conflicts[full_place(p, p.infos[i])] += n;
  }
  sim::add(counters_, c);
  sim::add(t.counters, c);
  if (detailed_) details_.add(launch, tally);
  if (for_file_) file_details_.add(launch, tally);
}

void ProfileStore::reset() {
  const std::scoped_lock lock(mutex_);
  counters_ = {};
  kernels_.clear();
  details_.clear();
}

void ProfileStore::keep_details(bool on) {
  const std::scoped_lock lock(mutex_);
  detailed_ = on;
  if (!on) details_.clear();
}

Counters ProfileStore::counters() const {
  const std::scoped_lock lock(mutex_);
  return counters_;
}

std::vector<KernelCounters> ProfileStore::kernel_counters() const {
  const std::scoped_lock lock(mutex_);
  std::vector<KernelCounters> out;
  for (const Total& t : kernels_) {
    KernelCounters k{t.kernel, t.counters, {}};
    for (const auto& [where, n] : t.conflicts) k.conflicts.push_back({where, n});
    std::stable_sort(k.conflicts.begin(), k.conflicts.end(),
                     [](const auto& a, const auto& b) { return a.wavefronts > b.wavefronts; });
    out.push_back(std::move(k));
  }
  return out;
}

Profile ProfileStore::profile(const std::string& device) const {
  const std::scoped_lock lock(mutex_);
  return details_.profile(device);
}
Profile ProfileStore::profile_for_file(const std::string& device) const {
  const std::scoped_lock lock(mutex_);
  return file_details_.profile(device);
}

}  // namespace kiln::rt::sim
