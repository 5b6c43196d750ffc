// Kiln's own declarations of the driver API against NVIDIA's header, wherever one is installed. Compiling this file is
// the test: sizes, offsets, constants, and the parameters of every function in driver.def.
#include "runtime/cuda/driver.h"

#ifdef KILN_HAVE_CUDA_H
#include <cuda.h>
#endif

#include <gtest/gtest.h>

#include <type_traits>

#if defined(KILN_HAVE_CUDA_H) && CUDA_VERSION >= 12000

namespace kiln::cu {
namespace {

template <class T>
concept Complete = requires {
  sizeof(T);
};

/// True when a value of type A is passed as one of type B is. Behind pointers, what has a size must have the same one;
/// handles are pointers to types without one.
template <class A, class B>
constexpr bool same_abi() {
  if constexpr (std::is_pointer_v<A> != std::is_pointer_v<B>) {
    return false;
  } else if constexpr (std::is_pointer_v<A>) {
    using X = std::remove_pointer_t<A>;
    using Y = std::remove_pointer_t<B>;
    if constexpr (std::is_void_v<X> || std::is_void_v<Y> || !Complete<X> || !Complete<Y>) return true;
    else return same_abi<std::remove_cv_t<X>, std::remove_cv_t<Y>>();
  } else {
    return sizeof(A) == sizeof(B) && alignof(A) == alignof(B) &&
           std::is_floating_point_v<A> == std::is_floating_point_v<B>;
  }
}

template <class Ours, class Theirs>
struct SameFunction : std::false_type {};
template <class... A, class... B>
requires(sizeof...(A) == sizeof...(B)) struct SameFunction<Entry<A...>, CUresult(B...)>
    : std::bool_constant<(true && ... && same_abi<A, B>())> {
};

// The token after decltype is expanded where cuda.h renames a function to a newer version; 12.8 did so for this one,
// with the same parameters.
#define KILN_CU(member, symbol, ...) \
  static_assert(SameFunction<decltype(Driver::member), decltype(::symbol)>::value, #symbol);
#include "runtime/cuda/driver.def"

static_assert(sizeof(CUdevice) == sizeof(DeviceId) && sizeof(CUdeviceptr) == sizeof(DevicePtr));

#define KILN_SAME_FIELD(ours, field, theirs, their_field)                \
  static_assert(offsetof(ours, field) == offsetof(theirs, their_field)); \
  static_assert(sizeof(ours::field) == sizeof(theirs::their_field), #theirs "." #their_field)
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig) && alignof(LaunchConfig) == alignof(CUlaunchConfig));
KILN_SAME_FIELD(LaunchConfig, grid_x, CUlaunchConfig, gridDimX);
KILN_SAME_FIELD(LaunchConfig, grid_y, CUlaunchConfig, gridDimY);
KILN_SAME_FIELD(LaunchConfig, grid_z, CUlaunchConfig, gridDimZ);
KILN_SAME_FIELD(LaunchConfig, block_x, CUlaunchConfig, blockDimX);
KILN_SAME_FIELD(LaunchConfig, block_y, CUlaunchConfig, blockDimY);
KILN_SAME_FIELD(LaunchConfig, block_z, CUlaunchConfig, blockDimZ);
KILN_SAME_FIELD(LaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes);
KILN_SAME_FIELD(LaunchConfig, stream, CUlaunchConfig, hStream);
KILN_SAME_FIELD(LaunchConfig, attributes, CUlaunchConfig, attrs);
KILN_SAME_FIELD(LaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
KILN_SAME_FIELD(LaunchAttribute, id, CUlaunchAttribute, id);
KILN_SAME_FIELD(LaunchAttribute, value, CUlaunchAttribute, value);
KILN_SAME_FIELD(LaunchAttributeValue, cluster, CUlaunchAttributeValue, clusterDim);
KILN_SAME_FIELD(LaunchAttributeValue, programmatic_serialization, CUlaunchAttributeValue,
                programmaticStreamSerializationAllowed);
static_assert(sizeof(MemPoolProps) == sizeof(CUmemPoolProps));
KILN_SAME_FIELD(MemPoolProps, allocation_type, CUmemPoolProps, allocType);
KILN_SAME_FIELD(MemPoolProps, handle_types, CUmemPoolProps, handleTypes);
KILN_SAME_FIELD(MemPoolProps, location, CUmemPoolProps, location);
KILN_SAME_FIELD(MemPoolProps, security, CUmemPoolProps, win32SecurityAttributes);
KILN_SAME_FIELD(MemLocation, type, CUmemLocation, type);
KILN_SAME_FIELD(MemLocation, id, CUmemLocation, id);

#define KILN_SAME_VALUE(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs), #theirs)
KILN_SAME_VALUE(kSuccess, CUDA_SUCCESS);
KILN_SAME_VALUE(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
KILN_SAME_VALUE(kCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
KILN_SAME_VALUE(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
KILN_SAME_VALUE(kComputeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
KILN_SAME_VALUE(kComputeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
KILN_SAME_VALUE(kMaxSharedBytesOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
KILN_SAME_VALUE(kMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
KILN_SAME_VALUE(kStaticSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
KILN_SAME_VALUE(kMaxThreads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
KILN_SAME_VALUE(kLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
KILN_SAME_VALUE(kRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
KILN_SAME_VALUE(kMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
KILN_SAME_VALUE(kNonPortableCluster, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
KILN_SAME_VALUE(kAttributeCluster, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
KILN_SAME_VALUE(kAttributeProgrammaticSerialization, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
KILN_SAME_VALUE(kParamEnd, CU_LAUNCH_PARAM_END_AS_INT);
KILN_SAME_VALUE(kParamBuffer, CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT);
KILN_SAME_VALUE(kParamBytes, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT);
KILN_SAME_VALUE(kJitInfoLog, CU_JIT_INFO_LOG_BUFFER);
KILN_SAME_VALUE(kJitInfoLogBytes, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
KILN_SAME_VALUE(kJitErrorLog, CU_JIT_ERROR_LOG_BUFFER);
KILN_SAME_VALUE(kJitErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
KILN_SAME_VALUE(kJitInputPtx, CU_JIT_INPUT_PTX);
KILN_SAME_VALUE(kPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
KILN_SAME_VALUE(kPointerIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED);
KILN_SAME_VALUE(kPointerOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
KILN_SAME_VALUE(kPointerRangeStart, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
KILN_SAME_VALUE(kPointerRangeBytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
KILN_SAME_VALUE(kMemoryHost, CU_MEMORYTYPE_HOST);
KILN_SAME_VALUE(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
KILN_SAME_VALUE(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
KILN_SAME_VALUE(kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
KILN_SAME_VALUE(kCaptureNone, CU_STREAM_CAPTURE_STATUS_NONE);
KILN_SAME_VALUE(kGraphNodeKernel, CU_GRAPH_NODE_TYPE_KERNEL);
KILN_SAME_VALUE(kAllocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
KILN_SAME_VALUE(kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
KILN_SAME_VALUE(kPoolReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);

TEST(CudaAbi, OwnDeclarationsAgreeWithTheHeader) { SUCCEED() << "compared with CUDA " << CUDA_VERSION; }

// The comparison must be able to fail.
static_assert(!same_abi<int, long>() && !same_abi<int, float>() && !same_abi<int*, long*>() && !same_abi<int, int*>());
static_assert(!SameFunction<Entry<int>, CUresult(int, int)>::value && SameFunction<Entry<int>, CUresult(int)>::value);

}  // namespace
}  // namespace kiln::cu

#else

TEST(CudaAbi, OwnDeclarationsAgreeWithTheHeader) {
  GTEST_SKIP() << "no <cuda.h> of CUDA 12.0 or newer was found when this was built: nothing to compare with";
}

#endif
