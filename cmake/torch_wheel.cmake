# cmake/torch_wheel.cmake: finds the torch wheel of the given Python and offers it as the target `torch_wheel`.
find_package(Python 3.10 COMPONENTS Interpreter Development.Module REQUIRED)
execute_process(
  COMMAND ${Python_EXECUTABLE} -c
          "import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec('torch').origin).parent)"
  OUTPUT_VARIABLE GRAFT_TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE torch_missing)
if(torch_missing)
  message(FATAL_ERROR "GRAFT_TORCH=ON needs torch in ${Python_EXECUTABLE}: install it there "
                      "(pip install -c constraints.txt torch) or give -DPython_EXECUTABLE=<environment>/bin/python.")
endif()
message(STATUS "torch wheel: ${GRAFT_TORCH_DIR}")

add_library(torch_wheel INTERFACE)
target_include_directories(torch_wheel SYSTEM INTERFACE
  ${GRAFT_TORCH_DIR}/include ${GRAFT_TORCH_DIR}/include/torch/csrc/api/include)
target_link_directories(torch_wheel INTERFACE ${GRAFT_TORCH_DIR}/lib)
target_link_libraries(torch_wheel INTERFACE torch torch_cpu c10)
# The wheel links libtorch.so with --as-needed semantics of its own: registrations must keep torch_cpu loaded.
target_link_options(torch_wheel INTERFACE -Wl,--no-as-needed)

# What a Python extension module needs on top.
add_library(torch_wheel_python INTERFACE)
target_link_libraries(torch_wheel_python INTERFACE torch_wheel torch_python Python::Module)
