// drivers/veda/lane.cpp: VEDA's streams of a device, on which Graft's streams take turns.
#include "lane.h"

#include "device.h"
#include "graft/driver_slot.h"

namespace graft::veda {
namespace {

// Results after which the device may be gone.
bool is_dubious(VEDAresult result) {
  switch (result) {
    case VEDA_ERROR_VEO_COMMAND_ERROR:
    case VEDA_ERROR_VEO_COMMAND_EXCEPTION:
    case VEDA_ERROR_VEO_COMMAND_UNFINISHED:
    case VEDA_ERROR_VEO_COMMAND_UNKNOWN_ERROR:
    case VEDA_ERROR_VEO_STATE_UNKNOWN:
    case VEDA_ERROR_INVALID_REQID:
    case VEDA_ERROR_UNKNOWN_CONTEXT:
    case VEDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

}  // namespace

Called Lane::drain(size_t most, bool* out_over) {
  const Called first = GRAFT_VEDA_CALL(StreamSynchronize, stream);
  *out_over = first.ok();
  for (size_t i = 0; !*out_over && i < most; ++i) {
    *out_over = veda().StreamSynchronize(stream) == VEDA_SUCCESS;
  }
  return first;
}

// Whether the device still does something when asked.
bool Lane::answers() {
  return veda().MemsetD8Async(device->scratch, 0, 1, stream) == VEDA_SUCCESS &&
         veda().StreamSynchronize(stream) == VEDA_SUCCESS;
}

graft_status Lane::failed(const Called& called, const std::string& what, graft_status otherwise) {
  graft_status status = called.status(otherwise);
  const std::string text = called.text() + ": " + what;
  if (is_dubious(called.result) && !device->is_lost() && !answers()) device->lose(text);
  if (status == GRAFT_DEVICE_LOST) device->lose(text);
  if (device->is_lost()) status = GRAFT_DEVICE_LOST;
  return fail(status, text);
}

Called Lanes::open(graft_device device) {
  int streams = 0;
  Called called = GRAFT_VEDA_CALL(CtxStreamCnt, &streams);
  if (called.ok() && streams < 1) called.result = VEDA_ERROR_UNKNOWN_STREAM;
  for (int i = 0; called.ok() && i < streams; ++i) lanes_.emplace_back(device, i);
  return called;
}

Lane& Lanes::next() {
  return lanes_[streams_.fetch_add(1, std::memory_order_relaxed) % lanes_.size()];
}

Turn::Turn(graft_device device)
    : lane_(device->lanes.first()), lock_(lane_.mutex), current_(device->context) {}

graft_status Turn::status() {
  if (current_.called().ok()) return check_device(lane_.device);
  return failed(current_.called(), "making the context current", GRAFT_INTERNAL);
}

graft_status Turn::failed(const Called& called, const std::string& what, graft_status otherwise) {
  return lane_.failed(called, what, otherwise);
}

}  // namespace graft::veda
