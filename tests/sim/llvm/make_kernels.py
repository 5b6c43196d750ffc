#!/usr/bin/env python3
"""Prints kernels_<target>.ptx: one kernel for every scalar operation LLVM emits, c[t] = op(a[t], b[t]) for thread t.

Needs llc of LLVM 22 in PATH; the tests only need the files that are here. The name says operation and types, and
llvm_kernels_test.cpp computes the same from it.
"""
import re
import subprocess

TARGETS = {"sm_80": 70, "sm_90a": 80}
INTS = ("i8", "i16", "i32", "i64")
FLOATS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}
kernels, declarations = [], set()


def kernel(name, a, b, r, body):
    """a, b: element types of the operands (b may be None); body computes %r from %x and %y."""
    lines = [f"define ptx_kernel void @{name}(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c) {{",
             "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"]
    for value, ptr, ty in (("x", "a", a), ("y", "b", b)):
        if ty:
            lines += [f"  %p{value} = getelementptr {ty}, ptr addrspace(1) %{ptr}, i32 %t", f"  %{value} = load {ty}, ptr addrspace(1) %p{value}"]
    lines += ["  " + line for line in body]
    lines += [f"  %pr = getelementptr {r}, ptr addrspace(1) %c, i32 %t", f"  store {r} %r, ptr addrspace(1) %pr", "  ret void", "}"]
    kernels.append("\n".join(lines))


def intrinsic(r, name, *types):
    declarations.add(f"declare {r} @llvm.{name}({', '.join(types)})")
    return f"@llvm.{name}"


def bits(t):
    return int(re.sub(r"\D", "", t))


for t in INTS:
    for op in ("add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor"):
        kernel(f"{op}_{t}", t, t, t, [f"%r = {op} {t} %x, %y"])
    for op in ("shl", "lshr", "ashr"):
        kernel(f"{op}_{t}", t, t, t, [f"%s = and {t} %y, {bits(t) - 1}", f"%r = {op} {t} %x, %s"])
    for op in ("smin", "smax", "umin", "umax", "uadd.sat", "sadd.sat", "usub.sat", "ssub.sat"):
        f = intrinsic(t, f"{op}.{t}", t, t)
        kernel(f"{op.replace('.', '')}_{t}", t, t, t, [f"%r = call {t} {f}({t} %x, {t} %y)"])
    for op in ("fshl", "fshr"):
        f = intrinsic(t, f"{op}.{t}", t, t, t)
        kernel(f"{op}_{t}", t, t, t, [f"%r = call {t} {f}({t} %x, {t} %x, {t} %y)"])
    for op in ("ctpop", "bitreverse", "bswap", "ctlz", "cttz", "abs"):
        if op == "bswap" and t == "i8":
            continue
        flag = op in ("ctlz", "cttz", "abs")
        f = intrinsic(t, f"{op}.{t}", t, *(["i1"] if flag else []))
        kernel(f"{op}_{t}", t, None, t, [f"%r = call {t} {f}({t} %x{', i1 false' if flag else ''})"])
    for p in ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"):
        kernel(f"icmp{p}_{t}", t, t, "i8", [f"%p = icmp {p} {t} %x, %y", "%r = zext i1 %p to i8"])
    for u in INTS:
        for op in ("trunc",) if bits(u) < bits(t) else ("sext", "zext") if bits(u) > bits(t) else ():
            kernel(f"{op}_{t}_{u}", t, None, u, [f"%r = {op} {t} %x to {u}"])

for s, t in FLOATS.items():
    for op in ("fadd", "fsub", "fmul", "fdiv"):
        kernel(f"{op}_{s}", t, t, t, [f"%r = {op} {t} %x, %y"])
    for op in ("minnum", "maxnum", "minimum", "maximum", "copysign"):
        f = intrinsic(t, f"{op}.{s}", t, t)
        kernel(f"{op}_{s}", t, t, t, [f"%r = call {t} {f}({t} %x, {t} %y)"])
    for op in ("fabs", "sqrt", "floor", "ceil", "trunc", "rint", "round", "roundeven"):
        f = intrinsic(t, f"{op}.{s}", t)
        kernel(f"{'f' if op == 'trunc' else ''}{op}_{s}", t, None, t, [f"%r = call {t} {f}({t} %x)"])
    f = intrinsic(t, f"fma.{s}", t, t, t)
    kernel(f"fma_{s}", t, t, t, [f"%r = call {t} {f}({t} %x, {t} %y, {t} %y)"])
    kernel(f"fneg_{s}", t, None, t, [f"%r = fneg {t} %x"])
    for p in ("oeq", "one", "olt", "ole", "ogt", "oge", "ord", "ueq", "une", "ult", "ule", "ugt", "uge", "uno"):
        kernel(f"fcmp{p}_{s}", t, t, "i8", [f"%p = fcmp {p} {t} %x, %y", "%r = zext i1 %p to i8"])
    for i in INTS:
        for op in ("sitofp", "uitofp"):
            kernel(f"{op}_{i}_{s}", i, None, t, [f"%r = {op} {i} %x to {t}"])
        for op in ("fptosi", "fptoui"):
            f = intrinsic(i, f"{op}.sat.{i}.{s}", t)
            kernel(f"{op}_{s}_{i}", t, None, i, [f"%r = call {i} {f}({t} %x)"])
    for s2, t2 in FLOATS.items():
        if bits(s2) != bits(s):
            op = "fptrunc" if bits(s2) < bits(s) else "fpext"
            kernel(f"{op}_{s}_{s2}", t, None, t2, [f"%r = {op} {t} %x to {t2}"])

module = "\n".join(['target triple = "nvptx64-nvidia-cuda"', "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()", *sorted(declarations), *kernels]) + "\n"
for target, ptx in TARGETS.items():
    text = subprocess.run(["llc", f"-mcpu={target}", f"-mattr=+ptx{ptx}"], input=module, capture_output=True, text=True, check=True).stdout
    text = re.sub(r"[ \t]*//.*", "", text)
    text = "// Printed by make_kernels.py with LLVM 22.\n" + "\n".join(line for line in text.splitlines() if line.strip()) + "\n"
    open(f"kernels_{target}.ptx", "w").write(text)
