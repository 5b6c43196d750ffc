// kiln bench: measures Kiln on the device found. Each figure is a line to read, and with --json a line of JSON.
#include "bench/sections.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "bench/compile_latency.h"
#include "bench/serve.h"
#include "dsl/tools/verbs.h"
#include "dsl/version.h"
#include "runtime/device.h"

namespace kiln::tools {
namespace {

struct Options {
  std::string json, probe;
  bool serve = false;
  std::vector<std::string> sections;
};

std::string section_list() {
  std::string text = "Sections:\n";
  for (const bench::Section& s : bench::sections())
    text += fmt::format("  {:<18} {}{}\n", s.name, s.what, s.needs_gpu ? " (GPU)" : "");
  return text;
}

const bench::Section& section_named(const std::string& name) {
  for (const bench::Section& s : bench::sections())
    if (s.name == name) return s;
  throw UserError(fmt::format("bench: no section '{}'\n{}", name, section_list()));
}

// Lines for a reader go to stdout, lines of JSON to the file.
class Report {
 public:
  explicit Report(const std::string& path) : path_(path) {
    if (path.empty()) return;
    file_.open(path);
    if (!file_) throw UserError(fmt::format("bench: cannot write {}", path));
  }
  void header(const Device& device) {
    fmt::print("kiln {} on {}\n", version(), device.name());
    write(fmt::format("{{\"case\":\"env\",\"kiln\":\"{}\",\"gpu\":\"{}\",\"target\":\"{}\"}}", version(), device.name(),
                      device.target()));
  }
  void add(const bench::Figure& f) {
    fmt::print("{}\n", to_text(f));
    std::fflush(stdout);
    write(to_json(f));
  }

 private:
  void write(const std::string& line) {
    if (file_.is_open() && !(file_ << line << std::endl)) throw UserError(fmt::format("bench: cannot write {}", path_));
  }

  std::string path_;
  std::ofstream file_;
};

// Runs the sections asked for, or all that this device can measure. Exit status 1: one that was asked for needs a GPU.
int run(const Options& options) {
  std::vector<const bench::Section*> chosen;
  for (const std::string& name : options.sections) chosen.push_back(&section_named(name));
  if (chosen.empty())
    for (const bench::Section& s : bench::sections()) chosen.push_back(&s);
  const Device device = Device::best();
  Report report(options.json);
  report.header(device);
  bool refused = false;
  for (const bench::Section* s : chosen) {
    if (s->needs_gpu && device.kind() != DeviceKind::Cuda) {
      fmt::print(stderr, "kiln bench: {}\n", bench::needs_gpu_message(s->name, device));
      refused = true;
    } else {
      s->run(device, [&](const bench::Figure& f) { report.add(f); });
    }
  }
  return refused && !options.sections.empty() ? 1 : 0;
}

}  // namespace

void add_bench(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("bench", "measure bandwidth, launch cost and compile latency");
  CLI::Option* json = verb->add_option("--json", options->json, "also write one JSON object a figure to this file");
  CLI::Option* serve = verb->add_flag("--serve", options->serve,
                                      "read one case a line on stdin, answer each with one line: "
                                      "{\"case\":\"add_relu\",\"shape\":[1000000],\"dtype\":\"f32\"}");
  verb->add_option("--probe", options->probe)->group("");  // the new process of a compile-latency measurement
  CLI::Option* sections = verb->add_option("sections", options->sections, "what to measure; all if none is named");
  serve->excludes(json)->excludes(sections);
  verb->footer(section_list());
  verb->callback([options, &status] {
    if (!options->probe.empty()) fmt::print("{}\n", bench::probe_compile_latency(options->probe));
    else if (options->serve) bench::serve(Device::best(), std::cin, std::cout);
    else status = run(*options);
  });
}

}  // namespace kiln::tools
