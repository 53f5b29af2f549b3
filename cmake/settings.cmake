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
  # GCC 12 reports standard-library code under the sanitizers (GCC bug 105562); the plain builds keep the warning.
  target_compile_options(graft_warnings INTERFACE -Wno-maybe-uninitialized)
endif()
