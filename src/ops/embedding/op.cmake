add_op(
  embedding
  SOURCES embedding.cpp
  CPU embedding_cpu.cpp
  CUDA embedding_cuda.cu embedding_backward_cuda.cu
  TESTS embedding_test.cpp)
