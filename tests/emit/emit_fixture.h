// Compiles IR text to PTX, and compares the PTX with CHECK lines inside the IR text.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "backend/compile.h"
#include "backend/ir/text.h"
#include "tests/support/check_ir.h"

namespace kiln::test {

inline rt::KernelImage image_of(const std::string& text, const std::string& arch = "sm_90a",
                                const CompileOptions& options = {}, int driver_ptx = 0) {
  return compile(ir::parse(IrChecks::strip(text), "test.kir"), target_named(arch, driver_ptx), options);
}
inline std::string ptx_of(const std::string& text, const std::string& arch = "sm_90a",
                          const CompileOptions& options = {}) {
  return image_of(text, arch, options).ptx;
}

/// Times `part` occurs in `text`.
inline int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

/// `body` as a kernel at stage traced; `params` one a line.
inline std::string kernel(const std::string& params, const std::string& body) {
  return "kernel \"k\" stage=traced loc(\"k.cpp\":10:3)\n" + params + "{\n" + body + "}\n";
}

/// out[i] = in[i] for i < n, of `dtype`, in blocks of `block`; `facts` go to the parameters ("align=16").
inline std::string copy_kernel(const std::string& dtype, int block, const std::string& pointer_facts,
                               const std::string& n_facts, const std::string& load_attrs = "",
                               const std::string& store_attrs = "") {
  const std::string size = std::to_string(block), t = "tile<" + size + "x";
  return kernel("param \"in\" : ptr<const " + dtype + "> access=read " + pointer_facts + "\n" + "param \"out\" : ptr<" +
                    dtype + "> access=write " + pointer_facts + "\n" + "param \"n\" : index access=read " + n_facts +
                    "\n",
                "  %0 = param index=0 : ptr<const " + dtype + ">\n  %1 = param index=1 : ptr<" + dtype + ">\n" +
                    "  %2 = param index=2 : index\n  %3 = program_id axis=0 : index\n" +
                    "  %4 = constant value=index(" + size + ") : index\n  %5 = mul %3, %4 : index\n" +
                    "  %6 = arange start=0 end=" + size + " : " + t + "index>\n  %7 = splat %5 : " + t + "index>\n" +
                    "  %8 = add %7, %6 : " + t + "index>\n  %9 = splat %2 : " + t + "index>\n  %10 = lt %8, %9 : " + t +
                    "i1>\n" + "  %11 = splat %0 : " + t + "ptr<const " + dtype + ">>\n  %12 = ptr_add %11, %8 : " + t +
                    "ptr<const " + dtype + ">>\n" + "  %13 = load" + load_attrs + " %12, %10 : " + t + dtype + ">\n" +
                    "  %14 = splat %1 : " + t + "ptr<" + dtype + ">>\n  %15 = ptr_add %14, %8 : " + t + "ptr<" + dtype +
                    ">>\n" + "  store" + store_attrs + " %15, %13, %10\n");
}

}  // namespace kiln::test

/// The PTX of the kernel in `text` passes the checks inside.
#define EXPECT_PTX(text, ...) EXPECT_IR(::kiln::test::ptx_of(text __VA_OPT__(, ) __VA_ARGS__), text)
