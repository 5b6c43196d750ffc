"""linear + bias + relu by Triton, compiled for sm_80: mma.sync, ldmatrix and cp.async, whatever GPU is there.

Triton itself assembles for the target that it compiles for, and such a cubin runs on no newer GPU. So its PTX is loaded
through the driver, which assembles it for the GPU at hand, as it does with Kiln's.
"""
import ctypes
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


@triton.jit
def linear_relu_sm80(x, w, bias, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    GROUP: tl.constexpr = 8  # rows of tiles that go over the columns together
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    tile = tl.program_id(0)
    first = tile // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    m = (first + tile % (GROUP * columns) % height) * BM + tl.arange(0, BM)
    n = tile % (GROUP * columns) // height * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    xs = x + (m % M)[:, None] * K + k[None, :]
    ws = w + (n % N)[None, :] * K + k[:, None]
    total = tl.zeros((BM, BN), tl.float32)
    for left in range(K, 0, -BK):
        a = tl.load(xs, mask=k[None, :] < left, other=0.0)
        b = tl.load(ws, mask=k[:, None] < left, other=0.0)
        total = tl.dot(a, b, total)
        xs += BK
        ws += BK
    total += tl.load(bias + n, mask=n < N, other=0.0)[None, :].to(tl.float32)
    tl.store(y + m[:, None] * N + n[None, :], tl.maximum(total, 0.0).to(tl.bfloat16), mask=(m < M)[:, None] & (n < N)[None, :])


def compiled(bm, bn, bk, stages, warps):
    """(name, PTX, bytes of shared memory, threads) of one configuration."""
    signature = dict(x="*bf16", w="*bf16", bias="*bf16", y="*bf16", M="i32", N="i32", K="i32", BM="constexpr", BN="constexpr", BK="constexpr")
    source = ASTSource(linear_relu_sm80, signature, dict(BM=bm, BN=bn, BK=bk), {(i,): [["tt.divisibility", 16]] for i in range(7)})
    kernel = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=dict(num_warps=warps, num_stages=stages))
    return kernel.metadata.name, kernel.asm["ptx"], kernel.metadata.shared, 32 * warps


class Kernel:
    """A configuration, loaded by the driver; call it like the function that it is."""

    def __init__(self, bm, bn, bk, stages, warps):
        self.bm, self.bn = bm, bn
        name, ptx, self.shared, self.threads = compiled(bm, bn, bk, stages, warps)
        self.more = len(re.findall(r"\.param", ptx[ptx.index(".entry"):ptx.index("{", ptx.index(".entry"))])) - 7  # Triton's own
        self.driver = ctypes.CDLL("libcuda.so.1")
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ptx.encode())
        self.call("cuModuleGetFunction", ctypes.byref(self.function), module, name.encode())
        self.call("cuFuncSetAttribute", self.function, DYNAMIC_SHARED, self.shared)

    def call(self, name, *args):
        status = getattr(self.driver, name)(*args)
        if status != 0:
            raise RuntimeError(f"{name}: CUDA error {status}")

    def __call__(self, x, w, bias):
        import torch
        (m, k), n = x.shape, w.shape[0]
        y = torch.empty(m, n, device="cuda", dtype=x.dtype)
        values = [ctypes.c_uint64(t.data_ptr()) for t in (x, w, bias, y)] + [ctypes.c_int32(e) for e in (m, n, k)]
        values += [ctypes.c_uint64(0)] * self.more
        addresses = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        grid = triton.cdiv(m, self.bm) * triton.cdiv(n, self.bn)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.call("cuLaunchKernel", self.function, grid, 1, 1, self.threads, 1, 1, self.shared, stream, addresses, None)
        return y


CONFIGURATIONS = [(128, 256, 32, 3, 8), (128, 256, 64, 3, 8), (256, 128, 32, 3, 8), (256, 128, 64, 3, 8), (128, 128, 32, 4, 4), (128, 128, 64, 3, 4),
                  (128, 128, 64, 4, 8), (64, 128, 64, 4, 4), (64, 64, 64, 4, 4)]


def fastest(us, x, w, bias):
    """The configuration that us(kernel) finds fastest, its result compared with torch's."""
    import torch
    want = torch.relu(x.float() @ w.float().t() + bias.float())
    best, least = None, float("inf")
    for c in CONFIGURATIONS:
        kernel = Kernel(*c)
        error = (kernel(x, w, bias).float() - want).norm() / want.norm()
        if not error < 1e-2:
            raise RuntimeError(f"configuration {c}: relative error {error}")
        t = us(kernel)
        if t < least:
            best, least = kernel, t
    return best
