// The CUDA driver without a toolkit: own declarations of the few functions, structures and constants in use, and the
// table of their addresses in libcuda.so.1. tests/runtime/cuda_abi_test.cpp compares all of it with <cuda.h>.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace kiln::cu {

using Result = int;
using DeviceId = int;
using DevicePtr = unsigned long long;
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Graph = struct GraphTag*;
using GraphNode = struct GraphNodeTag*;
using GraphExec = struct GraphExecTag*;
using MemPool = struct MemPoolTag*;
using LinkState = struct LinkStateTag*;

struct Dim3 {
  unsigned x, y, z;
};
union LaunchAttributeValue {
  char pad[64];
  Dim3 cluster;
  int programmatic_serialization;
};
struct LaunchAttribute {
  int id;
  char pad[4];
  LaunchAttributeValue value;
};
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
struct MemLocation {
  int type, id;
};
struct MemPoolProps {
  int allocation_type, handle_types;
  MemLocation location;
  void* security;
  std::size_t max_bytes;
  unsigned short usage;
  unsigned char reserved[54];
};

// Results that Kiln tells apart.
inline constexpr Result kSuccess = 0, kOutOfMemory = 2, kCaptureImplicit = 906;
// Device attributes.
inline constexpr int kMultiprocessorCount = 16, kComputeMajor = 75, kComputeMinor = 76, kSharedBytesPerSm = 81,
                     kMaxSharedBytesOptin = 97, kReservedSharedBytes = 111, kMemoryPoolsSupported = 115;
// Function attributes.
inline constexpr int kMaxThreads = 0, kStaticSharedBytes = 1, kLocalBytes = 3, kRegisters = 4, kMaxDynamicSharedBytes = 8,
                     kSharedCarveout = 9, kNonPortableCluster = 14;
// Launch attributes, and the words that introduce a packed parameter buffer.
inline constexpr int kAttributeCluster = 4, kAttributeProgrammaticSerialization = 6;
inline constexpr std::uintptr_t kParamEnd = 0, kParamBuffer = 1, kParamBytes = 2;
// Assembler options and input kinds.
inline constexpr int kJitInfoLog = 3, kJitInfoLogBytes = 4, kJitErrorLog = 5, kJitErrorLogBytes = 6;
inline constexpr int kJitInputPtx = 1;
// Pointer attributes and memory types.
inline constexpr int kPointerMemoryType = 2, kPointerIsManaged = 8, kPointerOrdinal = 9, kPointerRangeStart = 11,
                     kPointerRangeBytes = 12;
inline constexpr unsigned kMemoryHost = 1;
// Streams, capture, graphs, pools.
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kCaptureThreadLocal = 1, kCaptureRelaxed = 2, kCaptureNone = 0, kGraphNodeKernel = 0;
inline constexpr int kAllocationPinned = 1, kLocationDevice = 1, kPoolReleaseThreshold = 4;

/// One function of the driver: its exported name and its address.
template <class... Params>
struct Entry {
  const char* symbol;
  Result (*function)(Params...) = nullptr;
  Result operator()(Params... params) const { return function(params...); }
};

/// The driver's functions, loaded and initialised (cuInit).
class Driver {
 public:
  /// Opens `library`, resolves every row of driver.def and initialises it. Throws DeviceError that says what is
  /// missing: the library, a function, a newer version, or what cuInit reports.
  static std::shared_ptr<const Driver> open(const std::string& library);
  /// libcuda.so.1, opened once per process; throws the same error at every call where that failed.
  static std::shared_ptr<const Driver> process();

  /// Calls `entry`. Throws DeviceError "<symbol>: <code name> (<code>, <text>): <what()>" when it fails; `what` names
  /// the object of the call and is only asked then.
  template <class... Params, class What, class... Args>
  void call(const Entry<Params...>& entry, What&& what, Args&&... args) const {
    const Result r = entry(std::forward<Args>(args)...);
    if (r != kSuccess) [[unlikely]]
      fail(entry.symbol, r, what());
  }
  [[noreturn]] void fail(const char* symbol, Result code, const std::string& what) const;
  /// "CUDA_ERROR_INVALID_VALUE (1, invalid argument)".
  std::string describe(Result code) const;

  /// Newest CUDA version this driver runs, as 1000·major + 10·minor; at least kOldestVersion.
  int version() const { return version_; }
  static constexpr int kOldestVersion = 12000;

#define KILN_CU(member, symbol, ...) Entry<__VA_ARGS__> member{#symbol};
#include "runtime/cuda/driver.def"

 private:
  Driver() = default;
  int version_ = 0;
};

}  // namespace kiln::cu
