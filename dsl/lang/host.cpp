#include "dsl/lang/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dsl/lang/kernel.h"
#include "dsl/lang/promote.h"
#include "dsl/lang/tracer.h"

namespace kiln::detail {
namespace {

bool fits_index(const Number& n) { return n.own != DType::u64; }

constexpr std::uint64_t kTooMuch = std::numeric_limits<std::uint64_t>::max();

/// a · b, or the largest number.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t p = 0;
  return __builtin_mul_overflow(a, b, &p) ? kTooMuch : p;
}

/// What a view touches around its first element: elements before it, and those from it on. kTooMuch where the number
/// overflows.
struct Reach {
  std::uint64_t before = 0, after = 0;
};
Reach reach(const std::int64_t* size, const std::int64_t* stride, int rank) {
  if (std::find(size, size + rank, 0) != size + rank) return {};
  Reach r{0, 1};
  for (int d = 0; d < rank; ++d) {
    std::uint64_t& side = stride[d] < 0 ? r.before : r.after;
    const std::uint64_t step = stride[d] < 0 ? 0 - std::uint64_t(stride[d]) : std::uint64_t(stride[d]);
    if (__builtin_add_overflow(side, product(std::uint64_t(size[d] - 1), step), &side)) side = kTooMuch;
  }
  return r;
}

std::string list_of(const std::int64_t* v, int rank) { return fmt::format("[{}]", fmt::join(v, v + rank, ", ")); }

}  // namespace

std::string cpp_name(DType d) {
  switch (d) {
    case DType::i1: return "bool";
    case DType::f32: return "float";
    case DType::f64: return "double";
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::index: return name(d);
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64: return fmt::format("int{}_t", bits(d));
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64: return fmt::format("uint{}_t", bits(d));
  }
  return name(d);
}

std::string pointer_type(rt::Access a, DType d) {
  const char* kind = a == rt::Access::Read ? "In" : a == rt::Access::Write ? "Out" : "InOut";
  return fmt::format("{}<{}>", kind, cpp_name(d));
}

std::string view_type(DType d, bool read_only, int rank) {
  return fmt::format("View<{}{}, {}>", read_only ? "const " : "", cpp_name(d), rank);
}

std::string val_type(DType d) {
  switch (d) {
    case DType::i1: return "Bool";
    case DType::i32: return "Int32";
    case DType::i64: return "Int64";
    case DType::f32: return "Float";
    case DType::f64: return "Double";
    default: return fmt::format("Val<{}>", cpp_name(d));
  }
}

void Binder::fail(const std::string& type, const std::string& why) const {
  throw UserError(at, fmt::format("{}: {}: {}", kernel.name(), kernel.argument(position, type), why));
}

void bind_pointer(const HostPointer& p, DType d, rt::Access access, Binder& b) {
  b.pack.pointer(d, access, p.address, p.bytes, p.owner);
}

void bind_index(const Number& n, Binder& b) {
  if (!fits_index(n)) b.fail("Int", fmt::format("{} does not fit index, a signed 64-bit integer", text_of(n)));
  b.pack.index(std::int64_t(n.bits));
}

void fail_range(const Number& n, DType d, const Binder& b) {
  b.fail(val_type(d), fmt::format("{} does not fit {}", text_of(n), name(d)));
}

void bind_view(const HostPointer& p, DType d, bool read_only, const std::int64_t* size, const std::int64_t* stride,
               int rank, Binder& b) {
  for (int i = 0; i < rank; ++i)
    if (size[i] < 0)
      b.fail(view_type(d, read_only, rank), fmt::format("sizes {} must not be negative", list_of(size, rank)));
  const auto element = std::size_t(bytes(d));
  const Reach touched = reach(size, stride, rank);
  if (p.sized && (touched.before > 0 || touched.after > p.bytes / element))
    b.fail(view_type(d, read_only, rank),
           fmt::format("sizes {} with strides {} reach beyond the {} {} elements", list_of(size, rank),
                       list_of(stride, rank), p.owner ? "buffer's" : "pointer's", p.bytes / element));
  b.pack.pointer(d, read_only ? rt::Access::Read : rt::Access::ReadWrite, p.address,
                 p.sized ? p.bytes : product(touched.after, element), p.owner,
                 p.sized ? 0 : product(touched.before, element));
  for (int i = 0; i < rank; ++i) b.pack.extent(d, size[i]);
  for (int i = 0; i < rank; ++i) b.pack.extent(d, stride[i]);
}

Made Maker::param(const std::string& type, const std::string& part) {
  const rt::Arg fact = pack.arg(packed);
  Tracer& t = Tracer::current(kernel.at());
  ir::Function& f = t.function();
  ir::Param p;
  p.type = fact.kind == rt::ArgKind::Pointer ? ir::Type::pointer(fact.dtype, fact.access == rt::Access::Read)
                                             : ir::Type::scalar(fact.dtype);
  p.name = kernel.argument(position, type, part);
  p.access = fact.access;
  p.align = int(fact.align);
  p.is_one = fact.is_one;
  p.is_extent = pack.is_extent(packed++);
  p.disjoint = fact.disjoint;
  f.params.push_back(std::move(p));
  const int index = int(f.params.size()) - 1;
  return {t.emit(kernel.at(), [&](ir::Builder& b) { return b.param(index, kernel.at()); }).id};
}

}  // namespace kiln::detail
