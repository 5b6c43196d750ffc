#include "bench/serve.h"

#include <fmt/format.h>

#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "bench/launch.h"
#include "bench/prepared.h"
#include "bench/sections.h"

namespace kiln::bench {
namespace {

class Server {
 public:
  explicit Server(const Device& device) : stream_(device) {}

  std::string answer(const std::string& line) {
    Case what;
    try {
      what = parse_case(line);
      return to_json(measure(what));
    } catch (const nlohmann::json::exception& e) {
      return error(what, fmt::format("cannot read the line: {}", e.what()));
    } catch (const std::exception& e) {
      return error(what, e.what());
    }
  }

 private:
  static std::string error(const Case& what, const std::string& message) {
    nlohmann::ordered_json json;
    if (!what.name.empty()) json["case"] = what.name;
    json["peer"] = "kiln";
    if (!what.shape.empty()) json["shape"] = what.shape;
    json["error"] = message;
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  Figure measure(const Case& what) {
    const Device device = stream_.device();
    if (device.kind() != DeviceKind::Cuda) throw UserError(needs_gpu_message(what.name, device));
    if (what.name == "call_overhead") return measure_call_overhead(stream_).front();
    if (what.name == "graph_node") return measure_graph_node(stream_);
    if (!prepared_ || prepared_->what() != what) {
      prepared_.reset();  // its buffers may be what the next case needs
      prepared_ = std::make_unique<Prepared>(stream_, what);
    }
    return prepared_->measure();
  }

  Stream stream_;
  std::unique_ptr<Prepared> prepared_;
};

}  // namespace

void serve(const Device& device, std::istream& in, std::ostream& out) {
  Server server(device);
  for (std::string line; std::getline(in, line);)
    if (line.find_first_not_of(" \t\r") != line.npos) out << server.answer(line) << std::endl;
}

}  // namespace kiln::bench
