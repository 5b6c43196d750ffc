// A small reader of 64-bit ELF shared objects: what they need and what they export. No external tool, so that the
// deployment tests run wherever the build folder does.
#pragma once
#include <string>
#include <vector>

namespace kiln::test {

struct DynamicSymbol {
  std::string name;
  bool defined = false;
  bool weak = false;  ///< weak or unique: an inline function, a template instance, a type's vtable
};

struct ElfFile {
  std::vector<std::string> needed;     ///< DT_NEEDED, in order
  std::vector<DynamicSymbol> symbols;  ///< .dynsym without locals
};

/// Throws std::runtime_error that says what is wrong when `path` is no 64-bit little-endian ELF file.
ElfFile read_elf(const std::string& path);

}  // namespace kiln::test
