// The records that print and assert leave in a kernel's report buffer: shared by generated code, by the interpreter,
// which write them, and by the runtime, which reads them.
//
//   word 0  words claimed so far         word 1  words there are      all 8 bytes, little-endian
//   word 2  records that had no room     word 3  asserts that failed
//   then records, in the order they claimed their place:
//     launch number | site, index << 32 | program x, y << 32 | program z | one word a value: its bits, zero-extended
//
// index counts the elements of the reported tile in row-major order. Launch numbers begin at 1 and unwritten words are
// 0: so ends what can be read of a buffer whose last record had no room.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/source_loc.h"

namespace kiln::rt {

/// One print or assert of a kernel.
struct ReportSite {
  enum class Kind : std::uint8_t { Print, Assert };
  Kind kind = Kind::Print;
  std::string text;                 ///< format, or message
  std::vector<DType> values;        ///< of a print, one for each {}
  std::vector<std::int64_t> shape;  ///< of the reported tile; empty for scalars
  SourceLoc at;
  bool operator==(const ReportSite&) const;
};

enum ReportWord : unsigned { kReportUsed, kReportCapacity, kReportLost, kReportFailed, kReportHeaderWords };
inline constexpr unsigned kReportRecordWords = 4;  ///< of a record, before its values

struct ReportRecord {
  std::uint64_t launch = 0;
  std::uint32_t site = 0, index = 0;
  std::uint32_t program[3] = {};
  std::vector<std::uint64_t> values;
};

/// Appends `record` as generated code does. `failed`: of an assert.
void append_record(std::uint64_t* buffer, const ReportRecord& record, bool failed);
/// The records of `words`, those after the header; `sites` says how long each is.
std::vector<ReportRecord> read_records(std::span<const std::uint64_t> words, const std::vector<ReportSite>& sites);

/// "x = 0.5" from "x = {}". Floats are the shortest text that reads back as the same value; i1 is true or false.
std::string format_report(const ReportSite& site, std::span<const std::uint64_t> values);
/// Number of {} in a format; {{ and }} are braces. Anything else between braces: -1.
int placeholders(const std::string& format);

}  // namespace kiln::rt
