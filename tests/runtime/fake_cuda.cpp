// A libcuda.so of the tests' own: every function of driver.def, with the rules that Kiln's code leans on (a context
// must be current, captured streams must not be waited for, unsafe calls spoil a capture of their thread, pools keep
// memory).
#include "tests/runtime/fake_cuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

using namespace kiln::cu;

// The definitions below must agree with the table: a different parameter list does not compile.
#define KILN_CU(member, symbol, ...) extern "C" Result symbol(__VA_ARGS__);
#include "runtime/cuda/driver.def"

namespace kiln::cu {
struct ContextTag {
  int ordinal;
};
struct ModuleTag {
  std::string data;
};
struct FunctionTag {
  ModuleTag* module;
};
struct GraphNodeTag {
  int type;
};
struct GraphTag {
  std::vector<GraphNodeTag> nodes;
};
struct GraphExecTag {
  std::size_t kernels;
};
struct StreamTag {
  ContextTag* context;
  GraphTag* capture = nullptr;
  int mode = 0;
  bool invalid = false;
};
struct EventTag {
  std::uint64_t at;
};
struct MemPoolTag {
  std::size_t kept = 0;
};
struct LinkStateTag {
  std::string ptx, cubin;
  char* error_log;
};
}  // namespace kiln::cu

namespace {

constexpr Result kInvalidValue = 1, kNotInitialized = 3, kInvalidContext = 201, kNoBinary = 209, kInvalidPtx = 218,
                 kNotFound = 500, kCaptureUnsupported = 900, kCaptureInvalidated = 901;

FakeCuda control;
ContextTag contexts[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
thread_local ContextTag* current = nullptr;
thread_local int thread_mode = 0;  // capture mode of this thread: relaxed allows unsafe calls
thread_local StreamTag* capturing = nullptr;

struct Block {
  int ordinal;
  std::size_t bytes;
  MemPoolTag* pool;
};
std::map<DevicePtr, Block>& blocks() {
  static auto& map = *new std::map<DevicePtr, Block>;
  return map;
}

Result enter(const char* name) {
  control.calls[control.call_count++ % control.calls.size()] = name;
  if (std::strcmp(control.fail_call, name) != 0) return kSuccess;
  control.fail_call = "";
  return control.fail_code;
}

/// A call that needs a current context.
Result enter_in_context(const char* name) {
  const Result r = enter(name);
  return r != kSuccess ? r : current ? kSuccess : kInvalidContext;
}

/// A call that is forbidden while this thread captures a stream.
Result enter_unsafe(const char* name) {
  const Result r = enter_in_context(name);
  if (r != kSuccess) return r;
  if (!capturing || thread_mode == kCaptureRelaxed) return kSuccess;
  capturing->invalid = true;
  return kCaptureUnsupported;
}

Result pending() { return std::exchange(control.async_error, kSuccess); }

/// The assembler of the fake: PTX with the word BAD is refused, with a log.
Result assemble(const char* ptx, char* log) {
  if (!std::strstr(ptx, "BAD")) return kSuccess;
  if (log) std::strcpy(log, "ptxas application ptx input, line 3; fatal: Parsing error near 'BAD'");
  return kInvalidPtx;
}

char* option(unsigned n, const int* options, void** values, int which) {
  for (unsigned i = 0; i < n; ++i)
    if (options[i] == which) return static_cast<char*>(values[i]);
  return nullptr;
}

Result allocate(DevicePtr* p, std::size_t bytes, MemPoolTag* pool) {
  if (bytes == 0) return kInvalidValue;
  if (pool && pool->kept >= bytes) {
    pool->kept -= bytes;
    control.memory_used -= bytes;
  }
  if (control.memory_used + bytes > control.memory_bytes) return kOutOfMemory;
  control.memory_used += bytes;
  *p = reinterpret_cast<DevicePtr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  blocks()[*p] = {current->ordinal, bytes, pool};
  return kSuccess;
}

Result release(DevicePtr p) {
  const auto it = blocks().find(p);
  if (it == blocks().end()) return kInvalidValue;
  if (it->second.pool) it->second.pool->kept += it->second.bytes;  // still used, as far as the device is concerned
  else control.memory_used -= it->second.bytes;
  std::free(reinterpret_cast<void*>(p));
  blocks().erase(it);
  return kSuccess;
}

Result launch(const LaunchConfig& c, Function f, void** params, void** extra, bool extended) {
  if ((params && (extra || control.params.empty())) || !f) return kInvalidValue;
  if (c.stream && c.stream->context != current) return kInvalidContext;
  FakeCuda::Launch& l = control.last;
  const unsigned grid[] = {c.grid_x, c.grid_y, c.grid_z}, block[] = {c.block_x, c.block_y, c.block_z};
  std::memcpy(l.grid, grid, sizeof grid);
  std::memcpy(l.block, block, sizeof block);
  l.shared_bytes = c.shared_bytes;
  l.stream = c.stream;
  l.param_bytes = 0;
  const void* from = nullptr;
  for (void** e = extra; e && *e != reinterpret_cast<void*>(kParamEnd); e += 2) {
    if (*e == reinterpret_cast<void*>(kParamBuffer)) from = e[1];
    if (*e == reinterpret_cast<void*>(kParamBytes)) l.param_bytes = *static_cast<std::size_t*>(e[1]);
  }
  if (from) std::memcpy(l.params.data(), from, l.param_bytes);
  l.one_by_one = params != nullptr;
  for (std::size_t i = 0; params && i < control.params.size(); ++i) {
    const auto [offset, bytes] = control.params[i];
    std::memcpy(l.params.data() + offset, params[i], bytes);
    l.param_bytes = offset + bytes;
  }
  l.attributes = extended ? c.attribute_count : 0;
  for (unsigned i = 0; i < l.attributes; ++i) {
    l.attribute_ids[i] = c.attributes[i].id;
    if (c.attributes[i].id == kAttributeCluster)
      std::memcpy(l.cluster, &c.attributes[i].value.cluster, sizeof l.cluster);
  }
  l.extended = extended;
  ++l.count;
  if (c.stream && c.stream->capture) c.stream->capture->nodes.push_back({kGraphNodeKernel});
  return kSuccess;
}

}  // namespace

FakeCuda* fake_cuda() { return &control; }

#define ENTER(name) \
  if (const Result r = enter(#name); r != kSuccess) return r
#define ENTER_IN_CONTEXT(name) \
  if (const Result r = enter_in_context(#name); r != kSuccess) return r
#define ENTER_UNSAFE(name) \
  if (const Result r = enter_unsafe(#name); r != kSuccess) return r

Result cuInit(unsigned) {
  ENTER(cuInit);
  return control.devices > 0 ? kSuccess : 100;
}
Result cuDriverGetVersion(int* v) {
  ENTER(cuDriverGetVersion);
  *v = control.version;
  return kSuccess;
}
Result cuGetErrorName(Result r, const char** s) {
  switch (r) {
    case kInvalidValue: *s = "CUDA_ERROR_INVALID_VALUE"; return kSuccess;
    case kOutOfMemory: *s = "CUDA_ERROR_OUT_OF_MEMORY"; return kSuccess;
    case 100: *s = "CUDA_ERROR_NO_DEVICE"; return kSuccess;
    case kInvalidContext: *s = "CUDA_ERROR_INVALID_CONTEXT"; return kSuccess;
    case kNoBinary: *s = "CUDA_ERROR_NO_BINARY_FOR_GPU"; return kSuccess;
    case kInvalidPtx: *s = "CUDA_ERROR_INVALID_PTX"; return kSuccess;
    case 700: *s = "CUDA_ERROR_ILLEGAL_ADDRESS"; return kSuccess;
    default: *s = nullptr; return kInvalidValue;
  }
}
Result cuGetErrorString(Result r, const char** s) {
  *s = r == 700 ? "an illegal memory access was encountered" : "text of the driver";
  return kSuccess;
}

Result cuDeviceGetCount(int* n) {
  ENTER(cuDeviceGetCount);
  *n = control.devices;
  return kSuccess;
}
Result cuDeviceGet(DeviceId* d, int ordinal) {
  ENTER(cuDeviceGet);
  *d = ordinal;
  return kSuccess;
}
Result cuDeviceGetName(char* s, int n, DeviceId d) {
  ENTER(cuDeviceGetName);
  std::snprintf(s, std::size_t(n), "Fake GPU %c", 'A' + d);
  return kSuccess;
}
Result cuDeviceTotalMem_v2(std::size_t* n, DeviceId) {
  ENTER(cuDeviceTotalMem_v2);
  *n = control.memory_bytes;
  return kSuccess;
}
Result cuDeviceGetAttribute(int* v, int which, DeviceId) {
  ENTER(cuDeviceGetAttribute);
  switch (which) {
    case kMultiprocessorCount: *v = 132; return kSuccess;
    case kComputeMajor: *v = control.major; return kSuccess;
    case kComputeMinor: *v = control.minor; return kSuccess;
    case kMaxSharedBytesOptin: *v = 232448; return kSuccess;
    case kSharedBytesPerSm: *v = 233472; return kSuccess;
    case kReservedSharedBytes: *v = 1024; return kSuccess;
    case kMemoryPoolsSupported: *v = control.pools; return kSuccess;
    default: return kInvalidValue;
  }
}

Result cuDevicePrimaryCtxRetain(Context* c, DeviceId d) {
  ENTER(cuDevicePrimaryCtxRetain);
  ++control.contexts_retained;
  *c = &contexts[d];
  return kSuccess;
}
Result cuDevicePrimaryCtxRelease_v2(DeviceId) {
  ENTER(cuDevicePrimaryCtxRelease_v2);
  --control.contexts_retained;
  return kSuccess;
}
Result cuCtxSetCurrent(Context c) {
  ENTER(cuCtxSetCurrent);
  current = c;
  return kSuccess;
}
Result cuCtxGetCurrent(Context* c) {
  ENTER(cuCtxGetCurrent);
  *c = current;
  return kSuccess;
}
Result cuCtxSynchronize() {
  ENTER_IN_CONTEXT(cuCtxSynchronize);
  if (capturing) {
    capturing->invalid = true;
    return kCaptureUnsupported;
  }
  return pending();
}

Result cuLinkCreate_v2(unsigned n, int* options, void** values, LinkState* link) {
  ENTER_UNSAFE(cuLinkCreate_v2);
  *link = new LinkStateTag{{}, {}, option(n, options, values, kJitErrorLog)};
  return kSuccess;
}
Result cuLinkAddData_v2(LinkState link, int kind, void* data, std::size_t bytes, const char*, unsigned, int*, void**) {
  ENTER_IN_CONTEXT(cuLinkAddData_v2);
  const char* ptx = static_cast<const char*>(data);
  if (kind != kJitInputPtx || bytes == 0 || ptx[bytes - 1] != '\0') return kInvalidValue;
  if (control.linker_refuses) {
    std::strcpy(link->error_log, "linker log");
    return kInvalidPtx;
  }
  link->ptx = ptx;
  return assemble(ptx, link->error_log);
}
Result cuLinkComplete(LinkState link, void** data, std::size_t* bytes) {
  ENTER_IN_CONTEXT(cuLinkComplete);
  link->cubin =
      "\x7f"
      "ELF" +
      link->ptx;
  *data = link->cubin.data();
  *bytes = link->cubin.size();
  return kSuccess;
}
Result cuLinkDestroy(LinkState link) {
  ENTER(cuLinkDestroy);
  delete link;
  return kSuccess;
}

Result cuModuleLoadDataEx(Module* m, const void* image, unsigned n, int* options, void** values) {
  ENTER_UNSAFE(cuModuleLoadDataEx);
  const char* data = static_cast<const char*>(image);
  const bool cubin = data[0] == '\x7f';
  if (cubin && control.cubin_refused) return kNoBinary;
  if (const Result r = assemble(data, option(n, options, values, kJitErrorLog)); r != kSuccess) return r;
  *m = new ModuleTag{data};
  ++control.modules;
  return kSuccess;
}
Result cuModuleUnload(Module m) {
  ENTER_IN_CONTEXT(cuModuleUnload);
  delete m;
  --control.modules;
  return kSuccess;
}
bool spills = false;  // the function asked for last
Result cuModuleGetFunction(Function* f, Module m, const char* name) {
  ENTER_IN_CONTEXT(cuModuleGetFunction);
  static FunctionTag function;
  *f = &function;
  spills = std::any_of(control.spilling.begin(), control.spilling.end(),
                       [&](const std::string& text) { return m->data.find(text) != std::string::npos; });
  return m->data.find(name) == std::string::npos ? kNotFound : kSuccess;
}
Result cuFuncGetAttribute(int* v, int which, Function) {
  ENTER_IN_CONTEXT(cuFuncGetAttribute);
  *v = which == kMaxThreads          ? 1024
       : which == kRegisters         ? 42
       : which == kLocalBytes        ? (spills ? 200 : 16)
       : which == kStaticSharedBytes ? 1024
                                     : -1;
  return kSuccess;
}
Result cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* base, const std::uint64_t* sizes,
                              const std::uint64_t*, const unsigned*, const unsigned*, int, int, int, int) {
  ENTER_IN_CONTEXT(cuTensorMapEncodeTiled);
  if (reinterpret_cast<std::uintptr_t>(map) % 64 != 0) return kInvalidValue;
  const std::uint64_t words[] = {static_cast<unsigned>(type), rank, reinterpret_cast<std::uintptr_t>(base), sizes[0]};
  std::memset(map, 0, 128);
  std::memcpy(map, words, sizeof words);
  return kSuccess;
}
Result cuFuncSetAttribute(Function, int which, int value) {
  ENTER_IN_CONTEXT(cuFuncSetAttribute);
  if (which == kSharedCarveout) control.shared_carveout = value;
  return kSuccess;
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, Function, int, std::size_t) {
  ENTER_IN_CONTEXT(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  *n = 2;
  return kSuccess;
}
Result cuOccupancyMaxActiveClusters(int* n, Function, const LaunchConfig*) {
  ENTER_IN_CONTEXT(cuOccupancyMaxActiveClusters);
  *n = 60;
  return kSuccess;
}

Result cuLaunchKernel(Function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, Stream s, void** params, void** extra) {
  ENTER_IN_CONTEXT(cuLaunchKernel);
  return launch({gx, gy, gz, bx, by, bz, shared, s, nullptr, 0}, f, params, extra, false);
}
Result cuLaunchKernelEx(const LaunchConfig* c, Function f, void** params, void** extra) {
  ENTER_IN_CONTEXT(cuLaunchKernelEx);
  return launch(*c, f, params, extra, true);
}

Result cuMemAlloc_v2(DevicePtr* p, std::size_t n) {
  ENTER_UNSAFE(cuMemAlloc_v2);
  return allocate(p, n, nullptr);
}
Result cuMemFree_v2(DevicePtr p) {
  ENTER_UNSAFE(cuMemFree_v2);
  return release(p);
}
Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  ENTER_IN_CONTEXT(cuMemGetInfo_v2);
  *free = control.memory_bytes - control.memory_used;
  *total = control.memory_bytes;
  return kSuccess;
}
Result cuMemPoolCreate(MemPool* p, const MemPoolProps* props) {
  ENTER(cuMemPoolCreate);
  if (props->allocation_type != kAllocationPinned || props->location.type != kLocationDevice) return kInvalidValue;
  *p = new MemPoolTag;
  return kSuccess;
}
Result cuMemPoolDestroy(MemPool p) {
  ENTER(cuMemPoolDestroy);
  control.memory_used -= p->kept;
  delete p;
  return kSuccess;
}
Result cuMemPoolSetAttribute(MemPool, int, void*) {
  ENTER(cuMemPoolSetAttribute);
  return kSuccess;
}
Result cuMemPoolTrimTo(MemPool p, std::size_t) {
  ENTER(cuMemPoolTrimTo);
  control.memory_used -= p->kept;
  p->kept = 0;
  return kSuccess;
}
Result cuMemAllocFromPoolAsync(DevicePtr* p, std::size_t n, MemPool pool, Stream s) {
  ENTER_IN_CONTEXT(cuMemAllocFromPoolAsync);
  return allocate(p, n, pool);
}
Result cuMemFreeAsync(DevicePtr p, Stream s) {
  ENTER_IN_CONTEXT(cuMemFreeAsync);
  return s->capture ? kCaptureUnsupported : release(p);
}
Result cuMemcpyHtoDAsync_v2(DevicePtr d, const void* s, std::size_t n, Stream) {
  ENTER_IN_CONTEXT(cuMemcpyHtoDAsync_v2);
  std::memcpy(reinterpret_cast<void*>(d), s, n);
  return kSuccess;
}
Result cuMemcpyDtoHAsync_v2(void* d, DevicePtr s, std::size_t n, Stream) {
  ENTER_IN_CONTEXT(cuMemcpyDtoHAsync_v2);
  std::memcpy(d, reinterpret_cast<const void*>(s), n);
  return kSuccess;
}
Result cuMemsetD8Async(DevicePtr d, unsigned char v, std::size_t n, Stream) {
  ENTER_IN_CONTEXT(cuMemsetD8Async);
  std::memset(reinterpret_cast<void*>(d), v, n);
  return kSuccess;
}
Result cuPointerGetAttributes(unsigned n, int* which, void** data, DevicePtr p) {
  ENTER_IN_CONTEXT(cuPointerGetAttributes);
  auto it = blocks().upper_bound(p);
  const bool known = it != blocks().begin() && p < std::prev(it)->first + std::prev(it)->second.bytes;
  for (unsigned i = 0; i < n; ++i) {
    const bool wide = which[i] == kPointerRangeStart || which[i] == kPointerRangeBytes;
    std::uint64_t v = 0;
    if (known) {
      const auto& [base, block] = *std::prev(it);
      if (which[i] == kPointerMemoryType) v = 2;
      if (which[i] == kPointerOrdinal) v = std::uint64_t(block.ordinal);
      if (which[i] == kPointerRangeStart) v = base;
      if (which[i] == kPointerRangeBytes) v = block.bytes;
    }
    std::memcpy(data[i], &v, wide ? 8 : 4);
  }
  return kSuccess;
}

Result cuStreamCreate(Stream* s, unsigned) {
  ENTER_IN_CONTEXT(cuStreamCreate);
  *s = new StreamTag{current};
  ++control.streams;
  return kSuccess;
}
Result cuStreamDestroy_v2(Stream s) {
  ENTER_IN_CONTEXT(cuStreamDestroy_v2);
  delete s;
  --control.streams;
  return kSuccess;
}
Result cuStreamGetCtx(Stream s, Context* c) {
  ENTER_IN_CONTEXT(cuStreamGetCtx);
  *c = s->context;
  return kSuccess;
}
Result cuStreamSynchronize(Stream s) {
  ENTER_IN_CONTEXT(cuStreamSynchronize);
  if (s && s->capture) {
    s->invalid = true;
    return kCaptureUnsupported;
  }
  return pending();
}
Result cuStreamIsCapturing(Stream s, int* status) {
  ENTER_IN_CONTEXT(cuStreamIsCapturing);
  if (!s && capturing) return kCaptureImplicit;
  *status = s && s->capture ? 1 : 0;
  return kSuccess;
}
Result cuStreamBeginCapture_v2(Stream s, int mode) {
  ENTER_IN_CONTEXT(cuStreamBeginCapture_v2);
  if (!s || s->capture) return kCaptureUnsupported;
  s->capture = new GraphTag;
  s->mode = mode;
  s->invalid = false;
  capturing = s;
  return kSuccess;
}
Result cuStreamEndCapture(Stream s, Graph* g) {
  ENTER_IN_CONTEXT(cuStreamEndCapture);
  if (!s->capture) return kInvalidValue;
  *g = std::exchange(s->capture, nullptr);
  capturing = nullptr;
  if (s->invalid) {
    delete std::exchange(*g, nullptr);
    return kCaptureInvalidated;
  }
  ++control.graphs;
  return kSuccess;
}
Result cuThreadExchangeStreamCaptureMode(int* mode) {
  ENTER(cuThreadExchangeStreamCaptureMode);
  std::swap(*mode, thread_mode);
  return kSuccess;
}

Result cuEventCreate(Event* e, unsigned) {
  ENTER_IN_CONTEXT(cuEventCreate);
  *e = new EventTag{0};
  return kSuccess;
}
Result cuEventDestroy_v2(Event e) {
  ENTER_IN_CONTEXT(cuEventDestroy_v2);
  delete e;
  return kSuccess;
}
Result cuEventRecord(Event e, Stream) {
  ENTER_IN_CONTEXT(cuEventRecord);
  e->at = control.last.count;
  return kSuccess;
}
Result cuEventSynchronize(Event) {
  ENTER_IN_CONTEXT(cuEventSynchronize);
  return pending();
}
Result cuEventElapsedTime(float* ms, Event a, Event b) {
  ENTER_IN_CONTEXT(cuEventElapsedTime);
  *ms = 0.25f * float(b->at - a->at);
  return kSuccess;
}

Result cuGraphGetNodes(Graph g, GraphNode* nodes, std::size_t* n) {
  ENTER(cuGraphGetNodes);
  for (std::size_t i = 0; nodes && i < *n && i < g->nodes.size(); ++i) nodes[i] = &g->nodes[i];
  *n = g->nodes.size();
  return kSuccess;
}
Result cuGraphNodeGetType(GraphNode n, int* type) {
  ENTER(cuGraphNodeGetType);
  *type = n->type;
  return kSuccess;
}
Result cuGraphInstantiateWithFlags(GraphExec* e, Graph g, unsigned long long) {
  ENTER_IN_CONTEXT(cuGraphInstantiateWithFlags);
  *e = new GraphExecTag{g->nodes.size()};
  return kSuccess;
}
Result cuGraphLaunch(GraphExec, Stream) {
  ENTER_IN_CONTEXT(cuGraphLaunch);
  return kSuccess;
}
Result cuGraphDestroy(Graph g) {
  ENTER(cuGraphDestroy);
  delete g;
  --control.graphs;
  return kSuccess;
}
Result cuGraphExecDestroy(GraphExec e) {
  ENTER(cuGraphExecDestroy);
  delete e;
  return kSuccess;
}
