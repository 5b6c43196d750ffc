#include "bench/timer.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "bench/figure.h"

namespace kiln::bench {

Rotation rotation_for(std::size_t input_bytes) {
  constexpr std::size_t kL2Bytes = 60u << 20;
  const auto sets =
      static_cast<int>(std::clamp<std::size_t>(4 * kL2Bytes / std::max<std::size_t>(1, input_bytes) + 1, 4, 64));
  return {sets, std::max(sets, 8)};
}

static Graph capture(const Stream& stream, int launches, const std::function<void(const Stream&, int)>& launch) {
  return Graph::capture(stream, [&] {
    for (int i = 0; i < launches; ++i) launch(stream, i);
  });
}

GraphTimer::GraphTimer(const Stream& stream, int launches, const std::function<void(const Stream&, int)>& launch)
    : stream_(stream), launches_(launches), graph_(capture(stream, launches, launch)) {}

double GraphTimer::us_per_launch(int replays) {
  for (int i = 0; i < 3; ++i) graph_.replay(stream_);
  Event begin(stream_.device()), end(stream_.device());
  std::vector<double> us;
  for (int i = 0; i < replays; ++i) {
    begin.record(stream_);
    graph_.replay(stream_);
    end.record(stream_);
    end.synchronize();
    us.push_back(Event::elapsed_us(begin, end) / launches_);
  }
  return median(us);
}

double host_us_per_call(const Stream& stream, int calls, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i) call();
  const auto end = Clock::now();
  stream.synchronize();
  return std::chrono::duration<double, std::micro>(end - begin).count() / calls;
}

}  // namespace kiln::bench
