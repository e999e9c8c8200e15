add_op(
  matmul
  SOURCES matmul.cpp choices.cpp cpu_plans.cpp onednn.cpp
  CPU matmul_cpu.cpp column_sum_cpu.cpp
  CUDA matmul_cuda.cpp cublaslt.cpp add_bias_cuda.cu column_sum_cuda.cu
  TESTS matmul_test.cpp)
