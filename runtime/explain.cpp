#include "runtime/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace kiln {
namespace {

/// What a multiprocessor has; one row a target.
struct Multiprocessor {
  const char* target;
  std::uint32_t threads, blocks;
  std::uint64_t shared_bytes;  ///< for all blocks, the 1 KB that the system takes of each included
};
constexpr Multiprocessor kMultiprocessors[] = {{"sm_80", 2048, 32, 164 << 10},   {"sm_86", 1536, 16, 100 << 10},
                                               {"sm_89", 1536, 24, 100 << 10},   {"sm_90a", 2048, 32, 228 << 10},
                                               {"sm_100a", 2048, 32, 228 << 10}, {"sm_120a", 1536, 24, 100 << 10}};
constexpr std::uint32_t kRegisters = 65536, kMostRegisters = 255, kReservedShared = 1 << 10;

const Multiprocessor& multiprocessor(const std::string& target) {
  const auto row = std::find_if(std::begin(kMultiprocessors), std::end(kMultiprocessors),
                                [&](const Multiprocessor& m) { return target == m.target; });
  return row == std::end(kMultiprocessors) ? kMultiprocessors[0] : *row;
}

std::string grid_in_words(const rt::LaunchRecipe& r) {
  const std::string team = r.cluster[0] > 1 ? fmt::format("a cluster of {} blocks", r.cluster[0]) : "a block";
  switch (r.grid) {
    case rt::GridRule::Identity: return team + " a program";
    case rt::GridRule::CeilDiv: return fmt::format("{} for {} programs", team, r.programs_per_cta);
    case rt::GridRule::Persistent:
      return fmt::format("as many times {} as run at once; each walks over programs", team);
  }
  return {};
}

void count_occupancy(Explanation& e, const rt::LaunchRecipe& r) {
  const Multiprocessor& sm = multiprocessor(e.target);
  const std::uint32_t warps = (e.threads + 31) / 32;
  const std::uint32_t a_warp = (e.registers * 32 + 255) / 256 * 256;  // registers are given out by 256
  const std::pair<const char*, std::uint64_t> limits[] = {
      {"shared memory", sm.shared_bytes / (r.smem_bytes + kReservedShared)},
      {"registers", kRegisters / (std::uint64_t(a_warp) * warps)},
      {"threads", sm.threads / (warps * 32)},
      {"blocks", sm.blocks}};
  const auto least = std::min_element(std::begin(limits), std::end(limits),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  e.limited_by = least->first;
  e.blocks_per_sm = std::uint32_t(least->second);
  e.warps_per_sm = e.blocks_per_sm * warps;
  e.most_warps_per_sm = sm.threads / 32;
}

/// The mnemonic at the beginning of a PTX line, behind its predicate; empty where there is none.
std::string_view mnemonic(std::string_view line) {
  const auto skip_blanks = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t{"), line.size())); };
  skip_blanks();
  if (line.starts_with('@')) {
    line.remove_prefix(std::min(line.find(' '), line.size()));
    skip_blanks();
  }
  return line.substr(0, line.find_first_of(" \t;"));
}

/// "wgmma m64n256k16 f32.bf16.bf16", of a matrix instruction.
std::string matrix_words(std::string_view op) {
  std::size_t shape = 0;
  do shape = op.find(".m", shape) + 1;
  while (shape != 0 && !(shape + 1 < op.size() && op[shape + 1] >= '0' && op[shape + 1] <= '9'));
  if (shape == 0) return {};
  op.remove_prefix(shape);
  const std::size_t end = std::min(op.find('.'), op.size());
  std::string_view types = op.substr(std::min(end + 1, op.size()));
  if (constexpr std::string_view kLayouts = "row.col."; types.starts_with(kLayouts))
    types.remove_prefix(kLayouts.size());
  return fmt::format("{} {}", op.substr(0, end), types);
}

std::string move_words(std::string_view op) {
  if (op.starts_with("cp.async.bulk.tensor") || op.starts_with("cp.async.bulk"))
    return op.find("global.shared") != op.npos ? "copies of tensor maps to global memory"
           : op.find("multicast") != op.npos   ? "copies of tensor maps, one for all blocks of a cluster"
                                               : "copies of tensor maps from global memory";
  if (op.starts_with("cp.async.c"))
    return op.starts_with("cp.async.cg") || op.starts_with("cp.async.ca") ? "cp.async to shared memory" : "";
  if (op.starts_with("ldmatrix")) return "ldmatrix";
  if (op.starts_with("stmatrix")) return "stmatrix";
  if (op.starts_with("ld.global") || op.starts_with("st.global"))
    return fmt::format("{}.global{}", op.substr(0, 2),
                       op.find(".v4") != op.npos   ? " by vectors of 4"
                       : op.find(".v2") != op.npos ? " by vectors of 2"
                                                   : "");
  if (op.starts_with("atom.") || op.starts_with("red.global") || op.starts_with("red.async")) return "atomics";
  if (op.starts_with("setmaxnreg")) return "registers moved between roles (setmaxnreg)";
  return {};
}

void read_instructions(Explanation& e, std::string_view ptx) {
  std::set<std::string> multiplies, moves;
  while (!ptx.empty()) {
    const std::size_t end = std::min(ptx.find('\n'), ptx.size());
    const std::string_view op = mnemonic(ptx.substr(0, end));
    ptx.remove_prefix(std::min(end + 1, ptx.size()));
    if (op.starts_with("wgmma.mma_async") || op.starts_with("mma.sync"))
      multiplies.insert(fmt::format("{} {}", op.starts_with("wgmma") ? "wgmma" : "mma.sync", matrix_words(op)));
    else if (std::string words = move_words(op); !words.empty()) moves.insert(std::move(words));
  }
  e.multiplies.assign(multiplies.begin(), multiplies.end());
  e.moves.assign(moves.begin(), moves.end());
}

}  // namespace

Explanation explain(const rt::KernelImage& image, const Device& device) {
  const rt::LaunchRecipe& r = image.recipe();
  Explanation e;
  e.kernel = image.name;
  e.target = image.target;
  e.definition = image.definition.str();
  e.grid = grid_in_words(r);
  e.threads = r.block[0] * r.block[1] * r.block[2];
  e.cluster = r.cluster[0];
  e.registers_known = image.report.registers >= 0;
  const std::uint32_t cap = r.max_registers != 0 ? r.max_registers : kMostRegisters;
  e.registers = e.registers_known ? std::uint32_t(image.report.registers)
                                  : std::min(cap, kRegisters / std::max(e.threads, 32u) / 8 * 8);
  e.spill_bytes = image.report.spill_bytes;
  e.shared_bytes = r.smem_bytes;
  e.most_shared_bytes = device.max_shared_bytes();
  count_occupancy(e, r);
  read_instructions(e, image.ptx);
  e.facts = image.report.facts;
  return e;
}

std::string Explanation::text() const {
  std::string out = fmt::format("{} for {} ({})\n", kernel, target, definition);
  const auto line = [&](const char* what, const std::string& value) {
    out += fmt::format("  {:<14} {}\n", what, value);
  };
  line("grid", grid);
  line("threads", fmt::format("{} a block", threads));
  line("registers",
       fmt::format("{}{} a thread{}", registers_known ? "" : "at most ", registers,
                   spill_bytes < 0    ? "; how many, and whether any spill, is known once a GPU has assembled it"
                   : spill_bytes == 0 ? ", no spills"
                                      : fmt::format(", {} bytes spilled", spill_bytes)));
  line("shared memory", fmt::format("{} of {} bytes", shared_bytes, most_shared_bytes));
  const bool at_least = !registers_known && limited_by == "registers";
  line("occupancy",
       fmt::format("{}{} block{} and {} of {} warps a multiprocessor, limited by {}", at_least ? "at least " : "",
                   blocks_per_sm, blocks_per_sm == 1 ? "" : "s", warps_per_sm, most_warps_per_sm, limited_by));
  for (const std::string& m : multiplies) line(&m == &multiplies[0] ? "multiplies by" : "", m);
  for (const std::string& m : moves) line(&m == &moves[0] ? "moves by" : "", m);
  for (const std::string& f : facts) line(&f == &facts[0] ? "report" : "", f);
  return out;
}

std::string Explanation::json() const {
  nlohmann::ordered_json j;
  j["kernel"] = kernel;
  j["target"] = target;
  j["definition"] = definition;
  j["grid"] = grid;
  j["threads"] = threads;
  j["cluster"] = cluster;
  j["registers"] = registers;
  j["registers_known"] = registers_known;
  j["spill_bytes"] = spill_bytes;
  j["shared_bytes"] = shared_bytes;
  j["most_shared_bytes"] = most_shared_bytes;
  j["blocks_per_sm"] = blocks_per_sm;
  j["warps_per_sm"] = warps_per_sm;
  j["most_warps_per_sm"] = most_warps_per_sm;
  j["limited_by"] = limited_by;
  j["multiplies"] = multiplies;
  j["moves"] = moves;
  j["facts"] = facts;
  return j.dump();
}

}  // namespace kiln
