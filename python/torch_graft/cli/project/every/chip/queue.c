/* chip/queue.c: queues of the emulated chip, and the thread that runs their commands. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulation.h"

typedef enum command_kind {
  COPY_IN,
  COPY_OUT,
  COPY_WITHIN,
  FILL,
  LAUNCH,
  CALL,
  SIGNAL,
  AWAIT
} command_kind;

static const char* const kNames[] = {"the copy to the chip", "the copy from the chip",
                                     "the copy on the chip", "the fill", "the launch"};

typedef struct command {
  struct command* next;
  command_kind kind;
  uint32_t label;
  uint64_t to, from, bytes;
  unsigned char pattern[16];
  uint32_t pattern_bytes;
  chip_fence* fence;
  void (*function)(void* context);
  void* context;
  chip_kernel kernel;
  uint64_t items;
  uint32_t count;
  chip_argument* arguments; /* in the command's memory, as the constants are */
  chip_word* words;
} command;

struct chip_queue {
  chip* owner;
  atomic_uint holders;
  pthread_t thread;
  pthread_mutex_t mutex; /* guards what follows */
  pthread_cond_t work, done;
  command *first, **last;
  uint64_t queued, finished;
  bool ends;
  chip_error error, taken;
};

static void fail(chip_queue* self, const chip_error* error) {
  pthread_mutex_lock(&self->mutex);
  if (self->error.status == CHIP_OK) self->error = *error;
  pthread_mutex_unlock(&self->mutex);
}

static void refuse(chip_queue* self, const command* one, chip_status status, uint64_t address) {
  chip_error error = {.status = status, .label = one->label};
  if (status == CHIP_PLANTED) {
    snprintf(error.text, sizeof error.text, "%s failed, as ACME_FAULT asks", kNames[one->kind]);
  } else {
    snprintf(error.text, sizeof error.text, "%s used address 0x%llx, which is in no allocation",
             kNames[one->kind], (unsigned long long)address);
  }
  fail(self, &error);
}

/* The pointer to a range; NULL, and the queue has failed, if the range is in no allocation. */
static unsigned char* reach(chip_queue* self, const command* one, uint64_t address,
                            uint64_t bytes) {
  unsigned char* pointer = chip_pointer(self->owner, address, bytes);
  if (pointer == NULL) refuse(self, one, CHIP_BAD_ADDRESS, address);
  return pointer;
}

static void run_copy(chip_queue* self, const command* one) {
  if (chip_fails_copy()) {
    refuse(self, one, CHIP_PLANTED, 0);
    return;
  }
  void* to = (void*)(uintptr_t)one->to;
  const void* from = (const void*)(uintptr_t)one->from;
  if (one->kind != COPY_OUT) to = reach(self, one, one->to, one->bytes);
  if (one->kind != COPY_IN && to != NULL) from = reach(self, one, one->from, one->bytes);
  if (to != NULL && from != NULL) memmove(to, from, one->bytes);
}

static void run_fill(chip_queue* self, const command* one) {
  unsigned char* to = reach(self, one, one->to, one->bytes);
  if (to == NULL) return;
  if (one->pattern_bytes == 1) {
    memset(to, one->pattern[0], one->bytes);
    return;
  }
  for (uint64_t i = 0; i < one->bytes; i += one->pattern_bytes) {
    const uint64_t rest = one->bytes - i;
    memcpy(to + i, one->pattern, rest < one->pattern_bytes ? rest : one->pattern_bytes);
  }
}

static void run_launch(chip_queue* self, const command* one) {
  for (uint32_t i = 0; i < one->count; ++i) {
    const chip_argument* argument = &one->arguments[i];
    chip_word* word = &one->words[i];
    if (argument->kind == CHIP_CONSTANTS) {
      word->address = (void*)(uintptr_t)argument->value;
    } else if (argument->kind == CHIP_NUMBER || argument->value == 0) {
      word->bits = argument->value;
    } else {
      word->address = reach(self, one, argument->value, argument->bytes);
      if (word->address == NULL) return;
    }
  }
  one->kernel(one->words, 0, one->items);
}

static void run_signal(chip_queue* self, const command* one) {
  pthread_mutex_lock(&self->mutex);
  const chip_error error = self->error;
  pthread_mutex_unlock(&self->mutex);
  chip_fence_pass(one->fence, self, &error);
}

static void run_await(chip_queue* self, const command* one) {
  chip_fence_wait(one->fence, CHIP_FOREVER);
  const chip_error error = chip_fence_error(one->fence, self);
  if (error.status != CHIP_OK) fail(self, &error);
}

static void run(chip_queue* self, const command* one) {
  if (one->kind <= COPY_WITHIN) run_copy(self, one);
  if (one->kind == FILL) run_fill(self, one);
  if (one->kind == LAUNCH) run_launch(self, one);
  if (one->kind == CALL) one->function(one->context);
  if (one->kind == SIGNAL) run_signal(self, one);
  if (one->kind == AWAIT) run_await(self, one);
}

static void* work(void* context) {
  chip_queue* self = context;
  pthread_mutex_lock(&self->mutex);
  for (;;) {
    while (self->first == NULL && !self->ends) pthread_cond_wait(&self->work, &self->mutex);
    command* one = self->first;
    if (one == NULL) break;
    pthread_mutex_unlock(&self->mutex);
    run(self, one);
    if (one->fence != NULL) chip_fence_release(one->fence);
    pthread_mutex_lock(&self->mutex);
    self->first = one->next;
    if (self->first == NULL) self->last = &self->first;
    ++self->finished;
    pthread_cond_broadcast(&self->done);
    free(one);
  }
  pthread_mutex_unlock(&self->mutex);
  return NULL;
}

/* Owns one. */
static chip_status push(chip_queue* self, command* one) {
  pthread_mutex_lock(&self->mutex);
  *self->last = one;
  self->last = &one->next;
  ++self->queued;
  pthread_cond_signal(&self->work);
  pthread_mutex_unlock(&self->mutex);
  return CHIP_OK;
}

static chip_status push_copy(chip_queue* self, command_kind kind, uint64_t to, uint64_t from,
                             uint64_t bytes, uint32_t label) {
  command* one = calloc(1, sizeof *one);
  if (one == NULL) return CHIP_NO_MEMORY;
  *one = (command){.kind = kind, .label = label, .to = to, .from = from, .bytes = bytes};
  return push(self, one);
}

chip_status chip_copy_in(chip_queue* self, uint64_t to, const void* from, uint64_t bytes,
                         uint32_t label) {
  return push_copy(self, COPY_IN, to, (uintptr_t)from, bytes, label);
}

chip_status chip_copy_out(chip_queue* self, void* to, uint64_t from, uint64_t bytes,
                          uint32_t label) {
  return push_copy(self, COPY_OUT, (uintptr_t)to, from, bytes, label);
}

chip_status chip_copy_within(chip_queue* self, uint64_t to, uint64_t from, uint64_t bytes,
                             uint32_t label) {
  return push_copy(self, COPY_WITHIN, to, from, bytes, label);
}

chip_status chip_fill(chip_queue* self, uint64_t to, uint64_t bytes, const void* pattern,
                      uint32_t pattern_bytes, uint32_t label) {
  command* one = calloc(1, sizeof *one);
  if (one == NULL) return CHIP_NO_MEMORY;
  one->kind = FILL;
  one->label = label;
  one->to = to;
  one->bytes = bytes;
  one->pattern_bytes = pattern_bytes;
  memcpy(one->pattern, pattern, pattern_bytes);
  return push(self, one);
}

chip_status chip_launch(chip_queue* self, chip_kernel kernel, uint64_t items,
                        const chip_argument* arguments, uint32_t count, uint32_t label) {
  if (chip_drops_launches()) return CHIP_OK;
  size_t constants = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (arguments[i].kind == CHIP_CONSTANTS) constants += (arguments[i].bytes + 15) / 16 * 16;
  }
  const size_t each = sizeof(chip_argument) + sizeof(chip_word);
  command* one = calloc(1, (sizeof *one + 15) / 16 * 16 + constants + count * each);
  if (one == NULL) return CHIP_NO_MEMORY;
  unsigned char* next = (unsigned char*)one + (sizeof *one + 15) / 16 * 16;
  one->kind = LAUNCH;
  one->label = label;
  one->kernel = kernel;
  one->items = items;
  one->count = count;
  one->arguments = (chip_argument*)(next + constants);
  one->words = (chip_word*)(one->arguments + count);
  for (uint32_t i = 0; i < count; ++i) {
    one->arguments[i] = arguments[i];
    if (arguments[i].kind != CHIP_CONSTANTS) continue;
    memcpy(next, (const void*)(uintptr_t)arguments[i].value, arguments[i].bytes);
    one->arguments[i].value = (uintptr_t)next;
    next += (arguments[i].bytes + 15) / 16 * 16;
  }
  return push(self, one);
}

chip_status chip_call(chip_queue* self, void (*function)(void* context), void* context) {
  command* one = calloc(1, sizeof *one);
  if (one == NULL) return CHIP_NO_MEMORY;
  *one = (command){.kind = CALL, .function = function, .context = context};
  return push(self, one);
}

static chip_status push_fence(chip_queue* self, command_kind kind, chip_fence* fence) {
  command* one = calloc(1, sizeof *one);
  if (one == NULL) return CHIP_NO_MEMORY;
  chip_fence_retain(fence);
  *one = (command){.kind = kind, .fence = fence};
  return push(self, one);
}

chip_status chip_signal(chip_queue* self, chip_fence* fence) {
  return push_fence(self, SIGNAL, fence);
}

chip_status chip_await(chip_queue* self, chip_fence* fence) {
  return push_fence(self, AWAIT, fence);
}

chip_status chip_queue_create(chip* owner, chip_queue** out) {
  chip_queue* self = calloc(1, sizeof *self);
  if (self == NULL) return CHIP_NO_MEMORY;
  self->owner = owner;
  self->last = &self->first;
  atomic_init(&self->holders, 1);
  pthread_mutex_init(&self->mutex, NULL);
  chip_condition_init(&self->work);
  chip_condition_init(&self->done);
  if (pthread_create(&self->thread, NULL, work, self) != 0) {
    chip_queue_release(self);
    return CHIP_NO_MEMORY;
  }
  *out = self;
  return CHIP_OK;
}

void chip_queue_destroy(chip_queue* self) {
  pthread_mutex_lock(&self->mutex);
  self->ends = true;
  pthread_cond_signal(&self->work);
  pthread_mutex_unlock(&self->mutex);
  pthread_join(self->thread, NULL);
  chip_queue_release(self);
}

void chip_queue_retain(chip_queue* self) { atomic_fetch_add(&self->holders, 1); }

void chip_queue_release(chip_queue* self) {
  if (atomic_fetch_sub(&self->holders, 1) != 1) return;
  pthread_cond_destroy(&self->work);
  pthread_cond_destroy(&self->done);
  pthread_mutex_destroy(&self->mutex);
  free(self);
}

chip_status chip_queue_wait(chip_queue* self, uint64_t timeout_ns) {
  const uint64_t until = chip_deadline(timeout_ns);
  pthread_mutex_lock(&self->mutex);
  const uint64_t wanted = self->queued;
  while (self->finished < wanted && chip_sleep(&self->done, &self->mutex, until)) continue;
  const bool passed = self->finished >= wanted;
  pthread_mutex_unlock(&self->mutex);
  return passed ? CHIP_OK : CHIP_BUSY;
}

chip_error chip_queue_take_error(chip_queue* self) {
  pthread_mutex_lock(&self->mutex);
  const chip_error error = self->error;
  if (error.status != CHIP_OK) self->taken = error;
  self->error = (chip_error){.status = CHIP_OK};
  pthread_mutex_unlock(&self->mutex);
  return error;
}

chip_error chip_queue_last_error(chip_queue* self) {
  pthread_mutex_lock(&self->mutex);
  const chip_error error = self->taken;
  pthread_mutex_unlock(&self->mutex);
  return error;
}
