// Embedding: tokens pick rows of a table. And why an unknown token gives zeros: so that the table can be split.
//
// Two devices hold half of the vocabulary each. Each looks every token up in its own half, with numbers that start at
// its first row; a token of the other half lies outside and gives a row of zeros, without a branch, and without reading
// anything there. The sum of both is the embedding; a token that nobody knows stays 0.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

using namespace kiln;

constexpr std::int64_t kDim = 3, kHalf = 4;
constexpr std::array<const char*, 8> kWords{"a", "cat", "dog", "fox", "likes", "no", "sees", "the"};
const std::vector<std::int64_t> kSentence{7, 1, 6, 0, 3, 99, 4, 7, 2};

float element(std::int64_t word, std::int64_t c) { return float(10 * word + c) / 4; }

// What the device with words [first, first + kHalf) finds.
std::vector<float> look_up(const Stream& stream, std::int64_t first) {
  const Device device = stream.device();
  const auto n = std::int64_t(kSentence.size());
  std::vector<float> rows;
  for (std::int64_t w = 0; w < kHalf; ++w)
    for (std::int64_t c = 0; c < kDim; ++c) rows.push_back(element(first + w, c));
  std::vector<std::int64_t> own;
  for (std::int64_t id : kSentence) own.push_back(id - first);
  Buffer<float> table(device, rows.size()), y(device, std::size_t(n * kDim));
  Buffer<std::int64_t> ids(device, own.size());
  table.upload(rows);
  ids.upload(own);
  lib::embedding<float>(stream, {table, {kHalf, kDim}}, {ids, {n}}, {y, {n, kDim}});
  return y.to_vector();
}

std::string shown(const float* row) {
  char text[64];
  std::snprintf(text, sizeof text, "%6.2f %6.2f %6.2f", double(row[0]), double(row[1]), double(row[2]));
  return text;
}

int main() try {
  const Device device = Device::best();
  const Stream stream(device);
  const std::vector<float> low = look_up(stream, 0), high = look_up(stream, kHalf);

  std::printf("embedding on %s\n\n%-8s %3s   %-20s   %-20s   %-20s\n", device.name().c_str(), "token", "id",
              "words 0 to 3", "words 4 to 7", "sum");
  bool ok = true;
  for (std::size_t t = 0; t < kSentence.size(); ++t) {
    const std::int64_t id = kSentence[t];
    const bool known = id < std::int64_t(kWords.size());
    std::vector<float> sum;
    for (std::size_t c = 0; c < kDim; ++c) {
      sum.push_back(low[t * kDim + c] + high[t * kDim + c]);
      ok = ok && sum[c] == (known ? element(id, std::int64_t(c)) : 0);
    }
    std::printf("%-8s %3lld   %s   %s   %s\n", known ? kWords[std::size_t(id)] : "?", static_cast<long long>(id),
                shown(&low[t * kDim]).c_str(), shown(&high[t * kDim]).c_str(), shown(sum.data()).c_str());
  }
  std::printf("\n%s: every sum is the row of the whole table\n", ok ? "ok" : "WRONG RESULT");
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
