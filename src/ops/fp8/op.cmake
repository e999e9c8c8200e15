add_op(
  fp8
  SOURCES fp8_layers.cpp quantize.cpp
  CPU quantize_cpu.cpp scales_cpu.cpp
  CUDA quantize_activation_cuda.cu quantize_cuda.cu scales_cuda.cu
  TESTS quantize_test.cpp scales_test.cpp)
