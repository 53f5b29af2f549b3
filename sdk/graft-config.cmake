# sdk/graft-config.cmake: find_package(graft) gives graft::driver, which a driver links: the headers, and what makes a
# module that any process loads.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)

if(NOT TARGET graft::driver)
  add_library(graft::driver INTERFACE IMPORTED)
  target_include_directories(graft::driver INTERFACE ${root}/include)
  target_link_libraries(graft::driver INTERFACE Threads::Threads)
  # No C++ object crosses the driver's table, so a driver brings what it uses of its compiler's C++ library.
  target_link_options(graft::driver INTERFACE
    $<$<LINK_LANG_AND_ID:CXX,GNU>:-static-libstdc++> $<$<LINK_LANG_AND_ID:CXX,GNU>:LINKER:--exclude-libs,libstdc++.a>
    LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/graft_names.map)
endif()
unset(root)
