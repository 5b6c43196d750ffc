// Function: one kernel in tile IR. Owns every instruction, region, value and layout in arenas; handles are 32-bit
// indices, so copies of a Function are plain copies and iteration order is creation order.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backend/ir/layout.h"
#include "backend/ir/op.h"
#include "backend/ir/type.h"
#include "runtime/base/source_loc.h"
#include "runtime/image/kernel_image.h"

namespace kiln::ir {

struct Value {
  std::uint32_t id = ~0u;
  bool valid() const { return id != ~0u; }
  bool operator==(const Value&) const = default;
};
using InstId = std::uint32_t;
using RegionId = std::uint32_t;
inline constexpr std::uint32_t kNone = ~0u;

/// How far a function has come; each pass declares the stages it goes from and to.
enum class Stage : std::uint8_t { Traced, Canonical, Laid, Pipelined, Specialised, Allocated, Synced };
const char* name(Stage);

/// A literal of any dtype as its bit pattern, zero-extended to 64 bits. index and integers: two's complement.
struct Literal {
  DType dtype = DType::i32;
  std::uint64_t bits = 0;
  bool operator==(const Literal&) const = default;
  static Literal of_int(DType, std::int64_t);   ///< to any dtype; float types round once
  static Literal of_float(DType, double);       ///< rounds once to float types; integer types truncate and saturate
  double as_double() const;                     ///< value of a float or integer literal (i64 beyond 2^53 rounds)
  std::int64_t as_int() const;                  ///< value of an integer, index or i1 literal
};

using AttrValue = std::variant<std::int64_t, Literal, std::string, std::vector<std::int64_t>>;
struct Attr {
  AttrKey key;
  AttrValue value;
  bool operator==(const Attr&) const = default;
};

struct Inst {
  Op op;
  RegionId parent = kNone;
  std::vector<Value> operands;      ///< changed through Function, which keeps the use lists
  std::vector<Value> results;
  std::vector<Attr> attrs;          ///< in ops.def order; optional attributes that are 0 are left out
  std::vector<RegionId> regions;
  SourceLoc loc;
  std::vector<SourceLoc> parts;     ///< where each of several things that it does is written; empty: all at loc

  const Attr* find(AttrKey) const;
  std::int64_t i64(AttrKey, std::int64_t absent = 0) const;
  bool flag(AttrKey k) const { return i64(k, 0) != 0; }
  const Literal& literal() const;   ///< attribute `value` of a constant
  const std::string& text() const;  ///< attribute `text`
  const std::vector<std::int64_t>& ints(AttrKey) const;  ///< a required attribute of kind Ints
};

struct Region {
  InstId owner = kNone;             ///< instruction this region belongs to; kNone: the function body
  std::vector<Value> params;
  std::vector<InstId> insts;
};

/// Who executes a program; chosen by choose-exec, edited only by the autotuner.
enum class Team : std::uint8_t { Warp, Cta, Cluster };
const char* name(Team);
struct Exec {
  Team team = Team::Cta;
  int warps = 4;                    ///< of one team; a power of two
  int programs_per_cta = 1;
  int cluster = 1;
  int max_registers = 0;            ///< a cap that always holds; 0: none
  int register_goal = 0;            ///< a cap that holds if nothing spills by it; 0: none
  int producer = 0;                 ///< warps beyond the team's that fill its ring: 4, or 0 without a ring
  bool operator==(const Exec&) const = default;
};

/// A parameter: its IR type, and the facts this specialisation relies on.
struct Param {
  Type type;
  std::string name;                 ///< may be empty
  rt::Access access = rt::Access::Read;
  int align = 1;                    ///< pointers: proven alignment in bytes; index: proven divisor (1 or 16)
  bool is_one = false;              ///< index known to be 1
  bool is_extent = false;           ///< index known to be 1 to 2^31 - 1, what a tensor map takes as size or stride (of views only)
  bool disjoint = false;            ///< pointer: no other parameter's memory overlaps it, where one of the two is written
};

/// What a value of the original became in a copy; values not in it stand for themselves.
class ValueMap {
 public:
  void set(Value from, Value to) {
    if (from.id >= to_.size()) to_.resize(from.id + 1);
    to_[from.id] = to;
  }
  Value operator()(Value v) const { return v.id < to_.size() && to_[v.id].valid() ? to_[v.id] : v; }

 private:
  std::vector<Value> to_;
};

class Function {
 public:
  explicit Function(std::string name = {}, SourceLoc loc = {});

  std::string name;
  SourceLoc loc;
  Stage stage = Stage::Traced;
  std::optional<Exec> exec;         ///< from stage canonical on
  std::vector<Param> params;
  std::vector<std::string> notes;   ///< what the kernel's report says of the passes' decisions; not part of the text

  RegionId body() const { return 0; }
  Region& region(RegionId r) { return regions_[r]; }
  const Region& region(RegionId r) const { return regions_[r]; }
  Inst& inst(InstId i) { return insts_[i]; }
  const Inst& inst(InstId i) const { return insts_[i]; }
  const Type& type(Value v) const { return values_[v.id].type; }
  void set_type(Value v, Type t) { values_[v.id].type = std::move(t); }
  /// Instruction that defines v; kNone when v is a region parameter.
  InstId def(Value v) const { return values_[v.id].def; }
  /// Region that v is a parameter of; kNone when an instruction defines v.
  RegionId param_region(Value v) const { return values_[v.id].region; }
  SourceLoc loc_of(Value v) const;
  std::size_t value_count() const { return values_.size(); }
  std::size_t inst_count() const { return insts_.size(); }

  /// Interns a layout: equal layouts get equal ids.
  LayoutId intern(const LinearLayout&);
  const LinearLayout& layout(LayoutId id) const { return layouts_[id]; }
  std::size_t layout_count() const { return layouts_.size(); }

  // Created instructions are in no region until inserted.
  Value add_value(Type, InstId def);
  Value add_region_param(RegionId, Type);
  RegionId add_region(InstId owner);
  /// Makes an instruction with one new value per result type; its regions are added with add_region.
  InstId create(Op, std::vector<Value> operands, std::vector<Type> result_types, std::vector<Attr> attrs, SourceLoc);
  void append(RegionId, InstId);
  void insert_before(InstId position, InstId);
  /// Unlinks `i` and everything in its regions; its values must have no uses outside.
  void remove(InstId);
  /// Copy of `i` and its regions, in no region yet. Operands found in `map` are replaced; results and region parameters
  /// are added to it.
  InstId clone(InstId i, ValueMap& map);
  /// Appends copies of the instructions of `from` to `to`; parameters of `from` should be in `map`.
  void clone_into(RegionId to, RegionId from, ValueMap& map);

  void set_operand(InstId, std::size_t position, Value);
  void set_operands(InstId, std::vector<Value>);
  /// Every use of `from` becomes a use of `to`, in all regions.
  void replace_all_uses(Value from, Value to);
  /// Users of v in program order, one entry per operand position; instructions in no region come last.
  std::vector<InstId> users(Value) const;
  bool has_uses(Value v) const { return !values_[v.id].uses.empty(); }
  std::size_t use_count(Value v) const { return values_[v.id].uses.size(); }
  /// Whether every use list holds exactly the operand positions that name its value (a check for the verifier).
  bool use_lists_consistent() const;

 private:
  struct ValueData {
    Type type;
    InstId def = kNone;
    RegionId region = kNone;
    std::vector<InstId> uses;       ///< unordered, one entry per operand position
  };
  void drop_use(Value, InstId);
  void unlink_contents(InstId);
  std::vector<Inst> insts_;
  std::vector<Region> regions_;
  std::vector<ValueData> values_;
  std::vector<LinearLayout> layouts_;
};

/// Calls fn(InstId) for each instruction in program order, regions included, outer before inner. Instructions may be
/// inserted or removed by fn only in regions that are not being walked.
template <class F>
void walk(const Function& f, RegionId r, F&& fn) {
  const std::vector<InstId> order = f.region(r).insts;
  for (InstId i : order) {
    fn(i);
    for (RegionId inner : std::vector<RegionId>(f.inst(i).regions)) walk(f, inner, fn);
  }
}
template <class F>
void walk(const Function& f, F&& fn) {
  walk(f, f.body(), std::forward<F>(fn));
}

}  // namespace kiln::ir
