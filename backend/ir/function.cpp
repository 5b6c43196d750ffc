#include "backend/ir/function.h"

#include <algorithm>
#include <iterator>

#include "runtime/base/error.h"

namespace kiln::ir {

const char* name(Stage s) {
  switch (s) {
    case Stage::Traced: return "traced";
    case Stage::Canonical: return "canonical";
    case Stage::Laid: return "laid";
    case Stage::Pipelined: return "pipelined";
    case Stage::Specialised: return "specialised";
    case Stage::Allocated: return "allocated";
    case Stage::Synced: return "synced";
  }
  return "";
}

const char* name(Team team) {
  switch (team) {
    case Team::Warp: return "warp";
    case Team::Cta: return "cta";
    case Team::Cluster: return "cluster";
  }
  return "";
}

const Attr* Inst::find(AttrKey key) const {
  for (const Attr& a : attrs)
    if (a.key == key) return &a;
  return nullptr;
}

std::int64_t Inst::i64(AttrKey key, std::int64_t absent) const {
  const Attr* a = find(key);
  return a ? std::get<std::int64_t>(a->value) : absent;
}

const Literal& Inst::literal() const {
  const Attr* a = find(AttrKey::value);
  KILN_CHECK(a, std::string("no literal in a ") + mnemonic(op));
  return std::get<Literal>(a->value);
}

const std::string& Inst::text() const {
  const Attr* a = find(AttrKey::text);
  KILN_CHECK(a, std::string("no text in a ") + mnemonic(op));
  return std::get<std::string>(a->value);
}

const std::vector<std::int64_t>& Inst::ints(AttrKey key) const {
  const Attr* a = find(key);
  KILN_CHECK(a, std::string("no ") + ir::name(key) + " in a " + mnemonic(op));
  return std::get<std::vector<std::int64_t>>(a->value);
}

Function::Function(std::string function_name, SourceLoc at) : name(std::move(function_name)), loc(at) {
  regions_.emplace_back();
}

SourceLoc Function::loc_of(Value v) const {
  const ValueData& data = values_[v.id];
  if (data.def != kNone) return insts_[data.def].loc;
  const InstId owner = regions_[data.region].owner;
  return owner == kNone ? loc : insts_[owner].loc;
}

LayoutId Function::intern(const LinearLayout& layout) {
  const auto found = std::find(layouts_.begin(), layouts_.end(), layout);
  if (found != layouts_.end()) return LayoutId(found - layouts_.begin());
  layouts_.push_back(layout);
  return LayoutId(layouts_.size() - 1);
}

Value Function::add_value(Type type, InstId def) {
  values_.push_back({std::move(type), def, kNone, {}});
  return {std::uint32_t(values_.size() - 1)};
}

Value Function::add_region_param(RegionId r, Type type) {
  values_.push_back({std::move(type), kNone, r, {}});
  const Value v{std::uint32_t(values_.size() - 1)};
  regions_[r].params.push_back(v);
  return v;
}

RegionId Function::add_region(InstId owner) {
  regions_.emplace_back().owner = owner;
  const auto r = RegionId(regions_.size() - 1);
  insts_[owner].regions.push_back(r);
  return r;
}

InstId Function::create(Op op, std::vector<Value> operands, std::vector<Type> result_types, std::vector<Attr> attrs,
                        SourceLoc at) {
  const auto id = InstId(insts_.size());
  Inst& inst = insts_.emplace_back();
  inst.op = op;
  inst.attrs = std::move(attrs);
  inst.loc = at;
  for (Type& type : result_types) inst.results.push_back(add_value(std::move(type), id));
  set_operands(id, std::move(operands));
  return id;
}

void Function::append(RegionId r, InstId i) {
  KILN_CHECK(insts_[i].parent == kNone, "instruction is in a region already");
  insts_[i].parent = r;
  regions_[r].insts.push_back(i);
}

void Function::insert_before(InstId position, InstId i) {
  KILN_CHECK(insts_[i].parent == kNone, "instruction is in a region already");
  const RegionId r = insts_[position].parent;
  KILN_CHECK(r != kNone, "position is in no region");
  insts_[i].parent = r;
  std::vector<InstId>& list = regions_[r].insts;
  list.insert(std::find(list.begin(), list.end(), position), i);
}

void Function::unlink_contents(InstId i) {
  set_operands(i, {});
  for (RegionId r : insts_[i].regions) {
    for (InstId inner : regions_[r].insts) {
      unlink_contents(inner);
      insts_[inner].parent = kNone;
    }
    regions_[r].insts.clear();
  }
}

void Function::remove(InstId i) {
  unlink_contents(i);
  for (Value v : insts_[i].results)
    KILN_CHECK(!has_uses(v), std::string("removed ") + mnemonic(insts_[i].op) + " has uses");
  if (insts_[i].parent == kNone) return;
  std::erase(regions_[insts_[i].parent].insts, i);
  insts_[i].parent = kNone;
}

InstId Function::clone(InstId i, ValueMap& map) {
  std::vector<Value> operands = insts_[i].operands;
  for (Value& v : operands) v = map(v);
  std::vector<Type> types;
  for (Value v : insts_[i].results) types.push_back(type(v));
  const InstId copy = create(insts_[i].op, std::move(operands), std::move(types), insts_[i].attrs, insts_[i].loc);
  insts_[copy].parts = insts_[i].parts;
  for (std::size_t k = 0; k < insts_[i].results.size(); ++k) map.set(insts_[i].results[k], insts_[copy].results[k]);
  for (std::size_t k = 0; k < insts_[i].regions.size(); ++k) {
    const RegionId from = insts_[i].regions[k], to = add_region(copy);
    for (Value p : std::vector<Value>(regions_[from].params)) map.set(p, add_region_param(to, Type(type(p))));
    clone_into(to, from, map);
  }
  return copy;
}

void Function::clone_into(RegionId to, RegionId from, ValueMap& map) {
  for (InstId i : std::vector<InstId>(regions_[from].insts)) append(to, clone(i, map));
}

void Function::drop_use(Value v, InstId user) {
  std::vector<InstId>& uses = values_[v.id].uses;
  uses.erase(std::find(uses.begin(), uses.end(), user));
}

void Function::set_operand(InstId i, std::size_t position, Value v) {
  Value& operand = insts_[i].operands[position];
  drop_use(operand, i);
  operand = v;
  values_[v.id].uses.push_back(i);
}

void Function::set_operands(InstId i, std::vector<Value> operands) {
  for (Value v : insts_[i].operands) drop_use(v, i);
  for (Value v : operands) values_[v.id].uses.push_back(i);
  insts_[i].operands = std::move(operands);
}

void Function::replace_all_uses(Value from, Value to) {
  if (from == to) return;
  std::vector<InstId> uses = std::move(values_[from.id].uses);
  values_[from.id].uses.clear();
  for (InstId user : uses) {
    std::vector<Value>& operands = insts_[user].operands;
    *std::find(operands.begin(), operands.end(), from) = to;
    values_[to.id].uses.push_back(user);
  }
}

std::vector<InstId> Function::users(Value v) const {
  std::vector<InstId> uses = values_[v.id].uses;
  if (uses.size() < 2) return uses;
  std::sort(uses.begin(), uses.end());
  std::vector<InstId> ordered;
  walk(*this, [&](InstId i) {
    const auto [first, last] = std::equal_range(uses.begin(), uses.end(), i);
    ordered.insert(ordered.end(), first, last);
  });
  std::vector<InstId> linked = ordered;
  std::sort(linked.begin(), linked.end());
  std::set_difference(uses.begin(), uses.end(), linked.begin(), linked.end(), std::back_inserter(ordered));
  return ordered;
}

bool Function::use_lists_consistent() const {
  std::vector<std::vector<InstId>> expected(values_.size());
  for (std::size_t i = 0; i < insts_.size(); ++i)
    for (Value v : insts_[i].operands) {
      if (v.id >= values_.size()) return false;
      expected[v.id].push_back(InstId(i));
    }
  for (std::size_t v = 0; v < values_.size(); ++v) {
    std::vector<InstId> uses = values_[v].uses;
    std::sort(uses.begin(), uses.end());
    if (uses != expected[v]) return false;
  }
  return true;
}

}  // namespace kiln::ir
