#include "dsl/tools/fuzz/campaign.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace kiln::fuzz {

void Campaign::prepare() {
  always_ = Device::all();
  always_.push_back(Device::simulator("sm_80"));
  for (const char* arch : {"sm_86", "sm_89", "sm_100a", "sm_120a"}) sometimes_.push_back(Device::simulator(arch));
  devices = {"interpreter"};
  for (const std::vector<Device>* list : {&always_, &sometimes_})
    for (const Device& d : *list) devices.push_back(d.name());
}

bool Campaign::agrees(const Device& device, const Program& p) {
  const std::optional<std::string> differs = difference(device, p, planted);
  if (!differs) ++refused;
  if (!differs || differs->empty()) return true;
  fmt::print(stderr, "seed {} differs on {}; making the program small\n{}", p.seed, device.name(), *differs);
  Program less = minimised(device, p, planted);
  failure = Failure{device.name(), difference(device, less, planted).value_or(""), std::move(less)};
  return false;
}

void Campaign::count_contents(const ir::Function& f) {
  walk(f, [&](ir::InstId i) {
    ++ops[ir::mnemonic(f.inst(i).op)];
    for (ir::Value v : f.inst(i).results) ++types[f.type(v).ptr ? "ptr" : name(f.type(v).dtype)];
  });
}

void Campaign::run() {
  prepare();
  const auto start = std::chrono::steady_clock::now();
  const auto out_of_time = [&] {
    return seconds > 0 && std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds;
  };
  for (std::uint64_t seed = first; seed < first + count && !out_of_time(); ++seed) {
    const Program p = random_program(seed, kSteps);
    if (show) fmt::print(stderr, "{}\n", p.text());
    ++programs;
    count_contents(p.function);
    for (const Device& d : always_)
      if (!agrees(d, p)) return;
    if (seed % 4 == 0 && !agrees(sometimes_[seed / 4 % sometimes_.size()], p)) return;
  }
}

void Campaign::run_one(const Program& p) {
  prepare();
  first = p.seed;
  programs = 1;
  count_contents(p.function);
  for (const std::vector<Device>* list : {&always_, &sometimes_})
    for (const Device& d : *list)
      if (!agrees(d, p)) return;
}

std::string Campaign::json() const {
  nlohmann::ordered_json j;
  j["programs"] = programs;
  j["refused"] = refused;
  j["seed"] = first;
  j["devices"] = devices;
  j["ops"] = ops;
  j["types"] = types;
  j["differences"] = failure ? 1 : 0;
  return j.dump();
}

}  // namespace kiln::fuzz
