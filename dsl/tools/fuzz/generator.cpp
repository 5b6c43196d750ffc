#include "dsl/tools/fuzz/generator.h"

#include <algorithm>
#include <bit>

namespace kiln::fuzz {

std::int64_t Index::lo() const { return *std::min_element(at.begin(), at.end()); }
std::int64_t Index::hi() const { return *std::max_element(at.begin(), at.end()); }

ir::Attr attr(ir::AttrKey key, std::int64_t value) { return {key, value}; }

Generator::Generator(std::uint64_t seed) : random_(seed), f_("random", kLoc), b_(f_) {
  p_.seed = seed;
  p_.programs = {pick({1, 1, 2, 3}), pick({1, 1, 2}), pick({1, 1, 1, 2})};
  p_.options.num_warps = int(pick({0, 0, 1, 2, 4, 8, 16}));
  if (chance(15)) p_.options.cluster = int(pick({2, 2, 4, 8}));
  program();
  for (int k = int(below(3)) + 1; k > 0; --k) shapes_.push_back(shape());
  for (int k = int(below(4)) + 2; k > 0; --k) pointers_.push_back(pointer());
  f_.params.push_back({ir::Type::pointer(DType::f32), "", rt::Access::ReadWrite, 4, false});
  p_.args.push_back(std::uint64_t(p_.exact_bytes()));
  loose_.v = b_.param(int(f_.params.size()) - 1, kLoc);
  for (int k = int(below(4)); k > 0; --k) {
    const DType d = any_dtype();
    pool_.push_back(param(d, literal(d).bits));
  }
}

Program Generator::run(int steps) {
  for (int k = 0; k < steps; ++k) step();
  p_.function = f_;
  // A tile of n elements takes n/threads registers, twice that of 64-bit ones; at most 128 are allowed.
  std::int64_t most = 0;
  for (std::size_t i = 0; i < f_.value_count(); ++i) {
    std::int64_t n = 2;
    for (std::int64_t extent : f_.type(ir::Value{std::uint32_t(i)}).shape)
      n *= std::int64_t(std::bit_ceil(std::uint64_t(extent)));
    most = std::max(most, n);
  }
  const int least = int(std::bit_ceil(std::uint64_t(std::max<std::int64_t>(most / (32 * 128), 1))));
  if (least > 1) p_.options.num_warps = std::max(p_.options.num_warps, least);
  return p_;
}

Program random_program(std::uint64_t seed, int steps) { return Generator(seed).run(steps); }

}  // namespace kiln::fuzz
