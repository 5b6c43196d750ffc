#include "runtime/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "runtime/base/log.h"
#include "runtime/device_impl.h"
#include "runtime/entry_store.h"

namespace kiln {

std::string Tuning::table() const {
  std::size_t width = 0;
  for (const Row& r : rows) width = std::max(width, r.name.size());
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    const std::string said = !r.refused.empty() ? "refused: " + r.refused
                             : r.us < 0         ? "not measured"
                                                : fmt::format("{:.2f} us", r.us);
    out += fmt::format("{} {:<{}}  {}\n", i == chosen ? '*' : ' ', r.name, width, said);
  }
  return out;
}

namespace rt {
namespace {

constexpr double kBurstUs = 500;     ///< launches are repeated until they take about this long
constexpr int kMostLaunches = 1000;  ///< of a burst
constexpr int kRounds = 7;
constexpr double kHopeless = 1.5;  ///< times the best of the first round
constexpr double kNoise = 0.01;

/// Captured, so that the host's share of a launch is not measured.
double measured_on_gpu(const Stream& stream, const Candidate& c, int launches) {
  const Graph burst = Graph::capture(stream, [&] {
    for (int i = 0; i < launches; ++i) c.launch(stream);
  });
  Event begin(stream.device()), end(stream.device());
  burst.replay(stream);  // the first replay of a graph uploads it
  begin.record(stream);
  burst.replay(stream);
  end.record(stream);
  end.synchronize();
  return Event::elapsed_us(begin, end) / launches;
}

/// Entries of this process, those of the cache folder among them; an empty name: there is none.
class Kept {
 public:
  static Kept& instance() {
    static Kept kept;
    return kept;
  }
  std::string find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = names_.try_emplace(key);
    if (fresh) at->second = read(key);
    return at->second;
  }
  void keep(const std::string& key, const Tuning& t) {
    nlohmann::ordered_json j;
    j["chosen"] = t.rows[t.chosen].name;
    for (const Tuning::Row& r : t.rows) j["us"][r.name] = r.us;
    store().store(key, j.dump());
    const std::lock_guard lock(mutex_);
    names_[key] = t.rows[t.chosen].name;
  }

 private:
  static EntryStore store() { return EntryStore::from_env(".tune"); }
  static std::string read(const std::string& key) {
    const EntryStore entries = store();
    const auto text = entries.find(key);
    if (!text) return {};
    const auto j = nlohmann::json::parse(*text, nullptr, false);
    if (j.is_object() && j.contains("chosen") && j["chosen"].is_string()) return j["chosen"].get<std::string>();
    entries.remove(key, entries.path_of(key) + ": not the result of a tuning");
    return {};
  }

  std::mutex mutex_;
  std::map<std::string, std::string> names_;
};

std::string key_of(const Device& device, const std::string& subject) {
  return fmt::format("tuning 1\ndevice {} ({}, {} multiprocessors)\n{}\n", device.name(), device.target(),
                     device.sm_count(), subject);
}

class Contest {
 public:
  Contest(const Stream& stream, std::span<const Candidate> candidates) : stream_(stream), candidates_(candidates) {
    for (const Candidate& c : candidates) result_.rows.push_back({c.name, -1, {}});
  }

  /// Launches each candidate once.
  void enter(SourceLoc at) {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      try {
        candidates_[i].launch(stream_);
        running_.push_back(i);
      } catch (const UserError& e) {
        result_.rows[i].refused = e.what();
      } catch (const DeviceError& e) {
        result_.rows[i].refused = e.what();
      }
      stream_.synchronize(at);  // what a kernel does wrong is no reason to take another
    }
    if (running_.empty())
      throw UserError(at, fmt::format("none of {} candidates runs on {}: {}: {}", candidates_.size(),
                                      stream_.device().name(), result_.rows[0].name, result_.rows[0].refused));
    result_.chosen = running_[0];
  }

  void run(const Stopwatch& stopwatch) {
    if (running_.size() < 2) return;
    static std::mutex clock;  // contests of two threads would measure each other
    const std::lock_guard lock(clock);
    std::vector<std::vector<double>> times(candidates_.size());
    std::vector<int> launches(candidates_.size());
    double best = -1;
    for (std::size_t i : running_) {
      const double once = std::max(stopwatch(stream_, candidates_[i], 1), 0.1);
      launches[i] = std::clamp(int(kBurstUs / once), 1, kMostLaunches);
      times[i].push_back(stopwatch(stream_, candidates_[i], launches[i]));
      result_.rows[i].us = times[i][0];
      best = best < 0 ? times[i][0] : std::min(best, times[i][0]);
    }
    std::erase_if(running_, [&](std::size_t i) { return times[i][0] > kHopeless * best; });
    for (int round = 1; round < kRounds; ++round) {
      std::rotate(running_.begin(), running_.begin() + 1, running_.end());  // nobody always runs behind the same one
      for (std::size_t i : running_) times[i].push_back(stopwatch(stream_, candidates_[i], launches[i]));
    }
    std::sort(running_.begin(), running_.end());
    for (std::size_t i : running_) result_.rows[i].us = median(times[i]);
    choose();
    result_.measured = true;
  }

  Tuning result() && { return std::move(result_); }

 private:
  static double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  }
  void choose() {
    const auto us = [&](std::size_t i) { return result_.rows[i].us; };
    const double best =
        us(*std::min_element(running_.begin(), running_.end(), [&](auto a, auto b) { return us(a) < us(b); }));
    result_.chosen =
        *std::find_if(running_.begin(), running_.end(), [&](std::size_t i) { return us(i) <= best * (1 + kNoise); });
  }

  const Stream& stream_;
  const std::span<const Candidate> candidates_;
  std::vector<std::size_t> running_;
  Tuning result_;
};

Tuning compete(const Stream& stream, const std::string& subject, std::span<const Candidate> candidates,
               const Stopwatch* stopwatch, SourceLoc at) {
  if (candidates.empty()) throw UserError(at, "a tuning needs a candidate, and was given none");
  if (stream.capturing())
    throw UserError(
        at, fmt::format("{} cannot be tuned while its stream is being captured: tune it before the capture", subject));
  Contest contest(stream, candidates);
  contest.enter(at);
  if (stopwatch) contest.run(*stopwatch);
  Tuning t = std::move(contest).result();
  if (t.measured) Kept::instance().keep(key_of(stream.device(), subject), t);
  if (log_enabled(LogLevel::Debug)) say(LogLevel::Debug, fmt::format("tuned {}:\n{}", subject, t.table()));
  return t;
}

}  // namespace

Tuning tune(const Stream& stream, const std::string& subject, std::span<const Candidate> candidates, SourceLoc at) {
  const Stopwatch stopwatch = measured_on_gpu;
  return compete(stream, subject, candidates, stream.device().kind() == DeviceKind::Cuda ? &stopwatch : nullptr, at);
}

Tuning tune(const Stream& stream, const std::string& subject, std::span<const Candidate> candidates,
            const Stopwatch& stopwatch, SourceLoc at) {
  return compete(stream, subject, candidates, &stopwatch, at);
}

std::optional<std::size_t> tuned(const Device& device, const std::string& subject, std::span<const std::string> names) {
  const std::string name = Kept::instance().find(key_of(device, subject));
  const auto at = std::find(names.begin(), names.end(), name);
  if (name.empty() || at == names.end()) return std::nullopt;
  return std::size_t(at - names.begin());
}

}  // namespace rt
}  // namespace kiln
