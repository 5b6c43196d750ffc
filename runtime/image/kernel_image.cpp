// .kimg, little-endian:
//
//   "KIMG"  u16 major  u16 minor  u64 bytes in the file  u64 u64 checksum of all other bytes
//   sections, each: u32 tag  u64 length  payload
//
// A record inside a section (argument, recipe) has its own length, so both sections and records grow at their end: an
// older reader skips what it does not know, a newer one keeps the default of what is missing. Dtypes are stored by
// name.
#include "runtime/image/kernel_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/hash.h"

namespace kiln::rt {
namespace {

constexpr std::string_view kMagic = "KIMG";
constexpr std::uint16_t kMajor = 2, kMinor = 1;  // 2: argument facts know disjoint; 2.1: tensor maps
constexpr std::size_t kChecksumAt = 16, kHeaderBytes = 32;

enum class Tag : std::uint32_t { Name = 1, Target, Ptx, Cubin, Signature, Recipes, Report, Definition, Sites, Params };
constexpr auto kLastTag = static_cast<std::uint32_t>(Tag::Params);

class Writer {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(T v) { out_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void put(const std::string& s) {
    put<std::uint64_t>(s.size());
    out_ += s;
  }
  /// Runs `body` and puts a u64 with the bytes it wrote in front of them.
  template <class F>
  void sized(F&& body) {
    const std::size_t at = out_.size();
    put<std::uint64_t>(0);
    body();
    const std::uint64_t n = out_.size() - at - sizeof n;
    std::memcpy(out_.data() + at, &n, sizeof n);
  }
  template <class F>
  void section(Tag tag, F&& body) {
    put(static_cast<std::uint32_t>(tag));
    sized(body);
  }
  std::string& bytes() { return out_; }

 private:
  std::string out_;
};

/// Reads a span of the file; every read is checked against its end.
class Reader {
 public:
  Reader(std::string_view bytes, const std::string& origin) : in_(bytes), origin_(origin) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> T get(const char* what) {
    T v;
    std::memcpy(&v, take(sizeof v, what).data(), sizeof v);
    return v;
  }
  /// An enum of `count` values.
  template <class T>
  T get_enum(const char* what, int count) {
    const auto v = get<std::uint8_t>(what);
    if (v >= count) fail(fmt::format("{} is {}, known are 0 to {}", what, v, count - 1));
    return static_cast<T>(v);
  }
  DType get_dtype(const char* what) {
    const std::string_view dtype = get_string(what);
    const auto d = dtype_named(dtype);
    if (!d) fail(fmt::format("unknown dtype '{}'", dtype));
    return *d;
  }
  bool get_bool(const char* what) { return get_enum<bool>(what, 2); }
  std::string_view get_string(const char* what) { return take(get<std::uint64_t>(what), what); }
  Reader sized(const char* what) { return Reader(get_string(what), origin_); }
  bool empty() const { return in_.empty(); }
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(fmt::format("{}: not a valid kernel image: {}", origin_, why));
  }

 private:
  std::string_view take(std::uint64_t n, const char* what) {
    if (n > in_.size()) fail(fmt::format("{} needs {} bytes, {} are left", what, n, in_.size()));
    const std::string_view part = in_.substr(0, n);
    in_.remove_prefix(n);
    return part;
  }

  std::string_view in_;
  const std::string& origin_;
};

Hash128 checksum(const std::string& bytes) {
  const Hash128 body = hash128(std::string_view(bytes).substr(kHeaderBytes));
  Hash128 head = hash128(std::string_view(bytes).substr(0, kChecksumAt));
  head.low ^= body.low;
  head.high += body.high;
  return head;
}

void write(Writer& w, const Arg& a) {
  w.put(a.kind);
  w.put(std::string(name(a.dtype)));
  w.put(a.access);
  w.put(a.name);
  w.put(a.offset);
  w.put(a.size);
  w.put(a.align);
  w.put<std::uint8_t>(a.is_one);
  w.put<std::uint8_t>(a.disjoint);
}

Arg read_arg(Reader r) {
  Arg a;
  a.kind = r.get_enum<ArgKind>("argument kind", 2);
  a.dtype = r.get_dtype("argument dtype");
  a.access = r.get_enum<Access>("argument access", 3);
  a.name = r.get_string("argument name");
  a.offset = r.get<std::uint32_t>("argument offset");
  a.size = r.get<std::uint32_t>("argument size");
  a.align = r.get<std::uint32_t>("argument alignment");
  if (!std::has_single_bit(a.align)) r.fail(fmt::format("argument alignment is {}, no power of two", a.align));
  a.is_one = r.get_bool("argument is_one");
  a.disjoint = r.get_bool("argument disjoint");
  return a;
}

void write(Writer& w, const TensorExtent& e) {
  w.put(e.arg);
  w.put(e.number);
}

TensorExtent read_extent(Reader& r) {
  TensorExtent e;
  e.arg = r.get<std::uint32_t>("argument of a tensor map");
  e.number = r.get<std::int64_t>("extent of a tensor map");
  return e;
}

void write(Writer& w, const TensorMapRecipe& m) {
  w.put(m.base);
  w.put(std::string(name(m.dtype)));
  w.put(m.rank);
  for (const TensorExtent& e : m.sizes) write(w, e);
  for (const TensorExtent& e : m.strides) write(w, e);
  w.put(m.box);
  w.put(m.swizzle);
  w.put(m.fill);
  w.put(m.promotion);
  w.put(m.floats);
}

TensorMapRecipe read_tensor_map(Reader r) {
  TensorMapRecipe m;
  m.base = r.get<std::uint32_t>("base of a tensor map");
  m.dtype = r.get_dtype("tensor map dtype");
  m.rank = r.get<std::uint32_t>("tensor map rank");
  for (TensorExtent& e : m.sizes) e = read_extent(r);
  for (TensorExtent& e : m.strides) e = read_extent(r);
  m.box = r.get<std::array<std::uint32_t, 5>>("tensor map box");
  m.swizzle = r.get_enum<TensorSwizzle>("tensor map swizzle", 4);
  m.fill = r.get_enum<TensorFill>("tensor map fill", 2);
  m.promotion = r.get_enum<TensorPromotion>("tensor map promotion", 4);
  m.floats = r.get_enum<TensorFloat>("tensor map floats", 4);
  return m;
}

void write(Writer& w, const LaunchRecipe& c) {
  w.put(c.grid);
  w.put(c.programs_per_cta);
  w.put(c.block);
  w.put(c.cluster);
  w.put(c.smem_bytes);
  w.put(c.max_registers);
  w.put<std::uint8_t>(c.nonportable_cluster);
  w.put<std::uint8_t>(c.pdl);
  w.put(static_cast<std::uint32_t>(c.hidden.size()));
  for (const HiddenParam h : c.hidden) w.put(h);
  w.put(c.workspace_bytes);
  w.put(static_cast<std::uint32_t>(c.tensor_maps.size()));
  for (const TensorMapRecipe& m : c.tensor_maps) w.sized([&] { write(w, m); });
}

LaunchRecipe read_recipe(Reader r) {
  LaunchRecipe c;
  c.grid = r.get_enum<GridRule>("grid rule", 3);
  c.programs_per_cta = r.get<std::uint32_t>("programs per block");
  c.block = r.get<std::array<std::uint32_t, 3>>("block");
  c.cluster = r.get<std::array<std::uint32_t, 3>>("cluster");
  c.smem_bytes = r.get<std::uint32_t>("shared memory size");
  c.max_registers = r.get<std::uint32_t>("register cap");
  c.nonportable_cluster = r.get_bool("non-portable cluster flag");
  c.pdl = r.get_bool("dependent launch flag");
  for (auto n = r.get<std::uint32_t>("hidden parameter count"); n > 0; --n)
    c.hidden.push_back(r.get_enum<HiddenParam>("hidden parameter", 5));
  c.workspace_bytes = r.get<std::uint64_t>("workspace size");
  if (r.empty()) return c;  // before 2.1
  for (auto n = r.get<std::uint32_t>("tensor map count"); n > 0; --n)
    c.tensor_maps.push_back(read_tensor_map(r.sized("tensor map")));
  return c;
}

void write(Writer& w, const KernelReport& report) {
  w.put<std::int32_t>(report.registers);
  w.put<std::int32_t>(report.spill_bytes);
  w.put<std::int32_t>(report.static_smem_bytes);
  w.put(report.bytes_read_per_program);
  w.put(report.bytes_written_per_program);
  w.put(static_cast<std::uint32_t>(report.facts.size()));
  for (const std::string& f : report.facts) w.put(f);
}

KernelReport read_report(Reader r) {
  KernelReport report;
  report.registers = r.get<std::int32_t>("registers");
  report.spill_bytes = r.get<std::int32_t>("spill bytes");
  report.static_smem_bytes = r.get<std::int32_t>("static shared memory");
  report.bytes_read_per_program = r.get<double>("bytes read");
  report.bytes_written_per_program = r.get<double>("bytes written");
  for (auto n = r.get<std::uint32_t>("fact count"); n > 0; --n) report.facts.emplace_back(r.get_string("fact"));
  return report;
}

void write(Writer& w, const SourceLoc& at) {
  w.put(std::string(at.file));
  w.put<std::uint32_t>(at.line);
  w.put<std::uint32_t>(at.column);
}

SourceLoc read_location(Reader& r) {
  SourceLoc at;
  at.file = intern_file(std::string(r.get_string("file")));
  at.line = r.get<std::uint32_t>("line");
  at.column = r.get<std::uint32_t>("column");
  return at;
}

void write(Writer& w, const ReportSite& s) {
  w.put(s.kind);
  w.put(s.text);
  w.put(static_cast<std::uint32_t>(s.values.size()));
  for (const DType d : s.values) w.put(std::string(name(d)));
  w.put(static_cast<std::uint32_t>(s.shape.size()));
  for (const std::int64_t extent : s.shape) w.put(extent);
  write(w, s.at);
}

ReportSite read_site(Reader r) {
  ReportSite s;
  s.kind = r.get_enum<ReportSite::Kind>("report kind", 2);
  s.text = r.get_string("report text");
  for (auto n = r.get<std::uint32_t>("report value count"); n > 0; --n)
    s.values.push_back(r.get_dtype("report dtype"));
  for (auto n = r.get<std::uint32_t>("report rank"); n > 0; --n) {
    s.shape.push_back(r.get<std::int64_t>("report extent"));
    if (s.shape.back() < 1) r.fail(fmt::format("a reported tile of extent {}", s.shape.back()));
  }
  const int wanted = s.kind == ReportSite::Kind::Print ? placeholders(s.text) : 0;
  if (wanted != static_cast<int>(s.values.size()))
    r.fail(fmt::format("a report of {} values with the format '{}'", s.values.size(), s.text));
  s.at = read_location(r);
  return s;
}

void write_signature(Writer& w, const ArgSig& sig) {
  w.put(sig.bytes);
  w.put(static_cast<std::uint32_t>(sig.args.size()));
  for (const Arg& a : sig.args) w.sized([&] { write(w, a); });
}

/// Offsets are recomputed: the launcher relies on them being those that ArgSig::append gives.
ArgSig read_signature(Reader r) {
  ArgSig sig;
  const auto bytes = r.get<std::uint32_t>("parameter buffer size");
  for (auto n = r.get<std::uint32_t>("argument count"); n > 0; --n) {
    const Arg stored = read_arg(r.sized("argument"));
    sig.append(stored);
    const Arg& a = sig.args.back();
    if (a.offset != stored.offset || a.size != stored.size)
      r.fail(fmt::format("argument {} lies at {} with {} bytes, expected {} with {}", sig.args.size(), stored.offset,
                         stored.size, a.offset, a.size));
  }
  if (sig.bytes != bytes) r.fail(fmt::format("parameter buffer of {} bytes, arguments need {}", bytes, sig.bytes));
  return sig;
}

void write(Writer& w, const ParamSlot& p) {
  w.put(p.offset);
  w.put(p.bytes);
  w.put(p.align);
}

/// Offsets are recomputed: a launch points at them in a buffer of its own.
std::vector<ParamSlot> read_params(Reader r) {
  std::vector<ParamSlot> params;
  std::uint64_t used = 0;
  for (auto n = r.get<std::uint32_t>("parameter count"); n > 0; --n) {
    Reader record = r.sized("parameter");
    ParamSlot p;
    p.offset = record.get<std::uint32_t>("parameter offset");
    p.bytes = record.get<std::uint32_t>("parameter size");
    p.align = record.get<std::uint32_t>("parameter alignment");
    if (!std::has_single_bit(p.align)) r.fail(fmt::format("parameter alignment is {}, no power of two", p.align));
    const std::uint64_t natural = (used + p.align - 1) / p.align * p.align;
    used = natural + p.bytes;
    if (p.offset != natural || used > kMostParamBytes)
      r.fail(fmt::format("parameter {} lies at {} with {} bytes, expected {} and at most {} in all", params.size() + 1,
                         p.offset, p.bytes, natural, kMostParamBytes));
    params.push_back(p);
  }
  return params;
}

void read_section(KernelImage& image, Tag tag, Reader r) {
  switch (tag) {
    case Tag::Name: image.name = r.get_string("name"); break;
    case Tag::Target: image.target = r.get_string("target"); break;
    case Tag::Ptx: image.ptx = r.get_string("ptx"); break;
    case Tag::Cubin: image.cubin = r.get_string("cubin"); break;
    case Tag::Signature: image.signature = read_signature(r); break;
    case Tag::Recipes:
      image.accepted = r.get<std::uint32_t>("accepted recipe");
      for (auto n = r.get<std::uint32_t>("recipe count"); n > 0; --n)
        image.candidates.push_back(read_recipe(r.sized("recipe")));
      break;
    case Tag::Report: image.report = read_report(r); break;
    case Tag::Definition: image.definition = read_location(r); break;
    case Tag::Sites:
      for (auto n = r.get<std::uint32_t>("report count"); n > 0; --n)
        image.sites.push_back(read_site(r.sized("report")));
      break;
    case Tag::Params: image.params = read_params(r); break;
  }
}

/// Checks the header and returns the sections.
std::string_view body(const std::string& bytes, const std::string& origin) {
  const Reader whole(bytes, origin);
  if (bytes.size() < kHeaderBytes)
    whole.fail(fmt::format("{} bytes, the header alone has {}", bytes.size(), kHeaderBytes));
  Reader r(std::string_view(bytes).substr(kMagic.size()), origin);
  if (std::string_view(bytes).substr(0, kMagic.size()) != kMagic) whole.fail("the first four bytes are not KIMG");
  const auto major = r.get<std::uint16_t>("major");
  const auto minor = r.get<std::uint16_t>("minor");
  if (major != kMajor) whole.fail(fmt::format("format {}.{}, this build reads {}.x", major, minor, kMajor));
  const auto size = r.get<std::uint64_t>("size");
  if (size != bytes.size()) whole.fail(fmt::format("{} bytes, the header says {}", bytes.size(), size));
  if (r.get<Hash128>("checksum") != checksum(bytes)) whole.fail("checksum does not match the contents");
  return std::string_view(bytes).substr(kHeaderBytes);
}

/// What a launch would divide by, index with or rely on.
void validate(const KernelImage& image, const std::string& origin) {
  const Reader whole({}, origin);
  if (image.name.empty()) whole.fail("no kernel name");
  if (image.ptx.empty() && image.cubin.empty()) whole.fail("neither PTX nor machine code");
  if (image.accepted >= image.candidates.size())
    whole.fail(fmt::format("recipe {} of {} is in use", image.accepted, image.candidates.size()));
  for (const LaunchRecipe& c : image.candidates) {
    bool positive = c.programs_per_cta > 0;
    for (std::size_t i = 0; i < 3; ++i) positive = positive && c.block[i] > 0 && c.cluster[i] > 0;
    if (!positive) whole.fail("a launch recipe has a block, cluster or programs-per-block of 0");
    if (const std::string why = tensor_map_fault(image, c); !why.empty()) whole.fail(why);
  }
}

}  // namespace

std::string tensor_map_fault(const KernelImage& image, const LaunchRecipe& c) {
  const auto at = std::find(c.hidden.begin(), c.hidden.end(), HiddenParam::TensorMaps);
  if (at == c.hidden.end() ? !c.tensor_maps.empty() : at + 1 != c.hidden.end() || c.tensor_maps.empty())
    return fmt::format("{} tensor maps, but the last hidden parameter and no other must be theirs",
                       c.tensor_maps.size());
  for (const TensorMapRecipe& m : c.tensor_maps)
    if (const std::string why = tensor_map_obstacle(image.signature, m); !why.empty()) return "tensor map: " + why;
  return {};
}

std::string serialise(const KernelImage& image) {
  Writer w;
  w.bytes() += kMagic;
  w.put(kMajor);
  w.put(kMinor);
  w.put<std::uint64_t>(0);
  w.put(Hash128{});
  w.section(Tag::Name, [&] { w.put(image.name); });
  w.section(Tag::Target, [&] { w.put(image.target); });
  w.section(Tag::Ptx, [&] { w.put(image.ptx); });
  w.section(Tag::Cubin, [&] { w.put(image.cubin); });
  w.section(Tag::Signature, [&] { write_signature(w, image.signature); });
  w.section(Tag::Recipes, [&] {
    w.put(image.accepted);
    w.put(static_cast<std::uint32_t>(image.candidates.size()));
    for (const LaunchRecipe& c : image.candidates) w.sized([&] { write(w, c); });
  });
  w.section(Tag::Report, [&] { write(w, image.report); });
  w.section(Tag::Definition, [&] { write(w, image.definition); });
  if (!image.sites.empty())
    w.section(Tag::Sites, [&] {
      w.put(static_cast<std::uint32_t>(image.sites.size()));
      for (const ReportSite& s : image.sites) w.sized([&] { write(w, s); });
    });
  if (!image.params.empty())
    w.section(Tag::Params, [&] {
      w.put(static_cast<std::uint32_t>(image.params.size()));
      for (const ParamSlot& p : image.params) w.sized([&] { write(w, p); });
    });

  std::string bytes = std::move(w.bytes());
  const std::uint64_t size = bytes.size();
  std::memcpy(bytes.data() + 8, &size, sizeof size);
  const Hash128 sum = checksum(bytes);
  std::memcpy(bytes.data() + kChecksumAt, &sum, sizeof sum);
  return bytes;
}

KernelImage deserialise(const std::string& bytes, const std::string& origin) {
  Reader sections(body(bytes, origin), origin);
  KernelImage image;
  while (!sections.empty()) {
    const auto tag = sections.get<std::uint32_t>("section tag");
    Reader section = sections.sized("section");
    if (tag >= 1 && tag <= kLastTag) read_section(image, static_cast<Tag>(tag), section);
  }
  validate(image, origin);
  return image;
}

std::string capped_ptx(const KernelImage& image) {
  std::string ptx = image.ptx;
  if (const std::uint32_t cap = image.recipe().max_registers; cap != 0) {
    const std::size_t body = ptx.find("\n{", ptx.find(".entry"));
    if (body == ptx.npos) throw InternalError("kernel " + image.name + ": its PTX has no kernel to cap the registers of");
    ptx.insert(body, "\n.maxnreg " + std::to_string(cap));
  }
  return ptx;
}

}  // namespace kiln::rt
