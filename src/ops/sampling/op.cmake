add_op(
  sampling
  SOURCES token_choice.cpp
  CPU sampling_cpu.cpp
  CUDA sampling_cuda.cu advance_cuda.cu top_tokens_cuda.cu
  TESTS sampling_test.cpp token_choice_test.cpp)
if(WITH_CUDA)
  # Weights have the bits that they have on the host, where no product is fused with a sum.
  set_source_files_properties(sampling/sampling_cuda.cu PROPERTIES COMPILE_OPTIONS "-fmad=false")
endif()
