// Reductions and scans along an axis. The region combines two groups of scalars; the verifier checks its types.
//
// Before stage laid elements combine one after the other, from the first to the last; from there on in the order of the
// layout (reduce_order.h), which is the order of the emitted code.
#include <algorithm>
#include <array>
#include <cstring>

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "backend/ir/op/operand_layout.h"
#include "backend/ir/op/scratch.h"
#include "backend/ir/reduce_order.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

void check_tiles(const InferInput& in, std::size_t tiles) {
  checked_axis(in, in.type(0));
  for (std::size_t i = 0; i < tiles; ++i) {
    const Type& x = in.type(i);
    if (x.ptr) in.fail("pointers are not combined: " + x.str());
    if (!x.tile || x.shape != in.type(0).shape) in.fail("shapes differ: " + in.type(0).str() + " and " + x.str());
  }
}

/// The elements along one line of the operands: one group of components a position, as bits.
class Line {
 public:
  Line(std::size_t extent, std::size_t components) : n_(components), bits_(extent * components) {}
  std::uint64_t* operator[](std::size_t i) { return &bits_[i * n_]; }
  std::size_t size() const { return bits_.size() / n_; }

 private:
  std::size_t n_;
  std::vector<std::uint64_t> bits_;
};

/// The combining region on groups of components.
class Combine {
 public:
  Combine(Evaluator& e, const Inst& inst)
      : e_(e), region_(inst.regions[0]), params_(e.function().region(region_).params), n_(inst.results.size()) {
    if (!identity_of(e.function(), region_)) return;
    for (Value v : e.function().inst(e.function().region(region_).insts.back()).operands)
      ops_.push_back(e.function().inst(e.function().def(v)).op);
  }

  std::size_t components() const { return n_; }
  std::size_t size(std::size_t component) const { return element_bytes(e_.type(params_[component])); }

  /// out = a ∘ b; out may be a or b.
  void operator()(std::uint64_t* out, const std::uint64_t* a, const std::uint64_t* b) {
    if (!ops_.empty()) return simple(out, a, b);
    for (std::size_t i = 0; i < n_; ++i) {
      std::memcpy(e_.define(params_[i]), a + i, size(i));
      std::memcpy(e_.define(params_[i + n_]), b + i, size(i));
    }
    e_.run_region(region_);
    for (std::size_t i = 0; i < n_; ++i) {
      out[i] = 0;
      std::memcpy(out + i, e_.data(e_.yielded()[i]), size(i));
    }
  }

 private:
  /// Each component is one elementwise op of its two parameters, in some order.
  void simple(std::uint64_t* out, const std::uint64_t* a, const std::uint64_t* b) {
    for (std::size_t i = 0; i < n_; ++i) {
      std::uint64_t result = 0;
      const std::array<const void*, 2> operands{a + i, b + i};
      elementwise_kernel(ops_[i], e_.type(params_[i]).dtype, operands.data(), &result, 1);
      out[i] = result;
    }
  }

  Evaluator& e_;
  RegionId region_;
  const std::vector<Value>& params_;
  std::size_t n_;
  std::vector<Op> ops_;
};

/// Calls fn(line number, index of its first element, distance of its elements) for every line along `axis`.
template <class F>
void for_each_line(const Shape& shape, std::size_t axis, F&& fn) {
  std::size_t outer = 1, inner = 1;
  for (std::size_t a = 0; a < axis; ++a) outer *= std::size_t(shape[a]);
  for (std::size_t a = axis + 1; a < shape.size(); ++a) inner *= std::size_t(shape[a]);
  const auto extent = std::size_t(shape[axis]);
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t i = 0; i < inner; ++i) fn(o * inner + i, o * extent * inner + i, inner);
}

Line read_line(const Evaluator& e, const Combine& combine, std::span<const Value> tiles, std::size_t extent,
               std::size_t first, std::size_t step) {
  Line line(extent, combine.components());
  for (std::size_t k = 0; k < combine.components(); ++k)
    for (std::size_t i = 0; i < extent; ++i)
      std::memcpy(line[i] + k, e.data(tiles[k]) + (first + i * step) * combine.size(k), combine.size(k));
  return line;
}

/// The tree of a laid reduction; the result is left in line[0].
void fold_in_order(Combine& combine, Line& line, const std::vector<AxisBit>& order) {
  std::size_t done = 0;
  for (const AxisBit& step : order) {
    const std::size_t bit = std::size_t(1) << step.position;
    done |= bit;
    for (std::size_t i = 0; (i | bit) < line.size(); ++i)
      if ((i & done) == 0) combine(line[i], line[i], line[i | bit]);
  }
}

/// The scan of a laid tile, over numbers 0 to 2^n-1 of which those in `exists` have an element.
class OrderedScan {
 public:
  OrderedScan(Combine& combine, Line& x, const std::vector<bool>& exists)
      : combine_(combine),
        x_(x),
        prefix_(x.size(), combine.components()),
        total_(x),
        has_prefix_(x.size()),
        has_total_(exists) {}

  /// Afterwards element i is prefix(i) ∘ x(i), or x(i) where it has no prefix.
  void run(const std::vector<std::vector<AxisBit>>& runs) {
    for (std::size_t k = 0; k < runs.size(); ++k) {
      step(std::size_t(1) << runs[k][0].position, std::size_t(1) << runs[k].size());
      if (k > 0 || runs[k][0].hw != Hw::Register) continue;
      for (std::size_t i = 0; i < x_.size(); ++i)
        if (has_prefix_[i]) combine_(x_[i], prefix_[i], x_[i]);
      has_prefix_.assign(x_.size(), false);
    }
  }
  const std::uint64_t* prefix(std::size_t i) { return has_prefix_[i] ? prefix_[i] : nullptr; }

 private:
  /// Combines groups of `count` blocks of `block` elements. A block's total stands at its first element.
  void step(std::size_t block, std::size_t count) {
    const std::size_t n = combine_.components();
    std::vector<std::uint64_t> acc(n);
    for (std::size_t group = 0; group < x_.size(); group += block * count) {
      bool any = false;
      for (std::size_t at = group; at < group + block * count; at += block) {
        for (std::size_t i = at; any && i < at + block; ++i) {
          if (has_prefix_[i]) combine_(prefix_[i], acc.data(), prefix_[i]);
          else std::copy_n(acc.data(), n, prefix_[i]);
          has_prefix_[i] = true;
        }
        if (!has_total_[at]) continue;
        if (any) combine_(acc.data(), acc.data(), total_[at]);
        else std::copy_n(total_[at], n, acc.data());
        any = true;
      }
      if (any) std::copy_n(acc.data(), n, total_[group]);
      has_total_[group] = any;
    }
  }

  Combine& combine_;
  Line& x_;
  Line prefix_, total_;
  std::vector<bool> has_prefix_, has_total_;
};

struct ScanKind {
  bool reverse, exclusive;
};

/// Elements one after the other.
void scan_sequential(Combine& combine, Line& line, ScanKind kind, const std::vector<std::uint64_t>& init) {
  const std::size_t n = combine.components(), size = line.size();
  std::vector<std::uint64_t> acc = init, before(n);
  for (std::size_t s = 0; s < size; ++s) {
    std::uint64_t* x = line[kind.reverse ? size - 1 - s : s];
    before = acc;
    if (s == 0 && !kind.exclusive) std::copy_n(x, n, acc.data());
    else combine(acc.data(), acc.data(), x);
    std::copy_n(kind.exclusive ? before.data() : acc.data(), n, x);
  }
}

void scan_in_order(Combine& combine, Line& line, ScanKind kind, const std::vector<std::uint64_t>& init,
                   const std::vector<std::vector<AxisBit>>& runs) {
  const std::size_t n = combine.components(), size = line.size();
  const auto full = std::size_t(padded(std::int64_t(size)));
  const auto number = [&](std::size_t i) { return kind.reverse ? full - 1 - i : i; };
  Line x(full, n);
  std::vector<bool> exists(full);
  for (std::size_t i = 0; i < size; ++i) {
    std::copy_n(line[i], n, x[number(i)]);
    exists[number(i)] = true;
  }
  OrderedScan scan(combine, x, exists);
  scan.run(runs);
  // A thread that scanned elements of its own first has them in x; what they are together with comes before them.
  const std::size_t own =
      !runs.empty() && runs[0][0].hw == Hw::Register ? std::size_t(1) << runs[0].size() : std::size_t(1);
  std::vector<std::uint64_t> prefix(n);
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t s = number(i);
    const std::uint64_t* p = scan.prefix(s);
    if (!kind.exclusive) {
      if (p) combine(line[i], p, x[s]);
      else std::copy_n(x[s], n, line[i]);
      continue;
    }
    if (p) combine(prefix.data(), init.data(), p);
    else prefix = init;
    const bool first = s % own == 0 || !exists[s - 1];
    if (first) std::copy_n(prefix.data(), n, line[i]);
    else combine(line[i], prefix.data(), x[s - 1]);
  }
}

/// The element types of the operands that are combined.
std::vector<DType> components(const Function& f, const Inst& inst) {
  std::vector<DType> types;
  for (Value v : inst.results) types.push_back(f.type(v).dtype);
  return types;
}

}  // namespace

Types infer_Reduce(const InferInput& in) {
  if (in.operands.empty()) in.fail("takes one tile or more");
  check_tiles(in, in.operands.size());
  Types types;
  for (std::size_t i = 0; i < in.operands.size(); ++i) {
    const Type& x = in.type(i);
    Shape shape = x.shape;
    shape.erase(shape.begin() + in.i64(AttrKey::axis));
    types.push_back(shape.empty() ? Type::scalar(x.dtype) : laid_out(in, x.with_shape(std::move(shape)), i));
  }
  return types;
}
void eval_Reduce(Evaluator& e, const Inst& inst) {
  const Function& f = e.function();
  const Type& type = e.type(inst.operands[0]);
  const auto axis = std::size_t(inst.i64(AttrKey::axis));
  const auto extent = std::size_t(type.shape[axis]);
  Combine combine(e, inst);
  std::vector<AxisBit> order;
  const bool laid = type.layout != kNoLayout;
  if (laid) order = reduce_order(f.layout(type.layout), int(axis), commutes(f, inst.regions[0]));
  std::vector<std::byte*> out;
  for (Value v : inst.results) out.push_back(e.define(v));
  for_each_line(type.shape, axis, [&](std::size_t number, std::size_t first, std::size_t step) {
    Line line = read_line(e, combine, inst.operands, extent, first, step);
    if (laid) fold_in_order(combine, line, order);
    else
      for (std::size_t i = 1; i < extent; ++i) combine(line[0], line[0], line[i]);
    for (std::size_t k = 0; k < out.size(); ++k)
      std::memcpy(out[k] + number * combine.size(k), line[0] + k, combine.size(k));
  });
}

// All operands stand in one layout, in which the axis can be reduced; the result in what is left of it.
LinearLayout layout_Reduce(const Function& f, const Inst& inst, std::size_t, const LinearLayout&) {
  const Type& x = f.type(inst.operands[0]);
  return reducible_layout(f, f.layout(x.layout), x.shape, int(inst.i64(AttrKey::axis)));
}

std::int64_t scratch_reduce(const Function& f, const Inst& inst) {
  const Type& x = f.type(inst.operands[0]);
  std::vector<AxisBit> done, run;
  std::int64_t total = 0;
  const auto exchange = [&] {
    if (run.empty()) return;
    total += exchanged_bytes(f, x, done, run, components(f, inst));
    done.insert(done.end(), run.begin(), run.end());
    run.clear();
  };
  for (const AxisBit& b :
       reduce_order(f.layout(x.layout), int(inst.i64(AttrKey::axis)), commutes(f, inst.regions[0]))) {
    if (!run.empty() && run[0].hw != b.hw) exchange();
    if (b.hw == Hw::Warp || b.hw == Hw::Block) run.push_back(b);
    else done.push_back(b);
  }
  exchange();
  return total;
}

Types infer_Scan(const InferInput& in) {
  const bool exclusive = in.i64(AttrKey::exclusive) != 0;
  const std::size_t tiles = exclusive ? in.operands.size() / 2 : in.operands.size();
  if (tiles == 0 || (exclusive && in.operands.size() % 2 != 0))
    in.fail("takes one tile or more, and if exclusive one scalar each, has " + std::to_string(in.operands.size()) +
            " operands");
  check_tiles(in, tiles);
  Types types;
  for (std::size_t i = 0; i < tiles; ++i) types.push_back(laid_out(in, in.type(i), i));
  for (std::size_t i = tiles; i < in.operands.size(); ++i)
    if (const Type wanted = Type::scalar(in.type(i - tiles).dtype); in.type(i) != wanted)
      in.fail("initial value is " + in.type(i).str() + ", must be " + wanted.str());
  return types;
}
void eval_Scan(Evaluator& e, const Inst& inst) {
  const Function& f = e.function();
  const Type& type = e.type(inst.operands[0]);
  const auto axis = std::size_t(inst.i64(AttrKey::axis));
  const auto extent = std::size_t(type.shape[axis]);
  const ScanKind kind{inst.flag(AttrKey::reverse), inst.flag(AttrKey::exclusive)};
  Combine combine(e, inst);
  std::vector<std::uint64_t> init(combine.components());
  for (std::size_t k = 0; kind.exclusive && k < init.size(); ++k)
    std::memcpy(&init[k], e.data(inst.operands[k + init.size()]), combine.size(k));
  std::vector<std::vector<AxisBit>> runs;
  const bool laid = type.layout != kNoLayout;
  if (laid) runs = scan_order(f.layout(type.layout), int(axis));
  std::vector<std::byte*> out;
  for (Value v : inst.results) out.push_back(e.define(v));
  for_each_line(type.shape, axis, [&](std::size_t, std::size_t first, std::size_t step) {
    Line line = read_line(e, combine, inst.operands, extent, first, step);
    if (laid) scan_in_order(combine, line, kind, init, runs);
    else scan_sequential(combine, line, kind, init);
    for (std::size_t k = 0; k < out.size(); ++k)
      for (std::size_t i = 0; i < extent; ++i)
        std::memcpy(out[k] + (first + i * step) * combine.size(k), line[i] + k, combine.size(k));
  });
}

LinearLayout layout_Scan(const Function& f, const Inst& inst, std::size_t, const LinearLayout& l) {
  return reducible_layout(f, l, f.type(inst.operands[0]).shape, int(inst.i64(AttrKey::axis)));
}

std::int64_t scratch_scan(const Function& f, const Inst& inst) {
  const Type& x = f.type(inst.operands[0]);
  std::vector<AxisBit> done;
  std::int64_t total = 0;
  for (const auto& run : scan_order(f.layout(x.layout), int(inst.i64(AttrKey::axis)))) {
    total += exchanged_bytes(f, x, done, run, components(f, inst));
    done.insert(done.end(), run.begin(), run.end());
  }
  return total;
}

}  // namespace kiln::ir
