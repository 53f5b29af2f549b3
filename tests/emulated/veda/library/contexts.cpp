// tests/emulated/veda/library/contexts.cpp: VEDA's functions of contexts and streams.
#include "tests/emulated/veda/library/devices.h"
#include "tests/emulated/veda/library/entry.h"

using emulated::context_stack;
using emulated::current_context;
using emulated::entry;
using emulated::library;
using emulated::require;

namespace {

void push(VEDAcontext handle) {
  require(library().context(handle).active(), VEDA_ERROR_CONTEXT_IS_DESTROYED);
  context_stack().push_back(handle);
}

}  // namespace

VEDAresult vedaDevicePrimaryCtxRetain(VEDAcontext* context, VEDAdevice device) {
  return entry("DevicePrimaryCtxRetain", [&] {
    require(context != nullptr, VEDA_ERROR_INVALID_VALUE);
    veda_context& own = *library().device(device).context;
    if (!own.active()) {
      try {
        own.start(VEDA_CONTEXT_MODE_OMP);
      } catch (const emulated::Failure&) {
        if (!own.active()) throw;  // another thread was faster
      }
    }
    *context = &own;
  });
}

VEDAresult vedaDevicePrimaryCtxRelease(VEDAdevice device) {
  return entry("DevicePrimaryCtxRelease", [&] { library().device(device); });
}

VEDAresult vedaDevicePrimaryCtxReset(VEDAdevice device) {
  return entry("DevicePrimaryCtxReset", [&] {
    veda_context& own = *library().device(device).context;
    const int mode = own.mode();
    own.stop();
    own.start(mode);
  });
}

VEDAresult vedaDevicePrimaryCtxGetState(VEDAdevice device, uint32_t* flags, int* active) {
  return entry("DevicePrimaryCtxGetState", [&] {
    veda_context& own = *library().device(device).context;
    require(flags != nullptr && active != nullptr, VEDA_ERROR_INVALID_VALUE);
    *flags = static_cast<uint32_t>(own.mode());
    *active = own.active() ? 1 : 0;
  });
}

VEDAresult vedaDevicePrimaryCtxSetFlags(VEDAdevice device, uint32_t) {
  return entry("DevicePrimaryCtxSetFlags", [&] { library().device(device); });
}

VEDAresult vedaCtxCreate(VEDAcontext* context, int mode, VEDAdevice device) {
  return entry("CtxCreate", [&] {
    require(context != nullptr, VEDA_ERROR_INVALID_VALUE);
    veda_context& own = *library().device(device).context;
    own.start(mode);
    *context = &own;
    context_stack().push_back(&own);
  });
}

VEDAresult vedaCtxDestroy(VEDAcontext context) {
  return entry("CtxDestroy", [&] { library().context(context).stop(); });
}

VEDAresult vedaCtxGet(VEDAcontext* context, const VEDAdevice device) {
  return entry("CtxGet", [&] {
    require(context != nullptr, VEDA_ERROR_INVALID_VALUE);
    veda_context& own = *library().device(device).context;
    require(own.active(), VEDA_ERROR_UNKNOWN_CONTEXT);
    *context = &own;
  });
}

VEDAresult vedaCtxGetCurrent(VEDAcontext* context) {
  return entry("CtxGetCurrent", [&] {
    require(context != nullptr, VEDA_ERROR_INVALID_VALUE);
    *context = &current_context();
  });
}

VEDAresult vedaCtxSetCurrent(VEDAcontext context) {
  return entry("CtxSetCurrent", [&] {
    push(context);
    auto& stack = context_stack();
    if (stack.size() > 1) stack.erase(stack.end() - 2);
  });
}

VEDAresult vedaCtxPushCurrent(VEDAcontext context) {
  return entry("CtxPushCurrent", [&] { push(context); });
}

VEDAresult vedaCtxPopCurrent(VEDAcontext* context) {
  return entry("CtxPopCurrent", [&] {
    require(!context_stack().empty(), VEDA_ERROR_CANNOT_POP_CONTEXT);
    if (context != nullptr) *context = context_stack().back();
    context_stack().pop_back();
  });
}

VEDAresult vedaCtxGetDevice(VEDAdevice* device) {
  return entry("CtxGetDevice", [&] {
    require(device != nullptr, VEDA_ERROR_INVALID_VALUE);
    *device = current_context().device();
  });
}

VEDAresult vedaCtxStreamCnt(int* count) {
  return entry("CtxStreamCnt", [&] {
    require(count != nullptr, VEDA_ERROR_INVALID_VALUE);
    *count = current_context().session()->stream_count();
  });
}

VEDAresult vedaCtxSynchronize(void) {
  return entry("CtxSynchronize", [&] { current_context().synchronize(-1); });
}

VEDAresult vedaCtxGetApiVersion(VEDAcontext context, uint32_t* version) {
  return entry("CtxGetApiVersion", [&] {
    library().context(context);
    require(version != nullptr, VEDA_ERROR_INVALID_VALUE);
    *version = 20300;
  });
}

VEDAresult vedaStreamSynchronize(VEDAstream stream) {
  return entry("StreamSynchronize", [&] { current_context().synchronize(stream); });
}

// AVEO's state of a queue says only whether its device is there, not whether it has work.
VEDAresult vedaStreamQuery(VEDAstream stream) {
  return entry("StreamQuery", [&] {
    const auto session = current_context().session();
    session->stream(stream);
    require(session->lost(), VEDA_ERROR_VEO_STATE_RUNNING);
  });
}

VEDAresult vedaStreamGetFlags(VEDAstream stream, uint32_t* flags) {
  return entry("StreamGetFlags", [&] {
    current_context().session()->stream(stream);
    require(flags != nullptr, VEDA_ERROR_INVALID_VALUE);
    *flags = 0;
  });
}

VEDAresult vedaStreamAddCallback(VEDAstream stream, VEDAstream_callback callback, void* user_data,
                                 unsigned int) {
  return entry("StreamAddCallback", [&] {
    require(callback != nullptr, VEDA_ERROR_INVALID_VALUE);
    current_context().synchronize(stream);
    callback(stream, VEDA_SUCCESS, user_data);
  });
}
