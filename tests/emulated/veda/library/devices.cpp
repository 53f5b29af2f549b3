// tests/emulated/veda/library/devices.cpp: the library from vedaInit to vedaExit: its settings, its
// devices, its contexts.
#include "tests/emulated/veda/library/devices.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "tests/emulated/veda/control.h"
#include "tests/emulated/veda/library/entry.h"

namespace emulated {
namespace {

enum class State { kFresh, kReady, kEnding };

std::atomic<State> state{State::kFresh};
std::atomic<Library*> current_library{nullptr};
std::atomic<pid_t> first_process{0};
std::mutex change_mutex;

// Which devices there are: "card" or "card.numa" for each, separated by one of separators.
std::vector<Device> chosen(const Settings& settings, const std::string& list) {
  std::string text = list;
  for (char& letter : text) letter = letter == ',' ? ' ' : letter;
  std::istringstream words(text);
  std::vector<Device> devices;
  for (std::string word; words >> word;) {
    int card = -1;
    int numa = -1;
    const int read = std::sscanf(word.c_str(), "%d.%d", &card, &numa);
    require(read >= 1 && card >= 0 && card < settings.devices, VEDA_ERROR_UNKNOWN_DEVICE);
    require(read == 1 || (numa >= 0 && numa < settings.numa), VEDA_ERROR_UNKNOWN_DEVICE);
    const int first = read == 1 ? 0 : numa;
    const int last = read == 1 ? static_cast<int>(settings.numa) - 1 : numa;
    for (int node = first; node <= last; ++node) devices.push_back({card, node, nullptr});
  }
  return devices;
}

std::string all_cards(const Settings& settings) {
  std::string list;
  for (int card = 0; card < settings.devices; ++card) list += std::to_string(card) + " ";
  return list;
}

std::unique_ptr<Library> make_library() {
  auto made = std::make_unique<Library>();
  made->settings = read_settings();
  const Settings& settings = made->settings;
  made->faults.set(settings.fail, settings.fault);
  const bool told = settings.has_runner || !settings.architecture.empty();
  require(settings.devices > 0 || told, VEDA_ERROR_UNKNOWN_VEDA_ARCHITECTURE);
  require(settings.device_architecture() != 0, VEDA_ERROR_UNKNOWN_VEDA_ARCHITECTURE);
  const std::string& list = !settings.visible_devices.empty() ? settings.visible_devices
                            : !settings.node_list.empty()     ? settings.node_list
                            : !settings.node.empty()          ? settings.node
                                                              : all_cards(settings);
  made->devices = chosen(settings, list);
  require(made->devices.size() <= VEDA_MAX_DEVICES, VEDA_ERROR_CANNOT_CREATE_DEVICE);
  int ordinal = 0;
  for (Device& device : made->devices) {
    device.context = std::make_unique<veda_context>(settings, &made->faults, ordinal++);
  }
  return made;
}

// Contexts are never freed, and a leak checker must find them.
void keep(std::unique_ptr<Library> made) {
  static auto* const kept = new std::vector<std::unique_ptr<Library>>;
  current_library = made.get();
  kept->push_back(std::move(made));
}

}  // namespace

void require_ready() {
  const pid_t first = first_process.load();
  require(first == 0 || first == ::getpid(), VEDA_ERROR_SHUTTING_DOWN);
  require(state != State::kEnding, VEDA_ERROR_SHUTTING_DOWN);
  require(state == State::kReady, VEDA_ERROR_NOT_INITIALIZED);
}

void enter(const char* name, bool needs_init) {
  const pid_t first = first_process.load();
  require(first == 0 || first == ::getpid(), VEDA_ERROR_SHUTTING_DOWN);
  if (needs_init) require_ready();
  const bool tells_error = std::string_view(name).starts_with("GetError");
  if (state != State::kReady || tells_error) return;
  const VEDAresult code = library().faults.call(name);
  require(code == VEDA_SUCCESS, code);
}

void end_process(const char* rule) {
  const Library* made = current_library.load();
  std::fprintf(stderr, "emulated VEDA: the real library ends the process here: %s\n", rule);
  if (made != nullptr && made->settings.abort == 0) throw Failure{VEDA_ERROR_ASSERT};
  std::abort();
}

Device& Library::device(VEDAdevice ordinal) {
  require(ordinal >= 0 && ordinal < static_cast<int>(devices.size()), VEDA_ERROR_INVALID_DEVICE);
  return devices[ordinal];
}

veda_context& Library::context(VEDAcontext handle) {
  for (const Device& device : devices) {
    if (device.context.get() == handle) return *device.context;
  }
  throw Failure{VEDA_ERROR_UNKNOWN_CONTEXT};
}

Library& library() { return *current_library.load(); }

std::vector<VEDAcontext>& context_stack() {
  static thread_local std::vector<VEDAcontext> stack;
  return stack;
}

veda_context& current_context() {
  require(!context_stack().empty(), VEDA_ERROR_UNKNOWN_CONTEXT);
  veda_context& top = library().context(context_stack().back());
  require(top.active(), VEDA_ERROR_CONTEXT_IS_DESTROYED);
  return top;
}

}  // namespace emulated

using emulated::entry;
using emulated::require;
using emulated::State;

VEDAresult vedaInit(uint32_t flags) {
  return entry("Init", false, [&] {
    const std::lock_guard lock(emulated::change_mutex);
    require(flags == 0, VEDA_ERROR_INVALID_VALUE);
    require(emulated::state != State::kReady, VEDA_ERROR_ALREADY_INITIALIZED);
    require(emulated::state != State::kEnding, VEDA_ERROR_SHUTTING_DOWN);
    auto made = emulated::make_library();
    const VEDAresult planted = made->faults.call("Init");
    require(planted == VEDA_SUCCESS, planted);
    emulated::keep(std::move(made));
    emulated::first_process = ::getpid();
    emulated::state = State::kReady;
  });
}

VEDAresult vedaExit(void) {
  return entry("Exit", [&] {
    const std::lock_guard lock(emulated::change_mutex);
    require(emulated::state == State::kReady, VEDA_ERROR_NOT_INITIALIZED);
    emulated::state = State::kEnding;
    for (const emulated::Device& device : emulated::library().devices) {
      if (device.context->active()) device.context->stop();
    }
    emulated::state = State::kFresh;
    emulated::first_process = 0;
  });
}

int emulated_veda_process(VEDAdevice device) {
  try {
    emulated::require_ready();
    return emulated::library().device(device).context->session()->process();
  } catch (const emulated::Failure&) {
    return -1;
  }
}

VEDAresult emulated_veda_plant(const char* calls, const char* device) {
  try {
    emulated::require_ready();
    emulated::library().faults.set(calls, device);
    return VEDA_SUCCESS;
  } catch (const emulated::Failure& failure) {
    return failure.code;
  }
}
