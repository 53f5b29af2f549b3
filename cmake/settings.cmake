# cmake/settings.cmake: language level, warnings, sanitizers, visibility and run paths for all targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The files of a wheel find one another wherever it is installed.
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/lib;$ORIGIN/../lib")
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

find_program(GRAFT_CCACHE ccache)
if(GRAFT_CCACHE)
  foreach(language C CXX)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${GRAFT_CCACHE})
    endif()
  endforeach()
endif()

# Linked privately by every target of ours; generated code does not take it.
add_library(graft_warnings INTERFACE)
# GCC 12 sees overlaps in std::string's operator+ that are not there (GCC bug 105651).
target_compile_options(graft_warnings INTERFACE -Wall -Wextra -Werror $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)

if(GRAFT_SANITIZE)
  add_compile_options(-fsanitize=${GRAFT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${GRAFT_SANITIZE})
  # clang has no such names of its own.
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND GRAFT_SANITIZE MATCHES thread)
    add_compile_definitions(__SANITIZE_THREAD__)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND GRAFT_SANITIZE MATCHES address)
    add_compile_definitions(__SANITIZE_ADDRESS__)
  endif()
  # GCC 12 reports standard-library code under the sanitizers (GCC bug 105562); the plain builds keep the warning.
  target_compile_options(graft_warnings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
endif()

# graft_precompile(<target> [<header>...]) parses once per target what nearly each of its files includes. GCC 12 then
# takes the standard library's code for ours and warns of it; the release build compiles src without and keeps the warnings.
function(graft_precompile target)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <cstdint> <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <unordered_map> <vector>
    <fmt/format.h> ${ARGN})
  # With -fpch-preprocess ccache sees the precompiled header among what it reads.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess> $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow> $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overread>
    # Or each precompiled header has the times of its sources, and ccache finds nothing that was compiled with it.
    "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()

option(GRAFT_BATCHES "Compile the files of a row as one: half the time from nothing, more after a change" ON)
# graft_compile_together(<target> <name>...) compiles <name>.cpp and the others, of the current folder, as one file.
# GCC lets a file grow by inlining up to a size that does not depend on how many are one: a target's rows get that of as
# many as its first has, or accessors of tensors stay calls (a graph of 161 parameters took 1.06 of its time).
# CMake's own UNITY_BUILD names files by absolute path, so ccache would find nothing of theirs in a clone elsewhere.
function(graft_compile_together target first)
  if(NOT GRAFT_BATCHES)
    return()
  endif()
  set(sources ${first} ${ARGN})
  list(TRANSFORM sources APPEND .cpp)
  set(text)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH included ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    string(APPEND text "#include \"${included}\"\n")
  endforeach()
  set(row ${CMAKE_CURRENT_BINARY_DIR}/rows/${first}.cpp)
  file(CONFIGURE OUTPUT ${row} CONTENT "${text}" @ONLY)
  target_sources(${target} PRIVATE ${row})
  list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_source_files_properties(${sources} PROPERTIES HEADER_FILE_ONLY ON)
  # GCC warns of types of an unnamed namespace that a type uses outside the main file, which the files of a row are.
  get_target_property(options ${target} COMPILE_OPTIONS)
  list(LENGTH sources files)
  math(EXPR insns "10000 * ${files}")
  set(more $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=large-unit-insns=${insns}>)
  if(NOT "${options}" MATCHES large-unit-insns)
    target_compile_options(${target} PRIVATE ${more})
  endif()
endfunction()
