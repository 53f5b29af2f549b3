/* chip/emulation.h: what the files of the emulated chip share; the driver does not include it. */
#ifndef ACME_CHIP_EMULATION_H_
#define ACME_CHIP_EMULATION_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "chip.h"

/* A range of the address space, in a list that covers all of it. */
typedef struct chip_block {
  uint64_t begin, bytes;
  bool used;
  struct chip_block* next;
} chip_block;

struct chip {
  uint32_t number;
  unsigned char* memory; /* CHIP_MEMORY_BYTES, of which the system gives pages on first use */
  pthread_mutex_t mutex; /* guards what follows */
  chip_block* blocks;    /* in the order of their addresses */
  uint64_t left;
};

/* Where the chip's address space begins: it shares no address with the host's memory. */
uint64_t chip_first_address(const chip* self);
/* The host's pointer to a range; NULL if the range is not inside one allocation. */
void* chip_pointer(chip* self, uint64_t address, uint64_t bytes);

/* Waits on a condition with CLOCK_MONOTONIC until a time; false if the time is over. */
bool chip_sleep(pthread_cond_t* condition, pthread_mutex_t* mutex, uint64_t until_ns);
void chip_condition_init(pthread_cond_t* condition);
uint64_t chip_now(void);
/* now + timeout_ns, CHIP_FOREVER if that is beyond all times. */
uint64_t chip_deadline(uint64_t timeout_ns);

/* ACME_FAULT=copy:N makes the Nth copy fail late; ACME_FAULT=launch:drop drops every launch. */
bool chip_fails_copy(void);
bool chip_drops_launches(void);

/* The signal's part that the queue's thread runs. error: the queue's at this moment. */
void chip_fence_pass(chip_fence* self, chip_queue* source, const chip_error* error);
/* The error that a passed fence of another queue carries to a queue that waits for it. */
chip_error chip_fence_error(chip_fence* self, const chip_queue* waiting);
/* A queue's struct lives as long as its thread and the fences that it signalled. */
void chip_queue_retain(chip_queue* self);
void chip_queue_release(chip_queue* self);

#endif /* ACME_CHIP_EMULATION_H_ */
