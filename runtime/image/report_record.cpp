#include "runtime/image/report_record.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/float16.h"

namespace kiln::rt {
namespace {

template <class Float>
std::string float_text(Float v) {
  return v != v ? "nan" : fmt::format("{}", v);  // a NaN's sign is nobody's business
}
template <class Small>
std::string small_text(std::uint64_t bits) {
  Small s;
  s.bits = decltype(s.bits)(bits);
  return float_text(float(s));
}

std::string value_text(DType d, std::uint64_t bits) {
  switch (d) {
    case DType::i1: return bits != 0 ? "true" : "false";
    case DType::i8: return fmt::format("{}", int(std::int8_t(bits)));
    case DType::i16: return fmt::format("{}", std::int16_t(bits));
    case DType::i32: return fmt::format("{}", std::int32_t(bits));
    case DType::i64:
    case DType::index: return fmt::format("{}", std::int64_t(bits));
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64: return fmt::format("{}", bits);
    case DType::f16: return small_text<f16>(bits);
    case DType::bf16: return small_text<bf16>(bits);
    case DType::f8e4m3: return small_text<f8e4m3>(bits);
    case DType::f8e5m2: return small_text<f8e5m2>(bits);
    case DType::f32: return float_text(std::bit_cast<float>(std::uint32_t(bits)));
    case DType::f64: return float_text(std::bit_cast<double>(bits));
  }
  return "";
}

std::uint64_t two(std::uint32_t low, std::uint32_t high) { return low | std::uint64_t(high) << 32; }

}  // namespace

bool ReportSite::operator==(const ReportSite& o) const {
  return kind == o.kind && text == o.text && values == o.values && shape == o.shape && at.line == o.at.line &&
         at.column == o.at.column && std::strcmp(at.file, o.at.file) == 0;
}

void append_record(std::uint64_t* buffer, const ReportRecord& record, bool failed) {
  buffer[kReportFailed] += failed;
  const std::uint64_t at = buffer[kReportUsed], words = kReportRecordWords + record.values.size();
  buffer[kReportUsed] += words;
  if (at + words > buffer[kReportCapacity]) {
    ++buffer[kReportLost];
    return;
  }
  std::uint64_t* out = buffer + kReportHeaderWords + at;
  out[0] = record.launch;
  out[1] = two(record.site, record.index);
  out[2] = two(record.program[0], record.program[1]);
  out[3] = record.program[2];
  for (std::size_t i = 0; i < record.values.size(); ++i) out[kReportRecordWords + i] = record.values[i];
}

std::vector<ReportRecord> read_records(std::span<const std::uint64_t> words, const std::vector<ReportSite>& sites) {
  std::vector<ReportRecord> records;
  while (words.size() >= kReportRecordWords) {
    ReportRecord r;
    r.launch = words[0];
    if (r.launch == 0) break;
    r.site = std::uint32_t(words[1]);
    r.index = std::uint32_t(words[1] >> 32);
    r.program[0] = std::uint32_t(words[2]);
    r.program[1] = std::uint32_t(words[2] >> 32);
    r.program[2] = std::uint32_t(words[3]);
    KILN_CHECK(r.site < sites.size(),
               fmt::format("a record of site {} in a report buffer of {}", r.site, sites.size()));
    const std::size_t n = sites[r.site].values.size();
    KILN_CHECK(words.size() >= kReportRecordWords + n, "a record that its report buffer does not hold");
    r.values.assign(words.begin() + kReportRecordWords, words.begin() + kReportRecordWords + std::ptrdiff_t(n));
    words = words.subspan(kReportRecordWords + n);
    records.push_back(std::move(r));
  }
  return records;
}

std::string format_report(const ReportSite& site, std::span<const std::uint64_t> values) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < site.text.size(); ++i) {
    const char c = site.text[i];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    const bool value = c == '{' && site.text[i + 1] == '}';
    ++i;  // {}, {{ or }}
    if (!value) out += c;
    else {
      out += value_text(site.values[next], values[next]);
      ++next;
    }
  }
  return out;
}

int placeholders(const std::string& format) {
  int n = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    if (c != '{' && c != '}') continue;
    const char next = i + 1 < format.size() ? format[i + 1] : '\0';
    if (next != c && !(c == '{' && next == '}')) return -1;
    n += next != c;
    ++i;
  }
  return n;
}

}  // namespace kiln::rt
