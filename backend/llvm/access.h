// Access: one load or store of a tile (or scalar) of global memory.
//
// Registers that hold neighbouring elements become one access of up to 16 bytes, as far as the address is known to be
// aligned. Which lanes are active is one predicate a register: the user's mask and, in padded tiles, "inside the
// extent".
//
//   predicate equal over the vector   one predicated access            @p ld.global.v4.b32 {…}, [a+16]
//   predicate differs                 the vector where all are active,  @all ld.global.v4.b32 {…}, [a+16]
//                                     else each active element           @q0 ld.global.b32 …, [a+16] …
//
// so that n of any value costs no branch, and a lane that is masked off touches nothing. Everything is inline PTX: LLVM
// would turn run-time masks into branches, and it never folds constants into an address operand.
#pragma once
#include <llvm/ADT/STLFunctionalExtras.h>

#include <string>
#include <utility>
#include <vector>

#include "backend/llvm/lanes.h"
#include "backend/llvm/ptx_asm.h"
#include "backend/llvm/words.h"

namespace kiln::cg {

class Access : public Lanes {
 public:
  Access(Emitter& e, const ir::Inst& inst, const Geometry& g, ir::Value pointer)
      : Lanes(e.b, g),
        e_(e),
        pointer_(e.get(pointer)),
        dtype_(e.type(pointer).dtype),
        size_(bytes(dtype_)),
        words_(e.b, e.c.type(dtype_), size_),
        shared_(e.type(pointer).shared),
        hint_(ir::CacheHint(inst.i64(ir::AttrKey::cache))) {}

  /// Puts a barrier where earlier accesses of other threads need one (hazards.h). `commutes`: as in MemoryAccess.
  void order(bool store, int commutes = 0);
  /// `other` may be null: zero.
  TileValue load(const TileValue* other);
  void store(const TileValue& value);

  /// Where registers go in shared memory: to `tile` + (`thread` ^ part(register)); `reach`: all bits that `thread` may have.
  struct SharedTarget {
    Value* tile = nullptr;    ///< i32
    Value* thread = nullptr;  ///< i32
    std::int64_t reach = 0;
    llvm::function_ref<std::int64_t(int)> part;
  };
  /// Copies to shared memory, zeros where masked off: neighbours of 4 to 16 bytes with one predicate by cp.async, which
  /// the caller commits and waits for; others through registers. `only` (null: all): threads that copy.
  void copy(const SharedTarget& to, Value* only);

  // For accesses that go element by element (atomics):
  /// Whether registers reg and reg + 1 are one aligned access, active or not as a whole.
  bool pair(int reg) const { return neighbours({reg, 2}) && uniform({reg, 2}) && acts(reg + 1); }
  /// Emits the address of `reg` here, for uses in later blocks.
  void make_address(int reg) { address_of(reg); }
  /// "[a+16]", with the address as an operand of `text`.
  std::string place(PtxAsm& text, int reg) { return place(text.in(address_of(reg)), reg); }
  /// "@p ", or nothing where `active` is null.
  std::string guard(PtxAsm& text, Value* active) const {
    return active == nullptr ? "" : "@" + text.in(active, 'b') + " ";
  }

 private:
  /// Registers [first, first + width) as one access.
  struct Group {
    int first, width;
  };

  std::vector<Group> groups() const;
  std::vector<Group> groups_to(const SharedTarget& to) const;
  void copy_group(const Group& group, const SharedTarget& to, Value* only);
  void copy_through_registers(const Group& group, const SharedTarget& to, Value* only);
  bool uniform(const Group& group) const;
  bool neighbours(const Group& group) const;
  int preferred_width(int first) const;
  std::string place(const std::string& address, int reg) const;
  std::string load_name(const char* vector, int bytes) const;
  std::string store_name(const char* vector, int bytes) const;
  Value* all_active(const Group& group);
  Value* only_here(const Lane& lane, Value* all);

  std::vector<Value*> defaults(const Group& group, const TileValue* other);
  std::vector<Value*> load_group(const Group& group, llvm::ArrayRef<Value*> other, Value* active);
  std::vector<Value*> load_mixed(const Group& group, llvm::ArrayRef<Value*> other);
  std::int32_t near(int reg) const;
  Value* address_of(int reg);

  Emitter& e_;
  const TileValue& pointer_;
  DType dtype_;
  int size_;
  Words words_;
  bool shared_;  ///< the pointer is one into the program's shared memory
  ir::CacheHint hint_;
  struct Address {
    Value* thread;
    std::int64_t far;
    Value* value;
  };
  std::vector<Address> addresses_;  ///< those made so far
};

}  // namespace kiln::cg
