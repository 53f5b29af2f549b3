// src/runtime/stream/command_trace.cpp: what streams did, command by command, for a profiler.
#include "runtime/stream/command_trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "graft/extensions.h"
#include "runtime/driver/op_trace.h"
#include "runtime/driver/open_device.h"
#include "runtime/stream/device_streams.h"
#include "runtime/stream/event.h"
#include "runtime/stream/stream.h"

namespace graft {
namespace {

// More marks than this wait for their times before the oldest are read.
constexpr size_t kPendingMarks = 4096;

int64_t now_ns() {
  return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

int32_t thread_number() {
  static thread_local const auto number = static_cast<int32_t>(syscall(SYS_gettid));
  return number;
}

std::vector<uint64_t>& correlations(Correlation kind) {
  static thread_local std::array<std::vector<uint64_t>, 2> stacks;
  return stacks[static_cast<size_t>(kind)];
}

uint64_t innermost(Correlation kind) {
  const std::vector<uint64_t>& stack = correlations(kind);
  return stack.empty() ? 0 : stack.back();
}

// How the times of a device are learnt.
struct Clock {
  DeviceStreams* on = nullptr;
  const graft_profiler_table* profiler = nullptr;  // null: by events, if base is not null, too
  std::shared_ptr<Event> base;
  int64_t base_ns = 0;
  std::unordered_map<graft_stream, int64_t> streams;        // ids; of those that emit has met
  std::unordered_map<graft_stream, TracedCommand> replays;  // the last one of each
};

// Timed events around a command.
struct Marks {
  std::shared_ptr<Clock> clock;
  uint64_t session = 0;
  size_t command = 0;
  std::unique_ptr<Event> start, end;
};

struct State {
  std::mutex starting;  // orders the start of clocks; taken before mutex
  std::mutex mutex;     // guards what follows; no driver is called under it
  uint64_t session = 0;
  std::deque<TracedCommand> commands;
  std::vector<uint32_t> by_number;  // of tags: the place in commands
  std::map<DeviceStreams*, std::shared_ptr<Clock>> clocks;
  std::deque<Marks> marks;
  std::unordered_map<graft_kernel, std::string> kernel_names;
};

State& state() {
  static auto* state = new State;  // drivers' threads may tell during the exit
  return *state;
}

// REQUIRES: the lock is held. Null for a tag that no traced command has.
TracedCommand* find(State& all, uint32_t tag) {
  const uint32_t number = tag_number(tag);
  if (number >= all.by_number.size()) return nullptr;
  const size_t place = all.by_number[number];
  if (place >= all.commands.size() || all.commands[place].tag != tag) return nullptr;
  return &all.commands[place];
}

int64_t stream_id(Clock& clock, graft_stream handle) {
  const auto known = clock.streams.find(handle);
  if (known != clock.streams.end()) return known->second;
  for (const Stream* stream : clock.on->all()) clock.streams[stream->handle()] = stream->id();
  return clock.streams[handle];
}

void take_event(State& all, Clock& clock, const graft_trace_event& event) {
  if (event.end_ns < event.start_ns || event.start_ns <= 0) return;
  TracedCommand* command = find(all, event.tag);
  if (command == nullptr || command->start_ns != 0) {
    TracedCommand more = command == nullptr ? clock.replays[event.stream] : *command;
    if (more.kind == TracedKind::kReplay) more.kind = TracedKind::kLaunch;
    more.called_ns = more.returned_ns = 0;
    more.tag = event.tag;
    more.device = clock.on->device().index();
    more.stream = stream_id(clock, event.stream);
    all.commands.push_back(std::move(more));
    command = &all.commands.back();
  }
  command->start_ns = event.start_ns;
  command->end_ns = event.end_ns;
  if (event.name != nullptr) command->name = event.name;
}

void emit(void* context, const graft_trace_event* events, uint64_t count) {
  if (events == nullptr || events->struct_size < sizeof(graft_trace_event)) return;
  try {
    State& all = state();
    auto& clock = *static_cast<Clock*>(context);
    const size_t stride = events->struct_size;
    const std::lock_guard lock(all.mutex);
    for (uint64_t i = 0; i < count; ++i) {
      const auto* at = reinterpret_cast<const unsigned char*>(events) + i * stride;
      take_event(all, clock, *reinterpret_cast<const graft_trace_event*>(at));
    }
  } catch (...) {  // for want of memory: the event is missing in the trace
  }
}

// Learns when the device's clock says what the host's says.
void set_base(Clock& clock) {
  OpenDevice& device = clock.on->device();
  if (device.driver().table().event_elapsed == nullptr) return;
  auto base = std::make_shared<Event>(device, true);
  base->record(clock.on->from_pool(0));
  base->settle();
  clock.base_ns = now_ns();
  clock.base = std::move(base);
}

std::shared_ptr<Clock> start_clock(DeviceStreams& on) {
  auto clock = std::make_shared<Clock>();
  clock->on = &on;
  OpenDevice& device = on.device();
  const auto* table = device.driver().extension<graft_profiler_table>();
  if (table != nullptr &&
      Driver::call(table->trace_start, device.handle(), &emit, clock.get()) == GRAFT_OK) {
    clock->profiler = table;
    return clock;
  }
  try {
    set_base(*clock);
  } catch (const Error&) {
    clock->base = nullptr;
  }
  return clock;
}

// Null once the trace has ended.
std::shared_ptr<Clock> clock_of(DeviceStreams& on) {
  State& all = state();
  const std::lock_guard starting(all.starting);
  if (!command_trace_state::on.load()) return nullptr;
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.clocks.find(&on);
    if (found != all.clocks.end()) return found->second;
  }
  std::shared_ptr<Clock> clock = start_clock(on);
  const std::lock_guard lock(all.mutex);
  return all.clocks[&on] = std::move(clock);
}

void read_marks(const Marks& marks) {
  marks.end->settle();
  const Clock& clock = *marks.clock;
  int64_t start = 0, end = 0;
  try {
    start = clock.base->elapsed_ns(*marks.start);
    end = clock.base->elapsed_ns(*marks.end);
  } catch (const Error&) {
    return;
  }
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (all.session != marks.session) return;
  all.commands[marks.command].start_ns = clock.base_ns + start;
  all.commands[marks.command].end_ns = clock.base_ns + end;
}

// Reads the oldest marks until no more than `most` remain.
void read_oldest(size_t most) {
  State& all = state();
  for (;;) {
    Marks oldest;
    {
      const std::lock_guard lock(all.mutex);
      if (all.marks.size() <= most) return;
      oldest = std::move(all.marks.front());
      all.marks.pop_front();
    }
    read_marks(oldest);
  }
}

}  // namespace

std::atomic<bool> command_trace_state::on{false};

void trace_commands() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  ++all.session;
  all.commands.clear();
  all.by_number.assign(kTagNumbers, 0);
  command_trace_state::on.store(true);
}

std::vector<TracedCommand> take_traced_commands() {
  State& all = state();
  command_trace_state::on.store(false);
  const std::lock_guard starting(all.starting);
  std::map<DeviceStreams*, std::shared_ptr<Clock>> clocks;
  {
    const std::lock_guard lock(all.mutex);
    clocks.swap(all.clocks);
  }
  for (const auto& [on, clock] : clocks) {
    on->settle();
    if (clock->profiler != nullptr)
      Driver::call(clock->profiler->trace_stop, on->device().handle());
  }
  read_oldest(0);
  const std::lock_guard lock(all.mutex);
  ++all.session;
  std::vector<TracedCommand> taken(std::move_iterator(all.commands.begin()),
                                   std::move_iterator(all.commands.end()));
  all.commands.clear();
  all.by_number = {};
  return taken;
}

void push_correlation(Correlation kind, uint64_t number) { correlations(kind).push_back(number); }

void pop_correlation(Correlation kind) noexcept {
  std::vector<uint64_t>& stack = correlations(kind);
  if (!stack.empty()) stack.pop_back();
}

void name_kernel(graft_kernel kernel, std::string_view name) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.kernel_names[kernel] = name;
}

struct TracedCall::Begun {
  Stream& stream;
  Marks marks;
};

void TracedCall::begin(Stream& stream, const What& what) noexcept {
  if (!what.on || stream.memory_pool() != 0) return;
  try {
    std::shared_ptr<Clock> clock = clock_of(stream.siblings());
    if (clock == nullptr) return;
    auto begun = std::make_unique<Begun>(Begun{stream, {clock, 0, 0, nullptr, nullptr}});
    if (clock->base != nullptr && what.kind != TracedKind::kWait) {
      begun->marks.start = std::make_unique<Event>(stream.device(), true);
      begun->marks.end = std::make_unique<Event>(stream.device(), true);
      begun->marks.start->record(stream);
    }
    TracedCommand command;
    command.kind = what.kind;
    command.copy_kind = what.copy_kind;
    command.tag = command_tag(tag_);
    command.device = stream.device().index();
    command.stream = stream.id();
    command.bytes = what.bytes;
    command.correlation = innermost(Correlation::kOp);
    command.user_correlation = innermost(Correlation::kUser);
    command.thread = thread_number();
    command.called_ns = now_ns();
    State& all = state();
    const std::lock_guard lock(all.mutex);
    const auto current = all.clocks.find(&stream.siblings());
    if (current == all.clocks.end() || current->second != clock) return;  // the trace has ended
    if (what.name != nullptr) command.name = what.name;
    if (what.kernel != nullptr) command.name = all.kernel_names[what.kernel];
    if (what.kind == TracedKind::kReplay) clock->replays[stream.handle()] = command;
    const uint32_t number = tag_number(command.tag);
    const size_t place = all.commands.size();
    if (number < all.by_number.size()) all.by_number[number] = static_cast<uint32_t>(place);
    begun->marks.session = all.session;
    begun->marks.command = place;
    all.commands.push_back(std::move(command));
    tag_ = all.commands.back().tag;
    begun_ = begun.release();
  } catch (...) {  // the command runs untraced
  }
}

void TracedCall::end() noexcept {
  const std::unique_ptr<Begun> begun(begun_);
  try {
    State& all = state();
    Marks& marks = begun->marks;
    if (marks.end != nullptr) marks.end->record(begun->stream);
    {
      const std::lock_guard lock(all.mutex);
      if (all.session != marks.session) return;
      all.commands[marks.command].returned_ns = now_ns();
      if (marks.end == nullptr) return;
      all.marks.push_back(std::move(marks));
    }
    read_oldest(kPendingMarks);
  } catch (...) {
  }
}

}  // namespace graft
