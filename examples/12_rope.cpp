// Rotary position embedding: why a product of turned vectors knows how far apart two tokens are, and nothing else.
//
// Each pair of elements of a query at position m is turned by m times an angle, of a key at position n by n times the
// same. In their product only the difference of the angles is left, (m - n) times each. The table holds query · key for
// queries at five positions, each against keys some tokens before it: all lines are alike.
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace kiln;

constexpr int kDim = 64, kHalf = kDim / 2, kPositions = 1024;
constexpr int kAt[] = {64, 100, 257, 500, 1000}, kBefore[] = {0, 1, 2, 4, 8, 16, 32, 64};

// The angle by which pair i turns from one position to the next.
double angle(int i) { return std::pow(10000.0, -double(i) / kHalf); }

// `vector`, once for each position, turned.
std::vector<float> turned(const Stream& stream, const std::vector<float>& vector, const std::vector<int>& positions) {
  const Device device = stream.device();
  const auto tokens = std::int64_t(positions.size());
  std::vector<float> cosine, sine, copies;
  for (int p = 0; p < kPositions; ++p)
    for (int i = 0; i < kHalf; ++i) {
      cosine.push_back(float(std::cos(p * angle(i))));
      sine.push_back(float(std::sin(p * angle(i))));
    }
  for (std::int64_t t = 0; t < tokens; ++t) copies.insert(copies.end(), vector.begin(), vector.end());
  Buffer<float> cosines(device, cosine.size()), sines(device, sine.size()), x(device, copies.size());
  Buffer<std::int32_t> at(device, positions.size());
  cosines.upload(cosine);
  sines.upload(sine);
  x.upload(copies);
  at.upload(positions);
  lib::rope<float>(stream, {x, {tokens, 1, kDim}}, {cosines, {kPositions, kHalf}}, {sines, {kPositions, kHalf}},
                   {at, {tokens}}, {x, {tokens, 1, kDim}});
  return x.to_vector();
}

int main() try {
  const Device device = Device::best();
  const Stream stream(device);
  std::vector<float> query, key;
  for (int i = 0; i < kDim; ++i) {
    query.push_back(float((i * 7 + 3) % 11 - 5) / 8);
    key.push_back(query.back() + float(i * 5 % 7 - 3) / 8);
  }
  std::vector<int> query_at, key_at;
  for (int m : kAt)
    for (int d : kBefore) query_at.push_back(m), key_at.push_back(m - d);
  const std::vector<float> q = turned(stream, query, query_at), k = turned(stream, key, key_at);

  std::printf("query · key on %s\n\n%16s", device.name().c_str(), "tokens between:");
  for (int d : kBefore) std::printf(" %8d", d);
  std::printf("\n");
  double worst = 0;
  for (std::size_t t = 0; t < q.size() / kDim; ++t) {
    double product = 0, exact = 0;
    const int distance = query_at[t] - key_at[t];
    for (std::size_t i = 0; i < kHalf; ++i) {
      const std::size_t a = t * kDim + i, b = a + kHalf;
      product += double(q[a]) * double(k[a]) + double(q[b]) * double(k[b]);
      const double along = double(query[i] * key[i] + query[i + kHalf] * key[i + kHalf]);
      const double across = double(query[i + kHalf] * key[i] - query[i] * key[i + kHalf]);
      exact += along * std::cos(distance * angle(int(i))) - across * std::sin(distance * angle(int(i)));
    }
    if (distance == 0) std::printf("query at %-7d", query_at[t]);
    std::printf(" %8.3f%s", product, distance == 64 ? "\n" : "");
    worst = std::max(worst, std::abs(product - exact));
  }
  const bool ok = worst < 1e-5;
  std::printf("\n%s: each column is one number, up to %.0e, wherever the two tokens are\n", ok ? "ok" : "WRONG RESULT",
              worst);
  return ok ? 0 : 1;
} catch (const kiln::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
