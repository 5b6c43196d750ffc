#!/usr/bin/env python3
"""Kiln against torch eager, Inductor and Triton on pointwise kernels, alternating on one GPU.

  bench/peers/pointwise.py [--kiln build/bin/kiln] [--rounds 7] [--sizes 100,1000000,...]

In every round each case is measured by each candidate in random order; Kiln answers through `kiln bench --serve`, the
peers run in this process. All are timed in the same way: median over replays of a CUDA graph that holds several launches
over rotating inputs larger than the L2 cache. Prints one JSON line a case and candidate on stdout, the median over the
rounds, {"case","peer","shape","dtype","us","gbs"}; a summary with Kiln's rate over the best peer's goes to stderr.
Exit status 3: torch or a GPU is missing here.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys

L2_BYTES = 60 << 20


def missing(what):
    print(f"pointwise.py: {what}; nothing was measured", file=sys.stderr)
    sys.exit(3)


try:
    import torch
except ImportError:
    missing("torch is not installed here, so there are no peers to compare with")
if not torch.cuda.is_available():
    missing("torch finds no CUDA device")
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None
    print("pointwise.py: triton is not installed here: no triton and no inductor rows", file=sys.stderr)


class Kiln:
    """One `kiln bench --serve` process: a case in, a figure out."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "bench", "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def us(self, case):
        self.process.stdin.write(json.dumps(case) + "\n")
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"kiln bench --serve ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "us" not in answer:
            raise RuntimeError(answer.get("error", line))
        return answer["us"]


def rotating(make):
    """Input sets of four times the L2 in total, at most 64."""
    first = make()
    size = sum(t.numel() * t.element_size() for t in first)
    count = max(1, min(64, 4 * L2_BYTES // max(1, size) + 1))
    return [first] + [make() for _ in range(count - 1)]


class Graph:
    """Launches of `fn` over rotating inputs in one CUDA graph; kept, so that a round only replays it."""

    def __init__(self, fn, sets):
        self.launches = max(len(sets), 8)
        for s in sets[:3]:
            fn(*s)
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for s in sets[:2]:
                fn(*s)
        torch.cuda.synchronize()
        self.graph, self.outputs = torch.cuda.CUDAGraph(), []
        with torch.cuda.graph(self.graph):
            for i in range(self.launches):
                self.outputs.append(fn(*sets[i % len(sets)]))

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


def add_relu(a, b):
    return (a + b).relu()


if triton:

    @triton.jit
    def triton_kernel(a, b, c, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = i < n
        x = tl.load(a + i, mask=mask) + tl.load(b + i, mask=mask)
        tl.store(c + i, tl.maximum(x, 0.0), mask=mask)

    def triton_add_relu(a, b):
        c = torch.empty_like(a)
        triton_kernel[(triton.cdiv(a.numel(), 1024),)](a, b, c, a.numel(), BLOCK=1024)
        return c


def measure(kiln, n, rounds):
    """{peer: us} of add_relu on n floats."""
    case = dict(case="add_relu", shape=[n], dtype="f32")
    sets = rotating(lambda: (torch.randn(n, device="cuda"), torch.randn(n, device="cuda")))
    candidates = {"kiln": lambda: kiln.us(case), "eager": Graph(add_relu, sets).us}
    if triton:
        torch._dynamo.reset()
        candidates["inductor"] = Graph(torch.compile(add_relu), sets).us
        candidates["triton"] = Graph(triton_add_relu, sets).us
    times = {peer: [] for peer in candidates}
    for _ in range(rounds):
        order = list(candidates)
        random.shuffle(order)
        for peer in order:
            torch.cuda.synchronize()
            times[peer].append(candidates[peer]())
    result = {peer: statistics.median(t) for peer, t in times.items()}
    for peer, us in result.items():
        print(json.dumps(dict(case=case["case"], peer=peer, shape=[n], dtype="f32", us=round(us, 3), gbs=round(12 * n / us / 1e3, 1), samples=rounds)), flush=True)
    return result


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Kiln against torch and Triton on pointwise kernels")
    parser.add_argument("--kiln", default=os.path.join(here, "..", "..", "build", "bin", "kiln"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sizes", default="100,1000000,10000000,100000000")
    args = parser.parse_args()
    random.seed(1)
    kiln = Kiln(args.kiln)
    print(json.dumps(dict(case="env", gpu=torch.cuda.get_device_name(0), torch=torch.__version__, triton=triton.__version__ if triton else None)), flush=True)
    for n in map(int, args.sizes.split(",")):
        result = measure(kiln, n, args.rounds)
        torch.cuda.empty_cache()
        peers = {p: us for p, us in result.items() if p != "kiln"}
        best = min(peers, key=peers.get)
        print(f"add_relu [{n}]: kiln {result['kiln']:.3f} us, best peer {best} {peers[best]:.3f} us, kiln at {peers[best] / result['kiln']:.3f} of its rate", file=sys.stderr)


if __name__ == "__main__":
    main()
