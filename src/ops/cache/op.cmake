set(group_attention group_attention_no_sm90.cpp)
if(CMAKE_CUDA_ARCHITECTURES MATCHES "90a")
  set(group_attention group_attention_sm90.cu)
endif()
add_op(
  cache
  SOURCES cache.cpp cached_attention.cpp cached_cross_attention.cpp
  CPU cached_attention_cpu.cpp cached_cross_attention_cpu.cpp
  CUDA cached_attention_cuda.cu cached_cross_attention_cuda.cu step_attention_cuda.cu ${group_attention}
  TESTS cache_test.cpp cached_attention_test.cpp cached_cross_attention_test.cpp)
