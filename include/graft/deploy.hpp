// include/graft/deploy.hpp: graft/deploy.h for programs in C++17: runs models that
// torch_graft.deploy() wrote, without Python and PyTorch; inline only.
//
//   const graft::deployed::Model model("model.graft");
//   const std::vector<float> x(12);
//   const graft::deployed::Results results = model.run({{x.data(), {3, 4}}});
//   const float first = results[0].data<float>()[0];
//
// Inputs by name, and results by name:
//
//   const graft::deployed::Array image(pixels, GRAFT_FLOAT16, {1, 3, 224, 224});
//   const auto named = model.run_named({{"image", image}, {"scale", {&scale, {}}}});
//   const float* scores = named.at("scores").data<float>();
//
// Calls that do not wait, of two models whose tensors stay on the device:
//
//   const graft::deployed::Queue queue;
//   const auto middle = encoder.enqueue(queue, {Array(pixels, {1, 3, 224, 224})});
//   const auto scores = decoder.enqueue(queue, {middle.on_device(0)});
//   const float best = scores[0].data<float>()[0];  // waits
//
// Failures, of which a server answers with the text and goes on:
//
//   try {
//     return model.run(inputs);
//   } catch (const graft::deployed::Error& error) {
//     if (error.status() == GRAFT_DEVICE_LOST) throw;  // the model cannot be used any more
//     return answer(error.what());
//   }
//
// Compile with -std=c++17 or newer and link with -lgraft, for instance against the package that
// Python uses: -Itorch_graft/include -Ltorch_graft/lib, with a run path to the latter.
// libgraft.so has the functions of graft/deploy.h; nothing else is needed.
//
// Any thread may call any function; calls of one model take turns. A failure throws Error with the
// status and the text of graft/deploy.h: what was given, what was expected, what to do. The model
// stays usable after every failure but a lost device.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_DEPLOY_HPP_
#define GRAFT_DEPLOY_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graft/deploy.h"
#include "graft/deploy_array.hpp"
#include "graft/deploy_queue.hpp"

// Two libraries of one process may be built with two releases of the header; both use one libgraft,
// whose structs say by struct_size which release a caller knows.
#pragma GCC visibility push(hidden)

namespace graft::deployed {

// What a model takes or gives, as Python's deploy() found it.
// name: of the argument, or of the result. sizes: a size below 0 varies from call to call, within
// the range that deploy() traced; run() refuses a size outside of it.
// A size that is a number is the only one that run() takes.
struct Value {
  std::string name;
  graft_dtype dtype;
  std::vector<int64_t> sizes;
};

// The place of a name in what a model takes or gives, for programs that keep places for many calls:
// run() by places compares no names. Throws Error NOT_FOUND with the names that there are.
inline size_t place_of(const std::vector<Value>& values, std::string_view name) {
  std::string names;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == name) return i;
    names += (names.empty() ? "" : ", ") + values[i].name;
  }
  throw Error(GRAFT_NOT_FOUND,
              "there is no \"" + std::string(name) + "\", only " + names + ": name one of these");
}

// The results of a call: of run() in host memory, of enqueue() on the device until they are asked
// for. May be moved, not copied; may outlive their model and queue; any thread may read them.
class Results {
 public:
  // How many results there are, and what they are, in their order. values() lives as long as this.
  size_t size() const { return values_->size(); }
  const std::vector<Value>& values() const { return *values_; }

  // A result by its place, row-major, whose sizes are those of this call. Its elements live as long
  // as this. Of enqueue() the first ask for each waits and copies. Throws Error NOT_FOUND past the
  // last one; what failed of the call.
  Array operator[](size_t index) const {
    graft_array array{};
    array.struct_size = sizeof array;
    check(graft_results_get(results_.get(), static_cast<uint32_t>(index), &array));
    return Array(array);
  }
  // A result by its name. Throws Error NOT_FOUND with the names that there are.
  Array at(std::string_view name) const { return (*this)[place_of(*values_, name)]; }

  // A result of enqueue() as an array on the device, which may outlive this; does not wait. Throws
  // Error NOT_FOUND past the last one, INVALID_ARGUMENT for results of run().
  DeviceArray on_device(size_t index) const {
    graft_device_array array = nullptr;
    check(graft_results_on_device(results_.get(), static_cast<uint32_t>(index), &array));
    return DeviceArray(array);
  }

 private:
  friend class Model;
  Results(graft_results results, std::shared_ptr<const std::vector<Value>> values)
      : results_(results, &graft_results_free), values_(std::move(values)) {}

  std::unique_ptr<graft_results_s, decltype(&graft_results_free)> results_;
  std::shared_ptr<const std::vector<Value>> values_;
};

// A model that is open on a device, with its weights there. A process may have several models open,
// on one device or on several, and one file more than once. May be moved, not copied; all of it may
// be called by any thread, and calls take turns: open a file twice for two calls at once. The
// destructor waits for the model's commands. No call may be inside while it is moved or destroyed.
class Model {
 public:
  // Opens the file: reads and checks it, copies the weights to the device and compiles what the
  // file brings no kernels for.
  // device: counted from 0, below device_count(). Throws Error: NOT_FOUND without the file,
  // INVALID_ARGUMENT for a damaged one or a device that does not exist, VERSION_MISMATCH for
  // another major of the format, UNSUPPORTED for what the device cannot compute, OUT_OF_MEMORY.
  explicit Model(const std::string& path, uint32_t device = 0)
      : model_(opened(path, device), &graft_model_close),
        inputs_(described(model_.get(), &graft_model_input)),
        outputs_(std::make_shared<const std::vector<Value>>(
            described(model_.get(), &graft_model_output))),
        state_(std::make_shared<const std::vector<Value>>(
            described(model_.get(), &graft_model_state))) {}

  // What the model takes, in the order of a call, and what it gives. They live as long as this.
  const std::vector<Value>& inputs() const { return inputs_; }
  const std::vector<Value>& outputs() const { return *outputs_; }

  // Runs the model and waits for the results.
  // inputs: in the order of inputs(), in any strides, unchanged during the call. Throws Error:
  // INVALID_ARGUMENT for inputs that the model does not take, naming the input, what it is and what
  // the model takes; what the device reports. The model stays usable.
  Results run(const std::vector<Array>& inputs) const {
    std::vector<graft_array> arrays;
    for (const Array& input : inputs) arrays.push_back(input.c());
    graft_results results = nullptr;
    check(graft_model_run(model_.get(), arrays.data(), static_cast<uint32_t>(arrays.size()),
                          &results));
    return Results(results, outputs_);
  }

  // The same with inputs by their names, in any order. Throws Error also: NOT_FOUND for an unknown
  // name, with the names that there are, INVALID_ARGUMENT for an input that is missing or given
  // twice.
  Results run_named(const std::vector<std::pair<std::string, Array>>& inputs) const {
    std::vector<const Array*> placed(inputs_.size(), nullptr);
    for (const auto& [name, array] : inputs) {
      const Array*& place = placed[place_of(inputs_, name)];
      if (place != nullptr) refuse("the input \"" + name + "\" is given twice");
      place = &array;
    }
    std::vector<Array> ordered;
    for (size_t i = 0; i < placed.size(); ++i) {
      if (placed[i] == nullptr) refuse("the input \"" + inputs_[i].name + "\" is missing");
      ordered.push_back(*placed[i]);
    }
    return run(ordered);
  }

  // Queues a call and returns; may wait where sizes are new to the model.
  // inputs: in the order of inputs(); those in host memory are read during the call, those on the
  // device are of the queue's device and may be destroyed at once. Throws Error as run() does, but
  // for what fails later: the queue and the results report that.
  Results enqueue(const Queue& queue, const std::vector<Input>& inputs) const {
    std::vector<graft_queue_input> given;
    for (const Input& one : inputs) given.push_back(one.c());
    graft_results results = nullptr;
    check(graft_model_enqueue(model_.get(), queue.c(), given.data(),
                              static_cast<uint32_t>(given.size()), &results));
    return Results(results, outputs_);
  }

  // What calls write, a cache say, and its values now. It begins as the file has it and lasts as
  // long as this; a failed run may leave it partly written. Throws Error: what the device reports.
  const std::vector<Value>& state() const { return *state_; }
  Results read_state() const {
    graft_results results = nullptr;
    check(graft_model_read_state(model_.get(), &results));
    return Results(results, state_);
  }
  // Writes one tensor of the state. value: in any strides, unchanged during the call. Throws Error:
  // NOT_FOUND for an unknown name, with the names that there are, INVALID_ARGUMENT for a value that
  // does not fit.
  void write_state(std::string_view name, const Array& value) const {
    check(graft_model_write_state(model_.get(), static_cast<uint32_t>(place_of(*state_, name)),
                                  &value.c()));
  }
  // Makes all of the state what the file has. Throws Error: what the device reports.
  void reset() const { check(graft_model_reset(model_.get())); }

  // Random numbers of later calls, as dropout in training draws them, are those of a generator with
  // this seed; 0 at first. Two models with one seed draw the same numbers.
  void seed(uint64_t seed) const { check(graft_model_seed(model_.get(), seed)); }

  // For the functions of graft/deploy.h. The model owns it: do not close it.
  graft_model c() const { return model_.get(); }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw Error(GRAFT_INVALID_ARGUMENT, what + ": give each input of the model once");
  }
  static graft_model opened(const std::string& path, uint32_t device) {
    graft_model model = nullptr;
    check(graft_model_open(path.c_str(), device, &model));
    return model;
  }
  static std::vector<Value> described(graft_model model, graft_status (*slot)(graft_model, uint32_t,
                                                                              graft_model_value*)) {
    std::vector<Value> all;
    for (uint32_t i = 0;; ++i) {
      graft_model_value value{};
      value.struct_size = sizeof value;
      const graft_status status = slot(model, i, &value);
      if (status == GRAFT_NOT_FOUND) return all;
      check(status);
      all.push_back({value.name,
                     static_cast<graft_dtype>(value.dtype),
                     {value.sizes, value.sizes + value.rank}});
    }
  }

  std::unique_ptr<graft_model_s, decltype(&graft_model_close)> model_;
  std::vector<Value> inputs_;
  std::shared_ptr<const std::vector<Value>> outputs_, state_;
};

// Names a driver to load, by an absolute path, before devices are asked for. Drivers in the folder
// "drivers" beside libgraft's folder need no name. Throws Error once the devices are counted.
inline void add_driver(const std::string& path) { check(graft_model_add_driver(path.c_str())); }

// The number of devices; 0 if no driver has one. Loads the drivers, opens no device.
inline uint32_t device_count() { return graft_model_devices(); }

// Opens the model on the device, runs it once on zeros, and writes the file anew with the kernels
// of this process, so that a device of the same kind compiles nothing. Throws Error, with IO where
// the file cannot be written; the file is then what it was.
inline void prepare(const std::string& path, uint32_t device = 0) {
  check(graft_model_prepare(path.c_str(), device));
}

}  // namespace graft::deployed

#pragma GCC visibility pop

#endif  // GRAFT_DEPLOY_HPP_
