# tests/labels.cmake: what a GoogleTest binary runs again elsewhere, by labels that stand in the tests' sources.
#
# A line "// labels: <name> ..." above a test labels that test; "// labels of the file: <name> ..." labels each test below
# it. ctest has its labels per registered test; these choose the tests inside one run of a binary.

# graft_if_labelled(<variable> <folder> <label>): the value for --gtest_filter that selects the tests with this label in
# tests/<folder>; empty if none has it.
function(graft_if_labelled variable folder label)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*_test.cpp)
  set(patterns "")
  foreach(source IN LISTS sources)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} lines REGEX "^(// labels|TEST(_F|_P)?\\()")
    set(file_labels "")
    set(labels "")
    foreach(line IN LISTS lines)
      if(line MATCHES "^// labels of the file: (.*)$")
        separate_arguments(file_labels UNIX_COMMAND "${CMAKE_MATCH_1}")
      elseif(line MATCHES "^// labels: (.*)$")
        separate_arguments(labels UNIX_COMMAND "${CMAKE_MATCH_1}")
      elseif(line MATCHES "^TEST(_F|_P)?\\(([A-Za-z0-9]+), ([A-Za-z0-9]+)\\)")
        if(label IN_LIST file_labels OR label IN_LIST labels)
          set(pattern "${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
          if(CMAKE_MATCH_1 STREQUAL "_P")
            set(pattern "*/${pattern}/*")
          endif()
          list(APPEND patterns "${pattern}")
        endif()
        set(labels "")
      endif()
    endforeach()
  endforeach()
  list(JOIN patterns ":" filter)
  set(${variable} "${filter}" PARENT_SCOPE)
endfunction()

# graft_labelled(<variable> <folder> <label>): the same, and an error if no test has the label.
function(graft_labelled variable folder label)
  graft_if_labelled(filter ${folder} ${label})
  if(NOT filter)
    message(FATAL_ERROR "no test in tests/${folder} has the label ${label}: write '// labels: ${label}' above one")
  endif()
  set(${variable} "${filter}" PARENT_SCOPE)
endfunction()

# graft_labelled_files(<variable> <label>): the files of tests whose line "// labels of the file:" has this label. An error
# if there is none.
function(graft_labelled_files variable label)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cpp)
  set(found "")
  foreach(source IN LISTS sources)
    file(STRINGS ${source} lines REGEX "^// labels of the file: (.* )?${label}( |$)")
    if(lines)
      list(APPEND found ${source})
    endif()
  endforeach()
  if(NOT found)
    message(FATAL_ERROR "no file of tests has the label ${label}: write '// labels of the file: ${label}' in one")
  endif()
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()
