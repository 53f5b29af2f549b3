// tests/emulated/veda/request/settings.cpp: the settings of the emulated library, read from the
// environment.
#include "tests/emulated/veda/request/settings.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tests/emulated/veda/library/entry.h"

namespace emulated {
namespace {

[[noreturn]] void refuse(const char* name, const char* text, const char* expected) {
  std::fprintf(stderr, "emulated VEDA: %s is '%s'; expected %s\n", name, text, expected);
  throw Failure{VEDA_ERROR_INVALID_VALUE};
}

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

void read(const char* name, std::int64_t* value) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return;
  char* end = nullptr;
  *value = std::strtoll(text, &end, 10);
  const int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
  if (end == text || end[shift == 0 ? 0 : 1] != '\0' || *value < 0) {
    refuse(name, text, "a number that is not negative, with K, M or G after it or nothing");
  }
  *value <<= shift;
}

void read(const char* name, double* value) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return;
  char* end = nullptr;
  *value = std::string(text) == "none" ? std::nan("") : std::strtod(text, &end);
  if (end != nullptr && (end == text || *end != '\0')) refuse(name, text, "a number or none");
}

void read(const char* name, std::string* value) {
  if (const std::string text = variable(name); !text.empty()) *value = text;
}

}  // namespace

int Settings::device_architecture() const {
  const int own = model == "VE3" ? 3 : 1;
  if (architecture.empty()) return own;
  const int wanted = std::atoi(architecture.c_str());
  return wanted == 1 || wanted == own ? wanted : 0;
}

Settings read_settings() {
  Settings settings;
#define EMULATED_VEDA_READ(field, type, name, initial) read("EMULATED_VEDA_" name, &settings.field);
  EMULATED_VEDA_SETTINGS(EMULATED_VEDA_READ)
#undef EMULATED_VEDA_READ
  if (settings.model != "VE1" && settings.model != "VE2" && settings.model != "VE3") {
    refuse("EMULATED_VEDA_MODEL", settings.model.c_str(), "VE1, VE2 or VE3");
  }
  if (settings.cores < 1 || settings.cores > 64) {
    refuse("EMULATED_VEDA_CORES", std::to_string(settings.cores).c_str(), "1 to 64");
  }
  settings.visible_devices = variable("VEDA_VISIBLE_DEVICES");
  settings.node_list = variable("_VENODELIST");
  settings.node = variable("VE_NODE_NUMBER");
  settings.architecture = variable("VEDA_ARCH");
  settings.library_path = variable("VE_LD_LIBRARY_PATH");
  if (settings.library_path.empty()) settings.library_path = ".";
  settings.omp_threads = std::atoi(variable("VE_OMP_NUM_THREADS").c_str());
  settings.has_runner = std::getenv("VEORUN_BIN") != nullptr;
  return settings;
}

}  // namespace emulated
