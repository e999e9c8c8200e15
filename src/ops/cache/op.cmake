add_op(
  cache
  SOURCES cache.cpp cached_attention.cpp
  CPU cached_attention_cpu.cpp
  CUDA cached_attention_cuda.cu step_attention_cuda.cu
  TESTS cache_test.cpp cached_attention_test.cpp)
