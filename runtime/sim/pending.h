// Asynchronous operations under way: issued, and carried out as late as the program allows.
#pragma once
#include <array>
#include <cstdint>

#include <memory>
#include <utility>
#include <vector>

#include "runtime/sim/order.h"

namespace kiln::rt::sim {

/// All of an operation's reads and writes happen in run().
class Operation {
 public:
  explicit Operation(Agent a) : agent(std::move(a)) {}
  virtual ~Operation() = default;
  virtual void run() = 0;
  Agent agent;
};

/// What a thread commits operations to and waits for: cp.async.wait_group, cp.async.bulk.wait_group, wgmma.wait_group.
enum class GroupKind : std::uint8_t { CpAsync, Bulk, Wgmma };
constexpr std::size_t kGroupKinds = 3;

/// The operations of one kind of a warp, by thread and group.
class Groups {
 public:
  void add(std::unique_ptr<Operation>);
  void commit(std::uint32_t lanes);
  /// Carries out the operations of `lanes` in the order of issue, but for those of each lane's last `left` committed
  /// groups and those not committed; what they did is known to the warp afterwards.
  void wait(Warp&, std::uint32_t lanes, std::uint32_t left);
  bool empty() const { return operations_.empty(); }
  void clear();

 private:
  struct Entry {
    std::unique_ptr<Operation> operation;
    std::uint32_t group;  ///< of its lane, counted from 0
  };
  std::vector<Entry> operations_;
  std::array<std::uint32_t, 32> committed_{};
};

}  // namespace kiln::rt::sim
