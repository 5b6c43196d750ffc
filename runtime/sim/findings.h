// Findings of one launch that do not end it: each pair of instructions once, in an order that no number of host threads
// changes.
#pragma once
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "runtime/finding.h"
#include "runtime/sim/shadow.h"

namespace kiln::rt::sim {

class DebugHook;
struct Launch;
struct Fault;

/// Bytes of global memory, by their shadow.
struct ShadowRange {
  Shadow* shadow = nullptr;
  std::uint64_t at = 0;
  std::uint32_t bytes = 0;
  std::uint64_t base = 0;  ///< address of the shadow's first byte
};

/// Those of one host thread, which runs clusters in ascending order.
class Findings {
 public:
  /// … which tells a debugger of each.
  explicit Findings(DebugHook* debug = nullptr) : debug_(debug) {}

  /// Kind, instruction, the other access' instruction.
  using Key = std::tuple<FindingKind, std::uint32_t, std::uint32_t>;

  /// Whether a finding of this key is still of interest.
  bool wants(const Key&) const;
  /// `range`: where other clusters' accesses, which nothing orders, decide whether it stands; none: it does.
  void add(const Key&, std::uint32_t cluster, Finding, const ShadowRange& range);
  /// Accesses of several clusters race here.
  void cross(const ShadowRange& r) { crossings_.push_back(r); }

  /// What all threads found, by cluster; the fault, which ended the launch, is the last.
  static std::vector<Finding> conclude(const Launch&, std::vector<Findings>&, const Fault*);

 private:
  struct Candidate {
    std::uint32_t cluster;
    std::uint64_t number;  ///< in the order of this thread
    Finding finding;
    ShadowRange range;
  };
  using Found = std::map<Key, std::vector<Candidate>>;
  /// Adds what stands to `into`, of each key the first.
  void keep(const Launch&, const Fault*, Found& into);
  /// Adds the verdicts on the cells of a range.
  static void cross(const Launch&, const ShadowRange&, Found&);
  static void append(Found&, std::vector<Finding>& to);
  static bool stands(const Launch&, const Candidate&);

  DebugHook* debug_;
  Found found_;
  std::vector<ShadowRange> crossings_;
  std::uint64_t count_ = 0;
};

}  // namespace kiln::rt::sim
