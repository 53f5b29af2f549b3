// drivers/host/simulation/simulation.cpp: what commands and links cost in simulated time:
// GRAFT_HOST_SIMULATE.
#include "simulation.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "graft/driver.h"
#include "settings.h"

namespace graft::host {
namespace {

constexpr double kSecond = 1e9;

struct Unit {
  const char* name;
  double factor;
};
constexpr Unit kTimes[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr Unit kRates[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}};

// A number with one of the units; NaN for anything else.
template <size_t n>
double measure(const std::string& text, const Unit (&units)[n]) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(number)) return NAN;
  const std::string unit = end;
  for (const Unit& one : units) {
    if (unit == one.name) return number * one.factor;
  }
  return NAN;
}

bool set_rate(double* to, const std::string& value) {
  const double number = measure(value, kRates);
  if (!(number > 0)) return false;
  *to = number;
  return true;
}

bool set_time(double* to, const std::string& value) {
  const double number = measure(value, kTimes);
  if (!(number >= 0)) return false;
  *to = number;
  return true;
}

bool set_count(uint32_t* to, const std::string& value) {
  const bool digits = value.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || value.empty() || value.size() > 5) return false;
  *to = uint32_t(std::strtoul(value.c_str(), nullptr, 10));
  return true;
}

bool set_compute(Simulation* to, const std::string& value) {
  to->skip = value == "skip";
  return to->skip || value == "real";
}

bool set(Simulation* s, const std::string& key, const std::string& value) {
  if (key == "flops") return set_rate(&s->flops, value);
  if (key == "memory") return set_rate(&s->memory, value);
  if (key == "host") return set_rate(&s->host, value);
  if (key == "launch") return set_time(&s->launch_ns, value);
  if (key == "submit") return set_time(&s->submit_ns, value);
  if (key == "bandwidth") return set_rate(&s->link.bytes_per_second, value);
  if (key == "latency") return set_time(&s->link.latency_ns, value);
  if (key == "outer_bandwidth") return set_rate(&s->outer_bandwidth, value);
  if (key == "outer_latency") return set_time(&s->outer_latency_ns, value);
  if (key == "node") return set_count(&s->node, value);
  if (key == "ranks") return set_count(&s->ranks, value);
  return key == "compute" && set_compute(s, value);
}

int64_t whole(double ns) { return std::llround(ns); }

}  // namespace

Simulation read_simulation(const std::string& text) {
  Simulation result;
  result.on = !text.empty() && text != "0";
  if (!result.on || text == "1") return result;
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    const size_t equals = item.find('=');
    if (equals != std::string::npos &&
        set(&result, item.substr(0, equals), item.substr(equals + 1))) {
      continue;
    }
    result.problem = "GRAFT_HOST_SIMULATE: '" + item +
                     "' is unknown: give the keys flops, memory, host, bandwidth, "
                     "outer_bandwidth (such as 25G), launch, submit, latency, outer_latency (such "
                     "as 5us), node, ranks, compute (real or skip)";
    break;
  }
  return result;
}

const Simulation& simulation() {
  static const Simulation* instance = new Simulation(read_simulation(settings().simulate));
  return *instance;
}

Link Simulation::between(uint32_t from, uint32_t to) const {
  if (node == 0 || from / node == to / node) return link;
  return {outer_bandwidth > 0 ? outer_bandwidth : link.bytes_per_second,
          outer_latency_ns >= 0 ? outer_latency_ns : link.latency_ns};
}

int64_t Simulation::kernel_ns(uint64_t bytes) const {
  return whole(launch_ns + double(bytes) / memory * kSecond);
}

int64_t Simulation::library_ns(uint64_t flop_count, uint64_t bytes) const {
  const double seconds = std::max(double(flop_count) / flops, double(bytes) / memory);
  return whole(launch_ns + seconds * kSecond);
}

int64_t Simulation::copy_ns(uint32_t kind, uint64_t bytes) const {
  if (kind == GRAFT_DEVICE_TO_DEVICE) return kernel_ns(2 * bytes);
  return whole(launch_ns + double(bytes) / host * kSecond);
}

int64_t Simulation::peer_copy_ns(uint64_t bytes) const {
  return whole(link.latency_ns + double(bytes) / link.bytes_per_second * kSecond);
}

}  // namespace graft::host
