// src/torch/compiled/model_state.h: whether a model's Python objects still are what a trace has
// seen.
#pragma once

#include <cstdint>
#include <vector>

#include "torch/version/python.h"

namespace graft::binding {

// One value as it was: by identity, or by type and value where that cannot change. Holds no module
// and no tensor alive.
class ValueFact {
 public:
  explicit ValueFact(PyObject* value);
  bool holds(PyObject* value) const;
  // Whether the value can change without being bound anew: lists and sets of a model.
  bool mutates() const { return mutates_; }

 private:
  enum class Kind { kIdentity, kEqual, kMembers };
  Kind kind_ = Kind::kIdentity;
  pybind11::object seen_;  // a weak reference, the value itself, or the type of a container
  bool weak_ = false, mutates_ = false;
  std::vector<ValueFact> members_;
};

// The attributes of a module and of all modules below it: parameters, buffers, submodules, hooks,
// training flags and whatever else they hold; hooks of state_dict and names that begin with
// "_graft" are left out, as are dictionaries that only say more of hooks. What an attribute's
// object holds is looked at in dictionaries, lists, tuples and sets, not in objects of other types.
// Holds the dictionaries alive, and so what they hold, but not the root. Call all of it with
// Python's lock.
class ModelState {
 public:
  // root: a torch.nn.Module.
  explicit ModelState(PyObject* root);

  // Whether all of it is as it was. About 2 ns per dictionary while nothing was assigned (Python's
  // version tags, where this Python has them), 10 ns per attribute otherwise.
  bool holds(PyObject* root);

 private:
  struct Item {
    pybind11::object key;
    ValueFact value;
    ptrdiff_t nested;  // the place of a dictionary's own facts; -1 for other values
  };
  struct Dictionary {
    pybind11::object dict;
    std::vector<Item> items;
  };
  struct Version {  // of a dictionary, beside one another for a quick look
    PyObject* dict;
    uint64_t version;
  };
  struct Owner {  // a module, which the dictionary that it was found in keeps alive
    PyObject* module;
    size_t dictionary;
  };
  struct Mutable {  // a list or set in a dictionary
    size_t dictionary, item;
    PyObject* value;
  };

  void add_module(PyObject* module);
  size_t add(PyObject* dict);
  bool same_items(size_t dictionary);

  std::vector<Dictionary> dictionaries_;
  std::vector<Version> versions_;  // of dictionaries_
  std::vector<Owner> owners_;      // the root first
  std::vector<Mutable> mutables_;
};

}  // namespace graft::binding
