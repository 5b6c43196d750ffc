// What the host passes for each parameter type. Param<P> says, for one parameter type P:
//   Host             what an argument converts to; its constructors make launch() a plain function, so the compiler
//   says
//                    which argument is wrong, and braces and designated initialisers work
//   bind(host, b)    checks the argument and appends it to the parameter buffer and the key
//   make(host, m)    the traced parameter
// All work is in host.cpp; a launch costs a user's object file some calls.
#pragma once
#include <array>
#include <string>

#include "dsl/lang/fields.h"
#include "dsl/lang/params.h"
#include "dsl/lang/view.h"
#include "runtime/device.h"
#include "runtime/launch.h"

namespace kiln {

/// See device_ptr().
template <class T>
struct TypedPtr {
  static constexpr std::size_t kUnknown = ~std::size_t{0};
  DevicePtr address = 0;
  std::size_t elements = kUnknown;
};
/// The address of somebody else's device memory, for In, Out, InOut and View arguments: `device_ptr<float>(address)`,
/// or `device_ptr<float>(address, n)` where it holds n elements.
///
/// A launch asks the device whose memory it is. A view that reaches beyond the n elements, and n elements or a view
/// that reach out of the allocation, are a UserError at the launch. Where the device does not know the allocation's
/// size (memory mapped by other means), and of plain pointers without n, nothing can be checked.
template <Element T>
TypedPtr<T> device_ptr(DevicePtr address) {
  return {address};
}
template <Element T>
TypedPtr<T> device_ptr(DevicePtr address, std::size_t n) {
  return {address, n};
}

namespace detail {

class KernelCore;

/// Collects the arguments of one launch. `position`: of the argument being bound, from 0.
struct Binder {
  rt::ArgPack& pack;
  const KernelCore& kernel;
  SourceLoc at;
  int position = -1;
  Binder& next() { return ++position, *this; }
  /// UserError that names kernel and argument; `type` as in "Out<float>".
  [[noreturn]] void fail(const std::string& type, const std::string& why) const;
};

/// Makes the traced parameters, in order; their facts are those of the bound arguments.
struct Maker {
  const rt::ArgPack& pack;
  const KernelCore& kernel;
  int position = -1;
  std::size_t packed = 0;
  Maker& next() { return ++position, *this; }
  /// `part`: "" or, of a view, ".size(0)".
  Made param(const std::string& type, const std::string& part = {});
};

/// "float" for f32, "int64_t", "bf16": an element type as users write it.
std::string cpp_name(DType);

struct HostPointer {
  DevicePtr address = 0;
  std::size_t bytes = 0;
  const Device* owner = nullptr;  // null: unknown
  bool sized = true;              // whether bytes is known
  HostPointer(const RawBuffer& b) : address(b.ptr()), bytes(b.bytes()), owner(b.owner()) {}
  template <class T>
  explicit HostPointer(TypedPtr<T> p) : address(p.address), sized(p.elements != TypedPtr<T>::kUnknown) {
    if (sized && __builtin_mul_overflow(p.elements, sizeof(T), &bytes)) bytes = ~std::size_t{0};
  }
};
template <class T, rt::Access A>
using BufferOf = std::conditional_t<A == rt::Access::Read, const Buffer<std::remove_const_t<T>>, Buffer<T>>;

template <class T, rt::Access A>
struct PtrHost : HostPointer {
  PtrHost(BufferOf<T, A>& b) : HostPointer(b.raw()) {}
  PtrHost(TypedPtr<std::remove_const_t<T>> p) : HostPointer(p) {}
  PtrHost(TypedPtr<const T> p) requires(A == rt::Access::Read && !std::is_const_v<T>) : HostPointer(p) {}
  template <class U>
  PtrHost(const U&) : HostPointer(TypedPtr<T>{}) {
    static_assert(always_false<U>,
                  "kiln: this argument must be a Buffer<T> (or device_ptr<T>) of the parameter's element type; a "
                  "non-const one for Out and InOut");
  }
};

/// Any C++ integer; one beyond 64 signed bits is refused when it is bound.
struct IndexArg {
  Number number;
  template <class U>
  IndexArg(const U& u) {
    if constexpr (std::integral<U> && !std::same_as<U, bool>) number = Number::of(u);
    else
      static_assert(always_false<U>,
                    "kiln: this argument must be a number of the parameter's kind: an integer for Int");
  }
};

/// A scalar of element type T. An integer out of T's range is refused when it is bound; floating-point numbers round to
/// T.
template <class T>
struct ValArg {
  T value{};
  Number number;
  bool fits = true;
  template <class U>
  ValArg(const U& u) {
    if constexpr (std::same_as<U, T> || (std::floating_point<T> && std::floating_point<U>)) {
      value = T(u);
    } else if constexpr (std::integral<T> && std::integral<U> && !std::same_as<T, bool> && !std::same_as<U, bool>) {
      value = T(u);
      number = Number::of(u);
      fits = std::in_range<T>(u);
    } else {
      static_assert(always_false<U>,
                    "kiln: this argument must be a number of the parameter's kind: an integer for Int32 and Int64, a "
                    "floating-point number for Float and Double, T itself for any other Val<T>");
    }
  }
};

/// A buffer and its extents: {x, {M, K}}, dense in row-major order, or {x, {M, K}, {stride0, stride1}} in elements.
template <class T, int N>
struct ViewArg {
  static constexpr rt::Access kAccess = std::is_const_v<T> ? rt::Access::Read : rt::Access::ReadWrite;
  using Extents = std::array<std::int64_t, N>;
  HostPointer data;
  Extents size, stride;
  ViewArg(BufferOf<T, kAccess>& b, Extents n) : data(b.raw()), size(n), stride(dense(n)) {}
  ViewArg(BufferOf<T, kAccess>& b, Extents n, Extents s) : data(b.raw()), size(n), stride(s) {}
  ViewArg(TypedPtr<std::remove_const_t<T>> p, Extents n) : data(p), size(n), stride(dense(n)) {}
  ViewArg(TypedPtr<std::remove_const_t<T>> p, Extents n, Extents s) : data(p), size(n), stride(s) {}
  template <class U>
  ViewArg(const U&, Extents n, Extents = {}) : data(TypedPtr<T>{}), size(n) {
    static_assert(always_false<U>,
                  "kiln: this view must be over a Buffer<T> (or device_ptr<T>) of its element type; a non-const one "
                  "for View<T, N>");
  }

 private:
  static Extents dense(const Extents& n) {
    Extents s{};
    std::int64_t next = 1;
    for (std::size_t d = N; d-- > 0; next *= n[d]) s[d] = next;
    return s;
  }
};

void bind_pointer(const HostPointer&, DType, rt::Access, Binder&);
void bind_index(const Number&, Binder&);
void bind_view(const HostPointer&, DType, bool read_only, const std::int64_t* size, const std::int64_t* stride,
               int rank, Binder&);
[[noreturn]] void fail_range(const Number&, DType, const Binder&);

std::string pointer_type(rt::Access, DType);
std::string view_type(DType, bool read_only, int rank);
std::string val_type(DType);

template <class T, rt::Access A, class P>
struct PtrParam {
  using Host = PtrHost<T, A>;
  static void bind(const Host& h, Binder& b) { bind_pointer(h, dtype_of<T>, A, b); }
  static P make(const Host&, Maker& m) { return P(m.param(pointer_type(A, dtype_of<T>))); }
};

}  // namespace detail

template <class P>
struct Param {
  static_assert(detail::always_false<P>,
                "kiln: not a kernel parameter type; use In<T>, Out<T>, InOut<T>, View<T, N>, Int, Val<T>, Float, "
                "Const<T>, Tune<S>");
  struct Host {};
};

template <class T>
struct Param<In<T>> : detail::PtrParam<T, rt::Access::Read, In<T>> {};
template <class T>
struct Param<Out<T>> : detail::PtrParam<T, rt::Access::Write, Out<T>> {};
template <class T>
struct Param<InOut<T>> : detail::PtrParam<T, rt::Access::ReadWrite, InOut<T>> {};

template <>
struct Param<Int> {
  using Host = detail::IndexArg;
  static void bind(const Host& h, detail::Binder& b) { detail::bind_index(h.number, b); }
  static Int make(const Host&, detail::Maker& m) { return Int(m.param("Int")); }
};

template <class T>
struct Param<Val<T>> {
  using Host = detail::ValArg<T>;
  static void bind(const Host& h, detail::Binder& b) {
    if (!h.fits) detail::fail_range(h.number, dtype_of<T>, b);
    b.pack.scalar(dtype_of<T>, &h.value);
  }
  static Val<T> make(const Host&, detail::Maker& m) { return Val<T>(m.param(detail::val_type(dtype_of<T>))); }
};

template <class T>
struct Param<Const<T>> {
  using Host = Const<T>;
  static void bind(const Host& h, detail::Binder& b) { b.pack.key(detail::key_word(h.value)); }
  static Const<T> make(const Host& h, detail::Maker&) { return h; }
};

template <class S>
struct Param<Tune<S>> {
  using Host = S;
  static void bind(const S& s, detail::Binder& b) {
    detail::each_field(s, [&](auto field) { b.pack.key(detail::key_word(field)); });
  }
  static Tune<S> make(const S& s, detail::Maker&) { return Tune<S>{s}; }
};

template <class T, int N>
struct Param<View<T, N>> {
  using Host = detail::ViewArg<T, N>;
  static void bind(const Host& h, detail::Binder& b) {
    detail::bind_view(h.data, dtype_of<T>, std::is_const_v<T>, h.size.data(), h.stride.data(), N, b);
  }
  static View<T, N> make(const Host&, detail::Maker& m) {
    const std::string type = detail::view_type(dtype_of<T>, std::is_const_v<T>, N);
    const Scalar ptr(m.param(type));
    std::array<Scalar, N> size, stride;
    for (int d = 0; d < N; ++d) size[std::size_t(d)] = Scalar(m.param(type, ".size(" + std::to_string(d) + ")"));
    for (int d = 0; d < N; ++d) stride[std::size_t(d)] = Scalar(m.param(type, ".stride(" + std::to_string(d) + ")"));
    return {ptr, size, stride};
  }
};

}  // namespace kiln
