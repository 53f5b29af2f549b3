// src/torch/python/graph.cpp: torch.accelerator.Graph on recordings of the runtime.
#include <ATen/core/GraphImplInterface.h>
#include <c10/core/DeviceType.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <tuple>

#include "kernels/launch/error_record.h"
#include "runtime/platform/platform.h"
#include "torch/device/attach.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/python/python.h"

namespace graft::binding {
namespace {

namespace py = pybind11;

c10::MempoolId_t new_pool() {
  static std::atomic<uint64_t> last{0};
  return {0, ++last};
}

// One capture at a time. Errors are PyTorch's; after one the stream works as before the capture.
class Graph final : public at::GraphImplInterface {
 public:
  explicit Graph(const at::GraphImplArgs&) {}
  ~Graph() override { drop(); }

  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode) override {
    TORCH_CHECK(recording_ == nullptr,
                "this graph already holds a capture: call reset(), or make another graph");
    TORCH_CHECK(pool.first == 0, "capture_begin takes a pool of torch.", device_name(),
                ".graph_pool_handle() or Graph.pool(), got (", pool.first, ", ", pool.second, ")");
    translate([&] {
      Stream& stream = current_stream(current_device());
      // Made here: clearing a new record would become part of the graph.
      error_record(stream);
      const uint64_t id = pool.second == 0 ? new_pool().second : pool.second;
      auto recording = platform().device(stream).make_recording(id);
      stream.begin_recording(recording);
      recording_ = std::move(recording);
      stream_ = &stream;
    });
  }

  void capture_end() override {
    TORCH_CHECK(recording_ != nullptr && !recording_->ended(),
                "no capture of this graph runs: call capture_begin() first");
    translate([&] { stream_->end_recording(); });
  }

  // There is nothing to prepare; the call order is checked as elsewhere.
  void instantiate() override { ended(); }

  void replay() override {
    Recording& recording = ended();
    translate([&] {
      recording.replay(current_stream(static_cast<c10::DeviceIndex>(recording.device().index())));
    });
  }

  void reset() override { drop(); }

  c10::MempoolId_t pool() const override {
    TORCH_CHECK(recording_ != nullptr,
                "a graph has a memory pool after capture_begin(): call it first");
    return {0, recording_->pool()};
  }

  void enable_debug_mode() override {}

  void debug_dump(const std::string& path) override {
    const std::string text = ended().text();
    std::ofstream file(path);
    file << text;
    TORCH_CHECK(file.flush().good(), "cannot write the graph's commands to '", path, "'");
  }

 private:
  Recording& ended() const {
    TORCH_CHECK(recording_ != nullptr, "this graph is empty: capture something first");
    TORCH_CHECK(recording_->ended(), "the capture of this graph still runs: end it first");
    return *recording_;
  }

  void drop() noexcept {
    try {
      if (recording_ != nullptr && !recording_->ended()) stream_->end_recording();
    } catch (const Error&) {  // of a lost device: there is nothing left to end
    }
    recording_.reset();
  }

  std::shared_ptr<Recording> recording_;
  Stream* stream_ = nullptr;
};

}  // namespace

void attach_graphs() {
  at::GraphImplRegistry()->Register(
      c10::DeviceTypeName(kDeviceType, false),
      [](at::GraphImplArgs args) -> std::unique_ptr<at::GraphImplInterface> {
        return std::make_unique<Graph>(args);
      });
}

void bind_graphs(py::module& module) {
  define(module, "is_capturing",
         []() -> bool { return current_stream(current_device()).recording() != nullptr; });
  define(module, "new_pool", []() -> std::tuple<uint64_t, uint64_t> { return new_pool(); });
}

}  // namespace graft::binding
