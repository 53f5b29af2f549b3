# cmake/torch_wheel.cmake: finds torch, of one or several minor versions, and offers each as targets.
# For a minor version such as 2.15: torch_2.15 (its C++ libraries), torch_2.15_python (what an extension module needs
# beside them) and the variable torch_2.15_folder. TORCH_MINORS lists the versions.
find_package(Python 3.10 COMPONENTS Interpreter Development.Module REQUIRED)
# pyproject.toml's metadata reads the same variable of the environment: a wheel requires the versions that it serves.
set(torch_folders "$ENV{GRAFT_TORCHES}")
string(REPLACE ":" ";" torch_folders "${torch_folders}")
if(NOT torch_folders)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
            "import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec('torch').origin).parent)"
    OUTPUT_VARIABLE torch_folders OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE torch_missing)
  if(torch_missing)
    message(FATAL_ERROR "GRAFT_TORCH=ON needs torch in ${Python_EXECUTABLE}: install it there "
                        "(pip install -c constraints.txt torch), give -DPython_EXECUTABLE=<environment>/bin/python, "
                        "or name folders of torch packages in the environment variable GRAFT_TORCHES, with : between.")
  endif()
endif()

set(TORCH_MINORS)
foreach(folder IN LISTS torch_folders)
  if(NOT EXISTS ${folder}/version.py)
    message(FATAL_ERROR "${folder} is no torch package: it has no version.py.")
  endif()
  file(STRINGS ${folder}/version.py torch_version REGEX "^__version__ = ")
  string(REGEX MATCH "[0-9]+\\.[0-9]+" minor "${torch_version}")
  if(minor IN_LIST TORCH_MINORS)
    message(FATAL_ERROR "GRAFT_TORCHES names two packages of torch ${minor}; name one of each minor version.")
  endif()
  message(STATUS "torch ${minor}: ${folder}")
  list(APPEND TORCH_MINORS ${minor})
  set(torch_${minor}_folder ${folder})

  add_library(torch_${minor} INTERFACE)
  target_include_directories(torch_${minor} SYSTEM INTERFACE
    ${folder}/include ${folder}/include/torch/csrc/api/include)
  target_link_directories(torch_${minor} INTERFACE ${folder}/lib)
  target_link_libraries(torch_${minor} INTERFACE torch torch_cpu c10)
  # The wheel links libtorch.so with --as-needed semantics of its own: registrations must keep torch_cpu loaded.
  target_link_options(torch_${minor} INTERFACE -Wl,--no-as-needed)

  add_library(torch_${minor}_python INTERFACE)
  target_link_libraries(torch_${minor}_python INTERFACE torch_${minor} torch_python Python::Module)
endforeach()
