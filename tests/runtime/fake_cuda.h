// Control block of the fake libcuda that the tests load in place of the driver (fake_cuda.cpp). It keeps "device"
// memory on the host, runs nothing, records what it was given, and fails where it is told to.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct FakeCuda {
  // What the driver is.
  int version = 12040;
  int devices = 2;
  int major = 9, minor = 0;
  std::size_t memory_bytes = 1 << 20;  ///< of each device; pools keep freed memory until they are trimmed
  bool pools = true;
  bool linker_refuses = false;  ///< cuLink* fails for any PTX
  bool cubin_refused = false;   ///< cuModuleLoadDataEx takes PTX only
  std::vector<std::array<unsigned, 2>> params;  ///< offset and bytes of each parameter of kernels that get them one by one
  std::vector<std::string> spilling;  ///< a module that contains one of these spills 200 bytes a thread, others 16

  // Where it fails: the next call of this name returns this code, once.
  const char* fail_call = "";
  int fail_code = 0;
  int async_error = 0;  ///< returned by the next synchronisation, once

  // What it saw.
  std::uint64_t call_count = 0;
  std::array<const char*, 64> calls{};  ///< the last ones; call i is at i % 64
  int contexts_retained = 0;
  int modules = 0, streams = 0, graphs = 0;
  std::size_t memory_used = 0;
  int shared_carveout = -1;  ///< percent that the last kernel asked for

  struct Launch {
    unsigned grid[3], block[3], shared_bytes;
    void* stream;
    std::size_t param_bytes;
    std::array<unsigned char, 4096> params;
    bool one_by_one;  ///< a pointer for each parameter, not a packed buffer
    unsigned attributes;
    int attribute_ids[2];
    unsigned cluster[3];
    bool extended;
    std::uint64_t count;  ///< launches so far
  } last{};

  /// True if `name` is among the last 64 calls since `from` (a former call_count).
  bool called(const std::string& name, std::uint64_t from) const {
    for (std::uint64_t i = from; i < call_count; ++i)
      if (name == calls[i % calls.size()]) return true;
    return false;
  }
};

extern "C" FakeCuda* fake_cuda();
