add_op(
  transpose
  CPU swap_dims_cpu.cpp
  CUDA swap_dims_cuda.cu
  TESTS swap_dims_test.cpp)
