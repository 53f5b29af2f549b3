# cmake/dependencies.cmake: the libraries Graft stands on; docs/develop/dependencies.md says why each was chosen.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(GRAFT_XXHASH_INCLUDE xxhash.h REQUIRED)

# A wheel carries no library besides its own: {fmt} goes into each of ours. Header-only, it would be compiled in every
# file that prints, at two thirds of the time that such a file takes.
add_library(graft_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt_definitions.cpp)
target_include_directories(graft_fmt SYSTEM PUBLIC $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)

add_library(graft_headers INTERFACE)
target_link_libraries(graft_headers INTERFACE graft_fmt nlohmann_json::nlohmann_json)
target_include_directories(graft_headers SYSTEM INTERFACE ${GRAFT_XXHASH_INCLUDE})
target_compile_definitions(graft_headers INTERFACE XXH_INLINE_ALL)

if(GRAFT_TESTS)
  find_package(GTest REQUIRED)
endif()

if(GRAFT_TORCH)
  include(${CMAKE_CURRENT_LIST_DIR}/torch_wheel.cmake)
endif()
