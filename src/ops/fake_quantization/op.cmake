add_op(
  fake_quantization
  SOURCES fake_quantization.cpp
  CPU fake_quantization_cpu.cpp
  CUDA fake_quantization_cuda.cu
  TESTS fake_quantization_test.cpp)
# Sums are not fused with products here: numbers are to be DeepSpeed's, bit for bit.
set_source_files_properties(fake_quantization/fake_quantization_cpu.cpp PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
