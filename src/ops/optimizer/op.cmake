add_op(
  optimizer
  CPU gradient_norm_cpu.cpp update_cpu.cpp weight_halves_cpu.cpp
  CUDA gradient_norm_cuda.cu update_cuda.cu weight_halves_cuda.cu
  TESTS optimizer_test.cpp)
