// drivers/trace/slots.cpp: puts the layer's slots into tables, made from the lists of the headers.
#include "slots.h"

#include <array>
#include <cstddef>
#include <ctime>
#include <exception>
#include <string_view>
#include <thread>

#include "call/active_calls.h"
#include "call/arguments.h"
#include "objects/guard.h"
#include "objects/waiting.h"
#include "rules/checks.h"
#include "rules/extension.h"
#include "rules/hooks.h"

namespace graft::trace {
namespace {

std::array<std::atomic<TraceLayer*>, kMostLayers> layers{};
std::atomic<size_t> layer_count{0};
thread_local bool in_callback = false;

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// What the lists say of a slot: its parameters' names, and the hooks that rules/hooks.h has for it.
#define GRAFT_TRACE_HOOKS(presence, slot, parameters)                         \
  struct slot {                                                               \
    static constexpr std::string_view kName = #slot;                          \
    static constexpr const char* kParameters = #parameters;                   \
    template <class Table, class... A>                                        \
    static void before(TraceCall& call, A&... arguments) {                    \
      if constexpr (requires { &Before<Table>::slot; }) {                     \
        Before<Table>::slot(call, arguments...);                              \
      }                                                                       \
    }                                                                         \
    template <class Table, class... A>                                        \
    static void after(TraceCall& call, graft_status status, A... arguments) { \
      if constexpr (requires { &After<Table>::slot; }) {                      \
        After<Table>::slot(call, status, arguments...);                       \
      }                                                                       \
    }                                                                         \
  };
#define GRAFT_TRACE_TABLE_HOOKS(name, version, SLOTS) \
  struct name##_hooks {                               \
    SLOTS(GRAFT_TRACE_HOOKS)                          \
  };
GRAFT_TRACE_TABLE_HOOKS(driver, 0, GRAFT_DRIVER_SLOTS)
GRAFT_EXTENSIONS(GRAFT_TRACE_TABLE_HOOKS)

template <class Hooks, class... A>
std::vector<ShownArgument> describe(const void* arguments) {
  static const std::vector<std::string> names = names_of(Hooks::kParameters);
  std::vector<ShownArgument> all;
  const auto& given = *static_cast<const std::tuple<A...>*>(arguments);
  std::apply(
      [&](const A&... one) {
        (all.push_back({all.size() < names.size() ? names[all.size()] : "?", show(one)}), ...);
      },
      given);
  return all;
}

void write_log(TraceCall& call, int64_t began, int64_t took, graft_status status) {
  std::string members;
  for (const ShownArgument& one : call.describe(call.arguments)) {
    members +=
        (members.empty() ? "\"" : ", \"") + one.name + "\": \"" + json_text(one.value) + "\"";
  }
  call.layer.log.write(call.table.name, call.table.slots[call.slot].name, began, took, status,
                       members);
}

// Notes that a call ends by a C++ exception, which goes on to the caller.
class ExceptionWatch {
 public:
  explicit ExceptionWatch(TraceCall& call) : call_(call) {}
  ~ExceptionWatch() {
    if (std::uncaught_exceptions() == before_ || !call_.layer.settings.rules) return;
    call_.driver_broke("exception", "a C++ exception left the slot", "Return a status.");
    leave_stream(call_, GRAFT_INTERNAL);
  }
  ExceptionWatch(const ExceptionWatch&) = delete;
  ExceptionWatch& operator=(const ExceptionWatch&) = delete;

 private:
  TraceCall& call_;
  int before_ = std::uncaught_exceptions();
};

// The first stream and device among the arguments, and the command's tag.
struct Subject {
  graft_stream stream = nullptr;
  graft_device device = nullptr;
  bool has_stream = false, has_device = false;
  uint32_t tag = 0;

  template <class... A>
  explicit Subject(const A&... arguments) {
    (look(arguments), ...);
  }

  template <class T>
  void look(const T& argument) {
    if constexpr (std::is_same_v<T, graft_stream>) {
      stream = argument;
      has_stream = true;
    } else if constexpr (std::is_same_v<T, graft_device>) {
      if (!has_device) device = argument;
      has_device = true;
    } else {
      const uint32_t found = tag_in(argument);
      if (found != 0) tag = found;
    }
  }
};

constexpr bool queues(std::string_view slot) {
  return slot == "stream_wait_event" ||
         (!slot.starts_with("stream_") && !slot.starts_with("event_"));
}

constexpr bool waits(std::string_view slot) {
  return slot == "stream_synchronize" || slot == "stream_synchronize_within" ||
         slot == "stream_query";
}

void begin_rules(TraceCall& call, const Subject& subject, bool queued) {
  if (call.layer.has_foreign_text()) {
    call.layer.findings.add("last_message",
                            {Culprit::kDriver, "other-text", "last_message()",
                             "the text of this thread's last failure is now another thread's",
                             "Keep one text for each thread."});
  }
  if (in_callback) {
    call.caller_broke("slot-in-callback", "a function of host_callback calls a slot",
                      "Call slots from other threads.");
  }
  if (subject.has_stream) {
    enter_stream(call, subject.stream, queued);
  } else if (subject.has_device) {
    enter_device(call, subject.device);
  }
}

// Puts guarded copies in the place of what the slot reads by pointer. A launch has its own hook,
// commands come in arrays.
template <class T>
void guard_argument(TraceCall& call, T& argument) {
  if constexpr (std::is_same_v<T, const char*>) {
    argument = guarded_text(call, argument);
  } else if constexpr (std::is_same_v<T, const graft_launch*> ||
                       std::is_same_v<T, const graft_command*>) {
    return;
  } else if constexpr (std::is_pointer_v<T> && std::is_const_v<std::remove_pointer_t<T>> &&
                       requires { argument->struct_size; }) {
    if (argument == nullptr) return;
    argument = static_cast<T>(guarded_bytes(call, argument, argument->struct_size));
  }
}

Strike drawn_strike(TraceCall& call, size_t id) {
  if (!call.layer.faults.any()) return {};
  const Strike strike = call.layer.faults.strike(id);
  if (strike.delay_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(strike.delay_ns));
  return strike;
}

template <class Table, class Hooks, size_t index, auto member>
struct Slot;
template <class Table, class Hooks, size_t index, class... A, graft_status (*Table::*member)(A...)>
struct Slot<Table, Hooks, index, member> {
  // Calls the driver, with the layer's values in the place of results.
  static graft_status call_driver(TraceCall& call, A... arguments) {
    const auto slot = call.layer.behind<Table>().*member;
    (guard_argument(call, arguments), ...);
    std::tuple<LentArgument<A>...> lent{LentArgument<A>(arguments)...};
    graft_status status = GRAFT_INTERNAL;
    {
      const ExceptionWatch watch(call);
      const InsideDriver inside(call);
      status = std::apply([&](auto&... one) { return slot(one.lend()...); }, lent);
    }
    call.guards.clear();
    std::apply([&](auto&... one) { (one.settle(call, status), ...); }, lent);
    return status;
  }

  __attribute__((noinline)) static graft_status run(TraceLayer& layer, A... arguments) {
    if (TraceLayer::forked()) return (layer.behind<Table>().*member)(arguments...);
    layer.calls.fetch_add(1, std::memory_order_relaxed);
    const std::tuple<A...> given(arguments...);
    TraceCall call(layer, table_facts<Table>, index, &describe<Hooks, A...>, &given);
    call.id = table_number<Table>() * kSlotsOfTable + index;
    const Subject subject(arguments...);
    call.tag = subject.tag;
    const bool rules = layer.settings.rules;
    if (rules) {
      begin_rules(call, subject, queues(Hooks::kName));
      Hooks::template before<Table>(call, arguments...);
    }
    std::unique_lock<std::mutex> turn;
    if (rules && layer.settings.serial && ends_alone(call)) turn = std::unique_lock(layer.turn);
    const int64_t began = layer.log.is_open() ? now_ns() : 0;
    const Strike planted = drawn_strike(call, call.id);
    const bool stops = layer.settings.strict && call.broken;
    graft_status status = stops          ? GRAFT_INVALID_ARGUMENT
                          : planted.drop ? strike(call, planted, subject.stream, subject.tag)
                                         : call_driver(call, arguments...);
    if (layer.log.is_open()) write_log(call, began, now_ns() - began, status);
    settle(call, status, !stops && !planted.drop);
    if (rules) Hooks::template after<Table>(call, status, arguments...);
    if constexpr (waits(Hooks::kName)) status = deliver(call, status, subject.stream);
    if (rules) leave_stream(call, status);
    if (turn && status == GRAFT_OK) end_command(call);
    return refuse(call, status);
  }
};

// A slot in the caller's table: it knows the layer by its place.
template <size_t place, class Run>
struct Thunk;
template <size_t place, class... A>
struct Thunk<place, graft_status (*)(TraceLayer&, A...)> {
  template <auto run>
  static graft_status call(A... arguments) {
    return run(*layers[place].load(std::memory_order_relaxed), arguments...);
  }
};

#define GRAFT_TRACE_WRAP_SLOT(presence, slot, parameters)                                         \
  if (table.slot != nullptr) {                                                                    \
    using ThisSlot = Slot<Table, Hooks::slot, (offsetof(Table, slot) - kPrelude) / sizeof(void*), \
                          &Table::slot>;                                                          \
    table.slot = Thunk<place, decltype(&ThisSlot::run)>::template call<&ThisSlot::run>;           \
  }
#define GRAFT_TRACE_WRAP(name, prelude, SLOTS)    \
  template <size_t place>                         \
  void wrap_##name(graft_##name##_table& table) { \
    using Table = graft_##name##_table;           \
    using Hooks = name##_hooks;                   \
    constexpr size_t kPrelude = prelude;          \
    SLOTS(GRAFT_TRACE_WRAP_SLOT)                  \
  }
#define GRAFT_TRACE_WRAP_EXTENSION(name, version, SLOTS) \
  GRAFT_TRACE_WRAP(name, GRAFT_EXTENSION_PRELUDE_BYTES, SLOTS)
GRAFT_TRACE_WRAP(driver, GRAFT_TABLE_PRELUDE_BYTES, GRAFT_DRIVER_SLOTS)
GRAFT_EXTENSIONS(GRAFT_TRACE_WRAP_EXTENSION)

// Copies what both sides know of an extension's table, and puts the layer's slots into the copy.
template <class Table>
const void* front_of(TraceLayer& layer, const void* theirs, void (*wrapped)(Table&)) {
  const std::lock_guard lock(layer.mutex);
  Table& behind = layer.behind<Table>();
  Table& mine = layer.in_front<Table>();
  if (mine.slot_count != 0) return &mine;
  const auto known = std::min<uint32_t>(static_cast<uint32_t>(table_facts<Table>.slots.size()),
                                        *static_cast<const uint32_t*>(theirs));
  std::memcpy(&behind, theirs, GRAFT_EXTENSION_PRELUDE_BYTES + known * sizeof(void*));
  behind.slot_count = known;
  mine = behind;
  wrapped(mine);
  return &mine;
}

template <size_t place>
graft_status extension(const char* name, uint32_t version, const void** out_table) {
  TraceLayer& layer = *layers[place].load(std::memory_order_relaxed);
  using Plain = Slot<graft_driver_table, driver_hooks::extension,
                     (offsetof(graft_driver_table, extension) - GRAFT_TABLE_PRELUDE_BYTES) / 8,
                     &graft_driver_table::extension>;
  if (name == nullptr || out_table == nullptr) return Plain::run(layer, name, version, out_table);
  // Graft then queues the commands one by one, so that launches can be dropped, and ended, alone.
  const bool one_by_one = layer.settings.drops_launches || layer.settings.serial;
  if (one_by_one && std::string_view(name) == "graft.graphs") return GRAFT_NOT_FOUND;
  const graft_status status = Plain::run(layer, name, version, out_table);
  if (status != GRAFT_OK) return status;
#define GRAFT_TRACE_FRONT(extension, number, SLOTS)                                               \
  if (std::string_view(name) == "graft." #extension && version == (number)) {                     \
    const TableFacts& facts = table_facts<graft_##extension##_table>;                             \
    const std::string fault = fault_of(facts, *out_table);                                        \
    if (!fault.empty()) {                                                                         \
      layer.findings.add(name, {Culprit::kDriver, "bad-table", std::string("extension ") + name,  \
                                fault, "Fill the table by the list of extensions.h."});           \
      return status;                                                                              \
    }                                                                                             \
    *out_table = front_of<graft_##extension##_table>(layer, *out_table, wrap_##extension<place>); \
  }
  GRAFT_EXTENSIONS(GRAFT_TRACE_FRONT)
  return status;
}

// The layer's text of the thread's last failure, or the driver's.
template <size_t place>
graft_status last_message(char* out_text, size_t capacity) {
  const TraceLayer& layer = *layers[place].load(std::memory_order_relaxed);
  const std::string* const text = layer.last_text();
  if (text == nullptr) return layer.driver().last_message(out_text, capacity);
  if (out_text == nullptr || capacity == 0) return GRAFT_OK;
  const size_t bytes = text->copy(out_text, capacity - 1);
  out_text[bytes] = '\0';
  return GRAFT_OK;
}

// An error that a stream owed, or the driver's.
template <size_t place>
graft_status stream_error(graft_stream stream, uint32_t* out_tag, char* out_text, size_t capacity) {
  TraceLayer& layer = *layers[place].load(std::memory_order_relaxed);
  const HeldError error = layer.held.taken(stream);
  if (error.status == GRAFT_OK) {
    using Plain = Slot<graft_driver_table, driver_hooks::stream_error,
                       (offsetof(graft_driver_table, stream_error) - GRAFT_TABLE_PRELUDE_BYTES) / 8,
                       &graft_driver_table::stream_error>;
    return Plain::run(layer, stream, out_tag, out_text, capacity);
  }
  *out_tag = error.tag;
  if (out_text == nullptr || capacity == 0) return GRAFT_OK;
  out_text[error.text.copy(out_text, capacity - 1)] = '\0';
  return GRAFT_OK;
}

template <size_t place>
void put(graft_driver_table* table) {
  wrap_driver<place>(*table);
  if (table->extension != nullptr) table->extension = extension<place>;
  if (table->last_message != nullptr) table->last_message = last_message<place>;
  if (table->stream_error != nullptr) table->stream_error = stream_error<place>;
}

template <size_t... places>
constexpr auto puts_of(std::index_sequence<places...>) {
  return std::array<void (*)(graft_driver_table*), sizeof...(places)>{put<places>...};
}

}  // namespace

bool put_in_front(TraceLayer* layer, graft_driver_table* table) {
  const size_t place = layer_count.fetch_add(1);
  if (place >= kMostLayers) {
    layer_count = kMostLayers;
    return false;
  }
  layers[place] = layer;
  static constexpr auto kPuts = puts_of(std::make_index_sequence<kMostLayers>());
  // A slot past the driver's count may be rubbish.
  graft_driver_table whole{};
  const size_t known = std::min<size_t>(table->slot_count, GRAFT_SLOT_COUNT);
  const size_t bytes = GRAFT_TABLE_PRELUDE_BYTES + known * sizeof(void*);
  std::memcpy(&whole, table, bytes);
  kPuts.at(place)(&whole);
  std::memcpy(table, &whole, bytes);
  layer->in_front<graft_driver_table>() = whole;
  return true;
}

void finish_layers() {
  for (const auto& layer : layers) {
    if (layer != nullptr) layer.load()->finish();
  }
}

TraceLayer* layer_at(size_t place) { return place < kMostLayers ? layers[place].load() : nullptr; }

}  // namespace graft::trace
