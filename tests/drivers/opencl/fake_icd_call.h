// tests/drivers/opencl/fake_icd_call.h: what every function of the fake ICD does around its own.
#ifndef GRAFT_TESTS_DRIVERS_OPENCL_FAKE_ICD_CALL_H_
#define GRAFT_TESTS_DRIVERS_OPENCL_FAKE_ICD_CALL_H_

#include <cstring>
#include <tuple>
#include <type_traits>

#include "fake_icd.h"

namespace graft::fake_cl {

template <auto Slot>
inline constexpr const char* kName = nullptr;
template <auto Slot>
inline constexpr bool kYounger = false;  // than OpenCL 1.2

#define GRAFT_FAKE_NAME(name) \
  template <>                 \
  inline constexpr const char* kName<&Api::name> = "cl" #name;
#define GRAFT_FAKE_YOUNGER(name) \
  GRAFT_FAKE_NAME(name)          \
  template <>                    \
  inline constexpr bool kYounger<&Api::name> = true;
GRAFT_CL_FUNCTIONS(GRAFT_FAKE_NAME, GRAFT_FAKE_YOUNGER)
#undef GRAFT_FAKE_YOUNGER
#undef GRAFT_FAKE_NAME

// An OpenCL function: refuses, or lets behave() do it and counts it if it is a command.
template <auto Slot>
struct Call;

template <class Result, class... Arguments, Result (CL_API_CALL* Api::*Slot)(Arguments...)>
struct Call<Slot> {
  static Result CL_API_CALL run(Arguments... arguments) {
    constexpr const char* name = kName<Slot>;
    if (kYounger<Slot> && plan().major < 2) forbidden(name);
    if (const cl_int code = refused(name); code != CL_SUCCESS) return refuse(code, arguments...);
    if constexpr (std::is_void_v<Result>) {
      behave(Tag<Slot>{}, arguments...);
    } else {
      const Result result = behave(Tag<Slot>{}, arguments...);
      if (std::strncmp(name, "clEnqueue", 9) == 0) note(result, arguments...);
      return result;
    }
  }

 private:
  template <class Value>
  static void note(const Value& result, Arguments... arguments) {
    auto last = std::get<sizeof...(Arguments) - 1>(std::make_tuple(arguments...));
    if constexpr (std::is_same_v<Value, cl_int> && std::is_same_v<decltype(last), cl_event*>) {
      if (result == CL_SUCCESS) count_command(kName<Slot>, last);
    }
  }

  static Result refuse(cl_int code, Arguments... arguments) {
    auto last = std::get<sizeof...(Arguments) - 1>(std::make_tuple(arguments...));
    if constexpr (std::is_same_v<Result, cl_int>) {
      return code;
    } else {
      if constexpr (std::is_same_v<decltype(last), cl_int*>) {
        if (last != nullptr) *last = code;
      }
      return Result();
    }
  }
};

}  // namespace graft::fake_cl

#endif  // GRAFT_TESTS_DRIVERS_OPENCL_FAKE_ICD_CALL_H_
