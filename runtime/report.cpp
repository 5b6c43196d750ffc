#include "runtime/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <utility>

#include "runtime/device_impl.h"

namespace kiln::rt {
namespace {

struct Entry {
  ReportRecord record;
  const ReportBuffer* from;
  auto order() const {
    const std::uint32_t* p = record.program;
    return std::tuple(record.launch, p[2], p[1], p[0], record.site, record.index);
  }
  const ReportSite& site() const { return from->sites[record.site]; }
};

/// "(1, 0, 0)", and " [2, 5]" for an element of a tile.
std::string place_of(const Entry& e) {
  const std::uint32_t* p = e.record.program;
  std::string text = fmt::format("({}, {}, {})", p[0], p[1], p[2]);
  std::string element;
  std::int64_t rest = e.record.index;
  const auto& shape = e.site().shape;
  for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) {
    element = fmt::format("{}{}{}", rest % *extent, element.empty() ? "" : ", ", element);
    rest /= *extent;
  }
  return element.empty() ? text : text + " [" + element + "]";
}

void each_line(const std::string& text, const std::function<void(const std::string&)>& sink) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    sink(text.substr(at, end - at));
    at = end + 1;
  }
}

std::string failure_text(const Entry& e, std::uint64_t failed) {
  return fmt::format("{}: assertion failed in program {}: {}{}", e.from->kernel, place_of(e), e.site().text,
                     failed > 1 ? fmt::format("; {} assertions failed in all", failed) : "");
}

}  // namespace

/// What was reported since the last time, in order.
struct Reports::Batch {
  std::vector<std::shared_ptr<ReportBuffer>> keep;
  std::vector<Entry> entries;
  std::string text;  ///< of printf
  std::string lost;  ///< one line a kernel whose buffer was full
  std::uint64_t failed = 0;
  std::function<void(const std::string&)> sink;
};

std::shared_ptr<ReportBuffer> Reports::open(DeviceImpl& device, const KernelImage& image) {
  auto buffer = std::make_shared<ReportBuffer>();
  buffer->kernel = image.name;
  buffer->sites = image.sites;
  const std::size_t bytes = (kReportHeaderWords + ReportBuffer::kWords) * sizeof(std::uint64_t);
  buffer->address = device.allocate(bytes, nullptr);
  device.fill(buffer->address, 0, bytes);
  device.upload(buffer->address + kReportCapacity * sizeof(std::uint64_t), &ReportBuffer::kWords,
                sizeof(std::uint64_t));
  const std::lock_guard lock(mutex_);
  buffers_.push_back(buffer);
  return buffer;
}

void Reports::on_print(std::function<void(const std::string&)> sink) {
  const std::lock_guard lock(mutex_);
  sink_ = std::move(sink);
}

void Reports::add_text(const std::string& text) {
  if (text.empty()) return;
  const std::lock_guard lock(mutex_);
  text_ += text;
  waiting_ = true;
}

Reports::Batch Reports::collect(DeviceImpl& device) {
  constexpr std::size_t word = sizeof(std::uint64_t);
  Batch batch;
  const std::lock_guard lock(mutex_);
  batch.sink = sink_;
  batch.text = std::exchange(text_, {});
  bool graphs = false;
  for (const auto& buffer : buffers_) {
    graphs = graphs || buffer->captured;
    if (!buffer->filled && !buffer->captured) continue;
    std::uint64_t header[kReportHeaderWords];
    device.download(header, buffer->address, sizeof header);
    buffer->filled = false;
    if (header[kReportUsed] == 0 && header[kReportFailed] == 0) continue;
    std::vector<std::uint64_t> words(std::min(header[kReportUsed], header[kReportCapacity]));
    const std::uint64_t records = buffer->address + sizeof header;
    if (!words.empty()) {
      device.download(words.data(), records, words.size() * word);
      device.fill(records, 0, words.size() * word);
    }
    const std::uint64_t empty[kReportHeaderWords] = {0, header[kReportCapacity], 0, 0};
    device.upload(buffer->address, empty, sizeof empty);
    for (ReportRecord& r : read_records(words, buffer->sites)) batch.entries.push_back({std::move(r), buffer.get()});
    batch.failed += header[kReportFailed];
    batch.keep.push_back(buffer);
    if (header[kReportLost] != 0)
      batch.lost += fmt::format("{}: {} more reports found no room in a buffer of {} words\n", buffer->kernel,
                                header[kReportLost], header[kReportCapacity]);
  }
  // Buffers of kernels that are gone have been read for the last time.
  std::erase_if(buffers_, [&](const auto& b) {
    const bool gone = b.use_count() == 1 + std::count(batch.keep.begin(), batch.keep.end(), b);
    if (gone) device.free(b->address, nullptr);
    return gone;
  });
  waiting_ = graphs;
  std::stable_sort(batch.entries.begin(), batch.entries.end(),
                   [](const Entry& a, const Entry& b) { return a.order() < b.order(); });
  return batch;
}

void Reports::deliver(DeviceImpl& device) {
  if (!waiting_ || device.any_capture()) return;
  const Batch batch = collect(device);
  std::string text;
  const auto say = [&](const std::string& line) {
    if (batch.sink) batch.sink(line);
    else text += line + '\n';
  };
  if (batch.sink) each_line(batch.text, batch.sink);
  else text = batch.text;
  const Entry* first = nullptr;
  for (const Entry& e : batch.entries) {
    if (e.site().kind == ReportSite::Kind::Print)
      say(fmt::format("{} {}: {}", e.from->kernel, place_of(e), format_report(e.site(), e.record.values)));
    else if (first == nullptr) first = &e;
  }
  if (!batch.lost.empty()) say(batch.lost.substr(0, batch.lost.size() - 1));
  if (!text.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  if (first != nullptr) throw DeviceError(first->site().at, failure_text(*first, batch.failed));
  if (batch.failed != 0)
    throw DeviceError(fmt::format("{} assertions failed; the report buffer had no room to say where", batch.failed));
}

}  // namespace kiln::rt
