// src/torch/device/profiler_trace.cpp: the device's commands in torch.profiler, through Kineto.
#define USE_KINETO 1
#include <libkineto.h>
// Kineto's own headers first: the next ones are written after them.
#include <fmt/format.h>
#include <output_base.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver/op_tag.h"
#include "runtime/platform/platform.h"
#include "runtime/stream/command_trace.h"
#include "torch/device/attach.h"
#include "torch/device/profiler_stubs.h"
#include "torch/device/type.h"
#include "torch/version/profiler.h"

namespace graft::binding {
namespace {

using libkineto::ActivityType;
using libkineto::GenericTraceActivity;
using Linked = libkineto::getLinkedActivityCallback;

std::string call_name(const TracedCommand& command) {
  static const char* const kNames[] = {"LaunchKernel", "MemcpyAsync", "MemsetAsync", "GraphLaunch",
                                       "Synchronize"};
  return device_name() + kNames[static_cast<int>(command.kind)];
}

const char* copy_name(graft_copy_kind kind) {
  if (kind == GRAFT_HOST_TO_DEVICE) return "Memcpy HtoD";
  return kind == GRAFT_DEVICE_TO_HOST ? "Memcpy DtoH" : "Memcpy DtoD";
}

std::string work_name(const TracedCommand& command) {
  if (command.kind == TracedKind::kCopy) return copy_name(command.copy_kind);
  if (command.kind == TracedKind::kFill) return "Memset";
  if (command.kind == TracedKind::kWait) return "Stream Synchronize";
  if (!command.name.empty()) return command.name;
  // Not the operator's own name, under which tables list what the CPU did.
  const std::string op = op_name(command.tag);
  if (op.empty()) return call_name(command);
  const size_t colon = op.find(':');
  return colon == op.npos ? op : device_name() + op.substr(colon);
}

// A wait is an annotation of its stream's track, so that nobody adds it to the device's work.
ActivityType work_type(TracedKind kind) {
  if (kind == TracedKind::kCopy) return ActivityType::GPU_MEMCPY;
  if (kind == TracedKind::kFill) return ActivityType::GPU_MEMSET;
  return kind == TracedKind::kWait ? ActivityType::GPU_USER_ANNOTATION
                                   : ActivityType::CONCURRENT_KERNEL;
}

// The activities of one trace, which Kineto owns later.
class Activities {
 public:
  Activities(libkineto::CpuTraceBuffer& buffer, Linked linked)
      : buffer_(buffer), linked_(std::move(linked)) {}

  // Waits stand beside work: where none has a time, they would be all that PyTorch's table takes
  // for the device's.
  void add(const std::vector<TracedCommand>& commands) {
    const bool timed =
        std::any_of(commands.begin(), commands.end(),
                    [](const TracedCommand& command) { return command.start_ns != 0; });
    for (const TracedCommand& command : commands) {
      if (timed || command.kind != TracedKind::kWait) add(command);
    }
  }

  void add(const TracedCommand& command) {
    const int32_t flow = ++flow_;
    if (command.called_ns != 0) add_call(command, flow);
    if (command.kind == TracedKind::kWait) {
      GenericTraceActivity& wait = add_work(command, command.called_ns, command.returned_ns, 0);
      wait.linked = nullptr;
    } else if (command.start_ns != 0) {
      add_work(command, command.start_ns, command.end_ns, command.called_ns != 0 ? flow : 0);
      if (command.user_correlation != 0) annotate(command);
    }
  }

  // What users marked with record_function, over the work that was called inside.
  void add_annotations() {
    for (const auto& [key, span] : annotations_) {
      const auto& [correlation, device, stream] = key;
      const libkineto::ITraceActivity* marked = look_up(correlation);
      if (marked == nullptr) continue;
      GenericTraceActivity& made =
          make(ActivityType::GPU_USER_ANNOTATION, marked->name(), span.first, span.second);
      made.device = device;
      made.resource = static_cast<int32_t>(stream);
      made.linked = marked;
    }
  }

 private:
  using Place = std::tuple<uint64_t, int, int64_t>;  // correlation, device, stream

  const libkineto::ITraceActivity* look_up(uint64_t correlation) const {
    if (correlation == 0 || !linked_) return nullptr;
    return linked_(static_cast<int32_t>(correlation));
  }

  GenericTraceActivity& make(ActivityType type, const std::string& name, int64_t start,
                             int64_t end) {
    buffer_.emplace_activity(buffer_.span, type, name);
    GenericTraceActivity& made = *buffer_.activities.back();
    made.startTime = start;
    made.endTime = end;
    return made;
  }

  void add_call(const TracedCommand& command, int32_t flow) {
    GenericTraceActivity& call = make(ActivityType::PRIVATEUSE1_RUNTIME, call_name(command),
                                      command.called_ns, command.returned_ns);
    call.id = flow;
    call.device = static_cast<int32_t>(getpid());
    call.resource = call.threadId = command.thread;
    call.linked = look_up(command.correlation);
    if (command.kind != TracedKind::kWait) {
      call.flow.id = static_cast<uint32_t>(flow);
      call.flow.type = libkineto::kLinkAsyncCpuGpu;
      call.flow.start = 1;
    }
    call.addMetadata("correlation", flow);
  }

  GenericTraceActivity& add_work(const TracedCommand& command, int64_t start, int64_t end,
                                 int32_t flow) {
    GenericTraceActivity& work = make(work_type(command.kind), work_name(command), start, end);
    work.id = flow;
    work.device = command.device;
    work.resource = static_cast<int32_t>(command.stream);
    work.linked = look_up(command.correlation);
    if (flow != 0) {
      work.flow.id = static_cast<uint32_t>(flow);
      work.flow.type = libkineto::kLinkAsyncCpuGpu;
      work.addMetadata("correlation", flow);
    }
    work.addMetadata("device", command.device);
    work.addMetadata("stream", command.stream);
    if (command.bytes != 0) work.addMetadata("bytes", command.bytes);
    const std::string op = op_name(command.tag);
    if (!op.empty()) work.addMetadataQuoted("op", op);
    return work;
  }

  void annotate(const TracedCommand& command) {
    const Place place{command.user_correlation, command.device, command.stream};
    const auto [found, fresh] = annotations_.try_emplace(place, command.start_ns, command.end_ns);
    if (fresh) return;
    auto& [start, end] = found->second;
    start = std::min(start, command.start_ns);
    end = std::max(end, command.end_ns);
  }

  libkineto::CpuTraceBuffer& buffer_;
  const Linked linked_;
  int32_t flow_ = 0;
  std::map<Place, std::pair<int64_t, int64_t>> annotations_;
};

void name_tracks(libkineto::ActivityLogger& logger, const std::vector<TracedCommand>& commands) {
  std::set<std::pair<int, int64_t>> tracks;
  for (const TracedCommand& command : commands) tracks.emplace(command.device, command.stream);
  int last = -1;
  for (const auto& [index, stream] : tracks) {
    const Device* const device = platform().open_device(index);
    if (device == nullptr) continue;
    const int64_t order = libkineto::kExceedMaxPid + index;
    if (std::exchange(last, index) != index) {
      logger.handleDeviceInfo({index, order, device->properties().name, device->label()}, 0);
    }
    logger.handleResourceInfo({stream, stream, index, fmt::format("stream {}", stream)}, 0);
  }
}

// Whatever goes wrong here is told with the trace and never leaves for the user's computation.
class Session final : public libkineto::IActivityProfilerSession {
 public:
  explicit Session(std::set<ActivityType> wanted) : wanted_(std::move(wanted)) {
    wanted_.insert(ActivityType::PRIVATEUSE1_RUNTIME);  // calls belong to the CPU's activities too
  }

  void start() override {
    attempt([] { trace_commands(); });
    status_ = libkineto::TraceStatus::RECORDING;
  }
  void stop() override {
    attempt([&] { commands_ = take_traced_commands(); });
    status_ = libkineto::TraceStatus::PROCESSING;
  }
  std::vector<std::string> errors() override { return errors_; }

  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(logger, nullptr, 0, 0);
  }
  void processTrace(libkineto::ActivityLogger& logger, Linked linked, int64_t, int64_t) override {
    attempt([&] {
      buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
      buffer_->span = libkineto::TraceSpan(0, 0, device_name());
      Activities activities(*buffer_, std::move(linked));
      activities.add(commands_);
      activities.add_annotations();
      buffer_->gpuOpCount = static_cast<int>(buffer_->activities.size());
      for (const auto& activity : buffer_->activities) {
        if (wanted_.contains(activity->type())) logger.handleGenericActivity(*activity);
      }
      name_tracks(logger, commands_);
    });
    commands_ = {};
  }

  // Named by processTrace: this could tell of one device only.
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return std::move(buffer_);
  }

  void pushCorrelationId(uint64_t id) override {
    attempt([&] { push_correlation(Correlation::kOp, id); });
  }
  void popCorrelationId() override { pop_correlation(Correlation::kOp); }
  void pushUserCorrelationId(uint64_t id) override {
    attempt([&] { push_correlation(Correlation::kUser, id); });
  }
  void popUserCorrelationId() override { pop_correlation(Correlation::kUser); }

 private:
  template <class F>
  void attempt(F&& function) noexcept {
    try {
      function();
    } catch (const std::exception& error) {
      errors_.emplace_back(error.what());
      status_ = libkineto::TraceStatus::ERROR;
    }
  }

  std::set<ActivityType> wanted_;
  std::vector<TracedCommand> commands_;
  std::vector<std::string> errors_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override {
    static const std::string name = device_name();
    return name;
  }
  const std::set<ActivityType>& availableActivities() const override {
    static const std::set<ActivityType> types = {
        ActivityType::GPU_MEMCPY, ActivityType::GPU_MEMSET, ActivityType::GPU_USER_ANNOTATION,
        ActivityType::CONCURRENT_KERNEL, ActivityType::PRIVATEUSE1_RUNTIME};
    return types;
  }
  // Null where only the CPU is profiled.
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& types, const libkineto::Config&) override {
    const bool any = types.contains(ActivityType::CONCURRENT_KERNEL) ||
                     types.contains(ActivityType::GPU_MEMCPY) ||
                     types.contains(ActivityType::GPU_MEMSET);
    return any ? std::make_unique<Session>(types) : nullptr;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>& types,
      const libkineto::Config& config) override {
    return configure(types, config);
  }
};

}  // namespace

void attach_profiler() {
  torch::profiler::impl::PrivateUse1ProfilerRegistry::instance().registerFactory(
      [] { return std::make_unique<Profiler>(); });
  attach_profiler_stubs();
}

}  // namespace graft::binding
