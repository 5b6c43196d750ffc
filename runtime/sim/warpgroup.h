// Warpgroup: four warps that execute the instructions of a warpgroup alike, each when it gets there.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace kiln::rt::sim {

struct Inst;
struct Warp;

constexpr std::uint32_t kWarpgroup = 4;  ///< warps

/// What the warps of one have executed: wgmma and its fences, commits and waits, setmaxnreg.
class Warpgroup {
 public:
  /// One of those, and the operands that must be the same in all warps.
  struct Step {
    const Inst* inst = nullptr;
    std::uint64_t a = 0, b = 0;
    bool operator==(const Step&) const = default;
  };
  void start();
  /// The warp executes this. Throws Fault if another warp of the group did something else in its place, or has exited
  /// without it.
  void step(const Warp&, const Step&);
  /// The warp has exited. Throws Fault if another one has executed more.
  void exits(const Warp&, const Inst&) const;

 private:
  std::uint32_t farthest() const;
  std::vector<Step> steps_;                         ///< that not all warps have executed
  std::uint32_t first_ = 0;                        ///< number of the first of them
  std::array<std::uint32_t, kWarpgroup> taken_{};  ///< by each warp
};

}  // namespace kiln::rt::sim
