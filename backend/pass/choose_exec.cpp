// choose-exec: who executes a program. Fills Function::exec from measured rules; what the user fixed wins.
//
//     kernel "add_relu" stage=traced           kernel "add_relu" stage=canonical
//                                       ->     exec team=cta warps=8 programs_per_cta=1 cluster=1 …
//     (tiles of 1024 f32, 2 loads, 1 store)
//
// A row (every tile has one axis of one extent, and is reduced along it) is run by one warp if it is short, two rows a
// block: nobody waits for another warp, and each lane has several vectors in flight. A longer one is a block's, with so
// many vectors a thread that loads of 64 KB are in flight on a multiprocessor, and few enough registers for that.
// Everything else is run by one block, or by a cluster of as many as the user asked for. Threads are chosen so that
// each owns the rule's number of 16-byte vectors of the largest tile that memory sees: 1024 f32 are 256 vectors, at one
// a thread 8 warps. Few vectors a thread keep many blocks in flight; more amortise index arithmetic and loads that
// several vectors share. No rule sets cache hints: since launches overlap, no hint measured more than 1 % better than
// none, in any kernel tried.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/ring.h"
#include "backend/pass/access.h"
#include "backend/pass/pass.h"
#include "backend/target.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

constexpr int kMaxCluster = 8;  ///< what every target with clusters takes
constexpr int kThreadsPerWarp = 32, kMaxThreads = 1024, kRegistersPerSm = 65536;
constexpr int kUsualWarps = 8;    ///< blocks of 512 and 1024 threads lose 1…2 % (gelu 4013, 3958, 3951 GB/s)
constexpr int kUsualVectors = 8;  ///< a thread with more gives work away to more warps instead
constexpr std::int64_t kMaxRegistersPerTile = 128;  ///< of a thread's 255: one tile must leave room for its operands

/// What the memory side of a kernel looks like.
struct Streams {
  std::int64_t elements = 0;  ///< of the largest accessed tile, padded
  int widest = 1;             ///< element bytes of tiles that large
  int own_loads = 0;          ///< loads of tiles that large which read other memory in each program
  bool shared = false;        ///< there are smaller tiles, whose elements several vectors use
};

// Vectors a thread of the largest tile that memory sees; GB/s on one H200, 16 bytes a vector.
/// add_relu on 1e8 f32: 1 vector 4389, 2 vectors 4332; copy of bf16 4288, with 4 vectors 3870; swiglu on 8192x14336
/// bf16 4395.
constexpr int kVectors = 1;
/// Several vectors share the elements of smaller tiles: gelu(x + b) * s + r on 8192x8192 bf16, 2 vectors 4352, with 4
/// 3922.
constexpr int kVectorsWhereShared = 2;

/// For each value, whether it follows from the number of the program. What loops carry counts by how it starts.
std::vector<bool> differs_by_program(const Function& f) {
  std::vector<bool> differs(f.value_count());
  walk(f, [&](InstId i) {
    const Inst& inst = f.inst(i);
    const bool any = inst.op == Op::ProgramId ||
                     std::any_of(inst.operands.begin(), inst.operands.end(), [&](Value v) { return differs[v.id]; });
    for (Value v : inst.results) differs[v.id] = any;
    for (RegionId r : inst.regions)
      for (Value v : f.region(r).params) differs[v.id] = any;
  });
  return differs;
}

Streams streams_of(const Function& f) {
  const std::vector<Access> accesses = tile_accesses(f);
  const std::vector<bool> differs = differs_by_program(f);
  Streams s;
  for (const Access& a : accesses) s.elements = std::max(s.elements, padded_elements(a.shape));
  for (const Access& a : accesses) {
    const bool full = padded_elements(a.shape) == s.elements;
    if (full) s.widest = std::max(s.widest, a.element_bytes);
    s.own_loads += full && !a.store && differs[a.ptr.id];
    s.shared = s.shared || !full;
  }
  return s;
}

int warps_for(const Streams& s) {
  const int vectors_per_thread = s.shared ? kVectorsWhereShared : kVectors;
  const std::int64_t vectors = std::max<std::int64_t>(s.elements * s.widest / 16, 1);
  std::int64_t threads =
      std::clamp<std::int64_t>(std::int64_t(std::bit_ceil(std::uint64_t(vectors / vectors_per_thread))),
                               kThreadsPerWarp, kUsualWarps * kThreadsPerWarp);
  while (threads < kMaxThreads && vectors / threads > kUsualVectors) threads *= 2;
  return int(threads) / kThreadsPerWarp;
}

/// Where the user asked for what is refused.
SourceLoc place(const Function& f, const CompileOptions& wish) { return wish.at.known() ? wish.at : f.loc; }

/// Registers that a tile takes in all threads together; 0 for pointers, indices and masks, which are computed where
/// they are needed.
std::int64_t registers_of(const Type& t) {
  if (!t.tile || t.ptr || t.dtype == DType::index || t.dtype == DType::i1) return 0;
  return padded_elements(t.shape) * std::max(bytes(t.dtype) / 4, 1);
}

/// So many warps that the largest tile fits their registers, where a block can have them: memory may see none of it
/// (random numbers, counts).
int warps_for_tiles(const Function& f, int cluster) {
  std::int64_t registers = 1;
  walk(f, [&](InstId i) {
    for (Value v : f.inst(i).results) registers = std::max(registers, registers_of(f.type(v)));
  });
  const std::int64_t a_warp_holds = kMaxRegistersPerTile * kThreadsPerWarp * cluster;
  const auto warps = std::int64_t(std::bit_ceil(std::uint64_t((registers + a_warp_holds - 1) / a_warp_holds)));
  return int(std::min<std::int64_t>(warps, kMaxThreads / kThreadsPerWarp));
}

/// For a kernel that multiplies matrices: threads own 64 sums of 4 bytes (8x8 of them read the fewest operands), and at
/// most as many registers of any other tile; at least a warp for each of a multiprocessor's four schedulers. 0: no
/// product.
int warps_for_products(const Function& f) {
  std::int64_t registers = 0;
  bool multiplies = false;
  walk(f, [&](InstId i) {
    multiplies = multiplies || f.inst(i).op == Op::Dot;
    for (Value v : f.inst(i).results) registers = std::max(registers, registers_of(f.type(v)));
  });
  if (!multiplies) return 0;
  const std::int64_t warps = std::int64_t(std::bit_ceil(std::uint64_t(registers / (64 * kThreadsPerWarp))));
  return int(std::clamp<std::int64_t>(warps, 4, kMaxThreads / kThreadsPerWarp));
}

void check_warps(const Function& f, const CompileOptions& wish, int warps) {
  if (const std::int64_t threads = std::int64_t(warps) * kThreadsPerWarp; threads > kMaxThreads)
    throw UserError(place(f, wish), fmt::format("{}: num_warps {} is {} threads, at most {} fit a block", f.name, warps,
                                                threads, kMaxThreads));
  if (warps < 1 || !std::has_single_bit(unsigned(warps)))
    throw UserError(place(f, wish), fmt::format("{}: num_warps is {}, must be 1, 2, 4, 8, 16 or 32", f.name, warps));
}

/// Ops whose elements stay in their thread, and those that reach the other blocks of a cluster.
bool spans_blocks(Op op) {
  if (info(op).elementwise) return true;
  switch (op) {
    case Op::Constant:
    case Op::Param:
    case Op::ProgramId:
    case Op::NumPrograms:
    case Op::Arange:
    case Op::Splat:
    case Op::ExpandDims:
    case Op::Broadcast:
    case Op::Cast:
    case Op::Bitcast:
    case Op::Select:
    case Op::PtrAdd:
    case Op::Opaque:
    case Op::Name:
    case Op::Reduce:
    case Op::Scan:
    case Op::Load:
    case Op::Store:
    case Op::AtomicRmw:
    case Op::AtomicCas:
    case Op::For:
    case Op::While:
    case Op::If:
    case Op::Yield: return true;
    default: return false;
  }
}

/// A program of several blocks: its tiles are spread over them.
void check_cluster(const Function& f, const CompileOptions& wish, const Target& target) {
  if (wish.cluster == 0 || wish.cluster == 1) return;
  if (wish.cluster < 1 || wish.cluster > kMaxCluster || !std::has_single_bit(unsigned(wish.cluster)))
    throw UserError(place(f, wish), fmt::format("{}: cluster is {}, must be 1, 2, 4 or 8", f.name, wish.cluster));
  if (!target.has_cluster())
    throw UserError(place(f, wish), fmt::format("{}: cluster is {}, but {} has no clusters: it must be 1", f.name,
                                                wish.cluster, target.arch));
  walk(f, [&](InstId i) {
    const Inst& inst = f.inst(i);
    if (!spans_blocks(inst.op))
      throw UserError(inst.loc, fmt::format("{}: cluster is {}, but {} works inside one block: it must be 1", f.name,
                                            wish.cluster, mnemonic(inst.op)));
  });
}

void check_registers(const Function& f, const CompileOptions& wish, const Exec& e) {
  const int threads = e.warps * kThreadsPerWarp;
  if (e.max_registers != 0 && (e.max_registers < 16 || e.max_registers > 255))
    throw UserError(place(f, wish), fmt::format("{}: max_registers is {}, must be 16 to 255", f.name, e.max_registers));
  if (e.max_registers * threads > kRegistersPerSm)
    throw UserError(place(f, wish),
                    fmt::format("{}: {} registers on {} threads are {}, a multiprocessor has {}", f.name,
                                e.max_registers, threads, e.max_registers * threads, kRegistersPerSm));
}

/// The largest tile must fit the threads' registers.
void check_tiles(const Function& f, const Exec& e) {
  const std::int64_t threads = std::int64_t(e.warps) * kThreadsPerWarp * e.cluster;
  walk(f, [&](InstId i) {
    for (Value v : f.inst(i).results) {
      const std::int64_t registers = registers_of(f.type(v)) / threads;
      if (registers > kMaxRegistersPerTile)
        throw UserError(f.inst(i).loc,
                        fmt::format("{}: {} needs {} registers a thread on {} threads, at most {} are allowed: make "
                                    "the tile smaller{}",
                                    f.name, f.type(v).str(), registers, threads, kMaxRegistersPerTile,
                                    threads < kMaxThreads * e.cluster ? " or num_warps larger" : ""));
    }
  });
}

/// Bytes of the row that a program works on; 0 where its tiles are no rows of one extent, nothing is reduced, or it
/// uses what only a whole block has.
std::int64_t row_bytes(const Function& f, const Streams& s) {
  std::int64_t extent = 0;
  bool rows = true, reduces = false;
  walk(f, [&](InstId i) {
    const Op op = f.inst(i).op;
    reduces = reduces || op == Op::Reduce;
    rows = rows && op != Op::Barrier && op != Op::Alloc && op != Op::InlinePtx;
    for (Value v : f.inst(i).results) {
      const Type& t = f.type(v);
      if (!t.tile) continue;
      if (extent == 0 && !t.shape.empty()) extent = t.shape[0];
      rows = rows && t.shape.size() == 1 && t.shape[0] == extent;
    }
  });
  return rows && reduces ? extent * s.widest : 0;
}

/// Rows of up to 2 KB are one warp's: softmax of 1024 bf16 3988 GB/s, with 64 or 128 threads 3343; 1, 2, 4 rows a block
/// 3355, 4042, 4034.
/// With two inputs a warp has enough loads in flight at half of that: add + rmsnorm of 1024 bf16 4107, with 64 threads
/// 4118.
constexpr std::int64_t kWarpRowBytes = 2048, kWarpRowBytesOfTwo = 1024;
constexpr int kRowsPerBlock = 2;
/// Longer ones are a block's, with 4 to 6 vectors a thread: layernorm of 4096 bf16 4017 with 4, 3796 with 2; of 5000
/// 4043 with 5, 3428 with 3; of 1536 4071 with 3, 3449 with 2; softmax of 12288 4097 with 6, 3507 with 3.
constexpr std::int64_t kVectorsOfARow = 6;
constexpr std::int64_t kFewestThreads = 64;  ///< an SM holds 32 blocks: smaller ones would leave it half empty
/// Rows of more than 48 KB: 8 vectors a thread, so that two blocks fit an SM and one computes while the other loads
/// (softmax of 32768 bf16 4042, with 1024 threads 2764); two inputs are enough loads for one block (4134; 3527).
constexpr std::int64_t kHalfBlock = 512, kVectorsOfALongRow = 8;
/// 64 registers let 1024 threads run: layernorm of 32768 bf16 3952, with the 74 that the assembler takes 3422.
constexpr int kRowRegisters = 64, kWarpRowRegisters = 80;

std::int64_t row_threads(std::int64_t vectors, int loads) {
  std::int64_t threads = kFewestThreads;
  while (threads < kMaxThreads && vectors > threads * kVectorsOfARow) threads *= 2;
  if (threads > kHalfBlock && loads == 1 && vectors <= kHalfBlock * kVectorsOfALongRow) return kHalfBlock;
  return threads;
}

/// A program that works on one row; `least`: warps that its tiles need in any case.
void choose_for_row(Exec& e, const Streams& s, std::int64_t bytes, int least) {
  const bool warp = bytes <= (s.own_loads > 1 ? kWarpRowBytesOfTwo : kWarpRowBytes) && least == 1;
  e.team = warp ? Team::Warp : Team::Cta;
  e.warps = warp ? 1 : std::max(int(row_threads((bytes + 15) / 16, s.own_loads)) / kThreadsPerWarp, least);
  e.programs_per_cta = warp ? kRowsPerBlock : 1;
  e.register_goal = warp ? kWarpRowRegisters : kRowRegisters;
}

/// A program with a ring: those that compute, and a warpgroup that fills.
Exec for_ring(const Function& f) {
  Exec e;
  walk(f, [&](InstId i) {
    if (f.inst(i).op == Op::RingDot) e.warps = ring_warps(f.inst(i).ints(AttrKey::extents)[0]);
  });
  e.producer = 4;
  return e;
}

}  // namespace

bool choose_exec(PassContext& context, Function& f) {
  const CompileOptions& wish = context.options;
  if (fill_of(f) != kNone) {
    f.exec = for_ring(f);
    check_tiles(f, *f.exec);
    return true;
  }
  check_cluster(f, wish, context.target);
  Streams streams = streams_of(f);
  Exec e;
  if (wish.cluster > 1) {
    e.team = Team::Cluster;
    e.cluster = wish.cluster;
    streams.elements = std::max<std::int64_t>(streams.elements / e.cluster, 1);
  }
  e.warps = wish.num_warps != 0 ? wish.num_warps : warps_for(streams);
  if (const int warps = warps_for_products(f); warps != 0 && wish.num_warps == 0) e.warps = warps;
  const int least = wish.num_warps != 0 ? wish.num_warps : warps_for_tiles(f, e.cluster);
  e.warps = std::max(e.warps, least);
  check_warps(f, wish, e.warps);
  e.max_registers = wish.max_registers;
  if (const std::int64_t bytes = row_bytes(f, streams); bytes > 0 && e.cluster == 1 && wish.num_warps == 0)
    choose_for_row(e, streams, bytes, least);
  if (wish.max_registers != 0) e.register_goal = 0;
  check_registers(f, wish, e);
  check_tiles(f, e);
  f.exec = e;
  return true;
}

}  // namespace kiln::ir
