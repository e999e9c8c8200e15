add_op(
  quantized
  SOURCES quantized.cpp quantized_product.cpp quantized_weights.cpp
  CPU quantized_cpu.cpp quantized_product_cpu.cpp
  CUDA quantized_cuda.cu quantized_product_cuda.cu
  TESTS quantized_product_test.cpp quantized_test.cpp)
