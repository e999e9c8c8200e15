# What the build takes from packages. Each dependency is one imported target.

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_path(OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-pthread openblas
          HINTS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread REQUIRED)
if(BLOOMERY_PORTABLE)
  find_library(OPENBLAS_LIBRARY libopenblas.a PATH_SUFFIXES openblas-pthread REQUIRED)
else()
  find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread REQUIRED)
endif()
add_library(openblas INTERFACE)
target_include_directories(openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
target_link_libraries(openblas INTERFACE ${OPENBLAS_LIBRARY} Threads::Threads)

# Header-only use of fmt and spdlog: one translation unit includes them, so nothing is gained by
# linking their libraries, and a portable binary does not depend on their versions.
add_library(logging_headers INTERFACE)
target_compile_definitions(logging_headers INTERFACE FMT_HEADER_ONLY SPDLOG_HEADER_ONLY
                                                     SPDLOG_FMT_EXTERNAL)

if(WITH_CUDA)
  find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)
endif()
