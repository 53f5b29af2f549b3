// src/torch/compiled/traced_calls.cpp: the calls of a model that need no tracing again.
#include "torch/compiled/traced_calls.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "torch/version/dispatch.h"
#include "torch/version/python.h"

namespace graft::binding {
namespace {

namespace py = pybind11;

size_t place_of(const py::handle& one) { return one.cast<size_t>(); }

// A new reference to an object of the interpreter, or Python's error.
py::object checked(PyObject* made) {
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

}  // namespace

TracedCalls::TracedCalls(size_t most, bool without_gradients, py::set registrations)
    : most_(most),
      without_gradients_(without_gradients),
      registrations_(std::move(registrations)) {}

Modes TracedCalls::modes() const {
  Modes now = Modes::now();
  if (without_gradients_) now.gradients = false;
  return now;
}

py::object TracedCalls::call(py::handle model, py::handle arguments, py::handle keywords) {
  if (!entries_.empty() && !Modes::observed()) {
    const Modes now = modes();
    std::vector<PyObject*> tensors = std::exchange(tensors_, {});
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      // Whatever clears the entries while the function runs leaves this one.
      const std::shared_ptr<Entry> known = *entry;
      if (known->modes != now || known->registrations != registrations()) continue;
      if (!known->arguments.match(arguments.ptr(), keywords.ptr(), tensors)) continue;
      if (!known->state.holds(model.ptr()) || !hold(known->inputs)) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      ++hits_;
      py::object result = run(*known, tensors);
      tensors_ = std::move(tensors);
      return result;
    }
  }
  return py::reinterpret_borrow<py::object>(Py_NotImplemented);
}

bool TracedCalls::hold(const std::vector<Source>& sources) {
  return std::ranges::all_of(sources, [](const Source& source) {
    return !source.fact.has_value() ||
           source.fact->holds(THPVariable_Unpack(source.constant.ptr()));
  });
}

py::object TracedCalls::called(Entry& entry, const std::vector<PyObject*>& tensors) {
  const size_t count = entry.inputs.size();
  const auto each = [&](auto set) {
    for (size_t i = 0; i < count; ++i) {
      const Source& source = entry.inputs[i];
      PyObject* const one = source.argument ? tensors[source.place] : source.constant.ptr();
      Py_INCREF(one);
      set(static_cast<Py_ssize_t>(i), one);
    }
  };
  if (entry.spread) {
    const py::tuple inputs(count);
    each([&](Py_ssize_t i, PyObject* one) { PyTuple_SET_ITEM(inputs.ptr(), i, one); });
    return checked(PyObject_CallObject(entry.function.ptr(), inputs.ptr()));
  }
  py::list inputs = entry.list.take(count);
  each([&](Py_ssize_t i, PyObject* one) { PyList_SetItem(inputs.ptr(), i, one); });
  py::object results = checked(PyObject_CallOneArg(entry.function.ptr(), inputs.ptr()));
  entry.list.give_back(std::move(inputs));
  return results;
}

py::object TracedCalls::run(Entry& entry, const std::vector<PyObject*>& tensors) const {
  // What autocast does is part of the function.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  std::optional<at::NoGradGuard> no_gradients;
  if (without_gradients_) no_gradients.emplace();
  const py::object results = called(entry, tensors);
  return built(entry.result, results.ptr(), tensors);
}

py::object TracedCalls::built(const Result& result, PyObject* results,
                              const std::vector<PyObject*>& tensors) {
  const auto members = [&](PyObject* made, auto set) {
    py::object all = checked(made);
    for (size_t i = 0; i < result.members.size(); ++i) {
      set(all.ptr(), static_cast<Py_ssize_t>(i),
          built(result.members[i], results, tensors).release().ptr());
    }
    return all;
  };
  const auto count = static_cast<Py_ssize_t>(result.members.size());
  const auto set_tuple = [](PyObject* o, Py_ssize_t i, PyObject* v) { PyTuple_SET_ITEM(o, i, v); };
  const auto set_list = [](PyObject* o, Py_ssize_t i, PyObject* v) { PyList_SET_ITEM(o, i, v); };
  switch (result.kind) {
    case Result::Kind::kResult: {
      PyObject* const one =
          PySequence_Fast_GET_ITEM(results, static_cast<Py_ssize_t>(result.place));
      return py::reinterpret_borrow<py::object>(one);
    }
    case Result::Kind::kArgument:
      return py::reinterpret_borrow<py::object>(tensors[result.place]);
    case Result::Kind::kConstant:
      return result.object;
    case Result::Kind::kTuple:
      return members(PyTuple_New(count), set_tuple);
    case Result::Kind::kList:
      return members(PyList_New(count), set_list);
    case Result::Kind::kDictionary: {
      py::dict all;
      for (size_t i = 0; i < result.members.size(); ++i) {
        const py::handle key = PyTuple_GET_ITEM(result.object.ptr(), static_cast<Py_ssize_t>(i));
        all[key] = built(result.members[i], results, tensors);
      }
      return all;
    }
    case Result::Kind::kMade:
      return result.object(members(PyList_New(count), set_list));
  }
  return {};
}

TracedCalls::Result TracedCalls::parsed(py::handle text) {
  using Kind = Result::Kind;
  const auto parts = text.cast<py::tuple>();
  const auto word = parts[0].cast<std::string>();
  Result result;
  const auto take = [&](Kind kind, const py::handle& members) {
    result.kind = kind;
    for (const py::handle one : members) result.members.push_back(parsed(one));
  };
  if (word == "result" || word == "argument") {
    result.kind = word == "result" ? Kind::kResult : Kind::kArgument;
    result.place = place_of(parts[1]);
  } else if (word == "constant") {
    result.object = parts[1];
  } else if (word == "tuple" || word == "list") {
    take(word == "tuple" ? Kind::kTuple : Kind::kList, parts[1]);
  } else if (word == "dict") {
    result.object = py::tuple(parts[1]);
    take(Kind::kDictionary, parts[2]);
  } else {
    TORCH_CHECK(word == "made", "unknown kind of result \"", word, "\"");
    result.object = parts[1];
    take(Kind::kMade, parts[2]);
  }
  return result;
}

void TracedCalls::add(py::handle model, py::handle arguments, py::handle keywords,
                      py::object function, bool spread, py::handle inputs, py::handle result) {
  std::string unknown;
  auto facts = CallArguments::of(arguments.ptr(), keywords.ptr(), &unknown);
  TORCH_CHECK(facts.has_value(), "calls with a ", unknown, " cannot be compared");
  std::vector<Source> sources;
  for (const py::handle one : inputs) {
    const auto parts = one.cast<py::tuple>();
    Source source;
    source.argument = parts[0].cast<std::string>() == "argument";
    if (source.argument) {
      source.place = place_of(parts[1]);
      TORCH_CHECK(source.place < facts->tensors().size(), "the call has ", facts->tensors().size(),
                  " tensors, but none at ", source.place);
    } else {
      source.constant = parts[1];
      if (is_plain_tensor(parts[1].ptr())) source.fact.emplace(THPVariable_Unpack(parts[1].ptr()));
    }
    sources.push_back(std::move(source));
  }
  entries_.push_front(std::make_shared<Entry>(Entry{modes(),
                                                    registrations(),
                                                    std::move(*facts),
                                                    ModelState(model.ptr()),
                                                    std::move(function),
                                                    spread,
                                                    std::move(sources),
                                                    parsed(result),
                                                    {}}));
  while (entries_.size() > most_) entries_.pop_back();
}

}  // namespace graft::binding
