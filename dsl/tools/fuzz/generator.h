// Generator: the state of a random program while it is made. A pool of known values grows; each step takes some, adds
// an operation and its result. Inside a region the pool has what is visible there.
//
// Every address is known to lie in the program's own memory when it is made: index tiles carry what they hold.
#pragma once
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "backend/ir/builder.h"
#include "dsl/tools/fuzz/program.h"

namespace kiln::fuzz {

inline constexpr SourceLoc kLoc{"random.cpp", 1};

/// A tile of the index type, and what it holds for program 0. A gather holds the ends of its range only.
struct Index {
  ir::Value v;
  std::vector<std::int64_t> at;
  bool distinct = true;
  std::int64_t lo() const;
  std::int64_t hi() const;
};

struct Pointer {
  ir::Value v;
  DType dtype;
  bool read_only;
  std::int64_t first;  ///< its byte offset in a program's memory
};

ir::Attr attr(ir::AttrKey, std::int64_t value);

class Generator {
 public:
  explicit Generator(std::uint64_t seed);
  Program run(int steps);

 private:
  // --- chance ---
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(int percent) { return below(100) < std::uint64_t(percent); }
  template <class C>
  const typename C::value_type& any(const C& c) {
    return c[below(c.size())];
  }
  std::int64_t pick(const std::vector<std::int64_t>& v) { return any(v); }

  // --- values.cpp ---
  DType any_dtype();
  DType any_int();
  ir::Shape shape();
  ir::Literal literal(DType);
  ir::Value param(DType, std::uint64_t bits);
  Pointer pointer();
  ir::Value constant(std::int64_t x) { return b_.constant(ir::Literal::of_int(DType::index, x), kLoc); }
  /// A uniform value known to the generator: constant or parameter.
  ir::Value uniform(std::int64_t x, DType = DType::index);
  bool has(ir::Value, const std::optional<ir::Shape>&) const;
  std::vector<ir::Value> known(const std::optional<ir::Shape>&, std::optional<DType>) const;
  /// A value of that dtype and shape (nullopt: scalar): an old one, or made from others.
  ir::Value value(DType, const std::optional<ir::Shape>&, int depth);
  ir::Value value_of(const ir::Type& t) { return value(t.dtype, t.tile ? std::optional(t.shape) : std::nullopt, 2); }
  ir::Value cast(ir::Value, DType);
  ir::Value mask(const ir::Shape&);
  /// A value without a NaN.
  ir::Value storable(DType, const std::optional<ir::Shape>&);
  std::optional<ir::Shape> any_shape() { return chance(15) ? std::nullopt : std::optional(any(shapes_)); }
  /// Adds a value to the pool, and its shape to those that steps use.
  void keep(ir::Value);
  void keep_all(ir::InstId);
  static bool is_f8(DType d) { return d == DType::f8e4m3 || d == DType::f8e5m2; }

  // --- addresses.cpp ---
  /// The number of this program in the grid.
  void program();
  ir::Value op(ir::Op, ir::Value x, ir::Value y);
  void apply(Index&, ir::Op, std::int64_t k, const std::function<std::int64_t(std::int64_t)>&, bool free = true);
  /// Permuted, strided, reversed or repeated 0…n-1.
  Index line(std::int64_t n, bool distinct);
  /// Axis `axis` of `s` from a one-dimensional tile.
  ir::Value along(ir::Value, const ir::Shape& s, std::size_t axis);
  Index coordinates(const ir::Shape&, bool distinct);
  /// Addresses of one value data says; only for loads.
  Index gather(const ir::Shape&);
  /// An access so far: `first` is the byte where its index 0 lies.
  struct Used {
    ir::Shape shape;
    Index index;
    std::int64_t first;
  };
  /// Half the time one of that shape, so that accesses of one pattern overlap.
  const Used* recent(const ir::Shape&, bool distinct);
  /// Pointers to elements of `p` inside a program's memory; invalid if none fit.
  ir::Value address(const Pointer& p, const ir::Shape&, bool distinct);
  struct Guarded {
    ir::Value at, mask;
  };
  /// Pointers that leave the memory, and the mask of those that do not.
  Guarded guarded(const Pointer&, const ir::Shape&, bool distinct);
  ir::Value placed(const Pointer&, const Index&, ir::Value shift);
  ir::Value scalar_address(const Pointer&);

  // --- steps.cpp ---
  void step();
  void load();
  void store();
  /// Neighbours stored and loaded in one pattern at bases that overlap by run-time distances: who waits for whom?
  void shifted();
  void compute();
  static bool takes(ir::TypeRule, DType);
  /// Integer to float: the other way would show the payload of a NaN.
  void bitcast(const std::optional<ir::Shape>&);
  /// A function with a bound; its result goes to a slot and nowhere else.
  void approximate();

  // --- control.cpp ---
  /// Steps inside a region; what they define is unknown behind it.
  template <class F>
  void inside(ir::RegionId, F&& body);
  void yield(const std::vector<ir::Value>&);
  /// Initial values to be carried; tiles and scalars.
  std::vector<ir::Value> carried();
  std::vector<ir::Value> parameters(ir::RegionId, const std::vector<ir::Value>& like);
  std::vector<ir::Value> next_of(const std::vector<ir::Value>& like);
  void for_loop();
  void while_loop();
  void if_else();

  // --- tiles.cpp ---
  void move_elements();
  ir::Shape reshaped(const ir::Shape&);
  void reshape_or_permute();
  void join_or_split();
  void slice_or_flip();
  void cat();
  void gather_elements();
  void sort();
  void histogram();
  void dot();

  // --- combines.cpp ---
  /// A region whose result does not depend on how its elements are grouped: the dtypes of its tiles, and its body.
  struct Combine {
    std::vector<DType> dtypes;
    std::function<std::vector<ir::Value>(const std::vector<ir::Value>& a, const std::vector<ir::Value>& b)> body;
    bool exact = false;  ///< a sum of floats: its elements are small integers
  };
  Combine any_combine(std::int64_t n);
  std::vector<ir::Value> operands_of(const Combine&, const ir::Shape&, std::int64_t n);
  void combine(bool scan);

  // --- effects.cpp ---
  void atomic();
  void compare_and_swap();

  std::mt19937_64 random_;
  ir::Function f_;
  ir::Builder b_;
  Program p_;
  ir::Value program_;
  Pointer loose_{{}, DType::f32, false, 0};
  std::vector<ir::Shape> shapes_;  ///< that steps use
  std::vector<Pointer> pointers_;
  std::vector<Used> used_;
  std::vector<ir::Value> pool_;
  /// Loops around the current place: their variable as index, and the ends of what it takes.
  struct Loop {
    ir::Value variable;
    std::int64_t lo, hi;
  };
  std::vector<Loop> loops_;
  int depth_ = 0;  ///< regions around the current place
};

}  // namespace kiln::fuzz
