#include "tests/deploy/elf.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace kiln::test {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    std::ifstream in(path, std::ios::binary);
    data_.assign(std::istreambuf_iterator<char>(in), {});
    const auto header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
      throw std::runtime_error(path + ": not a 64-bit ELF file");
    for (int i = 0; i < header.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + std::size_t(i) * header.e_shentsize));
  }

  template <class T>
  T at(std::size_t offset) const {
    if (offset + sizeof(T) > data_.size()) throw std::runtime_error(path_ + ": truncated");
    T value;
    std::memcpy(&value, data_.data() + offset, sizeof(T));
    return value;
  }
  template <class T, class F>
  void each(std::uint32_t section_type, F&& f) const {
    for (const Elf64_Shdr& s : sections_)
      if (s.sh_type == section_type)
        for (std::size_t i = 0; i < s.sh_size / sizeof(T); ++i)
          f(at<T>(s.sh_offset + i * sizeof(T)), sections_.at(s.sh_link));
  }
  std::string string(const Elf64_Shdr& table, std::size_t index) const {
    if (table.sh_offset + index >= data_.size()) throw std::runtime_error(path_ + ": string outside the file");
    return data_.c_str() + table.sh_offset + index;
  }

 private:
  std::string path_, data_;
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace

ElfFile read_elf(const std::string& path) {
  const Reader reader(path);
  ElfFile out;
  reader.each<Elf64_Dyn>(SHT_DYNAMIC, [&](const Elf64_Dyn& d, const Elf64_Shdr& strings) {
    if (d.d_tag == DT_NEEDED) out.needed.push_back(reader.string(strings, d.d_un.d_val));
  });
  reader.each<Elf64_Sym>(SHT_DYNSYM, [&](const Elf64_Sym& s, const Elf64_Shdr& strings) {
    const auto bind = ELF64_ST_BIND(s.st_info);
    if (bind != STB_LOCAL)
      out.symbols.push_back({reader.string(strings, s.st_name), s.st_shndx != SHN_UNDEF, bind != STB_GLOBAL});
  });
  return out;
}

}  // namespace kiln::test
