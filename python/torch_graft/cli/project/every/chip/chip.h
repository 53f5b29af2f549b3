/* chip/chip.h: the programming interface of the emulated chip, in the form of a vendor's SDK.
 *
 * For the real chip: delete the folder chip/, include the header of its SDK instead of this one,
 * and replace each call of a chip_ function in driver/ by the SDK's. Each call here has its
 * counterpart in an SDK: memory, queues, fences, launches.
 *
 * A queue runs its commands one by one, in order, on a thread that stands for the chip. A command
 * returns at once. If a command fails later, the queue keeps its error and goes on.
 * All functions are thread-safe; commands of one queue come from one thread at a time. */
#ifndef ACME_CHIP_CHIP_H_
#define ACME_CHIP_CHIP_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct chip chip;
typedef struct chip_queue chip_queue;
typedef struct chip_fence chip_fence;

#define CHIP_MEMORY_BYTES (UINT64_C(4) << 30)
#define CHIP_ALIGNMENT UINT64_C(4096)
#define CHIP_FOREVER UINT64_MAX

typedef enum chip_status {
  CHIP_OK = 0,
  CHIP_BUSY = 1,        /* commands are left */
  CHIP_NO_MEMORY = 2,   /* of the chip or of the host */
  CHIP_BAD_ADDRESS = 3, /* a range that is not inside one allocation */
  CHIP_PLANTED = 4      /* a fault that ACME_FAULT asks for */
} chip_status;

/* The error of a command that failed after its call returned. */
typedef struct chip_error {
  chip_status status; /* CHIP_OK: there is none */
  uint32_t label;     /* the command's */
  char text[160];
} chip_error;

/* ---- Chips ---- */

/* The number of chips: ACME_CHIPS, or 1. */
uint32_t chip_count(void);
/* Opens chip number < chip_count(). CHIP_NO_MEMORY if the host has no address space left. */
chip_status chip_open(uint32_t number, chip** out);
/* Closes a chip whose queues are gone, with its memory. */
void chip_close(chip* self);

/* ---- Memory ----
 * A device address is a number of the chip's address space, no pointer of the host. */

/* Allocates bytes > 0, aligned to CHIP_ALIGNMENT. */
chip_status chip_memory_allocate(chip* self, uint64_t bytes, uint64_t* out_address);
/* CHIP_BAD_ADDRESS if no allocation begins there. */
chip_status chip_memory_free(chip* self, uint64_t address);
/* The bytes that are not allocated. */
uint64_t chip_memory_left(chip* self);

/* ---- Queues ---- */

/* Makes a queue, with its thread. */
chip_status chip_queue_create(chip* self, chip_queue** out);
/* Waits for the commands, then ends the queue. */
void chip_queue_destroy(chip_queue* self);
/* Waits until the commands are done; CHIP_BUSY if some are left after timeout_ns. */
chip_status chip_queue_wait(chip_queue* self, uint64_t timeout_ns);
/* Takes the queue's first error since the last call, status CHIP_OK if there is none. */
chip_error chip_queue_take_error(chip_queue* self);
/* The error that was taken last. */
chip_error chip_queue_last_error(chip_queue* self);

/* ---- Commands ----
 * label comes back with the error. Host memory stays valid until the command is done. All return
 * CHIP_OK, or CHIP_NO_MEMORY if the command was not queued. */

chip_status chip_copy_in(chip_queue* self, uint64_t to, const void* from, uint64_t bytes,
                         uint32_t label);
chip_status chip_copy_out(chip_queue* self, void* to, uint64_t from, uint64_t bytes,
                          uint32_t label);
chip_status chip_copy_within(chip_queue* self, uint64_t to, uint64_t from, uint64_t bytes,
                             uint32_t label);
/* pattern_bytes <= 16; the pattern is copied. */
chip_status chip_fill(chip_queue* self, uint64_t to, uint64_t bytes, const void* pattern,
                      uint32_t pattern_bytes, uint32_t label);

/* What a kernel gets: a host-visible pointer to the chip's memory, or the bits of a number. */
typedef union chip_word {
  void* address;
  uint64_t bits;
} chip_word;

/* A kernel runs the work-items begin <= i < end. */
typedef void (*chip_kernel)(const chip_word* words, uint64_t begin, uint64_t end);

typedef enum chip_argument_kind {
  CHIP_ADDRESS = 0,  /* value: a device address, or 0; bytes: what the kernel may touch */
  CHIP_NUMBER = 1,   /* value: the bits */
  CHIP_CONSTANTS = 2 /* value: a host pointer to bytes, which the call copies */
} chip_argument_kind;

typedef struct chip_argument {
  chip_argument_kind kind;
  uint64_t value;
  uint64_t bytes;
} chip_argument;

/* Runs items work-items of a kernel. The arguments are copied. */
chip_status chip_launch(chip_queue* self, chip_kernel kernel, uint64_t items,
                        const chip_argument* arguments, uint32_t count, uint32_t label);

/* Calls function(context) on the queue's thread; later commands wait for its return. */
chip_status chip_call(chip_queue* self, void (*function)(void* context), void* context);

/* ---- Fences ----
 * A fence is passed once the commands before its signal are done. Its holders share it. */

chip_status chip_fence_create(chip_fence** out);
void chip_fence_retain(chip_fence* self);
void chip_fence_release(chip_fence* self);
/* Queues the fence's signal, once for each fence. */
chip_status chip_signal(chip_queue* self, chip_fence* fence);
/* The queue's later commands run after the signal. An error that the fence carries becomes the
 * queue's. */
chip_status chip_await(chip_queue* self, chip_fence* fence);
/* Waits for the signal; CHIP_BUSY if it has not come after timeout_ns. */
chip_status chip_fence_wait(chip_fence* self, uint64_t timeout_ns);
/* When the fence was passed, in nanoseconds. REQUIRES: it is passed. */
int64_t chip_fence_time(chip_fence* self);
/* chip_queue_take_error of the queue that signalled the fence, if that had an error at the signal.
 * REQUIRES: it is passed. */
chip_error chip_fence_take_error(chip_fence* self);

#ifdef __cplusplus
}
#endif

#endif /* ACME_CHIP_CHIP_H_ */
