// The programs of a team, one after the other: which ones, and in what order.
//
// Team t of T runs the programs t, t + T, t + 2T, … of the walk. The launcher passes the user's grid and starts as many
// teams as run at the same time (GridRule::Persistent); all numbers fit 31 bits, since it refuses more programs.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "backend/llvm/hidden.h"
#include "backend/llvm/index.h"
#include "backend/llvm/ring.h"

namespace kiln::cg {
namespace {

using llvm::BasicBlock;
using llvm::Value;
constexpr Range kNumbers{0, (std::int64_t(1) << 31) - 2};

class Walk {
 public:
  Walk(Emitter& e, const ir::Inst& inst) : e_(e), b_(e.b), inst_(inst), pair_(int(inst.i64(ir::AttrKey::pair)) - 1) {
    llvm::IRBuilder<>& entry = e.geometry.entry();
    for (unsigned axis = 0; axis < 3; ++axis)
      programs_[axis] = entry.CreateTrunc(hidden_arg(e, rt::HiddenParam::UserGrid, axis), entry.getInt32Ty());
    for (unsigned axis = 0; axis < 3; ++axis) steps_[axis] = programs_[axis];
    if (pair_ >= 0) {
      shares_ = pair_shares(e);
      Value*& n = steps_[pair_];
      Value* pairs = entry.CreateLShr(entry.CreateAdd(n, entry.getInt32(1)), std::uint64_t(1));
      n = entry.CreateSelect(shares_, pairs, n);
    }
    layer_ = entry.CreateMul(steps_[0], steps_[1]);
    all_ = entry.CreateMul(layer_, steps_[2]);
  }

  void run();

 private:
  Value* sreg(llvm::Intrinsic::ID id) { return b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{}, {}); }
  /// A block's, or a cluster's where its blocks share.
  Value* of_team(llvm::Intrinsic::ID of_block, llvm::Intrinsic::ID of_cluster) {
    Value* block = sreg(of_block);
    return pair_ < 0 ? block : b_.CreateSelect(shares_, sreg(of_cluster), block);
  }
  Value* layer_of(Value* number);
  void define(Value* number);

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::Inst& inst_;
  const int pair_;                  ///< axis; -1: none
  Value *programs_[3], *steps_[3];  ///< i32; of a team along each axis
  Value *layer_, *all_;             ///< steps in x and y, and all
  Value* shares_ = nullptr;
};

/// z, without a division where there is only one.
Value* Walk::layer_of(Value* number) {
  BasicBlock *before = b_.GetInsertBlock(), *many = BasicBlock::Create(e_.c.context(), "layers", e_.kernel),
             *exit = BasicBlock::Create(e_.c.context(), "layer", e_.kernel);
  b_.CreateCondBr(b_.CreateICmpUGT(steps_[2], b_.getInt32(1)), many, exit);
  b_.SetInsertPoint(many);
  Value* z = b_.CreateUDiv(number, layer_);
  b_.CreateBr(exit);
  b_.SetInsertPoint(exit);
  llvm::PHINode* phi = b_.CreatePHI(b_.getInt32Ty(), 2);
  phi->addIncoming(b_.getInt32(0), before);
  phi->addIncoming(z, many);
  return phi;
}

/// The region's parameters, from the number of a step.
void Walk::define(Value* number) {
  Value* z = layer_of(number);
  Value* rest = b_.CreateSub(number, b_.CreateMul(z, layer_));
  Value *width = steps_[0], *first = b_.getInt32(0);
  if (const std::int64_t group = inst_.i64(ir::AttrKey::group); group > 0) {
    Value* size = b_.CreateMul(steps_[1], b_.getInt32(std::uint32_t(group)));
    Value* which = b_.CreateUDiv(rest, size);
    rest = b_.CreateSub(rest, b_.CreateMul(which, size));
    first = b_.CreateMul(which, b_.getInt32(std::uint32_t(group)));
    width = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b_.CreateSub(steps_[0], first),
                                     b_.getInt32(std::uint32_t(group)));
  }
  Value* y = b_.CreateUDiv(rest, width);
  Value* x = b_.CreateAdd(first, b_.CreateSub(rest, b_.CreateMul(y, width)));
  Value *at[3] = {x, y, z}, *exists = b_.getTrue();
  if (pair_ >= 0) {
    Value* mine = b_.CreateAdd(b_.CreateShl(at[pair_], std::uint64_t(1)), cluster_rank(e_));
    Value* n = b_.CreateSelect(shares_, mine, at[pair_]);
    exists = b_.CreateICmpULT(n, programs_[pair_]);
    at[pair_] = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, n, b_.CreateSub(programs_[pair_], b_.getInt32(1)));
  }
  const std::vector<ir::Value>& params = e_.f.region(inst_.regions[0]).params;
  for (std::size_t axis = 0; axis < 3; ++axis)
    e_.set(params[axis], index_scalar(b_.CreateZExt(at[axis], b_.getInt64Ty()), {kNumbers, 1}));
  e_.set_plain(params[3], exists);
}

void Walk::run() {
  using namespace llvm::Intrinsic;
  Value *team = of_team(nvvm_read_ptx_sreg_ctaid_x, nvvm_read_ptx_sreg_clusterid_x),
        *teams = of_team(nvvm_read_ptx_sreg_nctaid_x, nvvm_read_ptx_sreg_nclusterid_x);
  BasicBlock *before = b_.GetInsertBlock(), *body = BasicBlock::Create(e_.c.context(), "program", e_.kernel),
             *exit = BasicBlock::Create(e_.c.context(), "programs.done", e_.kernel);
  b_.CreateCondBr(b_.CreateICmpULT(team, all_), body, exit);
  b_.SetInsertPoint(body);
  llvm::PHINode* number = b_.CreatePHI(b_.getInt32Ty(), 2);
  number->addIncoming(team, before);
  define(number);
  const Hazards::Mark mark = e_.hazards.mark();
  e_.region(inst_.regions[0]);
  e_.hazards.end_program(b_, mark);
  Value* next = b_.CreateAdd(number, teams);  // below 2^32
  number->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpULT(next, all_), body, exit);
  e_.hazards.leave(mark);
  b_.SetInsertPoint(exit);
}

}  // namespace

void emit_Walk(Emitter& e, const ir::Inst& inst) { Walk(e, inst).run(); }

}  // namespace kiln::cg
