// Linear algebra over GF(2) on vectors of up to 64 bits, one machine word each.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace kiln::ir {

/// Row-reduces vectors given one at a time and remembers which of them make up each pivot.
class Eliminator {
 public:
  /// Adds vector number `j`. False if it depends on those before it.
  bool add(std::uint64_t v, int j) {
    std::uint64_t combination = std::uint64_t(1) << j;
    reduce(v, combination);
    if (v == 0) return false;
    const int pivot = int(std::bit_width(v)) - 1;
    vector_[std::size_t(pivot)] = v;
    combination_[std::size_t(pivot)] = combination;
    return true;
  }
  /// The set of independent vectors whose XOR is v, if there is one.
  std::optional<std::uint64_t> solve(std::uint64_t v) const {
    std::uint64_t combination = 0;
    reduce(v, combination);
    if (v != 0) return std::nullopt;
    return combination;
  }
  /// The smallest number that v becomes by XOR with the vectors added.
  std::uint64_t smallest(std::uint64_t v) const {
    std::uint64_t unused = 0;
    reduce(v, unused);
    return v;
  }
  /// The largest.
  std::uint64_t largest(std::uint64_t v) const {
    for (std::size_t b = 64; b-- > 0;)
      if (vector_[b] && !((v >> b) & 1)) v ^= vector_[b];
    return v;
  }

 private:
  void reduce(std::uint64_t& v, std::uint64_t& combination) const {
    for (std::size_t b = 64; b-- > 0;)
      if (vector_[b] && ((v >> b) & 1)) {
        v ^= vector_[b];
        combination ^= combination_[b];
      }
  }
  std::array<std::uint64_t, 64> vector_{}, combination_{};
};

/// Vectors that are independent, in the order in which they came.
class Basis {
 public:
  Basis() = default;
  explicit Basis(const std::vector<std::uint64_t>& vectors) { add_all(vectors); }
  bool add(std::uint64_t v) {
    if (!eliminator_.add(v, int(vectors_.size()))) return false;
    vectors_.push_back(v);
    return true;
  }
  void add_all(const std::vector<std::uint64_t>& vectors) {
    for (std::uint64_t v : vectors) add(v);
  }
  bool contains(std::uint64_t v) const { return solve(v).has_value(); }
  /// Which vectors(), by bit number, give v.
  std::optional<std::uint64_t> solve(std::uint64_t v) const { return eliminator_.solve(v); }
  int size() const { return int(vectors_.size()); }
  const std::vector<std::uint64_t>& vectors() const { return vectors_; }

 private:
  Eliminator eliminator_;
  std::vector<std::uint64_t> vectors_;
};

/// A basis of what the spans of a and b share. @pre vectors below 2^32
std::vector<std::uint64_t> intersection(const Basis& a, const Basis& b);

/// XOR of bases[k] over the bits k of `index`.
inline std::uint64_t combine(const std::vector<std::uint64_t>& bases, std::uint64_t index) {
  std::uint64_t v = 0;
  for (; index != 0; index &= index - 1) v ^= bases[std::size_t(std::countr_zero(index))];
  return v;
}

}  // namespace kiln::ir
