// Journal: what the agents of a launch's clusters told one another through memory, where clusters run one at a time.
//
// A Clock holds how far the agents of its own cluster had come. What it knows of other clusters is an entry here: what
// another cluster's agent knew when it released, or the sum of two entries. Entries never change, so a clock keeps a
// number.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace kiln::rt::sim {

/// What one heard through memory; each is an entry of the journal, 0 tells nothing.
struct Told {
  std::uint32_t known = 0;      ///< happened before
  std::uint32_t published = 0;  ///< what fence.sc of other clusters that happened before knew
  std::uint32_t observed = 0;   ///< what the next fence.sc takes to have happened before it
  bool empty() const { return (known | published | observed) == 0; }
};

class Journal {
 public:
  /// By component of one cluster: its time, then again for all: the time up to which it is fenced.
  using Times = std::vector<std::uint32_t>;

  /// An agent of `cluster` that had `known`, and of other clusters `before`, released.
  std::uint32_t add(std::uint32_t cluster, std::shared_ptr<const Times> known, std::uint32_t before);
  /// All that either tells; 0 tells nothing.
  std::uint32_t join(std::uint32_t a, std::uint32_t b);
  void join(Told& to, const Told& from);
  /// Whether the entry tells of `cluster` that its component had come to `time`.
  bool knows(std::uint32_t entry, std::uint32_t cluster, std::uint32_t component, std::uint32_t time);

  std::unordered_map<std::uint64_t, Told> variables;        ///< in global memory: what was released there
  std::unordered_map<std::uint64_t, std::uint32_t> fences;  ///< … and what fence.sc before strong writes there knew

 private:
  struct Entry {
    std::uint32_t cluster = 0;
    std::uint32_t first = 0, second = 0;
    std::shared_ptr<const Times> known;  ///< null: only the sum of the two
  };
  /// Warps that meet at a barrier or spin on several variables hear the same again and again: so many sums are looked
  /// through for it.
  static constexpr std::uint32_t kSums = 64;
  bool sums(std::uint32_t all, std::uint32_t part) const;

  struct Found {
    Times known;            ///< the latest of what was found so far
    bool complete = false;  ///< nothing else is there
  };
  std::vector<Entry> entries_ = std::vector<Entry>(1);
  std::unordered_map<std::uint64_t, Found> found_;  ///< by entry and cluster
  std::vector<std::uint32_t> visited_, queue_;
  std::uint32_t visit_ = 0;
};

}  // namespace kiln::rt::sim
