// src/codegen/cache/executable_cache.cpp: graphs that a vendor's compiler compiled: from memory,
// disk or the compiler.
#include "codegen/cache/executable_cache.h"

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "codegen/cache/blob_store.h"
#include "codegen/cache/compile_progress.h"
#include "codegen/cache/toolchain.h"
#include "runtime/driver/error.h"
#include "runtime/driver/fork.h"

namespace graft {

namespace {

// Changes with what Graft makes of a text besides the text.
constexpr const char* kForm = "graft.graph_compiler/1";

const graft_graph_compiler_table& table_of(OpenDevice& device) {
  return *device.driver().extension<graft_graph_compiler_table>();
}

class Entry {
 public:
  std::shared_ptr<const Executable> get(OpenDevice& device, const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (auto live = live_.lock()) return live;
    if (refused_) return nullptr;
    auto made = make(device, text);
    refused_ = made == nullptr;
    live_ = made;
    return made;
  }

 private:
  static std::shared_ptr<const Executable> make(OpenDevice& device, const std::string& text) {
    const std::string toolchain = toolchain_of(device);
    const std::string file = hash_text(fmt::format("{}\n{}\n{}", kForm, toolchain, text));
    const bool keeps = !toolchain.empty() && blob_store().keeps();
    graft_executable handle = nullptr;
    if (keeps) {
      const std::optional<std::string> kept = blob_store().read(file);
      if (kept && load(device, *kept, &handle) == GRAFT_OK) return owned(device, handle);
    }
    std::string blob;
    if (!compile(device, text, &blob)) return nullptr;
    device.check(load(device, blob, &handle), "executable_load");
    if (keeps) blob_store().write(file, blob);
    return owned(device, handle);
  }

  static std::shared_ptr<const Executable> owned(OpenDevice& device, graft_executable handle) {
    if (handle != nullptr) {
      return std::make_shared<const Executable>(device, table_of(device), handle);
    }
    throw Error(GRAFT_INTERNAL, device.label() + ": executable_load returned OK but no executable");
  }

  static graft_status load(OpenDevice& device, const std::string& blob, graft_executable* out) {
    return Driver::call(table_of(device).executable_load, device.handle(), blob.data(), blob.size(),
                        out);
  }

  static bool compile(OpenDevice& device, const std::string& text, std::string* blob) {
    const CompileProgress progress(device.label());
    const graft_status status = Driver::call(table_of(device).graph_compile, device.handle(),
                                             text.data(), text.size(), sink_into(blob));
    if (status == GRAFT_UNSUPPORTED) return false;
    try {
      device.check(status, "graph_compile");
    } catch (const Error& error) {
      throw Error(error.status(), first_lines(error.what(), "the log goes on"));
    }
    return true;
  }

  std::mutex mutex_;
  std::weak_ptr<const Executable> live_;  // guarded by mutex_, as the next
  bool refused_ = false;
};

}  // namespace

Executable::~Executable() {
  const auto destroy = table_.executable_destroy;
  if (!forked_child() && device_.disown(handle_, destroy)) Driver::call(destroy, handle_);
}

uint64_t Executable::workspace_bytes(std::span<const int64_t> symbols) const {
  graft_plan_needs needs{sizeof(graft_plan_needs), 0, 0};
  device_.check(Driver::call(table_.executable_needs, handle_, symbols.data(),
                             static_cast<uint32_t>(symbols.size()), &needs),
                "executable_needs");
  return needs.workspace_bytes;
}

bool has_graph_compiler(OpenDevice& device) {
  const char* const wanted = std::getenv("GRAFT_GRAPH_COMPILER");
  if (wanted != nullptr && std::string_view(wanted) == "0") return false;
  return device.driver().extension<graft_graph_compiler_table>() != nullptr;
}

std::shared_ptr<const Executable> get_executable(OpenDevice& device, const std::string& text) {
  // Never destroyed: executables may be asked for while the process ends.
  static auto* mutex = new std::mutex();
  static auto* entries = new std::unordered_map<std::string, std::unique_ptr<Entry>>();
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(*mutex);
    auto& slot = (*entries)[fmt::format("{}:{}", device.index(), hash_text(text))];
    if (slot == nullptr) slot = std::make_unique<Entry>();
    entry = slot.get();
  }
  return entry->get(device, text);
}

}  // namespace graft
