add_op(
  cache
  SOURCES cache.cpp cached_attention.cpp cached_cross_attention.cpp
  CPU cached_attention_cpu.cpp cached_cross_attention_cpu.cpp
  CUDA cached_attention_cuda.cu cached_cross_attention_cuda.cu step_attention_cuda.cu
  TESTS cache_test.cpp cached_attention_test.cpp cached_cross_attention_test.cpp)
