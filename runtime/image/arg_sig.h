// What a launch must be given: the argument signature of a kernel, shared by launcher, images and caches.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"

namespace kiln::rt {

enum class ArgKind : std::uint8_t {
  Pointer,  ///< device address of elements of `dtype`
  Scalar,   ///< one value of `dtype`; index is passed as i64
};

/// How the kernel uses the memory behind a pointer.
enum class Access : std::uint8_t { Read, Write, ReadWrite };

struct Arg {
  ArgKind kind = ArgKind::Scalar;
  DType dtype = DType::i32;
  Access access = Access::Read;
  std::string name;         ///< for messages: "argument 3 (n)", or "argument 3 (Int)" where the user gave no names
  std::uint32_t offset = 0; ///< byte offset in the parameter buffer, naturally aligned
  std::uint32_t size = 0;   ///< bytes in the parameter buffer

  // Facts this specialisation relies on. The launcher computes the facts of a call with facts_of(); an image
  // is only launched with arguments that have at least these.
  std::uint32_t align = 1;  ///< a power of two: Pointer: proven base alignment in bytes (16, or the element size); Scalar index: divisor (up to 16)
  bool is_one = false;      ///< Scalar index: the value is 1 and is compiled in
  bool disjoint = false;    ///< Pointer: shares no memory with another pointer argument, where one of the two is written
};

struct ArgSig {
  std::vector<Arg> args;
  std::uint32_t bytes = 0;  ///< size of the parameter buffer

  /// Appends `arg` at the next naturally aligned offset.
  void append(Arg arg);
};

}  // namespace kiln::rt
