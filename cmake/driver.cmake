# cmake/driver.cmake: graft_add_driver(<name> <sources>...) builds drivers/<name> as the module graft_<name>.so.
# A driver sees include/graft/driver.h and what its own CMakeLists.txt adds (its vendor's SDK), nothing else of Graft.
set(GRAFT_DRIVER_DIR ${PROJECT_BINARY_DIR}/drivers)

function(graft_add_driver name)
  add_library(graft_${name} MODULE ${ARGN})
  target_link_libraries(graft_${name} PRIVATE graft_driver_abi graft_warnings Threads::Threads)
  set_target_properties(graft_${name} PROPERTIES
    PREFIX "" SUFFIX .so LIBRARY_OUTPUT_DIRECTORY ${GRAFT_DRIVER_DIR})
  install(TARGETS graft_${name} DESTINATION drivers)
  set_property(GLOBAL APPEND PROPERTY GRAFT_DRIVERS graft_${name})
endfunction()
