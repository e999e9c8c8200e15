add_op(
  head_norm
  SOURCES head_norm.cpp
  CPU head_norm_cpu.cpp
  CUDA head_norm_cuda.cu
  TESTS head_norm_test.cpp)
