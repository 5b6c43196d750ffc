// Evaluator: the state of one program of the reference interpreter. Values are contiguous arrays of native elements
// (i1: bool, index: int64, pointers: uint64), so that each op is a typed loop. One eval_ function an op, declared from
// ops.def.
#pragma once
#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backend/ir/eval.h"

namespace kiln::ir {

class Evaluator {
 public:
  Evaluator(const Function& f, const EvalGrid& grid, const std::vector<EvalArg>& args,
            const std::vector<EvalBlock>& blocks, EvalReport report = {});

  /// Runs the function's body as program `pid`.
  void run(const std::array<std::int64_t, 3>& pid);
  /// Runs the instructions of `r`; its parameters must be defined.
  void run_region(RegionId r);

  const Function& function() const { return f_; }
  const Type& type(Value v) const { return f_.type(v); }
  std::size_t elements(Value v) const { return std::size_t(f_.type(v).elements()); }
  const std::array<std::int64_t, 3>& pid() const { return pid_; }
  const std::array<std::int64_t, 3>& programs() const { return grid_.programs; }
  const Literal& arg(std::int64_t i) const { return args_[std::size_t(i)]; }

  /// Elements of a defined value.
  const std::byte* data(Value v) const { return storage_[v.id].get(); }
  template <class T>
  const T* in(Value v) const {
    return reinterpret_cast<const T*>(data(v));
  }
  /// Storage of a value that is about to be written.
  std::byte* define(Value v);
  template <class T>
  T* out(Value v) {
    return reinterpret_cast<T*>(define(v));
  }
  /// to[i] = from[i], as if all were copied at once (loop-carried values may be permuted).
  void assign(std::span<const Value> to, std::span<const Value> from);
  /// Values yielded by the region that ran last.
  std::span<const Value> yielded() const { return yielded_; }
  void set_yielded(std::span<const Value> values) { yielded_ = values; }

  // Reports (op/report.cpp); the buffer is null where nobody wants them.
  std::uint64_t* report_buffer() const { return report_.buffer; }
  std::uint64_t launch_number() const { return report_.launch; }
  std::uint32_t site_of(const Inst&);

  /// Shared memory of one allocation of this program, made when it is first asked for; its address.
  std::uint64_t shared_memory(const Inst& alloc, std::size_t bytes);

  // The ring (op/ring.cpp): blocks that were filled and not taken yet, oldest first.
  void push_slot(std::vector<std::vector<std::byte>> blocks) { slots_.push_back(std::move(blocks)); }
  /// The oldest slot's blocks, which get addresses until it is released.
  std::vector<std::uint64_t> take_slot(const Inst& take);
  void release_slot();
  /// Slots that nobody takes: of trips that did not come.
  void forget_slots() { slots_.clear(); }

  /// Host memory behind [address, address + bytes); throws UserError at the instruction's line when it is not inside
  /// one block, or not aligned to `bytes`.
  std::byte* access(std::uint64_t address, std::size_t bytes, const Inst&, std::size_t element);

 private:
  [[noreturn]] void access_error(std::uint64_t address, std::size_t bytes, const Inst&, std::size_t element) const;

  const Function& f_;
  const EvalGrid& grid_;
  const std::vector<EvalArg>& args_;
  std::vector<EvalBlock> blocks_;  ///< by address
  std::size_t last_block_ = 0;     ///< block of the last access: most accesses hit it again
  std::array<std::int64_t, 3> pid_{};
  std::vector<std::unique_ptr<std::byte[]>> storage_;
  std::span<const Value> yielded_;
  EvalReport report_;
  std::map<const Inst*, std::uint32_t> sites_;
  struct Shared {
    std::uint64_t address;
    std::unique_ptr<std::byte[]> data;
  };
  std::map<const Inst*, Shared> shared_;  ///< of the running program
  std::uint64_t shared_end_ = 0;
  std::deque<std::vector<std::vector<std::byte>>> slots_;
  bool taken_ = false;  ///< the oldest of them has addresses
};

/// Bytes of one element of a value of type `t`: pointers are addresses.
std::size_t element_bytes(const Type& t);

/// Evaluates an elementwise op on arrays of elements of type `d`; the result has type `d`, or i1 for comparisons.
void elementwise_kernel(Op, DType d, const void* const* operands, void* result, std::size_t n);

void eval_elementwise(Evaluator&, const Inst&);
#define KILN_OP(Enum, ...) void eval_##Enum(Evaluator&, const Inst&);
#include "backend/ir/ops.def"

}  // namespace kiln::ir
