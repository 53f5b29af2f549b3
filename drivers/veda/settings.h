// drivers/veda/settings.h: what the environment asks of the VEDA driver, read once.
#ifndef GRAFT_DRIVERS_VEDA_SETTINGS_H_
#define GRAFT_DRIVERS_VEDA_SETTINGS_H_

#include <string>

namespace graft::veda {

// One variable of the environment each; docs/use/settings.md describes them.
struct Settings {
  std::string library;    // GRAFT_VEDA_LIBRARY
  bool library_is_named;  // whether the environment named it
  std::string mode;       // GRAFT_VE_MODE: "omp" or "scalar", or what is neither
  std::string compiler;   // GRAFT_VE_CC: words of a command
  std::string link;       // GRAFT_VE_LINK: words with {cc}, {output} and {inputs}
};

// The settings of this process. Thread-safe.
const Settings& settings();

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_SETTINGS_H_
