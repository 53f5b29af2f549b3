// src/torch/python/devices.cpp: devices, drivers and generators for Python.
#include <algorithm>
#include <map>
#include <tuple>

#include "graft/extensions.h"
#include "kernels/operation/plans.h"
#include "kernels/tuning/tile_tuning.h"
#include "runtime/driver/device_properties.h"
#include "runtime/driver/fork.h"
#include "runtime/platform/platform.h"
#include "runtime/topology/device_identity.h"
#include "runtime/topology/device_link.h"
#include "torch/device/current.h"
#include "torch/device/drivers.h"
#include "torch/device/generator.h"
#include "torch/device/sync_debug.h"
#include "torch/python/python.h"
#include "torch/tensor/view.h"

namespace graft::binding {
namespace {

namespace py = pybind11;

struct DeviceProperties {
  int64_t index;
  std::string driver;
  uint32_t ordinal;
  graft_device_properties facts;
  DeviceIdentity identity;
  bool kernels, compiler, graph_compiler;

  bool has(uint32_t feature) const { return (facts.features & feature) != 0; }
};

DeviceProperties properties_of(int64_t index) {
  check_index(index);
  const DeviceDescription one = platform().description(static_cast<int>(index));
  const graft_driver_table& table = one.driver->table();
  const bool prints = one.properties.dialect[0] != '\0';
  return {index,
          one.driver->name(),
          one.ordinal,
          one.properties,
          read_identity(*one.driver, one.ordinal),
          prints && table.kernel_launch != nullptr,
          prints && table.program_compile != nullptr,
          one.driver->extension<graft_graph_compiler_table>() != nullptr};
}

std::string text_of(const DeviceProperties& properties) {
  const graft_device_properties& facts = properties.facts;
  return std::string("DeviceProperties(name='") + facts.name + "', driver='" + properties.driver +
         "', total_memory=" + std::to_string(facts.memory_bytes >> 20) +
         "MB, compute_units=" + std::to_string(facts.compute_units) + ", dialect='" +
         facts.dialect + "')";
}

std::vector<at::ScalarType> dtypes_of(const DeviceProperties& properties) {
  std::vector<at::ScalarType> dtypes;
  const uint32_t computed = computed_dtypes(properties.facts);
#define GRAFT_ADD(name, value, bytes, text) \
  if ((computed >> GRAFT_##name & 1) != 0) dtypes.push_back(to_torch(GRAFT_##name));
  GRAFT_DTYPES(GRAFT_ADD)
#undef GRAFT_ADD
  return dtypes;
}

// Where the driver knows no number of the hardware's own: the same for the same device in every
// process, as long as the driver lists its devices in the same order.
py::object uuid_of(const DeviceProperties& properties) {
  const py::module uuid = py::module::import("uuid");
  if (const auto& known = properties.identity.uuid) {
    const py::bytes bytes(reinterpret_cast<const char*>(known->data()), known->size());
    return uuid.attr("UUID")(py::arg("bytes") = bytes);
  }
  return uuid.attr("uuid5")(
      uuid.attr("NAMESPACE_OID"),
      properties.driver + ":" + std::to_string(properties.ordinal) + ":" + properties.facts.name);
}

using Properties = DeviceProperties;

void bind_abilities(py::class_<Properties>& properties) {
  const auto has = [](uint32_t feature) {
    return [feature](const Properties& p) { return p.has(feature); };
  };
  properties.def_property_readonly("simulated", has(GRAFT_FEATURE_SIMULATED))
      .def_property_readonly("float64", has(GRAFT_FEATURE_FLOAT64))
      .def_property_readonly("float16", has(GRAFT_FEATURE_FLOAT16))
      .def_property_readonly("int64_atomics", has(GRAFT_FEATURE_INT64_ATOMICS))
      .def_property_readonly("shuffles", has(GRAFT_FEATURE_SHUFFLES))
      .def_property_readonly("dtypes", &dtypes_of, "The dtypes that kernels of the device take.")
      .def_property_readonly(
          "max_arguments", [](const Properties& p) { return p.facts.max_arguments; },
          "Most arguments of one kernel launch; 0: no limit.")
      .def_property_readonly("max_allocation",
                             [](const Properties& p) {
                               const uint64_t stated = p.facts.max_allocation_bytes;
                               return stated == 0 ? p.facts.memory_bytes : stated;
                             })
      .def_property_readonly("device_class",
                             [](const Properties& p) {
                               return p.facts.device_class == GRAFT_GPU_LIKE ? "gpu" : "cpu";
                             })
      .def_readonly("kernels", &Properties::kernels, "Whether the device runs Graft's kernels.")
      .def_readonly("compiler", &Properties::compiler, "Whether the driver compiles kernels.")
      .def_readonly("graph_compiler", &Properties::graph_compiler,
                    "Whether the driver brings a compiler of graphs, graft.graph_compiler.")
      .def_property_readonly(
          "operations",
          [](const Properties& p) {
            return translate([&] { return known_operations(device_at(p.index)); });
          },
          "How many operators the driver brings kernels of its vendor's for, graft.ops.");
}

void bind_identity(py::class_<Properties>& properties) {
  using Pci = DeviceIdentity::Pci;
  const auto number = [](uint32_t Pci::*member) {
    return [member](const Properties& p) -> std::optional<uint32_t> {
      if (!p.identity.pci) return std::nullopt;
      return *p.identity.pci.*member;
    };
  };
  properties.def_property_readonly("uuid", &uuid_of)
      .def_property_readonly("pci_domain_id", number(&Pci::domain), "None if unknown.")
      .def_property_readonly("pci_bus_id", number(&Pci::bus), "None if unknown.")
      .def_property_readonly("pci_device_id", number(&Pci::device), "None if unknown.")
      .def_property_readonly("pci_function_id", number(&Pci::function), "None if unknown.")
      .def_property_readonly(
          "driver_version", [](const Properties& p) { return p.identity.driver_version; },
          "Of the vendor's software; empty if unknown.")
      .def_property_readonly(
          "firmware_version", [](const Properties& p) { return p.identity.firmware_version; },
          "Of what runs on the device; empty if unknown.");
}

void bind_properties(py::module& module) {
  const auto fact = [](auto member) {
    return [member](const Properties& p) { return p.facts.*member; };
  };
  using Facts = graft_device_properties;
  py::class_<Properties> properties(module, "DeviceProperties", "Properties of a device.");
  bind_abilities(properties);
  bind_identity(properties);
  properties
      .def_property_readonly("name", [](const Properties& p) { return std::string(p.facts.name); })
      .def_property_readonly("vendor",
                             [](const Properties& p) { return std::string(p.facts.vendor); })
      .def_property_readonly("dialect",
                             [](const Properties& p) { return std::string(p.facts.dialect); })
      .def_readonly("driver", &Properties::driver)
      .def_readonly("ordinal", &Properties::ordinal)
      .def_property_readonly("total_memory", fact(&Facts::memory_bytes))
      .def_property_readonly("multi_processor_count", fact(&Facts::compute_units))
      .def_property_readonly("compute_units", fact(&Facts::compute_units))
      .def_property_readonly("max_group_size", fact(&Facts::max_group_size))
      .def_property_readonly("sub_group_size", fact(&Facts::sub_group_size))
      .def_property_readonly("local_memory", fact(&Facts::local_memory_bytes))
      .def_property_readonly("major", fact(&Facts::capability_major))
      .def_property_readonly("minor", fact(&Facts::capability_minor))
      .def("__repr__", &text_of);
}

std::vector<std::tuple<std::string, std::string>> driver_names() {
  std::vector<std::tuple<std::string, std::string>> found;
  for (const Driver* driver : platform().drivers()) {
    found.emplace_back(driver->name(), driver->path());
  }
  return found;
}

// Name and path of the drivers in these libraries that have devices that count, in the order of
// the devices' numbers.
std::vector<std::tuple<std::string, std::string>> early_drivers(
    const std::vector<std::string>& paths) {
  std::vector<std::tuple<std::string, std::string>> found;
  for (const DeviceDescription& one : platform().early_devices(paths)) {
    const std::tuple driver(one.driver->name(), one.driver->path());
    if (std::find(found.begin(), found.end(), driver) == found.end()) found.push_back(driver);
  }
  return found;
}

// Driver, number in the driver, name, index or -1.
using Found = std::tuple<std::string, uint32_t, std::string, int>;
std::vector<Found> found_devices() {
  std::vector<Found> found;
  for (const DeviceDescription& one : platform().found()) {
    found.emplace_back(one.driver->name(), one.ordinal, one.properties.name, one.index);
  }
  return found;
}

std::vector<std::tuple<std::string, std::string>> refused_drivers() {
  std::vector<std::tuple<std::string, std::string>> found;
  for (const Refusal& refusal : platform().refusals()) {
    found.emplace_back(refusal.path, refusal.reason);
  }
  return found;
}

// Drivers without a device here, and why.
std::vector<std::tuple<std::string, std::string>> absences() {
  std::vector<std::tuple<std::string, std::string>> found;
  for (const Absence& absence : platform().absences()) {
    found.emplace_back(absence.driver->name(), absence.reason);
  }
  return found;
}

std::map<std::string, uint64_t> statistics(int64_t index) {
  const CommandCounts from = device_at(index).streams().counts();
  return {{"launches", from.launches},           {"copies", from.copies},
          {"copied_bytes", from.copied_bytes},   {"fills", from.fills},
          {"filled_bytes", from.filled_bytes},   {"graphs", from.graphs},
          {"launches_in_graphs", from.in_graphs}};
}

// Kind and bytes per second; nothing between devices of two drivers.
std::optional<std::tuple<std::string, uint64_t>> link_between(int64_t from, int64_t to) {
  check_index(from);
  check_index(to);
  const DeviceDescription one = platform().description(static_cast<int>(from));
  const DeviceDescription other = platform().description(static_cast<int>(to));
  if (one.driver != other.driver) return std::nullopt;
  const DeviceLink link = read_link(*one.driver, one.ordinal, other.ordinal);
  return std::tuple(link_name(link.kind), link.bytes_per_second);
}

// Waits for threads inside drivers, which may want Python's lock: define() has released it.
void reset_device(int64_t index) {
  check_index(index);
  memory_was_lost.store(true);
  platform().reset(static_cast<int>(index));
  forget_streams(static_cast<c10::DeviceIndex>(index));
}

// progress(done, all, row, shape, gflops) after each measurement.
void tune(int64_t index, size_t candidates, const py::function& progress) {
  Device& device = device_at(index);
  const auto tell = [&](size_t done, size_t all, const TileMeasurement& one) {
    const py::gil_scoped_acquire lock;
    progress(done, all, one.row, one.shape.text(), one.gflops);
  };
  const py::gil_scoped_release unlocked;
  tune_tiles(device.default_stream(), candidates, tell);
}

void bind_sensors(py::module& module) {
  define(module, "sensor", [](int64_t index, int64_t which) {
    return device_at(index).sensor(static_cast<graft_sensor>(which));
  });
#define GRAFT_BIND(name, value, unit) module.attr("SENSOR_" #name) = value;
  GRAFT_SENSORS(GRAFT_BIND)
#undef GRAFT_BIND
}

void bind_streams(py::module& module) {
  define(module, "default_stream_id",
         [](int64_t index) { return device_at(index).default_stream().id(); });
  define(module, "wrap_stream", [](int64_t index, uint64_t native) {
    return device_at(index).streams().wrap(native).id();
  });
}

}  // namespace

void bind_devices(py::module& module) {
  bind_properties(module);
  bind_sensors(module);
  bind_streams(module);
  define(module, "device_count", [] { return device_count(); });
  define(module, "current_device", []() -> int { return current_device(); });
  define(module, "set_device", [](int64_t index) {
    if (index >= 0) check_index(index);
    set_current_device(static_cast<c10::DeviceIndex>(index));
  });
  define(module, "exchange_device", [](int64_t index) -> int {
    const int before = current_device();
    if (index >= 0) check_index(index);
    set_current_device(static_cast<c10::DeviceIndex>(index));
    return before;
  });
  define(module, "init", [] { current_stream(usable_device()); });
  define(module, "is_initialized", [] { return platform().any_device_open() && !forked_child(); });
  define(module, "is_in_bad_fork", [] { return forked_child(); });
  define(module, "synchronize", [](int64_t index) { device_at(index).synchronize(); });
  define(module, "device_properties", &properties_of);
  define(module, "device_link", &link_between);
  define(module, "reset_device", &reset_device);
  define(module, "statistics", &statistics);
  const auto tuning = [](int64_t index, size_t candidates, const py::function& progress) {
    translate([&] { tune(index, candidates, progress); });
  };
  module.def("tune", torch::wrap_pybind_function(tuning));
  define(module, "sync_debug_mode", [] { return static_cast<int>(sync_debug_mode()); });
  define(module, "set_sync_debug_mode",
         [](int mode) { set_sync_debug_mode(static_cast<SyncDebugMode>(mode)); });
  define(module, "add_driver_path",
         [](const std::string& path) { platform().add_driver_path(path); });
  define(module, "load_driver", [](const std::string& path) { load_driver(path); });
  define(module, "drivers", &driver_names);
  define(module, "early_drivers", &early_drivers);
  define(module, "refusals", &refused_drivers);
  define(module, "absences", &absences);
  define(module, "found_devices", &found_devices);
  module.attr("FIRST_CARRIED") = kFirstCarriedIndex;
  define(module, "seed_all", [](uint64_t seed) { seed_all(seed); });
  define(module, "default_generator", [](int64_t index) -> at::Generator {
    check_index(index);
    return default_generator(static_cast<c10::DeviceIndex>(index));
  });
}

}  // namespace graft::binding
