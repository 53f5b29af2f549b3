// tests/emulated/veda/library/session.cpp: what an active context has: the device's process, its
// streams and its modules.
#include "tests/emulated/veda/library/session.h"

#include <algorithm>

#include "tests/emulated/veda/library/entry.h"

namespace emulated {

Session::Session(const Settings& settings, int device, int cores, int streams)
    : server_(settings.process, device, settings.memory, cores, streams),
      control_(server_.take_control(), settings) {
  for (int index = 0; index < streams; ++index) {
    streams_.push_back(std::make_unique<Stream>(server_.take_stream(index), settings, lost_));
  }
}

Stream& Session::stream(VEDAstream index) {
  require(index >= -1 && index < stream_count(), VEDA_ERROR_UNKNOWN_STREAM);
  return *streams_[std::max(index, 0)];
}

void Session::synchronize(VEDAstream index) {
  if (index >= 0) {
    const VEDAresult result = stream(index).synchronize();
    require(result == VEDA_SUCCESS, result);
    return;
  }
  require(index == -1, VEDA_ERROR_UNKNOWN_STREAM);
  for (const auto& one : streams_) {
    const VEDAresult result = one->synchronize();
    require(result == VEDA_SUCCESS, result);
  }
}

void Session::throw_lost() { throw Failure{VEDA_ERROR_VEO_COMMAND_ERROR}; }

VEDAmodule Session::load(const std::string& file) {
  const std::uint64_t handle = control(
      [&](Link& link) { return link.ask(Command::kLoad, {}, file.data(), file.size()).value; });
  require(handle != 0, VEDA_ERROR_MODULE_NOT_FOUND);
  const std::lock_guard lock(modules_mutex_);
  auto loaded = std::make_unique<veda_module>(veda_module{handle});
  const VEDAmodule module = loaded.get();
  modules_[module] = std::move(loaded);
  return module;
}

void Session::require_module(VEDAmodule module) {
  const std::lock_guard lock(modules_mutex_);
  require(modules_.contains(module), VEDA_ERROR_UNKNOWN_MODULE);
}

void Session::unload(VEDAmodule module) {
  require_module(module);
  control([&](Link& link) { return link.ask(Command::kUnload, {module->handle}); });
  const std::lock_guard lock(modules_mutex_);
  modules_.erase(module);
}

VEDAfunction Session::function(VEDAmodule module, const std::string& name) {
  require_module(module);
  const std::uint64_t raw = control([&](Link& link) {
    return link.ask(Command::kSymbol, {module->handle}, name.data(), name.size()).value;
  });
  require(raw != 0, VEDA_ERROR_FUNCTION_NOT_FOUND);
  const std::lock_guard lock(modules_mutex_);
  return {raw, names_.insert(name).first->c_str()};
}

void Session::stop() {
  control_.shut_down();
  for (const auto& stream : streams_) stream->stop();
  const std::lock_guard lock(control_mutex_);
  server_.stop();
}

}  // namespace emulated
