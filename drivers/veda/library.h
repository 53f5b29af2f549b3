// drivers/veda/library.h: libveda, found at run time, and its errors in Graft's words.
#ifndef GRAFT_DRIVERS_VEDA_LIBRARY_H_
#define GRAFT_DRIVERS_VEDA_LIBRARY_H_

#include <string>

#include "api.h"
#include "graft/driver.h"

namespace graft::veda {

struct Api {
#define GRAFT_VEDA_FIELD(name, parameters) VEDAresult(*name) parameters;
  GRAFT_VEDA_FUNCTIONS(GRAFT_VEDA_FIELD, GRAFT_VEDA_FIELD)
#undef GRAFT_VEDA_FIELD
};

extern Api loaded_api;

// The functions. REQUIRES: load_library() returned OK.
inline const Api& veda() { return loaded_api; }

// Loads libveda (GRAFT_VEDA_LIBRARY, else libveda.so.0) at the first call. NOT_FOUND if there is
// none, VERSION_MISMATCH if it lacks functions, both with a text. Thread-safe.
graft_status load_library(std::string* out_problem);

// A call's result with the call's name.
struct Called {
  VEDAresult result;
  const char* function;

  bool ok() const { return result == VEDA_SUCCESS; }
  // "VEDA_ERROR_OUT_OF_BOUNDS in vedaMemcpyDtoDAsync".
  std::string text() const;
  // Graft's status for the result; otherwise where it says nothing more exact.
  graft_status status(graft_status otherwise) const;
};

// Calls a function of VEDA.
#define GRAFT_VEDA_CALL(name, ...) \
  ::graft::veda::Called { ::graft::veda::veda().name(__VA_ARGS__), "veda" #name }

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_LIBRARY_H_
