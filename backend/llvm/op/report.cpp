// print and assert: each element that reports appends one record to the report buffer (runtime/image/report_record.h).
//
//     claim words by atom.add; where they fit, store the record; where not, count it as lost
//
// A branch of the thread stands around each record, so that an assert that holds costs one predicate.
#include <fmt/format.h>

#include "backend/ir/op/report.h"
#include "backend/llvm/hidden.h"
#include "backend/llvm/lanes.h"
#include "backend/llvm/program.h"
#include "backend/llvm/ptx_asm.h"

namespace kiln::cg {
namespace {

using llvm::BasicBlock;
using llvm::Value;

class Report {
 public:
  Report(Emitter& e, const ir::Inst& inst)
      : e_(e),
        b_(e.b),
        buffer_(hidden_arg(e, rt::HiddenParam::ReportBuffer, 0)),
        launch_(hidden_arg(e, rt::HiddenParam::ReportBuffer, 1)) {
    const auto all = ir::report_sites(e.f);
    const auto mine = ir::report_site(e.f, inst);
    while (!(all[site_] == mine)) ++site_;
    program_[0] = two(program_number(e, 0), program_number(e, 1));
    program_[1] = program_number(e, 2);
  }

  /// Code that reports an element where `active` (null: always).
  template <class Record>
  void where(Value* active, Record&& record) {
    BasicBlock* done = nullptr;
    if (active != nullptr) {
      BasicBlock* report = BasicBlock::Create(e_.c.context(), "report", e_.kernel);
      done = BasicBlock::Create(e_.c.context(), "reported", e_.kernel);
      b_.CreateCondBr(active, report, done);
      b_.SetInsertPoint(report);
    }
    record();
    if (done == nullptr) return;
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
  }

  void count_failure() {
    PtxAsm text;
    text.line("red.relaxed.gpu.global.add.u64 " + header(text, rt::kReportFailed) + ", 1;");
    text.emit(b_);
  }

  /// `index`: i64. `values`: 64-bit words.
  void record(Value* index, llvm::ArrayRef<Value*> values) {
    std::vector<Value*> words = {launch_, two(b_.getInt64(site_), index), program_[0], program_[1]};
    words.insert(words.end(), values.begin(), values.end());
    PtxAsm text;
    text.line("{ .reg .pred fits; .reg .b64 at, end, room;");
    text.line("atom.relaxed.gpu.global.add.u64 at, " + header(text, rt::kReportUsed) + ", " +
              std::to_string(words.size()) + ";");
    text.line("ld.global.b64 room, " + header(text, rt::kReportCapacity) + ";");
    text.line("add.u64 end, at, " + std::to_string(words.size()) + ";");
    text.line("setp.le.u64 fits, end, room;");
    text.line("@!fits red.relaxed.gpu.global.add.u64 " + header(text, rt::kReportLost) + ", 1;");
    text.line("shl.b64 at, at, 3;");
    text.line("add.u64 at, at, " + text.in(buffer_) + ";");
    for (std::size_t i = 0; i < words.size(); ++i)
      text.line(fmt::format("@fits st.global.b64 [at+{}], {};", 8 * (rt::kReportHeaderWords + i), text.in(words[i])));
    text.line("}");
    text.emit(b_);
  }

  /// Number of the element in register r, in row-major order.
  Value* index(const Geometry& g, const ir::Shape& shape, int r) {
    Value* sum = b_.getInt64(0);
    std::int64_t stride = 1;
    for (int axis = int(shape.size()) - 1; axis >= 0; --axis) {
      const TileValue::Reg c = GeometryCache::coordinate(b_, g, r, axis);
      Value* at = b_.getInt64(std::uint64_t(c.c));
      if (c.v != nullptr) at = b_.CreateAdd(at, b_.CreateZExt(c.v, b_.getInt64Ty()));
      sum = b_.CreateAdd(sum, b_.CreateMul(at, b_.getInt64(std::uint64_t(stride))));
      stride *= shape[std::size_t(axis)];
    }
    return sum;
  }

  /// A plain element as a word of the record.
  Value* word_of(Value* v, DType d) {
    Value* bits = d == DType::i1 ? v : b_.CreateBitCast(v, b_.getIntNTy(unsigned(8 * bytes(d))));
    return b_.CreateZExt(bits, b_.getInt64Ty());
  }

 private:
  std::string header(PtxAsm& text, unsigned word) { return fmt::format("[{}+{}]", text.in(buffer_), 8 * word); }
  Value* two(Value* low, Value* high) { return b_.CreateOr(low, b_.CreateShl(high, 32)); }

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  Value *buffer_, *launch_;
  Value* program_[2];  // x and y, z
  std::uint32_t site_ = 0;
};

}  // namespace

void emit_Print(Emitter& e, const ir::Inst& inst) {
  Report report(e, inst);
  const ir::Type type = inst.operands.empty() ? ir::Type::scalar(DType::i32) : e.type(inst.operands[0]);
  const Geometry& g = e.geometry.of(type);
  Lanes lanes(e.b, g);
  lanes.add_extents();
  lanes.add_owner();
  std::vector<TileValue> values;
  for (ir::Value v : inst.operands) values.push_back(e.as_plain(v));
  for (int r = 0; r < g.regs(); ++r) {
    if (!lanes.acts(r)) continue;
    report.where(lanes.active(r), [&] {
      std::vector<llvm::Value*> words;
      for (std::size_t k = 0; k < values.size(); ++k)
        words.push_back(report.word_of(values[k].regs[std::size_t(r)].v, e.type(inst.operands[k]).dtype));
      report.record(report.index(g, type.shape, r), words);
    });
  }
}

void emit_Assert(Emitter& e, const ir::Inst& inst) {
  Report report(e, inst);
  const ir::Type& type = e.type(inst.operands[0]);
  const Geometry& g = e.geometry.of(type);
  Lanes lanes(e.b, g);
  lanes.add_extents();
  lanes.add_owner();
  if (inst.operands.size() > 1) lanes.add_mask(e.as_plain(inst.operands[1]));
  const TileValue cond = e.as_plain(inst.operands[0]);
  lanes.add_mask(map_registers(g, cond, [&](Regs in) { return e.b.CreateNot(in[0]); }));
  for (int r = 0; r < g.regs(); ++r)
    if (lanes.acts(r))
      report.where(lanes.active(r), [&] {
        report.count_failure();
        report.record(report.index(g, type.shape, r), {});
      });
}

}  // namespace kiln::cg
