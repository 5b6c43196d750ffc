// What the launches of a device did, kept by kernel.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "runtime/profile.h"
#include "runtime/sim/tally.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

/// Counts of every instruction of each kernel.
class Details {
 public:
  void add(const Launch&, const Tally&);
  void clear() { kernels_.clear(); }
  Profile profile(const std::string& device) const;

 private:
  struct Record {
    std::shared_ptr<const Program> program;
    std::array<std::uint32_t, 3> grid{}, block{}, cluster{};
    std::uint32_t shared_bytes = 0;
    Counters total;                ///< launches and footprint, which belong to no instruction
    std::vector<Counters> counts;  ///< by index in the program's infos
  };
  Record& record(const Program&);
  std::vector<Record> kernels_;
};

/// Totals are always kept, details of instructions where they were asked for. Safe to use from several threads.
class ProfileStore {
 public:
  ProfileStore();
  void add(const Launch&, const Tally&);
  /// Forgets all; but not for the file that KILN_SIM_PROFILE names.
  void reset();
  void keep_details(bool on);

  Counters counters() const;
  std::vector<KernelCounters> kernel_counters() const;
  Profile profile(const std::string& device) const;
  /// Of all launches, whatever was reset.
  Profile profile_for_file(const std::string& device) const;

 private:
  struct Total {
    std::string kernel;
    Counters counters;
    std::map<std::string, std::uint64_t> conflicts;  ///< by place
  };
  Total& total(const std::string& kernel);

  mutable std::mutex mutex_;  ///< guards the members below
  Counters counters_;
  std::vector<Total> kernels_;  ///< in order of first launch
  bool detailed_ = false;
  const bool for_file_;  ///< KILN_SIM_PROFILE is set
  Details details_, file_details_;
};

}  // namespace kiln::rt::sim
