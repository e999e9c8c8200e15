add_op(
  retrieval
  CPU retrieval_cpu.cpp
  CUDA retrieval_cuda.cu
  TESTS retrieval_test.cpp)
