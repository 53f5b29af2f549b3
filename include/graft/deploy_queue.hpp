// include/graft/deploy_queue.hpp: queues, and tensors in the memory of devices, for
// graft/deploy.hpp, which includes it; inline only.
//
//   const graft::deployed::Queue queue;
//   const graft::deployed::DeviceArray x(queue, GRAFT_FLOAT32, {3, 4});
//   x.write(queue, {numbers.data(), {3, 4}});
//   const auto results = model.enqueue(queue, {x});
//   std::vector<float> y(6);
//   results.on_device(0).read(queue, y.data());
//   queue.synchronize();
//
// Any thread may call any function; a failure throws Error. What fails after its function returned
// is thrown once by the queue's next synchronize, query or read, with the model's name.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_DEPLOY_QUEUE_HPP_
#define GRAFT_DEPLOY_QUEUE_HPP_

#include <cstdint>
#include <memory>
#include <vector>

#include "graft/deploy.h"
#include "graft/deploy_array.hpp"

#pragma GCC visibility push(hidden)

namespace graft::deployed {

// An order of commands on a device: copies, and calls of any of its models. Commands of two queues
// run in any order, unless one queue waits for the other. May be moved, not copied. The destructor
// waits for the commands; failures that nothing has read are dropped.
class Queue {
 public:
  // device: counted from 0, below device_count(). Throws Error INVALID_ARGUMENT for another one.
  explicit Queue(uint32_t device = 0) : queue_(created(device), &graft_queue_destroy) {}

  // Later commands run after those that the other queue has by now. Throws Error INVALID_ARGUMENT
  // for a queue of another device.
  void wait(const Queue& other) const { check(graft_queue_wait(c(), other.c())); }

  // Waits for the commands so far, and for other calls that their models have by then. Throws the
  // first of what failed late.
  void synchronize() const { check(graft_queue_synchronize(c())); }

  // Whether synchronize() would not wait. Throws as that does. Does not wait.
  bool query() const {
    const graft_status status = graft_queue_query(c());
    if (status != GRAFT_BUSY) check(status);
    return status == GRAFT_OK;
  }

  // For the functions of graft/deploy.h. The queue owns it: do not destroy it.
  graft_queue c() const { return queue_.get(); }

 private:
  static graft_queue created(uint32_t device) {
    graft_queue queue = nullptr;
    check(graft_queue_create(device, &queue));
    return queue;
  }

  std::unique_ptr<graft_queue_s, decltype(&graft_queue_destroy)> queue_;
};

// A row-major tensor in the memory of a device. May be moved, not copied. Its memory goes back when
// commands are done with it; the destructor does not wait.
class DeviceArray {
 public:
  // Memory on the queue's device for later commands of the queue; the elements are undefined.
  // Throws Error OUT_OF_MEMORY, INVALID_ARGUMENT for sizes that no memory has.
  DeviceArray(const Queue& queue, graft_dtype dtype, const std::vector<int64_t>& sizes)
      : DeviceArray(created(queue, Array(nullptr, dtype, sizes))) {}
  // The same with the elements of an array in host memory, which is read during the call.
  DeviceArray(const Queue& queue, const Array& host) : DeviceArray(created(queue, host)) {
    write(queue, host);
  }
  // Owns what a function of graft/deploy.h gave.
  explicit DeviceArray(graft_device_array array) : array_(array, &graft_device_array_free) {}

  // dtype() and sizes() of the tensor; its data() is an address on the device, which the host
  // cannot read.
  Array description() const {
    graft_array array{};
    array.struct_size = sizeof array;
    check(graft_device_array_describe(c(), &array));
    return Array(array);
  }

  // Queues a copy of host memory with the same dtype and sizes. from: in any strides, read during
  // the call. Throws Error INVALID_ARGUMENT for another dtype, other sizes, another device's queue.
  void write(const Queue& queue, const Array& from) const {
    check(graft_device_array_write(c(), queue.c(), &from.c()));
  }

  // Queues a copy of all elements, row-major. to: memory of description().count() elements, in
  // place until the queue is synchronized. Throws Error as write() does, and what failed late.
  template <class T>
  void read(const Queue& queue, T* to) const {
    const Array form = description();
    form.data<T>();  // refuses another type
    read(queue, static_cast<void*>(to), form);
  }
  // The same for dtypes that C++17 has no type for.
  void read(const Queue& queue, void* to) const { read(queue, to, description()); }

  // For the functions of graft/deploy.h. This owns it: do not free it.
  graft_device_array c() const { return array_.get(); }

 private:
  static graft_device_array created(const Queue& queue, const Array& form) {
    graft_device_array array = nullptr;
    check(graft_device_array_create(queue.c(), &form.c(), &array));
    return array;
  }
  void read(const Queue& queue, void* to, const Array& form) const {
    const Array host(to, form.dtype(), form.sizes());
    check(graft_device_array_read(c(), queue.c(), &host.c()));
  }

  std::unique_ptr<graft_device_array_s, decltype(&graft_device_array_free)> array_;
};

// An input of Model::enqueue(), for which both kinds of arrays stand. Borrows a DeviceArray for the
// call.
class Input {
 public:
  Input(const Array& host) : host_(host.c()) {}
  Input(const DeviceArray& device) : host_{}, device_(device.c()) {}

  // For the functions of graft/deploy.h; it lives as long as this.
  graft_queue_input c() const { return {device_ == nullptr ? &host_ : nullptr, device_}; }

 private:
  graft_array host_;
  graft_device_array device_ = nullptr;
};

}  // namespace graft::deployed

#pragma GCC visibility pop

#endif  // GRAFT_DEPLOY_QUEUE_HPP_
