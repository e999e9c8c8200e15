set(some_rows some_rows_no_sm90.cpp)
if(CMAKE_CUDA_ARCHITECTURES MATCHES "90a")
  set(some_rows some_rows_sm90.cu)
endif()
add_op(
  matmul
  SOURCES amx.cpp
          amx_kernels.cpp
          amx_operand.cpp
          amx_tiles.cpp
          matmul.cpp
          choices.cpp
          cpu_blocks.cpp
          cpu_plans.cpp
          onednn.cpp
  CPU matmul_cpu.cpp own_product_cpu.cpp column_sum_cpu.cpp
  CUDA matmul_cuda.cpp cublaslt.cpp cublaslt_library.cpp few_rows_cuda.cu epilogue_cuda.cu column_sum_cuda.cu ${some_rows}
  TESTS amx_blocks_test.cpp amx_test.cpp epilogue_test.cpp fp8_matmul_test.cpp
        matmul_test.cpp own_product_test.cpp)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ 12 takes the undefined starting values in its own vector headers for mistakes.
  set_source_files_properties(matmul/amx_tiles.cpp PROPERTIES COMPILE_OPTIONS
                              "-Wno-uninitialized;-Wno-maybe-uninitialized")
endif()
