add_op(
  arithmetic
  SOURCES arithmetic.cpp
  CPU arithmetic_cpu.cpp copy_columns_cpu.cpp
  CUDA arithmetic_cuda.cu copy_columns_cuda.cu
  TESTS arithmetic_test.cpp copy_columns_test.cpp)
