// walk-programs: a team runs many programs with a ring, one after the other, so that the ring never runs dry between
// them and results leave under the next program's products.
//
//     %x = program_id axis=0               walk group=16 pair=1 {(%x : index, %y : index, %z : index, %exists : i1)
//     %y = program_id axis=1         ->      …
//     …                                      if %exists { store_block … }
//     store_block …                        }
//
// Order: along x in groups of so many programs that the rows they read stay in the L2 cache, then along y, where x and
// y are the rows and the columns of the products; else as the grid counts.
//
// Pairs: where an operand is the same for neighbours along an axis, the two blocks of a cluster run neighbours, and
// each brings one half of that operand to both. The larger operand is shared. Where there is no neighbour, a block
// computes what its neighbour computes, without storing it, and without loading what its neighbour may store.
//
// Programs that talk to each other (atomics, loops that wait) or ask how many they are stay one a block, as do those of
// a single warpgroup: they are small, and start faster.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backend/ir/op/store_block.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

/// Rows of the left operand whose programs are walked together: with 2048, a kernel written by hand read 1.23 GB of
/// DRAM at 8192^3 bf16, with 1024 more.
constexpr std::int64_t kGroupRows = 2048;

class Walking {
 public:
  explicit Walking(Function& f) : f_(f), fill_(fill_of(f)), blocks_(ring_blocks(f, f.inst(fill_))) {}

  /// Why programs stay one a team; empty: they need not.
  std::string obstacle() const {
    if (f_.exec->warps < 8) return "blocks of 64 rows run one program each";
    std::string why;
    walk(f_, [&](InstId i) {
      if (stays(f_.inst(i).op)) why = fmt::format("{} sees how programs are run", mnemonic(f_.inst(i).op));
    });
    return why;
  }

  /// The axis along which neighbours share the most bytes, and which blocks of the ring; nothing if none.
  bool choose_pair() {
    std::int64_t most = 0;
    for (std::int64_t axis : {0, 1}) {
      if (surroundings_follow(axis)) continue;
      std::int64_t bytes = 0, both = 0;
      for (std::size_t k = 0; k < blocks_.size(); ++k) {
        if (block_follows(k, axis) || !blocks_[k].can_be_halved()) continue;
        bytes += blocks_[k].size();
        both |= std::int64_t(1) << k;
      }
      if (bytes <= most || both + 1 == std::int64_t(1) << blocks_.size()) continue;
      most = shared_ = bytes;
      pair_ = axis + 1;
      both_ = both;
    }
    return pair_ != 0;
  }

  /// For the kernel's report; `why`: what speaks against pairs.
  std::string decision(const std::string& why) const {
    if (pair_ == 0) return fmt::format("{}: each block runs programs of its own: {}", f_.loc.str(), why);
    return fmt::format(
        "{}: the two blocks of a cluster run programs beside each other along axis {}, and bring {} bytes that both "
        "need by halves",
        f_.loc.str(), pair_ - 1, shared_);
  }

  void rewrite() {
    const std::int64_t group = choose_group();
    const std::vector<InstId> whole = f_.region(f_.body()).insts;
    const InstId walks = f_.create(Op::Walk, {}, {}, {}, f_.loc);
    const RegionId programs = f_.add_region(walks);
    for (int axis = 0; axis < 3; ++axis) f_.add_region_param(programs, Type::scalar(DType::index));
    f_.add_region_param(programs, Type::scalar(DType::i1));
    ValueMap map;
    f_.clone_into(programs, f_.body(), map);
    f_.append(programs, f_.create(Op::Yield, {}, {}, {}, f_.loc));
    for (auto i = whole.rbegin(); i != whole.rend(); ++i) f_.remove(*i);
    f_.append(f_.body(), walks);
    set_attr(f_, walks, AttrKey::group, group);
    set_attr(f_, walks, AttrKey::pair, pair_);
    set_attr(f_, fill_of(f_), AttrKey::both, both_);
    number(programs);
    if (pair_ != 0) guard(f_.region(programs).params[3]);
  }

 private:
  static bool stays(Op op) {
    switch (op) {
      case Op::NumPrograms:
      case Op::AtomicRmw:
      case Op::AtomicCas:
      case Op::While:
      case Op::Print:
      case Op::Assert: return true;
      default: return false;
    }
  }

  /// Whether v follows from the program's number along `axis`.
  bool follows(Value v, std::int64_t axis) {
    const auto [known, is_new] = follows_[std::size_t(axis)].emplace(v.id, false);
    if (!is_new) return known->second;
    const InstId i = f_.def(v);
    std::vector<Value> from;
    if (i != kNone) {
      const Inst& inst = f_.inst(i);
      if (inst.op == Op::ProgramId) return follows_[std::size_t(axis)][v.id] = inst.i64(AttrKey::axis) == axis;
      from = inst.operands;
    } else if (const InstId owner = f_.region(f_.param_region(v)).owner; owner != kNone) {
      from = f_.inst(owner).operands;
    }
    const bool yes = std::any_of(from.begin(), from.end(), [&](Value x) { return follows(x, axis); });
    return follows_[std::size_t(axis)][v.id] = yes;
  }
  bool block_follows(std::size_t k, std::int64_t axis) {
    const std::vector<Value> array = f_.inst(fill_).operands;
    return std::any_of(array.begin() + std::ptrdiff_t(k * kFillOperands),
                       array.begin() + std::ptrdiff_t((k + 1) * kFillOperands),
                       [&](Value v) { return follows(v, axis); });
  }
  bool surroundings_follow(std::int64_t axis) {
    for (InstId i = f_.region(f_.inst(fill_).parent).owner; i != kNone; i = f_.region(f_.inst(i).parent).owner) {
      const std::vector<Value> operands = f_.inst(i).operands;
      const std::size_t deciding = f_.inst(i).op == Op::For ? 3 : operands.size();
      for (std::size_t k = 0; k < deciding; ++k)
        if (follows(operands[k], axis)) return true;
    }
    return false;
  }

  /// Steps along x that are walked together: of a block of the ring that follows from x alone, where another follows
  /// from y alone.
  std::int64_t choose_group() {
    std::int64_t rows = 0;
    bool columns = false;
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      const bool x = block_follows(k, 0), y = block_follows(k, 1);
      if (y && !x) columns = true;
      for (std::size_t d = 0; x && !y && d < 2; ++d)
        if (follows(f_.inst(fill_).operands[k * kFillOperands + 5 + d], 0)) rows = blocks_[k].extents[d];
    }
    if (rows == 0 || !columns) return 0;
    return std::max<std::int64_t>(kGroupRows / rows / (pair_ == 1 ? 2 : 1), 1);
  }

  void number(RegionId programs) {
    std::vector<InstId> ids;
    walk(f_, programs, [&](InstId i) {
      if (f_.inst(i).op == Op::ProgramId) ids.push_back(i);
    });
    for (InstId i : ids) {
      const auto axis = std::size_t(f_.inst(i).i64(AttrKey::axis));
      f_.replace_all_uses(f_.inst(i).results[0], f_.region(programs).params[axis]);
      f_.remove(i);
    }
  }

  void guard(Value exists) {
    std::vector<InstId> accesses;
    walk(f_, [&](InstId i) {
      const Inst& inst = f_.inst(i);
      if (inst.op == Op::Store || inst.op == Op::StoreBlock ||
          (inst.op == Op::Load && !reads_constant_memory(f_, inst.operands[0])))
        accesses.push_back(i);
    });
    for (InstId i : accesses) guard(i, exists);
  }
  /// Zeros where a load does not happen.
  void guard(InstId access, Value exists) {
    const Inst inst = f_.inst(access);
    std::vector<Type> types;
    for (Value v : inst.results) types.push_back(f_.type(v));
    const InstId branch = f_.create(Op::If, {exists}, types, {}, inst.loc);
    const RegionId yes = f_.add_region(branch), no = f_.add_region(branch);
    ValueMap same;
    const InstId copy = f_.clone(access, same);
    f_.append(yes, copy);
    f_.append(yes, f_.create(Op::Yield, f_.inst(copy).results, {}, {}, inst.loc));
    const InstId nothing = f_.create(Op::Yield, {}, {}, {}, inst.loc);
    f_.append(no, nothing);
    std::vector<Value> zeros;
    for (const Type& t : types) zeros.push_back(insert_constant(f_, nothing, {t.dtype, 0}, t, inst.loc));
    f_.set_operands(nothing, zeros);
    f_.insert_before(access, branch);
    for (std::size_t k = 0; k < types.size(); ++k) f_.replace_all_uses(inst.results[k], f_.inst(branch).results[k]);
    f_.remove(access);
  }

  Function& f_;
  const InstId fill_;
  const std::vector<RingBlock> blocks_;
  std::int64_t pair_ = 0, both_ = 0, shared_ = 0;  // shared_: bytes of a slot that both blocks of a pair need
  std::map<std::uint32_t, bool> follows_[2];
};

}  // namespace

bool walk_programs(PassContext& context, Function& f) {
  if (fill_of(f) == kNone) return false;
  const CompileOptions& wish = context.options;
  Walking walking(f);
  std::string why = walking.obstacle();
  const bool walks = why.empty();
  if (walks && wish.cluster != 1 && !walking.choose_pair())
    why = "no operand is the same for programs beside each other, or as often needed";
  if (wish.cluster == 2 && !why.empty())
    throw UserError(wish.at.known() ? wish.at : f.loc,
                    fmt::format("{}: cluster is 2, but {}: it must be 1", f.name, why));
  f.notes.push_back(walking.decision(why.empty() ? "cluster is 1" : why));
  if (walks) walking.rewrite();
  return walks;
}

}  // namespace kiln::ir
