/* include/graft/driver.h: the driver ABI, the one header that a hardware vendor includes.
 *
 * A driver is a shared library that exports one symbol, graft_driver_query, which fills a table of
 * functions ("slots"). It includes this header and its vendor's SDK, nothing else of Graft.
 *
 * Rules that hold for every slot
 *  1. Ownership. The driver owns each handle (graft_device, graft_stream, ...); Graft returns it
 *     exactly once, through the slot that destroys it. The caller owns memory passed to a slot; the
 *     slot reads or writes that memory during the call only, unless its contract says otherwise.
 *  2. Errors. Every slot returns a graft_status. Nothing throws, aborts or exits across this
 *     boundary. A failed call leaves its out_ parameters untouched. last_message describes
 *     the calling thread's last failure.
 *  3. Late errors. A command that fails after its slot returned GRAFT_OK fails its stream: the next
 *     stream_synchronize, stream_query or event_synchronize of that stream returns the status once,
 *     then the stream works again. GRAFT_DEVICE_LOST stays until device_reset. A failed command
 *     counts as done.
 *  4. Threads. Slots on different streams may be called at once. Graft serialises the calls on one
 *     stream. A kernel may be launched from several threads. No slot may take Python's lock.
 *  5. Units. Sizes are bytes, times nanoseconds, indices start at 0. Strings are UTF-8, end in a
 *     zero byte and are borrowed for the call; strings in the table live as long as the driver.
 *  6. Addresses. A device address is a plain 64-bit number. Arithmetic inside one allocation is
 *     legal, so a slot must accept any address inside an allocation. 0 is never a valid address.
 *  7. Sizes of 0. copy and fill of 0 bytes succeed and do nothing. Nothing allocates 0 bytes.
 *  8. Growth. Structs that may grow begin with struct_size, set by the caller to the size that it
 *     knows; the callee touches no byte beyond it. A newer minor adds slots at the list's end only.
 */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_DRIVER_H_
#define GRAFT_DRIVER_H_

#include <stddef.h>
#include <stdint.h>

#include "graft/device_facts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Two majors never work together. A newer minor adds slots at the end of the list. */
#define GRAFT_ABI_MAJOR 0u
#define GRAFT_ABI_MINOR 5u

#if defined(_WIN32)
#define GRAFT_DRIVER_EXPORT __declspec(dllexport)
#else
#define GRAFT_DRIVER_EXPORT __attribute__((visibility("default")))
#endif

/* Results of slots. STATUS(name, value, text); the numbers never change. */
#define GRAFT_STATUSES(STATUS)                                                      \
  STATUS(OK, 0, "success")                                                          \
  /* Not an error: the queried event or stream has unfinished commands. */          \
  STATUS(BUSY, 1, "work is still running")                                          \
  STATUS(OUT_OF_MEMORY, 2, "the device is out of memory")                           \
  /* Every later call on the device returns this too. */                            \
  STATUS(DEVICE_LOST, 3, "the device is lost")                                      \
  STATUS(UNSUPPORTED, 4, "the driver does not support this")                        \
  STATUS(INVALID_ARGUMENT, 5, "invalid argument")                                   \
  STATUS(COMPILE_ERROR, 6, "the device compiler rejected the program")              \
  STATUS(NOT_FOUND, 7, "no such kernel, device or extension")                       \
  STATUS(IO, 8, "reading or writing a file failed")                                 \
  STATUS(LAUNCH_FAILED, 9, "a kernel failed to launch or to finish")                \
  STATUS(TIMEOUT, 10, "the device did not answer in time")                          \
  STATUS(VERSION_MISMATCH, 11, "the driver and Graft speak different ABI versions") \
  STATUS(INTERNAL, 12, "internal error of the driver")

#define GRAFT_ENUMERATE(name, value, text) GRAFT_##name = value,
typedef enum graft_status { GRAFT_STATUSES(GRAFT_ENUMERATE) } graft_status;
#undef GRAFT_ENUMERATE

/* Element types. DTYPE(name, value, bytes, text); text is the name in messages and kernel keys.
 * PyTorch's float8 types reach a driver as UINT8. */
#define GRAFT_DTYPES(DTYPE)            \
  DTYPE(BOOL, 0, 1, "bool")            \
  DTYPE(UINT8, 1, 1, "uint8")          \
  DTYPE(INT8, 2, 1, "int8")            \
  DTYPE(INT16, 3, 2, "int16")          \
  DTYPE(INT32, 4, 4, "int32")          \
  DTYPE(INT64, 5, 8, "int64")          \
  DTYPE(FLOAT16, 6, 2, "float16")      \
  DTYPE(BFLOAT16, 7, 2, "bfloat16")    \
  DTYPE(FLOAT32, 8, 4, "float32")      \
  DTYPE(FLOAT64, 9, 8, "float64")      \
  DTYPE(COMPLEX64, 10, 8, "complex64") \
  DTYPE(COMPLEX128, 11, 16, "complex128")

#define GRAFT_ENUMERATE(name, value, bytes, text) GRAFT_##name = value,
typedef enum graft_dtype { GRAFT_DTYPES(GRAFT_ENUMERATE) } graft_dtype;
#undef GRAFT_ENUMERATE

/* Opaque handles; each driver defines the structs behind them. */
typedef struct graft_device_s* graft_device;
typedef struct graft_stream_s* graft_stream;
typedef struct graft_event_s* graft_event;
typedef struct graft_program_s* graft_program;
typedef struct graft_kernel_s* graft_kernel;

/* An address in device memory, see rule 6. */
typedef uint64_t graft_address;

/* Bytes of memory_export's handle; only the driver reads them, in another process. */
#define GRAFT_MEMORY_HANDLE_BYTES 128

typedef enum graft_copy_kind {
  GRAFT_HOST_TO_DEVICE = 0,
  GRAFT_DEVICE_TO_HOST = 1,
  GRAFT_DEVICE_TO_DEVICE = 2 /* both addresses on the stream's device; ranges do not overlap */
} graft_copy_kind;

/* A copy of rows: row_bytes at to + i * to_strides[0] + j * to_strides[1] + k * to_strides[2] for
 * each i < counts[0], j < counts[1], k < counts[2], from the same place of from. Counts are at
 * least 1, strides are bytes; rows of to do not overlap. */
typedef struct graft_strided_copy {
  uint32_t struct_size;
  uint32_t kind; /* graft_copy_kind */
  uint64_t to;
  uint64_t from;
  uint64_t row_bytes; /* at least 1 */
  uint64_t counts[3];
  uint64_t to_strides[3];
  uint64_t from_strides[3];
} graft_strided_copy;

/* One argument of a kernel launch. */
typedef enum graft_argument_kind {
  GRAFT_ARGUMENT_ADDRESS = 0, /* value: the address; bytes: extent that the kernel may touch */
  GRAFT_ARGUMENT_SCALAR = 1,  /* value: the bits, in the low bytes; bytes: size of its dtype */
  GRAFT_ARGUMENT_LOCAL = 2    /* bytes: local memory that each group gets */
} graft_argument_kind;

#define GRAFT_ACCESS_READ 1u
#define GRAFT_ACCESS_WRITE 2u

typedef struct graft_argument {
  uint16_t kind;   /* graft_argument_kind */
  uint8_t dtype;   /* SCALAR: graft_dtype */
  uint8_t access;  /* ADDRESS: GRAFT_ACCESS_ bits */
  uint32_t unused; /* 0 */
  uint64_t value;
  uint64_t bytes;
} graft_argument;

/* One launch: grid groups of group work-items. A CPU-like device has group 1, 1, 1. */
typedef struct graft_launch {
  uint32_t struct_size;
  uint32_t tag; /* the launch's operator; stream_error reports it */
  uint64_t grid[3];
  uint32_t group[3];
  uint32_t argument_count;
  const graft_argument* arguments;
} graft_launch;

/* Takes bytes from a slot, which calls write any number of times, in order. */
typedef struct graft_sink {
  void* context;
  void (*write)(void* context, const void* data, size_t bytes);
} graft_sink;

/* The slots. SLOT(presence, name, parameters): the comment above each is its contract. The
 * order is the layout of the table and never changes. An OPTIONAL slot may be NULL: Default: says
 * what Graft then does. A slot writes out_ parameters only if it returns GRAFT_OK. */
#define GRAFT_DRIVER_SLOTS(SLOT)                                                                 \
  /* Number of devices. Opens nothing and starts no thread. If 0, last_message may say what the  \
   * driver looked for, and where. */                                                            \
  SLOT(REQUIRED, device_count, (uint32_t * out_count))                                           \
  /* Fills in the properties of device ordinal without opening it. NOT_FOUND if it does not      \
   * exist. */                                                                                   \
  SLOT(REQUIRED, device_properties, (uint32_t ordinal, graft_device_properties * properties))    \
  /* Opens a device. Graft calls this once per ordinal and process, before any slot that takes   \
   * the device. */                                                                              \
  SLOT(REQUIRED, device_open, (uint32_t ordinal, graft_device * out_device))                     \
  /* Closes a device whose streams, events and memory are gone. Its programs, plans, graphs and  \
   * groups end with it; host_allocate's memory that was not freed stays readable. If a command  \
   * never ends, the process exits without this call. */                                         \
  SLOT(REQUIRED, device_close, (graft_device device))                                            \
  /* Allocates at least bytes > 0 of device memory. OUT_OF_MEMORY leaves the device usable. */   \
  SLOT(REQUIRED, memory_allocate, (graft_device device, uint64_t bytes, graft_address * out))    \
  /* Frees an address from memory_allocate; no unfinished command uses it. */                    \
  SLOT(REQUIRED, memory_free, (graft_device device, graft_address address))                      \
  /* Creates a queue of commands that run in order. priority is within the properties' range. */ \
  SLOT(REQUIRED, stream_create, (graft_device device, int32_t priority, graft_stream * out))     \
  /* Waits for the stream's commands, then destroys the stream. */                               \
  SLOT(REQUIRED, stream_destroy, (graft_stream stream))                                          \
  /* Waits until every earlier command is done; returns a late error once (rule 3). */           \
  SLOT(REQUIRED, stream_synchronize, (graft_stream stream))                                      \
  /* Queues a copy; host memory stays valid until the copy is done. kind: graft_copy_kind. */    \
  SLOT(REQUIRED, copy,                                                                           \
       (graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,          \
        uint32_t tag))                                                                           \
  /* Queues a fill with a pattern of 1, 2, 4, 8 or 16 bytes, which the slot copies. */           \
  SLOT(REQUIRED, fill,                                                                           \
       (graft_stream stream, graft_address to, uint64_t bytes, const void* pattern,              \
        uint32_t pattern_bytes, uint32_t tag))                                                   \
  /* Creates an event; timed is 1 if event_elapsed will take it. An unrecorded event is done. */ \
  SLOT(REQUIRED, event_create, (graft_device device, uint32_t timed, graft_event * out))         \
  /* Destroys an event, which may still be pending. */                                           \
  SLOT(REQUIRED, event_destroy, (graft_event event))                                             \
  /* Sets the event's mark after the stream's earlier commands; replaces the previous mark. */   \
  SLOT(REQUIRED, event_record, (graft_event event, graft_stream stream))                         \
  /* OK if the mark is passed or was never set, else BUSY. Never blocks. Repeated calls alone    \
   * must let the commands before the mark finish. */                                            \
  SLOT(REQUIRED, event_query, (graft_event event))                                               \
  /* The text of the calling thread's last failure, cut to capacity and ended by a zero byte.    \
   * Default: the text of the status. */                                                         \
  SLOT(OPTIONAL, last_message, (char* out_text, size_t capacity))                                \
  /* Finds an extension's table ("graft.blas", version 1), which lives as long as the driver:    \
   * see graft/extensions.h. NOT_FOUND if the driver lacks it. Default: no extensions. */        \
  SLOT(OPTIONAL, extension, (const char* name, uint32_t version, const void** out_table))        \
  /* OK if the stream is idle, else BUSY; returns a late error once (rule 3). Repeated calls let \
   * commands finish, as event_query does. Default: Graft records and queries an event. */       \
  SLOT(OPTIONAL, stream_query, (graft_stream stream))                                            \
  /* Later commands of stream run after the event's mark. Stream and event belong to one driver. \
   * An error of the recorded stream also fails stream. Default: Graft waits on the host. */     \
  SLOT(OPTIONAL, stream_wait_event, (graft_stream stream, graft_event event))                    \
  /* Reports the stream's last late error: the failed command's tag and a text, as last_message. \
   * Default: tag 0 and the text of the status. */                                               \
  SLOT(OPTIONAL, stream_error,                                                                   \
       (graft_stream stream, uint32_t * out_tag, char* out_text, size_t capacity))               \
  /* The vendor's handle (cl_command_queue, CUstream); the driver owns it. Default: none. */     \
  SLOT(OPTIONAL, stream_native_handle, (graft_stream stream, uint64_t * out_handle))             \
  /* Waits until the mark is passed. Default: event_query with growing pauses. */                \
  SLOT(OPTIONAL, event_synchronize, (graft_event event))                                         \
  /* Time between two passed marks. BUSY if one is not passed. Default: no timing. */            \
  SLOT(OPTIONAL, event_elapsed, (graft_event start, graft_event end, int64_t * out_ns))          \
  /* Free and total memory now. Default: total from the properties less what Graft holds. */     \
  SLOT(OPTIONAL, memory_info, (graft_device device, uint64_t * out_free, uint64_t * out_total))  \
  /* Allocates pinned host memory, copied without staging. Default: pageable memory. */          \
  SLOT(OPTIONAL, host_allocate, (graft_device device, uint64_t bytes, void** out_pointer))       \
  /* Frees host_allocate's memory. Required with host_allocate. */                               \
  SLOT(OPTIONAL, host_free, (graft_device device, void* pointer))                                \
  /* Queues a copy on a stream of the device that owns to; from_device, of this driver, owns     \
   * from. Default: two copies through pinned host memory. */                                    \
  SLOT(OPTIONAL, peer_copy,                                                                      \
       (graft_stream stream, graft_address to, graft_device from_device, graft_address from,     \
        uint64_t bytes, uint32_t tag))                                                           \
  /* A host pointer to the same bytes, valid until the memory is freed. The caller orders its    \
   * accesses with the streams. UNSUPPORTED if the host cannot see this device's memory.         \
   * Default: copies. */                                                                         \
  SLOT(OPTIONAL, memory_host_view,                                                               \
       (graft_device device, graft_address address, uint64_t bytes, void** out_pointer))         \
  /* Calls function(context) on any thread after the earlier commands; later commands wait for   \
   * its return. function calls no slots. Default: Graft waits, then calls function. */          \
  SLOT(OPTIONAL, host_callback,                                                                  \
       (graft_stream stream, void (*function)(void* context), void* context))                    \
  /* Compiles source in the device's dialect to a blob for program_load, also in another process \
   * with the same toolchain. COMPILE_ERROR: last_message is the compiler's log. UNSUPPORTED if  \
   * there is no compiler. Default: no compiler. */                                              \
  SLOT(OPTIONAL, program_compile,                                                                \
       (graft_device device, const char* source, size_t source_bytes, const char* options,       \
        graft_sink blob))                                                                        \
  /* Loads a blob, of which the driver keeps a copy. INVALID_ARGUMENT if the blob is damaged. */ \
  SLOT(OPTIONAL, program_load,                                                                   \
       (graft_device device, const void* blob, size_t bytes, graft_program* out_program))        \
  /* Unloads a program and its kernels, none of which runs. */                                   \
  SLOT(OPTIONAL, program_unload, (graft_program program))                                        \
  /* Names what a blob depends on (compiler, driver, processor), for Graft's cache key. Default: \
   * Graft keeps blobs in this process only. */                                                  \
  SLOT(OPTIONAL, toolchain_fingerprint, (graft_device device, graft_sink text))                  \
  /* Finds a kernel by name in a program, or in the driver's pack if program is NULL. NOT_FOUND  \
   * if there is none. The kernel lives as long as its program. Default: none. */                \
  SLOT(OPTIONAL, kernel_find,                                                                    \
       (graft_device device, graft_program program, const char* name, graft_kernel* out))        \
  /* Queues a launch; the slot copies the arguments. Default: the device runs no kernels. */     \
  SLOT(OPTIONAL, kernel_launch,                                                                  \
       (graft_stream stream, graft_kernel kernel, const graft_launch* launch))                   \
  /* Writes GRAFT_MEMORY_HANDLE_BYTES by which other processes of this machine import the        \
   * allocation around address, and where it begins. Graft frees the allocation after every      \
   * importer has released it. Default: Graft sends tensors to other processes through host      \
   * memory. */                                                                                  \
  SLOT(OPTIONAL, memory_export,                                                                  \
       (graft_device device, graft_address address, uint8_t * out_handle,                        \
        graft_address * out_begin))                                                              \
  /* Maps a handle's allocation here; device has the exporting device's ordinal. The mapping     \
   * outlives the exporter; NOT_FOUND if the exporter has already exited. Required with          \
   * memory_export. */                                                                           \
  SLOT(OPTIONAL, memory_import,                                                                  \
       (graft_device device, const uint8_t* handle, graft_address* out_address))                 \
  /* Unmaps memory_import's address, which no command uses. Required with memory_export. */      \
  SLOT(OPTIONAL, memory_release, (graft_device device, graft_address address))                   \
  /* As stream_synchronize, but BUSY if commands are left after timeout_ns, which may be 0.      \
   * Graft waits only by this slot and the next, so that Ctrl-C and GRAFT_TIMEOUT end each wait. \
   * Since 0.3. Default: stream_query, with pauses. */                                           \
  SLOT(OPTIONAL, stream_synchronize_within, (graft_stream stream, uint64_t timeout_ns))          \
  /* As event_synchronize, with this timeout. Since 0.3. Default: event_query, with pauses. */   \
  SLOT(OPTIONAL, event_synchronize_within, (graft_event event, uint64_t timeout_ns))             \
  /* Reads a graft_sensor of the device, in its unit. NOT_FOUND if the device lacks it. Waits    \
   * for no command. Since 0.4. Default: no sensors. */                                          \
  SLOT(OPTIONAL, device_sensor, (graft_device device, uint32_t sensor, int64_t * out_value))     \
  /* Fills in the identity of device ordinal without opening it; what the driver does not know   \
   * stays as it is. NOT_FOUND if the device does not exist. Since 0.5. Default: nothing is      \
   * known. */                                                                                   \
  SLOT(OPTIONAL, device_identity, (uint32_t ordinal, graft_device_identity * identity))          \
  /* Brings device ordinal, which is closed, back to its first state, whatever happened to it.   \
   * After DEVICE_LOST Graft destroys what it has of the device, calls this and opens it again.  \
   * UNSUPPORTED if it cannot come back. Since 0.5. Default: a lost device stays lost until the  \
   * process ends. */                                                                            \
  SLOT(OPTIONAL, device_reset, (uint32_t ordinal))                                               \
  /* Makes a stream of a vendor's handle of the device, of the kind that stream_native_handle    \
   * gives. Its owner keeps the handle valid until stream_destroy, which waits for the commands, \
   * and leaves the handle as it is. INVALID_ARGUMENT if it is no such handle, as far as the     \
   * driver can see. Since 0.5. Default: Graft takes no streams of others. */                    \
  SLOT(OPTIONAL, stream_wrap, (graft_device device, uint64_t native_handle, graft_stream * out)) \
  /* Fills in how bytes get from device ordinal from to device ordinal to of this driver,        \
   * without opening them. NOT_FOUND if one does not exist. Since 0.5. Default: peer_copy serves \
   * all pairs. */                                                                               \
  SLOT(OPTIONAL, device_link, (uint32_t from, uint32_t to, graft_device_link * link))            \
  /* Queues a copy of rows, which reads copy during the call; host memory stays valid until it   \
   * is done. UNSUPPORTED for a copy that the driver would do no faster than Graft: it then      \
   * packs the rows and calls copy. Since 0.5. Default: Graft packs the rows. */                 \
  SLOT(OPTIONAL, copy_strided,                                                                   \
       (graft_stream stream, const graft_strided_copy* copy, uint32_t tag))                      \
  /* Reserves addresses without memory, bytes being a multiple of map_granularity. OUT_OF_MEMORY \
   * if there are none. Graft uses this and the next three if PyTorch's allocator setting has    \
   * expandable_segments. Since 0.5. Default: memory_allocate. */                                \
  SLOT(OPTIONAL, memory_reserve, (graft_device device, uint64_t bytes, graft_address * out))     \
  /* Puts memory behind bytes of reserved addresses that have none. Ranges mapped side by side   \
   * count as one allocation (rule 6), for which memory_export may return UNSUPPORTED.           \
   * OUT_OF_MEMORY leaves the device usable. Required with memory_reserve. Since 0.5. */         \
  SLOT(OPTIONAL, memory_map, (graft_device device, graft_address address, uint64_t bytes))       \
  /* Takes the memory of mapped addresses away, which no unfinished command uses; the addresses  \
   * stay reserved. The range may be a part of what memory_map got, or several. Required with    \
   * memory_reserve. Since 0.5. */                                                               \
  SLOT(OPTIONAL, memory_unmap, (graft_device device, graft_address address, uint64_t bytes))     \
  /* Gives memory_reserve's addresses back, of which none is mapped. Required with               \
   * memory_reserve. Since 0.5. */                                                               \
  SLOT(OPTIONAL, memory_unreserve, (graft_device device, graft_address address))

/* The table. Graft sets abi_major, abi_minor and slot_count to its own values and calls
 * graft_driver_query. The driver fills the slots that both know, and sets the three to match. */
#define GRAFT_DECLARE_SLOT(presence, name, parameters) graft_status(*name) parameters;
typedef struct graft_driver_table {
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t slot_count;
  uint32_t unused;
  const char* name; /* short and unique, such as "host"; names the driver in GRAFT_DEVICES */
  GRAFT_DRIVER_SLOTS(GRAFT_DECLARE_SLOT)
} graft_driver_table;

#define GRAFT_COUNT_SLOT(presence, name, parameters) +1u
#define GRAFT_COUNT_SLOTS(SLOTS) (0u SLOTS(GRAFT_COUNT_SLOT))
#define GRAFT_SLOT_COUNT GRAFT_COUNT_SLOTS(GRAFT_DRIVER_SLOTS)
#define GRAFT_TABLE_PRELUDE_BYTES offsetof(graft_driver_table, device_count)

GRAFT_STATIC_ASSERT(sizeof(void (*)(void)) == 8, "the ABI is for 64-bit machines");
GRAFT_STATIC_ASSERT(offsetof(graft_driver_table, name) == 16, "the table's prelude is frozen");
GRAFT_STATIC_ASSERT(GRAFT_TABLE_PRELUDE_BYTES == 24, "the table's prelude is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_driver_table) == 24 + 8 * GRAFT_SLOT_COUNT, "slots are dense");
GRAFT_STATIC_ASSERT(sizeof(graft_argument) == 24, "the argument's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_launch) == 56, "the launch's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_strided_copy) == 104, "the strided copy's layout is frozen");

/* The one exported symbol: fills table, as described above, and starts nothing. VERSION_MISMATCH
 * if the driver does not serve table's major. Graft calls it once, before any slot. */
typedef graft_status (*graft_driver_query_function)(graft_driver_table* table);
GRAFT_DRIVER_EXPORT graft_status graft_driver_query(graft_driver_table* table);

/* Copies the driver's table, mine, into Graft's: the slots that both know, under the older minor.
 * VERSION_MISMATCH if the majors differ. Most drivers' graft_driver_query is this call. */
static inline graft_status graft_driver_fill(graft_driver_table* table,
                                             const graft_driver_table* mine) {
  const char* from = (const char*)mine;
  char* to = (char*)table;
  uint32_t slots = table->slot_count < mine->slot_count ? table->slot_count : mine->slot_count;
  size_t bytes = GRAFT_TABLE_PRELUDE_BYTES + sizeof(void (*)(void)) * (size_t)slots;
  if (table->abi_major != mine->abi_major) return GRAFT_VERSION_MISMATCH;
  uint32_t minor = table->abi_minor < mine->abi_minor ? table->abi_minor : mine->abi_minor;
  for (size_t i = 0; i < bytes; ++i) to[i] = from[i];
  table->abi_minor = minor;
  table->slot_count = slots;
  return GRAFT_OK;
}

/* First fields of a driver's own table: static const graft_driver_table t = {GRAFT_PRELUDE("x"), */
#define GRAFT_PRELUDE(driver_name) \
  GRAFT_ABI_MAJOR, GRAFT_ABI_MINOR, GRAFT_SLOT_COUNT, 0u, driver_name

#ifdef __cplusplus
}
#endif

/* ---- Dialect "c" ------------------------------------------------------------------------------
 * A kernel is void name(const graft_kernel_argument* arguments, uint64_t begin, uint64_t end) with
 * C linkage: it runs the work-items begin <= i < end of grid[0] (grid[1] and grid[2] are 1), and
 * may be called from several threads with disjoint ranges. */
typedef union graft_kernel_argument {
  void* address;
  uint64_t bits; /* SCALAR: the value, in the low bytes */
} graft_kernel_argument;

#endif /* GRAFT_DRIVER_H_ */
