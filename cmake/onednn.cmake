# cmake/onednn.cmake: finds oneDNN (TBB flavour) as PyPI's onednn-devel-cpu-tbb and tbb-devel put it into an environment.
# GRAFT_ONEDNN_ROOT names that environment; unset, the given Python's, the active one and .venv are searched.
# PyPI has it for x86-64 alone, and drivers/host/onednn uses that processor's instructions.
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  return()
endif()
set(GRAFT_ONEDNN_ROOT "" CACHE PATH "Prefix that holds include/oneapi/dnnl and lib/libdnnl.so")
set(onednn_places ${GRAFT_ONEDNN_ROOT})
if(Python_EXECUTABLE)
  cmake_path(GET Python_EXECUTABLE PARENT_PATH python_bin)
  cmake_path(GET python_bin PARENT_PATH python_prefix)
  list(APPEND onednn_places ${python_prefix})
endif()
list(APPEND onednn_places $ENV{VIRTUAL_ENV} ${PROJECT_SOURCE_DIR}/.venv)

find_path(GRAFT_ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp PATHS ${onednn_places} PATH_SUFFIXES include NO_DEFAULT_PATH)
find_library(GRAFT_ONEDNN_LIBRARY dnnl PATHS ${onednn_places} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(GRAFT_TBB_LIBRARY tbb PATHS ${onednn_places} PATH_SUFFIXES lib NO_DEFAULT_PATH)

if(GRAFT_ONEDNN_INCLUDE AND GRAFT_ONEDNN_LIBRARY AND GRAFT_TBB_LIBRARY)
  file(STRINGS ${GRAFT_ONEDNN_INCLUDE}/oneapi/dnnl/dnnl_config.h onednn_runtime
       REGEX "define DNNL_CPU_RUNTIME DNNL_RUNTIME_TBB")
endif()
if(onednn_runtime)
  add_library(graft_onednn INTERFACE)
  target_include_directories(graft_onednn SYSTEM INTERFACE ${GRAFT_ONEDNN_INCLUDE})
  target_link_libraries(graft_onednn INTERFACE ${GRAFT_ONEDNN_LIBRARY} ${GRAFT_TBB_LIBRARY})
  cmake_path(GET GRAFT_ONEDNN_LIBRARY PARENT_PATH onednn_folder)
  # libdnnl.so names libraries of its own folder and no path to them: only DT_RPATH reaches so far.
  target_link_options(graft_onednn INTERFACE LINKER:--disable-new-dtags LINKER:-rpath-link,${onednn_folder})
else()
  message(WARNING "oneDNN for TBB was not found: the host driver is built without graft.blas and graft.dnn. "
                  "Run `pip install -c constraints.txt onednn-devel-cpu-tbb tbb-devel intel-cmplr-lib-rt`.")
endif()
