#include "runtime/sim/named_value.h"

#include <charconv>

#include "runtime/sim/form.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

bool number(std::string_view text, std::int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= 0;
}

bool numbers(std::string_view text, char at, std::vector<std::int64_t>& out) {
  for (std::string_view part : split(text, at))
    if (!number(part, out.emplace_back())) return false;
  return true;
}

/// `key=value`
bool field(std::string_view text, std::string_view key, std::string_view& value) {
  if (!text.starts_with(key) || text.size() == key.size() || text[key.size()] != '=') return false;
  value = text.substr(key.size() + 1);
  return true;
}

void nothing(Warp&, const Inst&) {}

}  // namespace

std::uint64_t NamedValue::elements() const {
  std::uint64_t n = 1;
  for (std::int64_t extent : shape) n *= static_cast<std::uint64_t>(extent);
  return n;
}

std::optional<std::uint64_t> NamedValue::element(std::uint32_t reg, std::uint32_t lane, std::uint32_t warp,
                                                 std::uint32_t block) const {
  std::vector<std::int64_t> at(shape.size());
  const std::array<std::uint32_t, 4> place{reg, lane, warp, block};
  for (std::size_t d = 0; d < place.size(); ++d)
    for (std::size_t bit = 0; bit < bases[d].size(); ++bit)
      if (place[d] >> bit & 1)
        for (std::size_t k = 0; k < at.size(); ++k) at[k] ^= bases[d][bit][k];
  std::uint64_t index = 0;
  for (std::size_t k = 0; k < at.size(); ++k) {
    if (at[k] >= shape[k]) return std::nullopt;
    index = index * static_cast<std::uint64_t>(shape[k]) + static_cast<std::uint64_t>(at[k]);
  }
  return index;
}

std::optional<NamedValue> parse_named_value(std::string_view text) {
  const std::vector<std::string_view> words = split(text, ' ');
  if (words.size() < 5) return std::nullopt;
  NamedValue v;
  v.name = words[0];
  v.pointer = words[1] == "ptr";
  const auto dtype = v.pointer ? DType::u64 : dtype_named(words[1]);
  if (!dtype) return std::nullopt;
  v.dtype = *dtype;
  v.tile = words[2] != "-";
  if (v.tile && !numbers(words[2], 'x', v.shape)) return std::nullopt;
  constexpr std::int64_t kMostElements = 1 << 26;
  for (std::int64_t extent : v.shape)
    if (extent < 1 || extent > kMostElements) return std::nullopt;
  for (std::int64_t n = 1; std::int64_t extent : v.shape)
    if ((n *= extent) > kMostElements) return std::nullopt;
  std::string_view value;
  std::int64_t warps = 0, blocks = 0;
  if (!field(words[3], "warps", value) || !number(value, warps)) return std::nullopt;
  if (!field(words[4], "blocks", value) || !number(value, blocks)) return std::nullopt;
  if (warps < 1 || warps > 32 || blocks < 1 || blocks > 16) return std::nullopt;
  v.warps = static_cast<std::uint32_t>(warps);
  v.blocks = static_cast<std::uint32_t>(blocks);
  static constexpr std::string_view kPlaces[] = {"register", "lane", "warp", "block"};
  for (std::size_t i = 5; i < words.size(); ++i)
    for (std::size_t d = 0; d < 4; ++d) {
      if (!field(words[i], kPlaces[d], value)) continue;
      for (std::string_view basis : split(value, ';')) {
        if (!numbers(basis, ',', v.bases[d].emplace_back())) return std::nullopt;
        if (v.bases[d].back().size() != v.shape.size() || v.bases[d].size() > 20) return std::nullopt;
      }
    }
  return v;
}

bool names_value(const InstInfo& i) { return i.stmt && i.stmt->opcode == kNamedValue; }

/// kiln.value "…", {registers}
Handler make_named_value(Form& f) {
  if (f.count() != 2 || f.operand(0).kind != ptx::Operand::Kind::Text ||
      f.operand(1).kind != ptx::Operand::Kind::Vector || !parse_named_value(f.operand(0).name))
    f.fail("needs a description and registers");
  for (const ptx::Operand& o : f.operand(1).parts) {
    const int bits = f.register_bits(o);
    if (o.kind == ptx::Operand::Kind::Sink) f.none();
    else f.src(o, bits == 1 ? Ty::pred : bits == 64 || bits == 0 ? Ty::b64 : bits == 16 ? Ty::b16 : Ty::b32);
  }
  return nothing;
}

}  // namespace kiln::rt::sim
