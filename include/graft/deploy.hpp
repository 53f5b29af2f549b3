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

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graft/deploy.h"

// Two libraries of one process may be built with two releases of the header; both use one libgraft,
// whose structs say by struct_size which release a caller knows.
#pragma GCC visibility push(hidden)

namespace graft::deployed {

// What every function of this header throws, beside std::bad_alloc. what(): what was given, what
// was expected and what to do. A copy may be kept, and may go to another thread.
class Error : public std::runtime_error {
 public:
  Error(graft_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  // The status of the function of graft/deploy.h that failed, never GRAFT_OK: GRAFT_NOT_FOUND for a
  // file or a name that is missing, GRAFT_INVALID_ARGUMENT for a damaged file or an input that does
  // not fit, GRAFT_VERSION_MISMATCH for a file of another major, and others as deploy.h states.
  graft_status status() const noexcept { return status_; }

 private:
  graft_status status_;
};

// For a program that calls functions of graft/deploy.h itself, on the c() of a model or an array:
// makes an exception of their failure.
// Throws Error unless the status is GRAFT_OK. REQUIRES: it is of this thread's last call.
inline void check(graft_status status) {
  if (status != GRAFT_OK) throw Error(status, graft_model_message());
}

// The dtype whose elements are a T, for the types of the list below. A program that asks for
// another type does not compile. C++17 has no type for the elements of float16 and bfloat16: give
// and take these as void*, with the dtype beside them.
template <class T>
extern const graft_dtype dtype_of;
// Integers of other names, such as long long, are none of these types: convert the pointer.
#define GRAFT_DTYPE_OF(type, dtype) \
  template <>                       \
  inline constexpr graft_dtype dtype_of<type> = dtype
GRAFT_DTYPE_OF(bool, GRAFT_BOOL);
GRAFT_DTYPE_OF(uint8_t, GRAFT_UINT8);
GRAFT_DTYPE_OF(int8_t, GRAFT_INT8);
GRAFT_DTYPE_OF(int16_t, GRAFT_INT16);
GRAFT_DTYPE_OF(int32_t, GRAFT_INT32);
GRAFT_DTYPE_OF(int64_t, GRAFT_INT64);
GRAFT_DTYPE_OF(float, GRAFT_FLOAT32);
GRAFT_DTYPE_OF(double, GRAFT_FLOAT64);
GRAFT_DTYPE_OF(std::complex<float>, GRAFT_COMPLEX64);
GRAFT_DTYPE_OF(std::complex<double>, GRAFT_COMPLEX128);
#undef GRAFT_DTYPE_OF

// A tensor in host memory: dtype, sizes, strides and where its elements are. A value type that
// borrows the elements: those of an input stay as they are during run(), those of a result live as
// long as their Results.
class Array {
 public:
  // Row-major elements of a type that dtype_of knows.
  // data: the first element; null only if a size is 0. sizes: none of a tensor without dimensions,
  // no more than GRAFT_ARRAY_RANK, or Error INVALID_ARGUMENT.
  template <class T>
  Array(const T* data, const std::vector<int64_t>& sizes) : Array(data, dtype_of<T>, sizes) {}
  // The same for any dtype, such as GRAFT_BFLOAT16. The elements are little-endian and have the
  // dtype's size, without gaps.
  Array(const void* data, graft_dtype dtype, const std::vector<int64_t>& sizes)
      : Array(data, dtype, sizes, row_major(sizes)) {}
  // Elements at any places, such as a transposed or a repeated tensor: element (i, j, ...) is i *
  // strides[0] + j * strides[1] + ... elements behind the first.
  // strides: not negative, as many as sizes, or Error INVALID_ARGUMENT.
  Array(const void* data, graft_dtype dtype, const std::vector<int64_t>& sizes,
        const std::vector<int64_t>& strides)
      : array_{} {
    if (sizes.size() > GRAFT_ARRAY_RANK || strides.size() != sizes.size()) {
      throw Error(GRAFT_INVALID_ARGUMENT,
                  "an array of " + std::to_string(sizes.size()) + " sizes and " +
                      std::to_string(strides.size()) + " strides: expected as many strides as " +
                      "sizes, and at most " + std::to_string(GRAFT_ARRAY_RANK));
    }
    array_.struct_size = sizeof array_;
    array_.dtype = static_cast<uint16_t>(dtype);
    array_.rank = static_cast<uint16_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), array_.sizes);
    std::copy(strides.begin(), strides.end(), array_.strides);
    array_.data = const_cast<void*>(data);  // nothing writes an input
  }
  // The tensor that a function of graft/deploy.h described.
  explicit Array(const graft_array& array) : array_(array) {}

  // As they were given, or as the model made them; sizes() and strides() have one number for each
  // dimension, the outermost first.
  graft_dtype dtype() const { return static_cast<graft_dtype>(array_.dtype); }
  std::vector<int64_t> sizes() const { return {array_.sizes, array_.sizes + array_.rank}; }
  std::vector<int64_t> strides() const { return {array_.strides, array_.strides + array_.rank}; }
  // The number of elements: the product of the sizes, 1 without dimensions. It fits, for each array
  // that a model gave; of an array that a caller made, the sizes say what is in memory.
  size_t count() const {
    size_t count = 1;
    for (int64_t size : sizes()) count *= static_cast<size_t>(size);
    return count;
  }

  // The first element. The others are where the strides say; those of a result are one behind
  // another, row-major, so that count() elements from here on are all of them.
  const void* data() const { return array_.data; }
  // The same as a T, which protects from reading a float64 as a float.
  // Throws Error INVALID_ARGUMENT if the dtype is not the one of T.
  template <class T>
  const T* data() const {
    if (dtype() == dtype_of<T>) return static_cast<const T*>(array_.data);
    throw Error(GRAFT_INVALID_ARGUMENT, "the array's elements have dtype number " +
                                            std::to_string(array_.dtype) + ", asked for number " +
                                            std::to_string(dtype_of<T>) +
                                            ": ask for the type that dtype() says");
  }

  // For the functions of graft/deploy.h; it lives as long as this, and borrows the elements.
  const graft_array& c() const { return array_; }

 private:
  static std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
    return strides;
  }

  graft_array array_;
};

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

// The results of a call, in host memory. May be moved, not copied; may outlive their model; any
// thread may read them.
class Results {
 public:
  // How many results there are, and what they are, in their order. values() lives as long as this.
  size_t size() const { return values_->size(); }
  const std::vector<Value>& values() const { return *values_; }

  // A result by its place, row-major, whose sizes are those of this call. Its elements live as long
  // as this. Throws Error NOT_FOUND past the last one.
  Array operator[](size_t index) const {
    graft_array array{};
    array.struct_size = sizeof array;
    check(graft_results_get(results_.get(), static_cast<uint32_t>(index), &array));
    return Array(array);
  }
  // A result by its name. Throws Error NOT_FOUND with the names that there are.
  Array at(std::string_view name) const { return (*this)[place_of(*values_, name)]; }

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
