# What the build takes from packages. Each dependency is one imported target.

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)

# Libraries by the names of Debian's packages; a portable binary takes their static form.
function(add_package_library target header)
  add_library(${target} INTERFACE)
  find_path(${target}_include ${header} REQUIRED)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_include})
  foreach(library IN LISTS ARGN)
    if(BLOOMERY_PORTABLE)
      find_library(${library}_library lib${library}.a REQUIRED)
    else()
      find_library(${library}_library ${library} REQUIRED)
    endif()
    target_link_libraries(${target} INTERFACE ${${library}_library})
  endforeach()
endfunction()

add_package_library(protobuf google/protobuf/io/coded_stream.h protobuf-lite)
add_package_library(compression zlib.h z lzma zstd)
add_package_library(xxhash xxhash.h xxhash)
target_link_libraries(protobuf INTERFACE Threads::Threads)
