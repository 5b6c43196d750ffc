// print and device_assert: what a kernel says to the program that launched it.
//
//     print("x = {}, i = {}", x, i);                              // one line an element
//     device_assert(i < n, "index beyond the table", mask);
//
// Reports are kept in a buffer on the device and given out when the host waits for it (Stream::synchronize,
// Device::synchronize, Buffer::download), ordered by launch, program, place in the kernel, element: the same text on
// every device and in every run. A buffer holds 1 MiB for each compiled kernel; reports beyond are counted. Only
// kernels that report pay.
#pragma once
#include <initializer_list>

#include "dsl/lang/tile.h"

namespace kiln {

namespace detail {
/// A text and the line it was written on.
struct Text {
  const char* text;
  SourceLoc at;
  Text(const char* t, RawLoc l = RawLoc::current()) : text(t), at(l) {}
};
void report_print(const Text& format, std::initializer_list<Arg> values);
void report_assert(const Handle& cond, const Text& message, const Operand* mask);
}  // namespace detail

/// Prints `format` with each {} replaced by a value ({{ and }} are braces): once a program where all values are
/// scalars, else once an element of the shape that they broadcast to. A line begins with the kernel, its program and
/// the element: "scale (1, 0, 0) [3]: x = 0.5". Floats are the shortest text that reads back as the same value.
///
/// Lines go to standard output, or where Device::on_print says. Errors: UserError for a format whose {} are not as many
/// as the values, for a pointer, for shapes that do not broadcast.
template <class... Values>
void print(detail::Text format, const Values&... values) {
  detail::report_print(format, {Arg(values, RawLoc{})...});
}

/// Where `cond` (i1) is false, and `mask` true or absent: the next time that the host waits for the device throws a
/// DeviceError with this file and line, the program, the element and `message` of the first assert that failed, and how
/// many did. The kernel goes on; mask what must not be done then.
inline void device_assert(const Tile& cond, detail::Text message) { detail::report_assert(cond, message, nullptr); }
inline void device_assert(const Tile& cond, detail::Text message, Arg mask) {
  detail::report_assert(cond, message, &mask);
}
inline void device_assert(const Scalar& cond, detail::Text message) { detail::report_assert(cond, message, nullptr); }
inline void device_assert(const Scalar& cond, detail::Text message, SArg mask) {
  detail::report_assert(cond, message, &mask);
}

}  // namespace kiln
