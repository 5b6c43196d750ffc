// The memory of a launch of linear: what overlaps, what it computes in, how its arrays lie.
#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "dsl/lang/tuned.h"
#include "dsl/lib/extra.h"
#include "dsl/lib/matrix.h"

namespace kiln::lib::chain {

/// The memory of one launch: what is written must be nothing that another program still reads.
class Conflicts {
 public:
  /// `in_place`: each program reads only the elements that it then writes, if it is the same array.
  void reads(const Reach&, bool in_place = false);
  void writes(const Reach&);
  void check(const char* function, SourceLoc) const;
  /// Whether an array that is read is written in place.
  bool in_place() const;

 private:
  struct Read {
    Reach reach;
    bool in_place = false;
  };
  // More than a launch has room for: each array is three arguments and more, of 128.
  std::array<Read, 48> read_;
  std::array<Reach, 48> written_;
  int reads_ = 0, writes_ = 0;
};

/// What a launch computes in beside its arguments: the caller's, or some of the stream's pool. UserError while the
/// stream is captured and the caller gave none, or too little.
class Workspace {
 public:
  Workspace(const char* function, const On&, std::int64_t bytes, const std::optional<Vector<float>>& given);
  DevicePtr address() const { return address_; }

 private:
  Buffer<float> own_;
  DevicePtr address_ = 0;
};

/// Whether a copy of a tensor map can bring blocks of `v`: contiguous along one of the last two dimensions, everything
/// else a multiple of 16 bytes apart.
template <class T, int N>
bool in_rows_of_16_bytes(const kiln::detail::ViewArg<T, N>& v) {
  bool contiguous = false, whole = v.data.address % 16 == 0;
  for (std::size_t d = 0; d < N; ++d) {
    if (v.stride[d] == 1 && !contiguous && d + 2 >= N) contiguous = true;
    else whole = whole && v.stride[d] * std::int64_t(sizeof(T)) % 16 == 0;
  }
  return contiguous && whole;
}

/// The memory that a view spans.
template <class T, int N>
void save(kiln::detail::SavedMemory& saved, const kiln::detail::ViewArg<T, N>& v) {
  std::int64_t first = 0, last = 0;
  for (std::size_t d = 0; d < N; ++d) {
    if (v.size[d] <= 0) return;
    const std::int64_t reach = (v.size[d] - 1) * v.stride[d];
    (reach < 0 ? first : last) += reach;
  }
  constexpr auto kBytes = std::int64_t(sizeof(T));
  saved.add(v.data.address + DevicePtr(first * kBytes), std::size_t((last - first + 1) * kBytes));
}

}  // namespace kiln::lib::chain
