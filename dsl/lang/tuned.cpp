#include "dsl/lang/tuned.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/base/env.h"

namespace kiln::detail {
namespace {

/// The magnitude of a number; 0 of anything else.
std::uint64_t class_of(const rt::ArgPack& pack, std::size_t i) {
  const rt::Arg arg = pack.arg(i);
  if (arg.kind != rt::ArgKind::Scalar || arg.dtype != DType::index) return 0;
  const auto value = std::int64_t(pack.packed(i).value);
  return std::uint64_t(std::bit_width(std::uint64_t(value < 0 ? -value : value)));
}

/// The words that a choice is made for, on the stack.
struct Words {
  explicit Words(const rt::ArgPack& pack) {
    for (std::size_t i = 0; i < pack.key_size(); ++i) words[size++] = pack.key_words()[i];
    for (std::size_t i = 0; i < pack.size(); ++i) words[size++] = class_of(pack, i);
  }
  operator std::span<const std::uint64_t>() const { return {words.data(), size}; }
  std::array<std::uint64_t, rt::ArgPack::kMaxKeyWords + rt::ArgPack::kMaxArgs> words;
  std::size_t size = 0;
};

void save_arguments(SavedMemory& saved, const KernelCore& kernel, const OnStream& on, const rt::ArgPack& pack,
                    std::span<const std::size_t> ends) {
  for (std::size_t i = 0; i < pack.size(); ++i) {
    const rt::Arg arg = pack.arg(i);
    if (arg.kind != rt::ArgKind::Pointer || arg.access != rt::Access::ReadWrite) continue;
    const rt::ArgPack::Packed& p = pack.packed(i);
    if (p.value == 0) continue;
    const auto position = std::upper_bound(ends.begin(), ends.end(), i) - ends.begin();
    if (p.bytes == 0)
      throw UserError(on.at,
                      fmt::format("kernel '{}' is measured by launching it many times, and reads and writes {}, whose "
                                  "extent is not known: pass a Buffer, or device_ptr with the number of elements",
                                  kernel.name(), kernel.argument(int(position), "pointer")));
    saved.add(p.value - p.before, p.before + p.bytes);
  }
}

}  // namespace

SavedMemory::SavedMemory(const Stream& stream, SourceLoc at) : device_(stream.device()), at_(at) {
  if (stream.capturing())
    throw UserError(at, "nothing can be measured while the stream is being captured: do it before the capture");
  stream.synchronize(at);
}
void SavedMemory::add(DevicePtr address, std::size_t bytes) {
  if (bytes == 0) return;
  auto there = Buffer<std::uint8_t>::foreign(device_, address, bytes, at_);
  auto contents = there.to_vector(at_);
  saved_.emplace_back(std::move(there), std::move(contents));
}
void SavedMemory::restore() {
  for (auto& [there, bytes] : saved_) there.upload(bytes, 0, at_);
}

void append_value(std::string& out, long long v) { out += fmt::format("{}", v); }
void append_value(std::string& out, double v) { out += fmt::format("{}", v); }
void append_value(std::string& out, bool v) { out += v ? "true" : "false"; }

void append_options(std::string& out, const CompileOptions& o) {
  if (o.num_warps) out += fmt::format(" num_warps={}", o.num_warps);
  if (o.cluster) out += fmt::format(" cluster={}", o.cluster);
  if (o.max_registers) out += fmt::format(" max_registers={}", o.max_registers);
  if (o.stages) out += fmt::format(" stages={}", o.stages);
  if (o.strict) out += " strict";
}

bool TunedCore::Key::operator==(const Key& o) const {
  return device == o.device && words.size() == o.words.size() &&
         std::memcmp(words.data(), o.words.data(), words.size_bytes()) == 0;
}

std::string TunedCore::subject(std::span<const std::uint64_t> words) const {
  return fmt::format("kernel {} at {} for {:x}", kernel_.name(), kernel_.at().str(), fmt::join(words, " "));
}

std::size_t TunedCore::choose(const OnStream& on, const rt::ArgPack& pack, std::span<const std::size_t> ends,
                              const Run& run) const {
  const Words words(pack);
  const Key key{&on.stream.device().impl(), words};
  if (const Choice* c = choices_.find(key)) return c->candidate;
  if (on.stream.capturing())  // no measuring or compiling, and nothing that would keep a later launch from it
    return rt::tuned(on.stream.device(), subject(words), names_).value_or(0);
  const auto make = [&] {
    const std::size_t best = decide(on, pack, ends, subject(words), run);
    return std::make_unique<Choice>(on.stream.device(), std::vector(key.words.begin(), key.words.end()), best);
  };
  const auto recursion = [&] {
    throw UserError(on.at, fmt::format("kernel '{}' is launched while it is measured", kernel_.name()));
  };
  return choices_.find_or_make(key, recursion, make).candidate;
}

std::size_t TunedCore::decide(const OnStream& on, const rt::ArgPack& pack, std::span<const std::size_t> ends,
                              const std::string& subject, const Run& run) const {
  const Device device = on.stream.device();
  if (const auto kept = rt::tuned(device, subject, names_)) return *kept;
  const bool clock = stopwatch_ || device.kind() == DeviceKind::Cuda;
  if (names_.size() == 1 || !clock || !env::KILN_TUNE()) return first_that_compiles(on, run);
  return contest(on, pack, ends, subject, run).chosen;
}

std::size_t TunedCore::first_that_compiles(const OnStream& on, const Run& run) const {
  std::string first;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    try {
      run.preload(i);
      return i;
    } catch (const UserError& e) {
      if (first.empty()) first = names_[i] + ": " + e.what();
    } catch (const DeviceError& e) {
      if (first.empty()) first = names_[i] + ": " + e.what();
    }
  }
  throw UserError(on.at, fmt::format("kernel '{}': none of {} candidates runs on {}: {}", kernel_.name(), names_.size(),
                                     on.stream.device().name(), first));
}

Tuning TunedCore::contest(const OnStream& on, const rt::ArgPack& pack, std::span<const std::size_t> ends,
                          const std::string& subject, const Run& run) const {
  std::vector<rt::Candidate> candidates;
  for (std::size_t i = 0; i < names_.size(); ++i)
    candidates.push_back({names_[i], [&run, i](const Stream& s) { run.launch(i, s); }});
  SavedMemory memory(on.stream, on.at);
  save_arguments(memory, kernel_, on, pack, ends);
  Tuning t = stopwatch_ ? rt::tune(on.stream, subject, candidates, stopwatch_, on.at)
                        : rt::tune(on.stream, subject, candidates, on.at);
  memory.restore();
  return t;
}

Tuning TunedCore::measure(const OnStream& on, const rt::ArgPack& pack, std::span<const std::size_t> ends,
                          const Run& run) const {
  const Words words(pack);
  Tuning t = contest(on, pack, ends, subject(words), run);
  if (Choice* c = choices_.find({&on.stream.device().impl(), words})) c->candidate = t.chosen;
  return t;
}

}  // namespace kiln::detail
