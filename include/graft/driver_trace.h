/* include/graft/driver_trace.h: how a program that loads drivers puts the layer graft_trace.so,
 * which checks and logs every call, in front of one; optional.
 *
 * A program finds the functions by dlsym in the layer's library, or links the layer. It loads a
 * driver as always and calls graft_trace_front in the place of the driver's graft_driver_query:
 *
 *   graft_trace_front_function front = dlsym(layer, "graft_trace_front");
 *   front(query, "log=calls.json", &table, text, sizeof text);
 *
 * The layer stays there until the process ends. All functions are thread-safe. */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_DRIVER_TRACE_H_
#define GRAFT_DRIVER_TRACE_H_

#include "graft/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the place of behind(table): fills in the driver's table and puts the layer's slots before the
 * driver's. What behind answers comes back unchanged, also a refusal or a damaged table. settings:
 * as GRAFT_DRIVER_TRACE; "1" for all defaults. INVALID_ARGUMENT and a text, cut to capacity, if the
 * settings cannot be read, a file cannot be written or the process has too many drivers. */
typedef graft_status (*graft_trace_front_function)(graft_driver_query_function behind,
                                                   const char* settings, graft_driver_table* table,
                                                   char* out_text, size_t capacity);
GRAFT_DRIVER_EXPORT graft_status graft_trace_front(graft_driver_query_function behind,
                                                   const char* settings, graft_driver_table* table,
                                                   char* out_text, size_t capacity);

/* Who broke a rule. */
typedef enum graft_trace_culprit {
  GRAFT_TRACE_DRIVER = 0,
  GRAFT_TRACE_CALLER = 1 /* the program that calls the driver */
} graft_trace_culprit;

/* How many findings there are so far, and the first one's text, cut to capacity. culprit: a
 * graft_trace_culprit. */
GRAFT_DRIVER_EXPORT uint64_t graft_trace_findings(uint32_t culprit, char* out_text,
                                                  size_t capacity);

/* Prints the summaries and ends the logs, which the end of the process does otherwise. */
GRAFT_DRIVER_EXPORT void graft_trace_finish(void);

#ifdef __cplusplus
}
#endif

#endif /* GRAFT_DRIVER_TRACE_H_ */
