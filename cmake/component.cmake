# add_component(NAME DEPENDS ... SOURCES ... CPU ... CUDA ... TESTS ... PRIVATE ...)
#
# One static library per folder of src/, so that the layer rule is also a link rule.
#   SOURCES  ordinary files.
#   CPU      kernel files, compiled once per instruction-set level (see device/launch.h): the
#            file sees BLOOMERY_CPU_LEVEL and defines run(ThisCpu, ...). The lowest level comes
#            first, so that the linker keeps its copy of any inline function they share.
#   CUDA     files compiled only with WITH_CUDA.
#   TESTS    files of the test program bloomery_NAME_test.
#   PRIVATE  further libraries this folder links.

function(add_component name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;SOURCES;CPU;CUDA;TESTS;PRIVATE" ${ARGN})
  set(library bloomery_${name})
  set(sources ${ARG_SOURCES})
  if(WITH_CUDA)
    list(APPEND sources ${ARG_CUDA})
  endif()
  set(level_objects)
  foreach(entry IN LISTS BLOOMERY_CPU_LEVELS)
    if(ARG_CPU)
      string(REGEX MATCH "^([0-9]):(.*)$" _ "${entry}")
      set(level ${CMAKE_MATCH_1})
      separate_arguments(flags UNIX_COMMAND "${CMAKE_MATCH_2}")
      set(object ${library}_level${level})
      add_library(${object} OBJECT ${ARG_CPU})
      target_link_libraries(${object} PUBLIC bloomery_settings ${ARG_PRIVATE})
      target_compile_definitions(${object} PRIVATE BLOOMERY_CPU_LEVEL=${level})
      target_compile_options(${object} PRIVATE ${flags} -fno-math-errno -fno-trapping-math
                                               -ffp-contract=fast)
      list(APPEND level_objects $<TARGET_OBJECTS:${object}>)
    endif()
  endforeach()
  if(sources OR level_objects)
    add_library(${library} STATIC ${sources} ${level_objects})
    compile_in_batches(${library})
    set(visibility PUBLIC)
    target_link_libraries(${library} PRIVATE ${ARG_PRIVATE})
  else()
    add_library(${library} INTERFACE)
    set(visibility INTERFACE)
  endif()
  list(TRANSFORM ARG_DEPENDS PREPEND bloomery_)
  target_link_libraries(${library} ${visibility} bloomery_settings ${ARG_DEPENDS})
  if(ARG_TESTS)
    add_bloomery_test(${name} SOURCES ${ARG_TESTS} DEPENDS ${library} ${ARG_PRIVATE})
  endif()
endfunction()

# A test program with GoogleTest's main; every test runs with the repository root in
# BLOOMERY_ROOT so that it finds golden files.
function(add_bloomery_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(bloomery_${name}_test ${ARG_SOURCES})
  compile_in_batches(bloomery_${name}_test)
  if(BLOOMERY_UNITY)  # a quick first build: tests themselves compute little
    target_compile_options(bloomery_${name}_test PRIVATE -O1)
  endif()
  target_link_libraries(bloomery_${name}_test PRIVATE ${ARG_DEPENDS} bloomery_testing
                                                      GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND bloomery_${name}_test)
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "BLOOMERY_ROOT=${CMAKE_SOURCE_DIR}"
                                          LABELS fast TIMEOUT 900)
endfunction()
