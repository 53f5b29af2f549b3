// src/torch/ve/backward.cpp: the streams of backward passes on the slot.
#include "torch/ve/backward.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/platform/platform.h"
#include "runtime/stream/device_streams.h"
#include "runtime/stream/event.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/ve/slot.h"
#include "torch/version/autograd.h"

namespace graft::binding::ve {
namespace {

// What one thread of the engine used in one pass, the last one at the end.
struct Used {
  std::mutex mutex;
  std::vector<Stream*> streams;
};

thread_local int pass = -1;
thread_local std::shared_ptr<Used> used;

// A recording takes no part in what lies before and behind it.
void order(Stream& first, Stream& second) {
  if (&first == &second || &first.device() != &second.device()) return;
  if (first.recording() != second.recording()) return;
  Event done(first.device(), false);
  done.record(first);
  second.wait(done);
}

void join(Used& all) {
  const std::lock_guard lock(all.mutex);
  for (Stream* const stream : all.streams) {
    for (auto last = all.streams.rbegin(); last != all.streams.rend(); ++last) {
      if (&(*last)->device() != &stream->device()) continue;
      order(**last, *stream);
      order(**last, stream->siblings().default_stream());
      break;
    }
  }
}

void note(Stream& stream) {
  const int now = torch::autograd::get_current_graph_task_id();
  if (pass != now) {
    pass = now;
    used = std::make_shared<Used>();
    torch::autograd::Engine::get_default_engine().queue_callback(
        [all = used] { translate([&] { join(*all); }); });
    order(stream.siblings().default_stream(),
          stream);  // as a rule the first gradient is made there
  }
  const std::lock_guard lock(used->mutex);
  std::erase(used->streams, &stream);
  used->streams.push_back(&stream);
}

}  // namespace

void enter_node(const torch::autograd::Node& node) {
  if (torch::autograd::get_current_graph_task_id() < 0) return;  // a user calls the node
  for (uint32_t i = 0; i < node.num_inputs(); ++i) {
    const auto& metadata = node.input_metadata(i);
    if (metadata.device().type() != kType) continue;
    translate([&] {
      const c10::Stream outer = metadata.stream();
      Device& device = platform().device(platform_index(outer.device_index()));
      Stream& stream = device.stream(outer.id());
      Stream& before = current_stream(static_cast<c10::DeviceIndex>(device.index()));
      if (&before == &stream && &stream == &device.default_stream()) return;  // as a rule
      if (&before != &stream) {
        order(before, stream);
        exchange_stream(stream);
      }
      note(stream);
    });
    return;
  }
}

}  // namespace graft::binding::ve
