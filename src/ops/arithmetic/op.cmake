add_op(
  arithmetic
  SOURCES arithmetic.cpp
  CPU arithmetic_cpu.cpp
  CUDA arithmetic_cuda.cu
  TESTS arithmetic_test.cpp)
