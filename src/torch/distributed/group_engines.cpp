// src/torch/distributed/group_engines.cpp: which engine the ranks of a group have in common.
#include "torch/distributed/group_engines.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver/error.h"
#include "runtime/platform/platform.h"
#include "torch/device/type.h"

namespace graft::binding {
namespace {

using Id = CollectiveGroup::Id;

const std::string kStaged = "staged";
const std::string kHost = "host";
const std::string kId = "graft/id";

std::string key_of(size_t rank) { return "graft/engine/" + std::to_string(rank); }

std::string link_of(const char* path) {
  std::error_code unreadable;
  return std::filesystem::read_symlink(path, unreadable).string();
}

// The same for processes that may share memory and sockets: the boot and the namespaces.
std::string place() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return boot + " " + link_of("/proc/self/ns/ipc") + " " + link_of("/proc/self/ns/net");
}

}  // namespace

GroupEngines::GroupEngines(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                           c10::intrusive_ptr<c10d::Backend> host,
                           c10::intrusive_ptr<GroupOptions> options)
    : rank_(rank),
      size_(size),
      options_(std::move(options)),
      store_(store->clone()),
      roll_call_(std::make_shared<FailureReport>(store->clone(), rank, size,
                                                 options_->global_ranks_in_group)),
      staged_(std::make_shared<StagedEngine>(std::move(host), roll_call_)) {}

std::string GroupEngines::offer(OpenDevice& device) const {
  const std::string& wanted = options_->engine;
  if (wanted == kStaged) return kStaged;
  const bool available = CollectiveGroup::available(device);
  TORCH_CHECK(available || wanted != "native", "GRAFT_COLLECTIVES=native, but the driver of ",
              device.label(), " has no collectives; unset it to stage through host memory");
  if (!available) return kStaged;
  const std::string where = wanted == "native" ? std::string() : " on " + place();
  return "native by " + std::string(device.driver().name()) + where;
}

// Stays out, as all ranks do, where the library says that it does not reach all of them.
void GroupEngines::join(Device& device) try {
  Id id{};
  if (rank_ == 0 || options_->mirrored()) {
    id = CollectiveGroup::make_id(device);
    store_->set(kId, std::vector<uint8_t>(id.begin(), id.end()));
  } else {
    const std::vector<uint8_t> found = store_->get(kId);
    TORCH_CHECK(found.size() == id.size(), "rank 0 wrote an id of ", found.size(),
                " bytes for the group, but this rank expects ", id.size(),
                ": run one version of Graft on all ranks");
    std::copy(found.begin(), found.end(), id.begin());
  }
  auto group = std::make_unique<CollectiveGroup>(
      device, id, static_cast<uint32_t>(rank_), static_cast<uint32_t>(size_),
      std::chrono::duration_cast<std::chrono::nanoseconds>(options_->timeout));
  auto made =
      std::make_shared<NativeEngine>(device.stream_from_pool(0), std::move(group), roll_call_);
  const std::lock_guard lock(aborting_);
  native_ = std::move(made);
  if (aborted_) native_->abort();
} catch (const Error& error) {
  if (error.status() != GRAFT_UNSUPPORTED || options_->engine != "auto") throw;
}

// Waits for all ranks; the store's own message names keys.
void GroupEngines::meet() {
  std::vector<std::string> keys;
  for (size_t rank = 0; rank < ranks(); ++rank) keys.push_back(key_of(rank));
  try {
    store_->wait(keys, options_->timeout);
  } catch (const std::exception& error) {
    std::vector<int> missing;
    try {
      for (int rank = 0; rank < size_; ++rank) {
        if (!store_->check({keys[static_cast<size_t>(rank)]})) missing.push_back(rank);
      }
    } catch (const std::exception&) {
      missing.clear();  // the store is gone, and error says so
    }
    if (missing.empty()) throw;
    C10_THROW_ERROR(DistBackendError,
                    "the group's first collective on " + std::string(device_name()) +
                        " waits for all ranks, and " + roll_call_->names(missing) +
                        " did not come within " + std::to_string(options_->timeout.count()) +
                        " ms: ended, hanging or far behind");
  }
}

// Whether all ranks offer the same collectives of their drivers.
bool GroupEngines::agree(OpenDevice& device) {
  if (options_->mirrored()) {
    TORCH_CHECK(device.driver().name() == kHost, "GRAFT_HOST_SIMULATE simulates ranks of the host ",
                "driver, but ", device.label(), " is another driver's device");
    return true;
  }
  const std::string own = offer(device);
  store_->set(key_of(static_cast<size_t>(rank_)), own);
  meet();
  bool same = own != kStaged;
  for (size_t rank = 0; rank < ranks(); ++rank) same &= store_->get_to_str(key_of(rank)) == own;
  return same;
}

CollectiveEngine& GroupEngines::choose(c10::Device device) {
  Device& mine = platform().device(device.index());
  if (!agreed_) {
    if (agree(mine)) join(mine);
    agreed_ = true;
  }
  if (!native_) return *staged_;
  TORCH_CHECK(&native_->device() == &mine, "this group works on ", native_->device().label(),
              ", the device of its first collective, not on ", mine.label(),
              ": call set_device first, or make another group");
  return *native_;
}

void GroupEngines::abort() {
  staged_->abort();
  const std::lock_guard lock(aborting_);
  aborted_ = true;
  if (native_) native_->abort();
}

void GroupEngines::finish() {
  std::shared_ptr<NativeEngine> native;
  {
    const std::lock_guard lock(aborting_);
    if (!aborted_) native = native_;
  }
  if (native) native->finish();
}

}  // namespace graft::binding
