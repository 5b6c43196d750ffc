// The reference interpreter: program after program, instruction after instruction, each over whole tiles.
#include "backend/ir/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/numeric.h"
#include "backend/ir/op/report.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

void check_args(const Function& f, const std::vector<EvalArg>& args) {
  if (args.size() != f.params.size())
    throw UserError(f.loc,
                    fmt::format("{}: {} arguments given, kernel takes {}", f.name, args.size(), f.params.size()));
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Type& t = f.params[i].type;
    const DType wanted = t.ptr ? DType::u64 : t.dtype;
    if (args[i].dtype != wanted)
      throw UserError(f.loc, fmt::format("{}: argument {} ({}): expected {}, got {}", f.name, i, f.params[i].name,
                                         name(wanted), name(args[i].dtype)));
  }
}

/// "4 bytes past the end of the block of 256 bytes at 0x1000", for the block nearest to `address`.
std::string nearest_block(std::uint64_t address, std::uint64_t bytes, const std::vector<EvalBlock>& blocks) {
  std::uint64_t best = ~std::uint64_t(0);
  std::string text = "there is no memory at all";
  for (const EvalBlock& b : blocks) {
    const std::uint64_t end = b.address + b.bytes;
    const bool before = address < b.address;
    const std::uint64_t distance = before ? b.address - address : address + bytes - end;
    if (distance >= best) continue;
    best = distance;
    text = fmt::format("{} bytes {} the block of {} bytes at {:#x}", distance, before ? "before" : "past the end of",
                       b.bytes, b.address);
  }
  return text;
}

}  // namespace

namespace {
// Addresses of shared memory, above all others: allocations lie apart, so a stray access is outside of them.
constexpr std::uint64_t kSharedBase = std::uint64_t(1) << 62, kSharedGap = 4096;
}  // namespace

std::size_t element_bytes(const Type& t) { return t.ptr ? sizeof(std::uint64_t) : std::size_t(bytes(t.dtype)); }

Evaluator::Evaluator(const Function& f, const EvalGrid& grid, const std::vector<EvalArg>& args,
                     const std::vector<EvalBlock>& blocks, EvalReport report)
    : f_(f), grid_(grid), args_(args), storage_(f.value_count()), report_(report) {
  for (const EvalBlock& b : blocks)
    if (b.bytes > 0) blocks_.push_back(b);
  std::sort(blocks_.begin(), blocks_.end(),
            [](const EvalBlock& a, const EvalBlock& b) { return a.address < b.address; });
}

void Evaluator::run(const std::array<std::int64_t, 3>& pid) {
  pid_ = pid;
  std::erase_if(blocks_, [](const EvalBlock& b) { return b.address >= kSharedBase; });
  shared_.clear();
  slots_.clear();
  taken_ = false;
  shared_end_ = kSharedBase;
  run_region(f_.body());
}

std::uint32_t Evaluator::site_of(const Inst& inst) {
  const auto [at, is_new] = sites_.emplace(&inst, 0);
  if (is_new) {
    const std::vector<rt::ReportSite> all = report_sites(f_);
    at->second = std::uint32_t(std::find(all.begin(), all.end(), report_site(f_, inst)) - all.begin());
  }
  return at->second;
}

std::uint64_t Evaluator::shared_memory(const Inst& alloc, std::size_t bytes) {
  const auto [at, is_new] = shared_.try_emplace(&alloc);
  if (is_new) {
    // What was never written reads as this.
    constexpr auto kPoison = std::byte(0xcb);
    at->second = {shared_end_, std::make_unique<std::byte[]>(bytes)};
    std::fill_n(at->second.data.get(), bytes, kPoison);
    blocks_.push_back({at->second.data.get(), bytes, shared_end_});
    shared_end_ += (bytes + 2 * kSharedGap - 1) / kSharedGap * kSharedGap;
  }
  return at->second.address;
}

std::vector<std::uint64_t> Evaluator::take_slot(const Inst& take) {
  if (slots_.empty() || taken_) throw UserError(take.loc, "take: the ring has no full slot, which never ends on a GPU");
  taken_ = true;
  std::vector<std::uint64_t> addresses;
  for (std::vector<std::byte>& block : slots_.front()) {
    addresses.push_back(shared_end_);
    blocks_.push_back({block.data(), block.size(), shared_end_});
    shared_end_ += (block.size() + 2 * kSharedGap - 1) / kSharedGap * kSharedGap;
  }
  return addresses;
}

void Evaluator::release_slot() {
  blocks_.resize(blocks_.size() - slots_.front().size());  // what was taken stands last, by address
  last_block_ = 0;
  slots_.pop_front();
  taken_ = false;
}

void Evaluator::run_region(RegionId r) {
  for (InstId i : f_.region(r).insts) {
    const Inst& inst = f_.inst(i);
    switch (inst.op) {
#define KILN_EW(Enum, ...)         \
  case Op::Enum:                   \
    eval_elementwise(*this, inst); \
    break;
#define KILN_OP(Enum, ...)    \
  case Op::Enum:              \
    eval_##Enum(*this, inst); \
    break;
#include "backend/ir/ops.def"
    }
  }
}

std::byte* Evaluator::define(Value v) {
  std::unique_ptr<std::byte[]>& storage = storage_[v.id];
  if (!storage) storage.reset(new std::byte[elements(v) * element_bytes(type(v))]);
  return storage.get();
}

void Evaluator::assign(std::span<const Value> to, std::span<const Value> from) {
  std::vector<std::vector<std::byte>> copies;
  for (Value v : from) {
    const std::byte* first = data(v);
    copies.emplace_back(first, first + elements(v) * element_bytes(type(v)));
  }
  for (std::size_t i = 0; i < to.size(); ++i) std::memcpy(define(to[i]), copies[i].data(), copies[i].size());
}

std::byte* Evaluator::access(std::uint64_t address, std::size_t bytes, const Inst& inst, std::size_t element) {
  const auto holds = [&](const EvalBlock& b) {
    return address >= b.address && b.bytes >= bytes && address - b.address <= b.bytes - bytes;
  };
  if (address % bytes != 0) access_error(address, bytes, inst, element);
  if (last_block_ >= blocks_.size() || !holds(blocks_[last_block_])) {
    const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), address,
                                        [](std::uint64_t a, const EvalBlock& b) { return a < b.address; });
    if (after == blocks_.begin() || !holds(after[-1])) access_error(address, bytes, inst, element);
    last_block_ = std::size_t(after - blocks_.begin()) - 1;
  }
  const EvalBlock& b = blocks_[last_block_];
  return b.data + (address - b.address);
}

void Evaluator::access_error(std::uint64_t address, std::size_t bytes, const Inst& inst, std::size_t element) const {
  const std::string where = fmt::format("{}: {} bytes at {:#x} (element {} of program ({},{},{}))", mnemonic(inst.op),
                                        bytes, address, element, pid_[0], pid_[1], pid_[2]);
  if (address == 0) throw UserError(inst.loc, where + ": null pointer");
  if (address % bytes != 0) throw UserError(inst.loc, where + fmt::format(" are not aligned to {} bytes", bytes));
  throw UserError(inst.loc, where + " are outside all memory, " + nearest_block(address, bytes, blocks_));
}

void eval(const Function& f, const EvalGrid& grid, const std::vector<EvalArg>& args,
          const std::vector<EvalBlock>& blocks, EvalReport report) {
  check_args(f, args);
  Evaluator e(f, grid, args, blocks, report);
  for (std::int64_t z = 0; z < grid.programs[2]; ++z)
    for (std::int64_t y = 0; y < grid.programs[1]; ++y)
      for (std::int64_t x = 0; x < grid.programs[0]; ++x) e.run({x, y, z});
}

Literal eval_elementwise(Op op, const std::vector<Literal>& operands) {
  KILN_CHECK(int(operands.size()) == info(op).arity, std::string("operands of ") + mnemonic(op));
  std::array<std::uint64_t, 3> in{};
  std::array<const void*, 3> pointers{};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    in[i] = operands[i].bits;
    pointers[i] = &in[i];
  }
  Literal result{info(op).rule == TypeRule::Cmp ? DType::i1 : operands[0].dtype, 0};
  elementwise_kernel(op, operands[0].dtype, pointers.data(), &result.bits, 1);
  return result;
}

Literal eval_cast(const Literal& x, DType to, bool saturate) {
  return num::dispatch(x.dtype, [&]<class From>(std::type_identity<From>) {
    return num::dispatch(to, [&]<class To>(std::type_identity<To>) {
      return Literal{to, num::to_bits(num::convert<To>(num::from_bits<From>(x.bits), saturate))};
    });
  });
}

}  // namespace kiln::ir
