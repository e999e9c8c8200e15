add_op(
  optimizer
  CPU gradient_norm_cpu.cpp update_cpu.cpp split_master_cpu.cpp
  CUDA gradient_norm_cuda.cu update_cuda.cu split_master_cuda.cu
  TESTS optimizer_test.cpp)
