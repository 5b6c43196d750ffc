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
#include <string>
#include <utility>
#include <vector>

#include "backend/llvm/emitter.h"
#include "backend/llvm/ptx_asm.h"
#include "backend/llvm/words.h"

namespace kiln::cg {

class Access {
 public:
  Access(Emitter& e, const ir::Inst& inst, const Geometry& g, ir::Value pointer)
      : e_(e),
        b_(e.b),
        g_(g),
        pointer_(e.get(pointer)),
        dtype_(e.type(pointer).dtype),
        size_(bytes(dtype_)),
        words_(e.b, e.c.type(dtype_), size_),
        hint_(ir::CacheHint(inst.i64(ir::AttrKey::cache))),
        lanes_(std::size_t(g.regs())) {}

  /// Puts a barrier where earlier accesses of other threads need one (hazards.h).
  void order(bool store);
  // Which lanes are active, in any combination:
  void add_extents();                    ///< those inside a padded tile
  void add_mask(const TileValue& mask);  ///< plain i1
  void add_owner();                      ///< one of those that hold the same element

  /// `other` may be null: zero.
  TileValue load(const TileValue* other);
  void store(const TileValue& value);

 private:
  using Value = llvm::Value;
  /// A predicate a register: null = always active; `off` = never.
  struct Lane {
    Value* active = nullptr;
    bool off = false;
    bool operator==(const Lane&) const = default;
  };
  using Lanes = std::vector<Lane>;

  /// Registers [first, first + width) as one access.
  struct Group {
    int first, width;
  };

  std::vector<Group> groups() const;
  bool uniform(const Group& group) const;
  bool neighbours(const Group& group) const;
  int preferred_width(int first) const;
  std::string place(const std::string& address, int reg) const;
  std::string guard(PtxAsm& text, Value* active) const {
    return active == nullptr ? "" : "@" + text.in(active, 'b') + " ";
  }
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
  llvm::IRBuilder<>& b_;
  const Geometry& g_;
  const TileValue& pointer_;
  DType dtype_;
  int size_;
  Words words_;
  ir::CacheHint hint_;
  Lanes lanes_;
  struct Address {
    Value* thread;
    std::int64_t far;
    Value* value;
  };
  std::vector<Address> addresses_;  ///< those made so far
};

}  // namespace kiln::cg
