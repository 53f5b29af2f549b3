/* chip/fence.c: fences of the emulated chip, its clock, and the faults that a test can plant. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emulation.h"

struct chip_fence {
  atomic_uint holders;
  pthread_mutex_t mutex; /* guards what follows */
  pthread_cond_t signal;
  bool passed;
  uint64_t time;
  chip_queue* source; /* retained, if error is one */
  chip_error error;
};

chip_status chip_fence_create(chip_fence** out) {
  chip_fence* self = calloc(1, sizeof *self);
  if (self == NULL) return CHIP_NO_MEMORY;
  atomic_init(&self->holders, 1);
  pthread_mutex_init(&self->mutex, NULL);
  chip_condition_init(&self->signal);
  *out = self;
  return CHIP_OK;
}

void chip_fence_retain(chip_fence* self) { atomic_fetch_add(&self->holders, 1); }

void chip_fence_release(chip_fence* self) {
  if (atomic_fetch_sub(&self->holders, 1) != 1) return;
  if (self->source != NULL) chip_queue_release(self->source);
  pthread_cond_destroy(&self->signal);
  pthread_mutex_destroy(&self->mutex);
  free(self);
}

void chip_fence_pass(chip_fence* self, chip_queue* source, const chip_error* error) {
  pthread_mutex_lock(&self->mutex);
  if (error->status != CHIP_OK) {
    chip_queue_retain(source);
    self->source = source;
    self->error = *error;
  }
  self->time = chip_now();
  self->passed = true;
  pthread_cond_broadcast(&self->signal);
  pthread_mutex_unlock(&self->mutex);
}

chip_status chip_fence_wait(chip_fence* self, uint64_t timeout_ns) {
  const uint64_t until = chip_deadline(timeout_ns);
  pthread_mutex_lock(&self->mutex);
  while (!self->passed && chip_sleep(&self->signal, &self->mutex, until)) continue;
  const bool passed = self->passed;
  pthread_mutex_unlock(&self->mutex);
  return passed ? CHIP_OK : CHIP_BUSY;
}

int64_t chip_fence_time(chip_fence* self) {
  pthread_mutex_lock(&self->mutex);
  const uint64_t time = self->time;
  pthread_mutex_unlock(&self->mutex);
  return (int64_t)time;
}

chip_error chip_fence_error(chip_fence* self, const chip_queue* waiting) {
  pthread_mutex_lock(&self->mutex);
  const chip_error error = self->error;
  const bool own = self->source == waiting;
  pthread_mutex_unlock(&self->mutex);
  return own ? (chip_error){.status = CHIP_OK} : error;
}

chip_error chip_fence_take_error(chip_fence* self) {
  pthread_mutex_lock(&self->mutex);
  chip_queue* source = self->source;
  pthread_mutex_unlock(&self->mutex);
  return source == NULL ? (chip_error){.status = CHIP_OK} : chip_queue_take_error(source);
}

void chip_condition_init(pthread_cond_t* condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

uint64_t chip_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t chip_deadline(uint64_t timeout_ns) {
  const uint64_t now = chip_now();
  return timeout_ns > INT64_MAX - now ? CHIP_FOREVER : now + timeout_ns;
}

bool chip_sleep(pthread_cond_t* condition, pthread_mutex_t* mutex, uint64_t until_ns) {
  if (until_ns == CHIP_FOREVER) return pthread_cond_wait(condition, mutex) == 0;
  const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                 .tv_nsec = (long)(until_ns % 1000000000u)};
  return pthread_cond_timedwait(condition, mutex, &until) != ETIMEDOUT;
}

uint32_t chip_count(void) {
  const char* text = getenv("ACME_CHIPS");
  const long count = text != NULL ? strtol(text, NULL, 10) : 1;
  return count < 1 || count > 8 ? 1 : (uint32_t)count;
}

bool chip_fails_copy(void) {
  static atomic_long copies;
  const char* text = getenv("ACME_FAULT");
  if (text == NULL || strncmp(text, "copy:", 5) != 0) return false;
  return atomic_fetch_add(&copies, 1) + 1 == strtol(text + 5, NULL, 10);
}

bool chip_drops_launches(void) {
  const char* text = getenv("ACME_FAULT");
  return text != NULL && strcmp(text, "launch:drop") == 0;
}
