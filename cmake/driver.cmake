# cmake/driver.cmake: graft_add_driver(<name> <sources>...) builds drivers/<name> as the module graft_<name>.so.
# A driver sees include/graft/driver.h and what its own CMakeLists.txt adds (its vendor's SDK), nothing else of Graft.
set(GRAFT_DRIVER_DIR ${PROJECT_BINARY_DIR}/drivers)

# The library exports no instance of the C++ library.
function(graft_keep_names target)
  set(script ${PROJECT_SOURCE_DIR}/sdk/graft_names.map)
  target_link_options(${target} PRIVATE LINKER:--version-script=${script})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
endfunction()

function(graft_add_driver name)
  add_library(graft_${name} MODULE ${ARGN})
  target_link_libraries(graft_${name} PRIVATE graft_driver_abi graft_warnings Threads::Threads)
  set_target_properties(graft_${name} PROPERTIES
    PREFIX "" SUFFIX .so LIBRARY_OUTPUT_DIRECTORY ${GRAFT_DRIVER_DIR})
  # No C++ object crosses the driver's table, so a driver brings what it uses of the C++ library of the compiler that
  # built it: an older system lacks std::condition_variable::wait of GCC 12's. What is unused goes, for it may want a
  # newer C library.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT GRAFT_SANITIZE)
    target_link_options(graft_${name} PRIVATE -static-libstdc++ LINKER:--exclude-libs,libstdc++.a
      LINKER:--gc-sections)
  endif()
  graft_keep_names(graft_${name})
  install(TARGETS graft_${name} DESTINATION drivers)
  set_property(GLOBAL APPEND PROPERTY GRAFT_DRIVERS graft_${name})
endfunction()
