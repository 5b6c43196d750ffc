// compile: the pipeline, LLVM, and what a launch needs to know of the result.
#include "backend/compile.h"

#include <fmt/format.h>

#include "backend/ir/op/report.h"
#include "backend/ir/op/scratch.h"
#include "backend/ir/op/store_block.h"
#include "backend/ir/signature.h"
#include "backend/ir/text.h"
#include "backend/llvm/emit.h"
#include "backend/llvm/generate.h"
#include "backend/llvm/nvptx.h"
#include "backend/pass/artefacts.h"
#include "backend/pass/name_values.h"
#include "backend/pass/pass.h"
#include "backend/pipeline.h"
#include "backend/source_hash.h"
#include "runtime/base/env.h"
#include "runtime/base/error.h"

namespace kiln {
namespace {

rt::LaunchRecipe recipe(const ir::Function& f, const Target& target) {
  const ir::Exec& exec = *f.exec;
  rt::LaunchRecipe r;
  r.block = {std::uint32_t(32 * (exec.warps * exec.programs_per_cta + exec.producer)), 1, 1};
  if (exec.programs_per_cta > 1) r.grid = rt::GridRule::CeilDiv;
  const ir::InstId walk = ir::walk_of(f);
  if (walk != ir::kNone) r.grid = rt::GridRule::Persistent;
  r.programs_per_cta = std::uint32_t(exec.programs_per_cta);
  r.cluster = {walk != ir::kNone && f.inst(walk).i64(ir::AttrKey::pair) != 0 ? 2u : std::uint32_t(exec.cluster), 1, 1};
  r.max_registers = std::uint32_t(exec.max_registers);
  r.smem_bytes = std::uint32_t(ir::shared_bytes(f) * exec.programs_per_cta);
  r.pdl = target.has_dependent_launch();
  r.hidden = cg::hidden_params(f);
  r.tensor_maps = ir::kernel_maps(f);
  return r;
}

/// The recipe with each cap on registers that is worth a try, the tightest first; the device takes the first by which
/// nothing spills.
std::vector<rt::LaunchRecipe> candidates(const ir::Function& f, const Target& target) {
  constexpr std::uint32_t kRegistersPerSm = 65536;
  rt::LaunchRecipe r = recipe(f, target);
  std::vector<rt::LaunchRecipe> list;
  if (const auto goal = std::uint32_t(f.exec->register_goal); goal != 0)
    for (std::uint32_t cap : {goal, 80u, 96u}) {
      if (cap < goal || (cap == goal && !list.empty()) || cap * r.block[0] > kRegistersPerSm) continue;
      r.max_registers = cap;
      list.push_back(r);
    }
  r.max_registers = std::uint32_t(f.exec->max_registers);
  list.push_back(r);
  return list;
}

/// Bytes that loads or stores of one program move if no lane is masked; -1 if a branch or loop decides.
double bytes_moved(const ir::Function& f, ir::Op op) {
  double total = 0;
  ir::walk(f, [&](ir::InstId i) {
    const ir::Inst& inst = f.inst(i);
    if (inst.op != op || total < 0) return;
    const ir::Type& pointer = f.type(inst.operands[0]);
    total = inst.parent != f.body() ? -1 : total + double(pointer.tile ? pointer.elements() : 1) * bytes(pointer.dtype);
  });
  return total;
}

rt::KernelReport report(const ir::Function& f, const rt::ArgSig& sig) {
  rt::KernelReport r;
  r.bytes_read_per_program = bytes_moved(f, ir::Op::Load);
  r.bytes_written_per_program = bytes_moved(f, ir::Op::Store);
  for (const rt::Arg& a : sig.args) {
    if (a.is_one) r.facts.push_back(a.name + " is 1");
    else if (a.kind == rt::ArgKind::Pointer)
      r.facts.push_back(fmt::format("{} is aligned to {} bytes", a.name, a.align));
    if (a.disjoint) r.facts.push_back(a.name + " overlaps no other argument that is written");
    if (a.kind == rt::ArgKind::Scalar && a.align > 1) r.facts.push_back(fmt::format("{} is divisible by {}", a.name, a.align));
  }
  return r;
}

}  // namespace

rt::KernelImage compile(const ir::Function& function, const Target& wanted, const CompileOptions& options,
                        CompileStats* stats) {
  const Target minimal = target_named(wanted.arch, wanted.ptx);
  Target target = wanted;
  target.ptx = minimal.ptx;
  ir::Function f = function;
  if (options.debug && f.stage == ir::Stage::Traced) ir::name_values(f);
  ir::Artefacts artefacts(f, target, options);
  if (f.stage < ir::Stage::Allocated) run_pipeline(f, target, options, stats, &artefacts);

  rt::KernelImage image;
  image.name = cg::entry_name(f.name);
  image.target = target.arch;
  image.signature = ir::signature(f);
  image.candidates = candidates(f, target);
  image.report = report(f, image.signature);
  image.report.facts.insert(image.report.facts.begin(), f.notes.begin(), f.notes.end());
  image.definition = f.loc;
  image.sites = ir::report_sites(f);
  try {
    image.ptx = cg::generate(f, target, options.line_info, stats, artefacts);
  } catch (const InternalError& fault) {
    throw InternalError(fmt::format("{}; kernel {}, its IR is in {}", fault.what(), f.name,
                                    artefacts.reproducer("llvm", "kir", ir::print(f))));
  }
  image.params = rt::wide_entry_params(image.ptx, image.name);
  return image;
}

std::string compiler_version() {
  std::string passes;
  for (ir::Pass p : pipeline()) passes += std::string(passes.empty() ? "" : ",") + ir::name(p);
  return fmt::format("kiln {} {}; {}; {}", KILN_VERSION, KILN_SOURCE_HASH, passes, cg::llvm_version());
}

}  // namespace kiln
