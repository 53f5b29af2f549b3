// drivers/veda/catalog.cpp: the Vector Engines of this machine, looked up once.
#include "catalog.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "context.h"
#include "facts/properties.h"
#include "settings.h"

namespace graft::veda {
namespace {

std::atomic<bool> in_forked_child{false};

constexpr int kNameBytes = 128;

Called describe_one(int ordinal, Listed* out) {
  Called called = GRAFT_VEDA_CALL(DeviceGet, &out->device, ordinal);
  DeviceFacts facts;
  char name[kNameBytes] = "";
  size_t bytes = 0;
  int cores = 0;
  if (called.ok()) called = GRAFT_VEDA_CALL(DeviceGetName, name, kNameBytes, out->device);
  if (called.ok()) called = GRAFT_VEDA_CALL(DeviceTotalMem, &bytes, out->device);
  if (called.ok()) {
    called = GRAFT_VEDA_CALL(DeviceGetAttribute, &cores, VEDA_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                             out->device);
  }
  if (called.ok()) {
    called =
        GRAFT_VEDA_CALL(DeviceGetAttribute, &facts.model, VEDA_DEVICE_ATTRIBUTE_MODEL, out->device);
  }
  if (!called.ok()) return called;
  name[kNameBytes - 1] = '\0';
  if (name[0] != '\0') facts.name = name;
  facts.memory_bytes = bytes;
  facts.cores = settings().mode == "scalar" ? 1 : uint32_t(std::max(cores, 1));
  out->model = facts.model;
  out->properties.struct_size = sizeof out->properties;
  describe(facts, &out->properties);
  return called;
}

bool is_without_devices(VEDAresult result) {
  return result == VEDA_ERROR_NO_DEVICES_FOUND || result == VEDA_ERROR_UNABLE_TO_DETECT_DEVICES ||
         result == VEDA_ERROR_UNKNOWN_VEDA_ARCHITECTURE;
}

Catalog without_devices(const std::string& why) {
  return {{}, GRAFT_OK, settings().library + " lists no Vector Engine" + why};
}

Catalog make() {
  Catalog found;
  found.status = load_library(&found.problem);
  if (found.status == GRAFT_NOT_FOUND && !settings().library_is_named) {
    return {{}, GRAFT_OK, found.problem};
  }
  if (found.status != GRAFT_OK) return found;
  if (settings().mode != "omp" && settings().mode != "scalar") {
    return {{},
            GRAFT_INVALID_ARGUMENT,
            "GRAFT_VE_MODE=" + settings().mode + ": expected omp or scalar"};
  }
  if (pthread_atfork(nullptr, nullptr, [] { in_forked_child.store(true); }) != 0) {
    return {{}, GRAFT_OUT_OF_MEMORY, "pthread_atfork failed: out of memory"};
  }
  Called called = initialise();
  if (is_without_devices(called.result)) return without_devices(": " + called.text());
  int count = 0;
  if (called.ok()) called = GRAFT_VEDA_CALL(DeviceGetCount, &count);
  for (int i = 0; called.ok() && i < count; ++i) {
    Listed one;
    called = describe_one(i, &one);
    if (called.ok()) found.devices.push_back(one);
  }
  if (called.ok()) return found.devices.empty() ? without_devices("") : found;
  return {{}, called.status(GRAFT_INTERNAL), called.text() + ": counting the Vector Engines"};
}

}  // namespace

const Catalog& catalog() {
  static const Catalog* instance = new Catalog(make());
  return *instance;
}

bool forked() { return in_forked_child.load(std::memory_order_relaxed); }

}  // namespace graft::veda
