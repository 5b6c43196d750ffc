// The algebra of linear layouts. Bases are packed into one 64-bit word (axis 0 lowest) wherever rows are eliminated.
#include "backend/ir/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "backend/ir/gf2.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

int log2_exact(std::int64_t n) {
  KILN_CHECK(n > 0 && std::has_single_bit(std::uint64_t(n)), fmt::format("layout: size {} is not a power of two", n));
  return std::countr_zero(std::uint64_t(n));
}

}  // namespace

const char* name(Hw h) {
  switch (h) {
    case Hw::Register: return "register";
    case Hw::Lane: return "lane";
    case Hw::Warp: return "warp";
    case Hw::Block: return "block";
    case Hw::Offset: return "offset";
  }
  return "?";
}

std::string Dim::str() const { return is_axis() ? fmt::format("axis{}", axis_number()) : name(Hw(id_)); }

LinearLayout::LinearLayout(std::vector<std::int64_t> out_shape) : out_shape_(std::move(out_shape)) {
  for (int k = 0; k < rank(); ++k) {
    log2_exact(out_shape_[k]);
    out_dims_.push_back(Dim::axis(k));
  }
  KILN_CHECK(total_out_bits() <= 63, "layout: more than 2^63 elements");
}

LinearLayout LinearLayout::identity(Dim in, std::int64_t size, int axis, int rank) {
  std::vector<std::int64_t> shape(rank, 1);
  shape.at(axis) = size;
  LinearLayout l(shape);
  for (int b = 0; b < log2_exact(size); ++b) {
    Coord c(rank, 0);
    c[axis] = std::int64_t(1) << b;
    l.add_bit(in, c);
  }
  return l;
}

LinearLayout LinearLayout::zeros(Dim in, std::int64_t size, int rank) {
  LinearLayout l(std::vector<std::int64_t>(rank, 1));
  for (int b = 0; b < log2_exact(size); ++b) l.add_bit(in, Coord(rank, 0));
  return l;
}

LinearLayout LinearLayout::identity_on(const std::vector<Dim>& dims, const std::vector<std::int64_t>& sizes) {
  LinearLayout l;
  l.out_dims_ = dims;
  l.out_shape_ = sizes;
  for (std::size_t k = 0; k < dims.size(); ++k) {
    if (dims[k].is_axis()) l.in(dims[k]);
    for (int b = 0; b < log2_exact(sizes[k]); ++b) {
      Coord c(dims.size(), 0);
      c[k] = std::int64_t(1) << b;
      l.add_bit(dims[k], c);
    }
  }
  return l;
}

std::vector<Dim> LinearLayout::in_dims() const {
  std::vector<Dim> dims;
  for (const In& i : in_) dims.push_back(i.dim);
  return dims;
}

const LinearLayout::In* LinearLayout::find(Dim d) const {
  for (const In& i : in_)
    if (i.dim == d) return &i;
  return nullptr;
}

LinearLayout::In& LinearLayout::in(Dim d) {
  auto at = std::find_if(in_.begin(), in_.end(), [&](const In& i) { return i.dim >= d; });
  if (at == in_.end() || at->dim != d) at = in_.insert(at, In{d, {}});
  return *at;
}

int LinearLayout::in_bits(Dim d) const {
  const In* i = find(d);
  return i ? int(i->bases.size()) : 0;
}

int LinearLayout::total_in_bits() const {
  int n = 0;
  for (const In& i : in_) n += int(i.bases.size());
  return n;
}

int LinearLayout::total_out_bits() const {
  int n = 0;
  for (std::int64_t size : out_shape_) n += log2_exact(size);
  return n;
}

const LinearLayout::Coord& LinearLayout::basis(Dim d, int bit) const {
  KILN_CHECK(bit >= 0 && bit < in_bits(d), fmt::format("layout: {} has no bit {}", d.str(), bit));
  return find(d)->bases[bit];
}

void LinearLayout::add_bit(Dim d, Coord basis) {
  KILN_CHECK(basis.size() == out_shape_.size(),
             fmt::format("layout: basis of rank {} in a layout of rank {}", basis.size(), rank()));
  for (int k = 0; k < rank(); ++k)
    KILN_CHECK(basis[k] >= 0 && basis[k] < out_shape_[k],
               fmt::format("layout: basis {} is outside extent {}", basis[k], out_shape_[k]));
  KILN_CHECK(total_in_bits() < 63, "layout: more than 63 input bits");
  in(d).bases.push_back(std::move(basis));
}

LinearLayout::Coord LinearLayout::apply(const Index& index) const {
  Coord c(out_shape_.size(), 0);
  for (const auto& [d, value] : index) {
    KILN_CHECK(value >= 0 && value < in_size(d),
               fmt::format("layout: {} {} of {} in {}", d.str(), value, in_size(d), str()));
    for (int b = 0; b < in_bits(d); ++b)
      if ((value >> b) & 1)
        for (std::size_t k = 0; k < c.size(); ++k) c[k] ^= find(d)->bases[b][k];
  }
  return c;
}

std::uint64_t LinearLayout::pack(const Coord& c) const {
  std::uint64_t word = 0;
  int shift = 0;
  for (std::size_t k = 0; k < c.size(); ++k) {
    word |= std::uint64_t(c[k]) << shift;
    shift += log2_exact(out_shape_[k]);
  }
  return word;
}

LinearLayout::Coord LinearLayout::unpack(std::uint64_t word) const {
  Coord c;
  for (std::int64_t size : out_shape_) {
    c.push_back(std::int64_t(word & std::uint64_t(size - 1)));
    word >>= log2_exact(size);
  }
  return c;
}

bool LinearLayout::surjective() const {
  Eliminator e;
  int independent = 0, j = 0;
  for (const In& i : in_)
    for (const Coord& b : i.bases) independent += e.add(pack(b), j++);
  return independent == total_out_bits();
}

bool LinearLayout::injective() const {
  for (const In& i : in_)
    if (free_bits(i.dim) != 0) return false;
  return true;
}

std::int64_t LinearLayout::free_bits(Dim d) const {
  Eliminator e;
  std::int64_t mask = 0;
  int j = 0;
  for (const In& i : in_)
    for (std::size_t b = 0; b < i.bases.size(); ++b)
      if (!e.add(pack(i.bases[b]), j++) && i.dim == d) mask |= std::int64_t(1) << b;
  return mask;
}

LinearLayout LinearLayout::operator*(const LinearLayout& outer) const {
  KILN_CHECK(out_dims_ == outer.out_dims_, fmt::format("layout product of {} and {}", str(), outer.str()));
  LinearLayout r = *this;
  for (int k = 0; k < rank(); ++k) r.out_shape_[k] *= outer.out_shape_[k];
  KILN_CHECK(r.total_out_bits() <= 63, "layout: more than 2^63 elements");
  for (const In& i : outer.in_) {
    if (i.dim.is_axis()) r.in(i.dim);
    for (Coord b : i.bases) {
      for (int k = 0; k < rank(); ++k) b[k] *= out_shape_[k];
      r.add_bit(i.dim, std::move(b));
    }
  }
  return r;
}

std::optional<LinearLayout> LinearLayout::divide(const LinearLayout& inner) const {
  if (out_dims_ != inner.out_dims_) return std::nullopt;
  LinearLayout q;
  q.out_dims_ = out_dims_;
  for (int k = 0; k < rank(); ++k) {
    if (out_shape_[k] < inner.out_shape_[k]) return std::nullopt;
    q.out_shape_.push_back(out_shape_[k] / inner.out_shape_[k]);
  }
  for (const In& i : inner.in_)
    if (in_bits(i.dim) < int(i.bases.size())) return std::nullopt;
  for (const In& i : in_) {
    const int shared = inner.in_bits(i.dim);
    for (int b = 0; b < shared; ++b)
      if (inner.basis(i.dim, b) != i.bases[b]) return std::nullopt;
    if (i.dim.is_axis()) q.in(i.dim);
    for (int b = shared; b < int(i.bases.size()); ++b) {
      Coord c = i.bases[b];
      for (int k = 0; k < rank(); ++k) {
        if (c[k] % inner.out_shape_[k] != 0) return std::nullopt;
        c[k] /= inner.out_shape_[k];
      }
      q.add_bit(i.dim, std::move(c));
    }
  }
  return q;
}

LinearLayout LinearLayout::compose(const LinearLayout& inner) const {
  for (std::size_t k = 0; k < inner.out_dims_.size(); ++k)
    KILN_CHECK(inner.out_shape_[k] <= in_size(inner.out_dims_[k]),
               fmt::format("layout: {} cannot follow {}", str(), inner.str()));
  LinearLayout r;
  r.out_dims_ = out_dims_;
  r.out_shape_ = out_shape_;
  for (const In& i : inner.in_) {
    if (i.dim.is_axis()) r.in(i.dim);
    for (const Coord& b : i.bases) {
      Index index;
      for (std::size_t k = 0; k < b.size(); ++k) index.emplace_back(inner.out_dims_[k], b[k]);
      r.add_bit(i.dim, apply(index));
    }
  }
  return r;
}

LinearLayout LinearLayout::invert() const {
  Eliminator e;
  int j = 0;
  for (const In& i : in_)
    for (const Coord& b : i.bases) e.add(pack(b), j++);
  LinearLayout r;
  for (const In& i : in_) {
    r.out_dims_.push_back(i.dim);
    r.out_shape_.push_back(std::int64_t(1) << i.bases.size());
  }
  int bit = 0;
  for (std::size_t k = 0; k < out_dims_.size(); ++k) {
    if (out_dims_[k].is_axis()) r.in(out_dims_[k]);
    for (int b = 0; b < log2_exact(out_shape_[k]); ++b, ++bit) {
      const auto place = e.solve(std::uint64_t(1) << bit);
      KILN_CHECK(place.has_value(), fmt::format("layout: {} is not surjective and has no inverse", str()));
      r.add_bit(out_dims_[k], r.unpack(*place));
    }
  }
  return r;
}

LinearLayout LinearLayout::collapse(int axis) const {
  LinearLayout r = *this;
  r.out_shape_.at(axis) = 1;
  for (In& i : r.in_)
    for (Coord& b : i.bases) b[axis] = 0;
  return r;
}

LinearLayout LinearLayout::slice(int axis) const {
  LinearLayout r = *this;
  r.out_shape_.erase(r.out_shape_.begin() + axis);
  r.out_dims_.pop_back();
  for (In& i : r.in_)
    for (Coord& b : i.bases) b.erase(b.begin() + axis);
  return r;
}

LinearLayout LinearLayout::expand(int axis) const {
  LinearLayout r = *this;
  r.out_shape_.insert(r.out_shape_.begin() + axis, 1);
  r.out_dims_.push_back(Dim::axis(rank()));
  for (In& i : r.in_)
    for (Coord& b : i.bases) b.insert(b.begin() + axis, 0);
  return r;
}

LinearLayout LinearLayout::without_free_registers() const {
  const std::int64_t free = free_bits(Hw::Register);
  LinearLayout r;
  r.out_dims_ = out_dims_;
  r.out_shape_ = out_shape_;
  for (const In& i : in_)
    for (std::size_t b = 0; b < i.bases.size(); ++b)
      if (i.dim != Dim(Hw::Register) || !((free >> b) & 1)) r.add_bit(i.dim, i.bases[b]);
  return r;
}

std::string LinearLayout::str() const {
  std::string s = "[";
  for (const In& i : in_) {
    s += fmt::format("{}{}=", s.size() > 1 ? " " : "", i.dim.str());
    for (const Coord& b : i.bases) s += fmt::format("({})", fmt::join(b, ","));
  }
  const bool tile = std::all_of(out_dims_.begin(), out_dims_.end(), [](Dim d) { return d.is_axis(); });
  if (tile) return s + fmt::format("] -> {}", fmt::join(out_shape_, "x"));
  s += "] ->";
  for (int k = 0; k < rank(); ++k) s += fmt::format(" {}:{}", out_dims_[k].str(), out_shape_[k]);
  return s;
}

RegisterUse register_use(const LinearLayout& l, std::int64_t reg, const std::vector<std::int64_t>& extents) {
  const LinearLayout::Coord at = l.apply({{Hw::Register, reg}});
  std::vector<LinearLayout::Coord> others;
  for (Dim d : {Dim(Hw::Lane), Dim(Hw::Warp), Dim(Hw::Block)})
    for (int b = 0; b < l.in_bits(d); ++b) others.push_back(l.basis(d, b));
  bool full = true, one_axis_each = true;
  for (int k = 0; k < l.rank(); ++k) {
    Eliminator e;
    int j = 0;
    for (const auto& b : others) e.add(std::uint64_t(b[k]), j++);
    if (std::int64_t(e.smallest(std::uint64_t(at[k]))) >= extents.at(k)) return RegisterUse::Dead;
    full = full && std::int64_t(e.largest(std::uint64_t(at[k]))) < extents[k];
  }
  if (full) return RegisterUse::Full;
  for (const auto& b : others) one_axis_each = one_axis_each && std::count(b.begin(), b.end(), 0) + 1 >= l.rank();
  if (one_axis_each) return RegisterUse::Partial;
  // Axes move together, so that each may be inside somewhere but never all at once: visit the image in Gray-code order.
  LinearLayout::Coord c = at;
  for (std::uint64_t step = 0;; ++step) {
    bool inside = true;
    for (int k = 0; k < l.rank(); ++k) inside = inside && c[k] < extents[k];
    if (inside) return RegisterUse::Partial;
    const int flip = std::countr_one(step);
    if (flip >= int(others.size())) return RegisterUse::Dead;
    for (int k = 0; k < l.rank(); ++k) c[k] ^= others[flip][k];
  }
}

std::optional<std::vector<std::int64_t>> same_thread_registers(const LinearLayout& from, const LinearLayout& to) {
  KILN_CHECK(from.rank() == to.rank(), fmt::format("layouts of ranks {} and {}", from.rank(), to.rank()));
  const auto project = [&](LinearLayout::Coord c) {
    for (int k = 0; k < from.rank(); ++k)
      if (from.out_shape()[k] == 1) c[k] = 0;
    return c;
  };
  // Thread bits must move both tiles alike: then equal elements at thread 0 are equal in every thread.
  for (Dim d : {Dim(Hw::Lane), Dim(Hw::Warp), Dim(Hw::Block)}) {
    if (from.in_bits(d) != to.in_bits(d)) return std::nullopt;
    for (int b = 0; b < to.in_bits(d); ++b)
      if (from.basis(d, b) != project(to.basis(d, b))) return std::nullopt;
  }
  std::vector<LinearLayout::Coord> held;
  for (std::int64_t r = 0; r < from.in_size(Hw::Register); ++r) held.push_back(from.apply({{Hw::Register, r}}));
  std::vector<std::int64_t> registers;
  for (std::int64_t r = 0; r < to.in_size(Hw::Register); ++r) {
    const auto at = std::find(held.begin(), held.end(), project(to.apply({{Hw::Register, r}})));
    if (at == held.end()) return std::nullopt;
    registers.push_back(at - held.begin());
  }
  return registers;
}

}  // namespace kiln::ir
