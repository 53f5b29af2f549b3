// tests/drivers/opencl/fake_icd_events.cpp: commands that run, and then say that they failed.
#include <map>
#include <mutex>

#include "fake_icd.h"

namespace graft::fake_cl {
namespace {

std::mutex mutex;
std::map<cl_event, cl_int>& marked() {
  static auto* const instance = new std::map<cl_event, cl_int>;
  return *instance;
}

cl_int code_of(cl_event event) {
  std::lock_guard lock(mutex);
  const auto found = marked().find(event);
  return found == marked().end() ? CL_SUCCESS : found->second;
}

}  // namespace

// Keeps the event for ever, so that no other gets its handle.
void note_late(cl_event event, cl_int code) {
  real().RetainEvent(event);
  std::lock_guard lock(mutex);
  marked()[event] = code;
}

cl_int behave(Tag<&Api::GetEventInfo>, cl_event event, cl_event_info what, size_t room, void* out,
              size_t* bytes) {
  const cl_int result = real().GetEventInfo(event, what, room, out, bytes);
  const cl_int code = code_of(event);
  if (result != CL_SUCCESS || what != CL_EVENT_COMMAND_EXECUTION_STATUS || out == nullptr ||
      code == CL_SUCCESS) {
    return result;
  }
  auto* status = static_cast<cl_int*>(out);
  if (*status == CL_COMPLETE) *status = code;
  return result;
}

cl_int behave(Tag<&Api::WaitForEvents>, cl_uint count, const cl_event* events) {
  const cl_int result = real().WaitForEvents(count, events);
  for (cl_uint i = 0; i < count; ++i) {
    if (code_of(events[i]) != CL_SUCCESS) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  }
  return result;
}

}  // namespace graft::fake_cl
