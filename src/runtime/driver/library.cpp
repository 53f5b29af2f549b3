// src/runtime/driver/library.cpp: one loaded driver: its library, its name and its table of slots.
#include "runtime/driver/library.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "graft/driver_trace.h"
#include "runtime/driver/error.h"
#include "runtime/driver/op_tag.h"
#include "runtime/driver/readable_text.h"

namespace graft {
namespace {

thread_local std::string thrown;  // what the last exception out of a slot said

std::string version_text(uint32_t major, uint32_t minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

[[noreturn]] void refuse(graft_status status, const std::string& path, const std::string& reason) {
  throw Error(status, "The driver '" + path + "' cannot be used: " + reason);
}

void check_path(const std::string& path) {
  if (path.empty() || path[0] != '/') {
    std::error_code ignored;
    const std::string absolute = std::filesystem::absolute(path, ignored).string();
    refuse(GRAFT_INVALID_ARGUMENT, path,
           "the path is relative; give an absolute path. Did you mean '" + absolute + "'?");
  }
  struct stat file;
  if (::stat(path.c_str(), &file) != 0) {
    refuse(GRAFT_NOT_FOUND, path,
           std::string("the file cannot be read (") + std::strerror(errno) +
               "). Check the path and its permissions.");
  }
  if (!S_ISREG(file.st_mode)) {
    refuse(GRAFT_INVALID_ARGUMENT, path, "the path is not a file. Name the driver's library.");
  }
}

graft_driver_query_function find_query(const std::string& path) {
  void* library = nullptr;
  try {
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  } catch (...) {
    refuse(GRAFT_INTERNAL, path,
           "the library threw a C++ exception while it was loaded. Ask its vendor.");
  }
  if (library == nullptr) {
    refuse(GRAFT_INVALID_ARGUMENT, path,
           std::string("the library does not load (") + ::dlerror() +
               "). Check that it was built for this machine, and install the libraries that it "
               "needs.");
  }
  void* symbol = ::dlsym(library, "graft_driver_query");
  if (symbol == nullptr) {
    refuse(GRAFT_INVALID_ARGUMENT, path,
           "the library exports no graft_driver_query, so it is no Graft driver, or hides its "
           "symbols: use GRAFT_DRIVER_EXPORT.");
  }
  return reinterpret_cast<graft_driver_query_function>(symbol);
}

// The table with room behind it, so that a driver that writes too far is found out.
struct Offer {
  graft_driver_table table;
  void* beyond[64];
};

constexpr size_t kSlotBytes = sizeof(void (*)());

void check_version(const std::string& path, graft_status status, const graft_driver_table& table) {
  const std::string ours = version_text(GRAFT_ABI_MAJOR, GRAFT_ABI_MINOR);
  const std::string theirs = version_text(table.abi_major, table.abi_minor);
  const std::string remedy =
      " Install a driver for ABI " + ours + ", or the Graft that this driver was made for.";
  if (status == GRAFT_VERSION_MISMATCH) {
    const bool told = table.abi_major != GRAFT_ABI_MAJOR;
    refuse(GRAFT_VERSION_MISMATCH, path,
           "the driver does not serve this Graft's ABI version " + ours +
               (told ? "; it speaks " + theirs + "." : " and does not name its version.") + remedy);
  }
  if (table.abi_major != GRAFT_ABI_MAJOR || table.abi_minor > GRAFT_ABI_MINOR) {
    refuse(GRAFT_VERSION_MISMATCH, path,
           "the driver speaks ABI " + theirs + ", this Graft " + ours + "." + remedy);
  }
}

void check_slots(const std::string& path, graft_driver_table& table) {
  if (table.slot_count > GRAFT_SLOT_COUNT) {
    refuse(GRAFT_INVALID_ARGUMENT, path,
           "the driver claims " + std::to_string(table.slot_count) + " slots, but Graft offered " +
               std::to_string(GRAFT_SLOT_COUNT) + ". Fill the table with graft_driver_fill.");
  }
  char* const slots = reinterpret_cast<char*>(&table) + GRAFT_TABLE_PRELUDE_BYTES;
  std::memset(slots + table.slot_count * kSlotBytes, 0,
              (GRAFT_SLOT_COUNT - table.slot_count) * kSlotBytes);
  std::string missing =
      missing_slots(table_facts<graft_driver_table>.slots, slots, table.slot_count);
#define GRAFT_NEEDS(given, needed)                                                            \
  if (table.given != nullptr && table.needed == nullptr) {                                    \
    missing += (missing.empty() ? "" : ", ") + std::string(#needed " (" #given " is given)"); \
  }
  GRAFT_NEEDS(host_allocate, host_free)
  GRAFT_NEEDS(program_compile, program_load)
  GRAFT_NEEDS(program_load, kernel_find)
  GRAFT_NEEDS(kernel_find, kernel_launch)
  GRAFT_NEEDS(kernel_launch, kernel_find)
  GRAFT_NEEDS(memory_export, memory_import)
  GRAFT_NEEDS(memory_export, memory_release)
#undef GRAFT_NEEDS
  if (!missing.empty()) {
    refuse(GRAFT_INVALID_ARGUMENT, path,
           "its table of " + std::to_string(table.slot_count) + " slots lacks required slots: " +
               missing + ". Ask its vendor for a repaired driver.");
  }
}

void check_name(const std::string& path, const char* name) {
  static constexpr char kAllowed[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  const size_t length = name == nullptr ? 0 : ::strnlen(name, 64);
  if (length == 0 || length > 32 || std::strspn(name, kAllowed) != length) {
    refuse(GRAFT_INVALID_ARGUMENT, path,
           "its name must have 1 to 32 letters, digits, '_' or '-', as GRAFT_DEVICES lists names.");
  }
}

// The layer's library: beside the folder of this one.
std::string layer_path() {
  Dl_info info = {};
  std::string path;
  if (::dladdr(reinterpret_cast<void*>(&version_text), &info) != 0) path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return (slash == std::string::npos ? "" : path.substr(0, slash + 1)) +
         "../drivers/graft_trace.so";
}

graft_trace_front_function find_front(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const front = library == nullptr ? nullptr : ::dlsym(library, "graft_trace_front");
  return reinterpret_cast<graft_trace_front_function>(front);
}

// The settings of GRAFT_DRIVER_TRACE; "" if there shall be no layer.
std::string trace_settings() {
  const char* const text = std::getenv("GRAFT_DRIVER_TRACE");
  const std::string settings = text == nullptr ? "" : text;
  return settings == "0" ? "" : settings;
}

// In the place of query(table): puts the layer in front of the driver at path, unless that is the
// layer itself.
graft_status query_traced(graft_driver_query_function query, const std::string& path,
                          const std::string& settings, graft_driver_table* table,
                          std::string* out_flaw) {
  if (find_front(path) != nullptr) return query(table);
  const std::string layer = layer_path();
  const graft_trace_front_function front = find_front(layer);
  if (front == nullptr) {
    *out_flaw = "GRAFT_DRIVER_TRACE is set, but its layer '" + layer +
                "' does not load. Install Graft again, or unset the variable.";
    return GRAFT_NOT_FOUND;
  }
  std::array<char, 1024> text{};
  const graft_status status = front(query, settings.c_str(), table, text.data(), text.size());
  if (status != GRAFT_OK) *out_flaw = text.data();
  return status;
}

}  // namespace

Driver::Driver(std::string path, const graft_driver_table& table)
    : name_(table.name), path_(std::move(path)), table_(table) {}

std::unique_ptr<Driver> Driver::load(const std::string& absolute_path) {
  check_path(absolute_path);
  return take(find_query(absolute_path), absolute_path, trace_settings());
}

std::unique_ptr<Driver> Driver::adopt(graft_driver_query_function query, const std::string& path) {
  return take(query, path, "");
}

std::unique_ptr<Driver> Driver::take(graft_driver_query_function query, const std::string& path,
                                     const std::string& trace) {
  Offer offer{};
  offer.table.abi_major = GRAFT_ABI_MAJOR;
  offer.table.abi_minor = GRAFT_ABI_MINOR;
  offer.table.slot_count = GRAFT_SLOT_COUNT;
  std::string flaw;
  const graft_status status =
      trace.empty() ? call_locked(query, &offer.table)
                    : call_locked(query_traced, query, path, trace, &offer.table, &flaw);
  if (!flaw.empty()) refuse(status, path, flaw);
  for (const void* word : offer.beyond) {
    if (word != nullptr) {
      refuse(GRAFT_INVALID_ARGUMENT, path,
             "the driver wrote past Graft's table. Fill the table with graft_driver_fill.");
    }
  }
  if (status != GRAFT_OK && status != GRAFT_VERSION_MISMATCH) {
    const std::string why = thrown.empty() ? status_text(status) : std::exchange(thrown, {});
    refuse(status, path,
           std::string("graft_driver_query returned ") + status_name(status) + " (" + why +
               "). Ask its vendor.");
  }
  check_version(path, status, offer.table);
  check_slots(path, offer.table);
  check_name(path, offer.table.name);
  return std::unique_ptr<Driver>(new Driver(path, offer.table));
}

graft_status Driver::caught() noexcept {
  try {
    thrown = "the driver threw an object that is no std::exception";
    throw;
  } catch (const std::exception& exception) {
    try {
      thrown = "the driver threw a C++ exception: " + readable(exception.what());
    } catch (...) {
    }
  } catch (...) {
  }
  return GRAFT_INTERNAL;
}

std::string Driver::current_op() { return op_name(current_tag()); }

std::string Driver::message(graft_status status) const {
  if (status == GRAFT_INTERNAL && !thrown.empty()) return std::exchange(thrown, {});
  std::string words = last_words();
  return words.empty() ? status_text(status) : words;
}

std::string Driver::last_words() const {
  std::vector<char> text(16384, '\0');
  if (table_.last_message == nullptr ||
      call_locked(table_.last_message, text.data(), text.size()) != GRAFT_OK) {
    return "";
  }
  text.back() = '\0';
  return readable(text.data());
}

void Driver::fail(graft_status status, std::string_view what, std::string_view device,
                  std::string_view op) const {
  const std::string says = message(status);
  std::string text(op.empty() ? what : op);
  text += " failed";
  if (!device.empty()) text += " on " + std::string(device);
  text += " (driver '" + name_ + "'): ";
  if (!op.empty()) text += std::string(what) + ": ";
  const std::string name = status_name(status);
  if (name == "UNKNOWN_STATUS") {
    text += "the driver returned the status " + std::to_string(static_cast<int>(status)) + ", ";
    status = GRAFT_INTERNAL;
  } else {
    text += name + ": ";
  }
  throw Error(status, text + says);
}

const Driver::Extension& Driver::find_extension(const TableFacts& facts) const {
  const std::lock_guard lock(mutex_);
  const auto found = extensions_.find(facts.name);
  if (found != extensions_.end()) return found->second;
  Extension extension;
  const std::string problem = take_extension(facts, &extension);
  if (!problem.empty()) {
    extension.refusal = "its driver's " + std::string(facts.name) + " is refused: " + problem;
    std::fprintf(stderr,
                 "graft: warning: the driver '%s' (%s) works without its extension %s: %s. Ask "
                 "its vendor for a repaired driver.\n",
                 name_.c_str(), path_.c_str(), facts.name, problem.c_str());
  }
  return extensions_.emplace(facts.name, std::move(extension)).first->second;
}

// Copies what both sides know of the driver's table, or says what is wrong with it.
std::string Driver::take_extension(const TableFacts& facts, Extension* out) const {
  const void* table = nullptr;
  const graft_status status =
      table_.extension == nullptr
          ? GRAFT_NOT_FOUND
          : call_locked(table_.extension, facts.name, facts.version, &table);
  if (status == GRAFT_NOT_FOUND || status == GRAFT_UNSUPPORTED) return "";
  if (status != GRAFT_OK) {
    return std::string("extension returned ") + status_name(status) + " (" + message(status) + ")";
  }
  std::string fault = fault_of(facts, table);
  if (!fault.empty()) return fault;
  const auto ours = static_cast<uint32_t>(facts.slots.size());
  const uint32_t known = std::min(ours, *static_cast<const uint32_t*>(table));
  out->table = std::make_unique<std::byte[]>(GRAFT_EXTENSION_PRELUDE_BYTES + ours * kSlotBytes);
  std::memcpy(out->table.get(), table, GRAFT_EXTENSION_PRELUDE_BYTES + known * kSlotBytes);
  std::memcpy(out->table.get(), &known, sizeof known);
  return "";
}

}  // namespace graft
