#!/usr/bin/env python3
"""Kiln against torch eager, Inductor and Triton, alternating on one GPU.

  bench/peers/peers.py [--kiln build/bin/kiln] [--rounds 5] [--cases softmax,rows] [--shapes 8192x8192,100] [--target sm_80]

Without --cases all of the table below are measured; a name is a case or a section. With --shapes only these shapes are,
for the cases of the same rank. With --target, linear_relu of Kiln and Triton is compiled for an Ampere GPU. In every
round a case is measured by each candidate in random order; Kiln answers through
`kiln bench --serve`, the peers run in this process. All are timed in the same way: median over replays of a CUDA graph
that holds several launches over rotating inputs larger than the L2 cache. Prints one JSON line a case and candidate on
stdout, the median over the rounds, {"case","peer","shape","dtype","us","gbs","samples"}; a summary with Kiln's rate over
the best peer's goes to stderr.
Exit status 1: a candidate failed (stderr says how; the others were measured); 3: torch or a GPU is missing here.
"""
import argparse
import gc
import json
import math
import os
import random
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Callable

L2_BYTES = 60 << 20


def missing(what):
    print(f"peers.py: {what}; nothing was measured", file=sys.stderr)
    sys.exit(3)


try:
    import torch
    import torch.nn.functional as F
except ImportError:
    missing("torch is not installed here, so there are no peers to compare with")
if not torch.cuda.is_available():
    missing("torch finds no CUDA device")
try:
    import ampere
    import triton
    import triton.language as tl
except ImportError:
    triton = None
    print("peers.py: triton is not installed here: no triton and no inductor rows", file=sys.stderr)


# --- Triton's kernels -------------------------------------------------------------------------------------------------

triton_kernels = {}
if triton:

    @triton.jit
    def add_relu_kernel(a, b, c, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = i < n
        x = tl.load(a + i, mask=mask) + tl.load(b + i, mask=mask)
        tl.store(c + i, tl.maximum(x, 0.0), mask=mask)

    def triton_add_relu(a, b):
        c = torch.empty_like(a)
        add_relu_kernel[(triton.cdiv(a.numel(), 1024),)](a, b, c, a.numel(), BLOCK=1024)
        return c

    @triton.jit
    def softmax_kernel(x, y, cols, stride, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        i = tl.arange(0, BLOCK)
        mask = i < cols
        v = tl.load(x + row * stride + i, mask=mask, other=-float("inf")).to(tl.float32)
        v = tl.exp(v - tl.max(v, 0))
        tl.store(y + row * stride + i, v / tl.sum(v, 0), mask=mask)

    def triton_softmax(x):
        y = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=block, num_warps=min(32, max(4, block // 512)))
        return y

    def tiles(m, n, k, stages, warps):
        return triton.Config(dict(BM=m, BN=n, BK=k), num_stages=stages, num_warps=warps)

    @triton.autotune([tiles(128, 256, 64, 3, 8), tiles(128, 256, 64, 4, 8), tiles(128, 128, 64, 4, 8), tiles(128, 128, 64, 4, 4),
                      tiles(64, 128, 64, 4, 4), tiles(64, 64, 64, 4, 4)], key=["M", "N", "K"])
    @triton.jit
    def linear_relu_kernel(x, w, bias, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        xs = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BM, BK])
        ws = tl.make_tensor_descriptor(w, [N, K], [K, 1], [BN, BK])
        ys = tl.make_tensor_descriptor(y, [M, N], [N, 1], [BM, BN])
        rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
        GROUP: tl.constexpr = 8  # rows of tiles that go over the columns together
        for tile in tl.range(tl.program_id(0), rows * columns, tl.num_programs(0), flatten=True):
            first = tile // (GROUP * columns) * GROUP
            height = min(rows - first, GROUP)
            m = (first + tile % (GROUP * columns) % height) * BM
            n = tile % (GROUP * columns) // height * BN
            total = tl.zeros((BM, BN), tl.float32)
            for k in range(0, K, BK):
                total = tl.dot(xs.load([m, k]), ws.load([n, k]).T, total)
            total += tl.load(bias + n + tl.arange(0, BN))[None, :].to(tl.float32)
            ys.store([m, n], tl.maximum(total, 0.0).to(tl.bfloat16))

    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))

    def triton_linear_relu(x, w, bias):
        """Persistent, with tensor maps."""
        y = torch.empty(x.shape[0], w.shape[0], device="cuda", dtype=x.dtype)
        blocks = torch.cuda.get_device_properties(0).multi_processor_count
        linear_relu_kernel[lambda c: (min(blocks, triton.cdiv(x.shape[0], c["BM"]) * triton.cdiv(w.shape[0], c["BN"])),)](
            x, w, bias, y, x.shape[0], w.shape[0], x.shape[1])
        return y

    triton_kernels = {"add_relu": triton_add_relu, "softmax": triton_softmax, "linear_relu": triton_linear_relu}


# --- the cases: the names, shapes and bytes of bench/cases.cpp --------------------------------------------------------

ROWS = [(32768, 1024), (32768, 1536), (16384, 4096), (16384, 5000), (8192, 8192), (8192, 12288), (4096, 32768), (1024, 131072)]
PRODUCTS = [(8192, 8192, 8192), (4096, 14336, 4096), (4096, 4096, 14336), (4096, 4096, 4096), (2048, 2048, 2048), (1024, 1024, 1024),
            (512, 4096, 4096), (256, 512, 512), (64, 8192, 8192), (16, 8192, 8192), (1, 8192, 8192)]
torch.backends.cuda.matmul.allow_tf32 = True  # what matmul_tf32 measures; no other case multiplies f32


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def add_rmsnorm(x, residual, weight):
    total = x + residual
    return total, F.rms_norm(total, (total.shape[-1],), weight)


def cross_entropy_gradient(x, target):
    gradient = torch.softmax(x.float(), -1)
    gradient = gradient.scatter_add(1, target[:, None], -torch.ones_like(target, dtype=gradient.dtype)[:, None])
    return F.cross_entropy(x, target, reduction="none"), gradient.to(x.dtype)


def adam_step(param, grad, m, v, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01):
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad * grad
    return param * (1 - lr * weight_decay) - lr * (m / (1 - beta1)) / ((v / (1 - beta2)).sqrt() + eps), m, v


def rope(x, cosines, sines):
    a, b = x.float().chunk(2, -1)
    c, s = cosines[:, None, :], sines[:, None, :]
    return torch.cat([a * c - b * s, b * c + a * s], -1).to(x.dtype)


def matmul_fp8(x, w, one, fast=False):
    return torch._scaled_mm(x, w.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast)


@dataclass
class Case:
    section: str
    name: str
    dtype: str
    shapes: list
    run: Callable  # torch's: inputs to output
    inputs: Callable  # extents to a tuple of tensors
    bytes: Callable  # extents to what must move
    others: dict = field(default_factory=dict)  # more of torch's ways: {peer: inputs to output}


CASES = [
    Case("ceiling", "copy_ceiling", "bf16", [(1 << 29,)], lambda x: x.clone(), lambda n: (normal(n),), lambda n: 4 * n),
    Case("pointwise", "add_relu", "f32", [(100,), (10**6,), (10**7,), (10**8,)], lambda a, b: (a + b).relu(),
         lambda n: (normal(n, dtype=torch.float32), normal(n, dtype=torch.float32)), lambda n: 12 * n),
    Case("rows", "softmax", "bf16", ROWS, lambda x: torch.softmax(x, -1), lambda m, n: (normal(m, n),), lambda m, n: 4 * m * n),
    Case("rows", "layernorm", "bf16", ROWS, lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b),
         lambda m, n: (normal(m, n), normal(n), normal(n)), lambda m, n: 4 * m * n),
    Case("rows", "rmsnorm", "bf16", ROWS, lambda x, w: F.rms_norm(x, (x.shape[-1],), w), lambda m, n: (normal(m, n), normal(n)),
         lambda m, n: 4 * m * n),
    Case("rows", "add_rmsnorm", "bf16", ROWS, add_rmsnorm, lambda m, n: (normal(m, n), normal(m, n), normal(n)), lambda m, n: 8 * m * n),
    Case("library", "gelu_bias_scale_residual", "bf16", [(8192, 8192)], lambda x, b, s, r: F.gelu(x + b, approximate="tanh") * s + r,
         lambda m, n: (normal(m, n), normal(n), normal(m, 1), normal(m, n)), lambda m, n: 6 * m * n),
    Case("library", "swiglu", "bf16", [(8192, 14336)], lambda a, b: F.silu(a) * b, lambda m, n: (normal(m, n), normal(m, n)),
         lambda m, n: 6 * m * n),
    Case("library", "transpose", "bf16", [(16384, 16384)], lambda x: x.t().contiguous(), lambda m, n: (normal(m, n),), lambda m, n: 4 * m * n),
    Case("library", "sum_all", "f32", [(1 << 28,)], lambda x: x.sum(), lambda n: (normal(n, dtype=torch.float32),), lambda n: 4 * n),
    Case("library", "cross_entropy", "bf16", [(8192, 128256)], lambda x, t: F.cross_entropy(x, t, reduction="none"),
         lambda m, n: (normal(m, n), torch.randint(0, n, (m,), device="cuda")), lambda m, n: 2 * m * n),
    Case("library", "cross_entropy_gradient", "bf16", [(8192, 128256)], cross_entropy_gradient,
         lambda m, n: (normal(m, n), torch.randint(0, n, (m,), device="cuda")), lambda m, n: 4 * m * n),
    Case("library", "log_softmax", "bf16", [(8192, 8192)], lambda x: F.log_softmax(x, -1), lambda m, n: (normal(m, n),),
         lambda m, n: 4 * m * n),
    Case("library", "cumsum", "bf16", [(8192, 8192)], lambda x: x.cumsum(-1), lambda m, n: (normal(m, n),), lambda m, n: 4 * m * n),
    Case("library", "dropout", "bf16", [(1 << 26,)], lambda x: F.dropout(x, 0.1), lambda n: (normal(n),), lambda n: 4 * n),
    Case("library", "adam_step", "f32", [(1 << 26,)], adam_step, lambda n: tuple(normal(n, dtype=torch.float32).abs() for _ in range(4)),
         lambda n: 28 * n),
    Case("library", "rope", "bf16", [(16384, 32, 128)], rope,
         lambda t, h, d: (normal(t, h, d), normal(t, d // 2, dtype=torch.float32), normal(t, d // 2, dtype=torch.float32)),
         lambda t, h, d: 4 * t * h * d),
    Case("library", "embedding", "bf16", [(16384, 4096)], lambda table, ids: F.embedding(ids, table),
         lambda m, n: (normal(8 * m, n), torch.randint(0, 8 * m, (m,), device="cuda")), lambda m, n: 4 * m * n),
    Case("gemm", "linear_relu", "bf16", PRODUCTS, lambda x, w, b: F.linear(x, w, b).relu(),
         lambda m, n, k: (normal(m, k), normal(n, k), normal(n)), lambda m, n, k: 2 * (m * k + n * k + m * n),
         {"cublaslt": lambda x, w, b: torch._addmm_activation(b, x, w.t()), "cublas_bare": lambda x, w, b: x @ w.t()}),
    Case("gemm", "matmul", "bf16", PRODUCTS, lambda x, w: x @ w.t(), lambda m, n, k: (normal(m, k), normal(n, k)),
         lambda m, n, k: 2 * (m * k + n * k + m * n)),
    Case("gemm", "matmul_f16", "f16", [(8192, 8192, 8192)], lambda x, w: x @ w.t(),
         lambda m, n, k: (normal(m, k, dtype=torch.float16), normal(n, k, dtype=torch.float16)), lambda m, n, k: 2 * (m * k + n * k + m * n)),
    Case("gemm", "matmul_tf32", "f32", [(8192, 8192, 8192)], lambda x, w: x @ w.t(),
         lambda m, n, k: (normal(m, k, dtype=torch.float32), normal(n, k, dtype=torch.float32)), lambda m, n, k: 4 * (m * k + n * k + m * n)),
    Case("gemm", "matmul_fp8", "f8e4m3", [(8192, 8192, 8192)], matmul_fp8,
         lambda m, n, k: (normal(m, k).to(torch.float8_e4m3fn), normal(n, k).to(torch.float8_e4m3fn), torch.ones((), device="cuda")),
         lambda m, n, k: m * k + n * k + 2 * m * n, {"fast": lambda x, w, one: matmul_fp8(x, w, one, fast=True)}),
    Case("gemm", "matmul_fp8_fast", "f8e4m3", [(8192, 8192, 8192)], lambda x, w, one: matmul_fp8(x, w, one, fast=True),
         lambda m, n, k: (normal(m, k).to(torch.float8_e4m3fn), normal(n, k).to(torch.float8_e4m3fn), torch.ones((), device="cuda")),
         lambda m, n, k: m * k + n * k + 2 * m * n),
]


# --- measuring --------------------------------------------------------------------------------------------------------


class Kiln:
    """One `kiln bench --serve` process: a case in, a figure out."""

    def __init__(self, program, target):
        environment = {**os.environ, "KILN_TARGET": target}
        self.process = subprocess.Popen([program, "bench", "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env=environment)

    def us(self, case, shape):
        self.process.stdin.write(json.dumps(dict(case=case.name, shape=shape, dtype=case.dtype)) + "\n")
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"kiln bench --serve ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "us" not in answer:
            raise RuntimeError(answer.get("error", line))
        return answer["us"]


def rotating(make):
    """4 to 64 input sets, of four times the L2 in total."""
    first = make()
    size = sum(t.numel() * t.element_size() for t in first)
    count = max(4, min(64, 4 * L2_BYTES // max(1, size) + 1))
    return [first] + [make() for _ in range(count - 1)]


class Graph:
    """Launches of `run` over rotating inputs in one CUDA graph, each with an output of its own; kept, so that a round
    only replays it."""

    def __init__(self, run, sets):
        self.launches = max(len(sets), 8)
        for s in sets[:3]:
            run(*s)
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for s in sets[:2]:
                run(*s)
        torch.cuda.synchronize()
        self.graph, self.outputs = torch.cuda.CUDAGraph(), []
        with torch.cuda.graph(self.graph):
            for i in range(self.launches):
                self.outputs.append(run(*sets[i % len(sets)]))

    def us(self, replays=15):
        for _ in range(3):
            self.graph.replay()
        times = []
        for _ in range(replays):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            self.graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1e3 / self.launches)
        return statistics.median(times)


@dataclass
class Run:
    """What is measured, and what went wrong."""

    kiln: Kiln
    rounds: int
    target: str
    failures: list = field(default_factory=list)
    ratios: list = field(default_factory=list)

    def fail(self, case, shape, peer, error):
        self.failures.append(peer)
        text = str(error).strip().split("\n")[0][:300]
        print(f"{case.name} {list(shape)}: {peer} failed: {text}", file=sys.stderr)

    def candidates(self, case, shape):
        """{peer: function that measures it once}, for those that can be prepared."""
        sets = rotating(lambda: case.inputs(*shape))
        makers = {"kiln": lambda: lambda: self.kiln.us(case, shape)}
        if self.target:
            makers["triton_sm80"] = lambda: Graph(ampere.fastest(lambda f: Graph(f, sets).us(3), *sets[0]), sets).us
        else:
            makers["eager"] = lambda: Graph(case.run, sets).us
            if triton:
                makers["inductor"] = lambda: Graph(torch.compile(case.run, dynamic=False), sets).us
            for peer, run in case.others.items():
                makers[peer] = lambda run=run: Graph(run, sets).us
            if case.name in triton_kernels:
                makers["triton"] = lambda: Graph(triton_kernels[case.name], sets).us
        ready = {}
        for peer, make in makers.items():
            try:
                ready[peer] = make()
                ready[peer]()
            except Exception as e:  # whatever a peer raises: the others are measured all the same
                ready.pop(peer, None)
                self.fail(case, shape, peer, e)
        return ready

    def medians(self, case, shape):
        """{peer: us}, the median over the rounds."""
        ready = self.candidates(case, shape)
        times = {peer: [] for peer in ready}
        for _ in range(self.rounds):
            order = list(ready)
            random.shuffle(order)
            for peer in order:
                torch.cuda.synchronize()
                times[peer].append(ready[peer]())
        return {peer: statistics.median(t) for peer, t in times.items()}

    def measure(self, case, shape):
        result = self.medians(case, shape)
        torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()
        rate = {peer: case.bytes(*shape) / us / 1e3 for peer, us in result.items()}
        for peer, us in result.items():
            line = dict(case=case.name, peer=peer, shape=list(shape), dtype=case.dtype, us=round(us, 3), gbs=round(rate[peer], 1), samples=self.rounds)
            print(json.dumps(line), flush=True)
        peers = {p: us for p, us in result.items() if p != "kiln" and not p.endswith("_bare")}  # those do less
        if "kiln" not in result or not peers:
            return
        best = min(peers, key=peers.get)
        ratio = peers[best] / result["kiln"]
        self.ratios.append(ratio)
        others = "".join(f"  {p} x{us / result['kiln']:.3f}" for p, us in sorted(result.items()) if p not in ("kiln", best))
        print(f"{case.name:<26}{'x'.join(map(str, shape)):>16}  kiln {result['kiln']:>9.2f} us {rate['kiln']:>7.0f} GB/s   "
              f"{best:<9}{peers[best]:>9.2f} us   x{ratio:.3f}{'  LOW' if ratio < 1 else '     '}{others}", file=sys.stderr, flush=True)


def chosen(names):
    """The cases of these names or sections, in the order of the table; all of them for no name."""
    for name in names:
        if not any(name in (c.name, c.section) for c in CASES):
            known = ", ".join(dict.fromkeys([c.section for c in CASES] + [c.name for c in CASES]))
            sys.exit(f"peers.py: no case or section '{name}'; known: {known}")
    return [c for c in CASES if not names or c.name in names or c.section in names]


def words(text):
    return [w for w in text.split(",") if w]


def shapes_of(text):
    return [tuple(int(extent) for extent in w.split("x")) for w in words(text)]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Kiln against torch eager, Inductor and Triton")
    parser.add_argument("--kiln", default=os.path.join(here, "..", "..", "build", "bin", "kiln"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", type=words, default=[], help="cases or sections, separated by commas")
    parser.add_argument("--target", choices=["sm_80"], default="", help="both compile for this target; linear_relu against Triton alone")
    parser.add_argument("--shapes", type=shapes_of, default=[], help="for example 8192x8192,1024x131072")
    args = parser.parse_args()
    random.seed(1)
    cases = chosen(args.cases or (["linear_relu"] if args.target else []))
    if args.target and (not triton or [c.name for c in cases] != ["linear_relu"]):
        sys.exit("peers.py: --target takes the case linear_relu alone, and needs triton")
    run = Run(Kiln(args.kiln, args.target), args.rounds, args.target)
    print(json.dumps(dict(case="env", gpu=torch.cuda.get_device_name(0), torch=torch.__version__, triton=triton.__version__ if triton else None)), flush=True)
    with torch.no_grad():
        for case in cases:
            for shape in [s for s in args.shapes if len(s) == len(case.shapes[0])] if args.shapes else case.shapes:
                run.measure(case, shape)
    if run.ratios:
        mean = math.exp(statistics.fmean(map(math.log, run.ratios)))
        print(f"kiln over the best peer: lowest x{min(run.ratios):.3f}, geometric mean x{mean:.3f} of {len(run.ratios)}", file=sys.stderr)
    sys.exit(1 if run.failures else 0)


if __name__ == "__main__":
    main()
